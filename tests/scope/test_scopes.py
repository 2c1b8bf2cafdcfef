"""Name scopes: labels of where a call stands, restored on every exit."""

from synmod.leaves.aio import checkpoint, task_group
from synmod.scope import NameScope, current_scope
from tests.scope.part import Part


def test_outside_there_is_no_scope():
    """Plain code has no label."""
    assert current_scope() == ""


def test_a_call_is_in_the_scope_of_its_callers(any_loop):
    """The scope is dynamic: a shared part shows under whoever calls it."""
    seen = []

    async def note(_):
        seen.append(current_scope())

    shared = Part("shared", note)
    first, second = Part("first", lambda _: shared()), Part("second", lambda _: shared())

    async def body(_):
        await first()
        await second()
        seen.append(current_scope())

    any_loop(Part("top", body))
    assert seen == ["top/first/shared", "top/second/shared", "top"]


def test_blocks_and_calls_mix(any_loop):
    """A part called inside a block runs in it, while its name stays its own."""
    seen = []

    async def inner(_):
        seen.append(current_scope())
        with NameScope(Part("note")):
            seen.append(current_scope())
            await Part("leaf", leaf)()

    async def leaf(_):
        seen.append(current_scope())

    async def main():
        outer = Part("outer")
        with NameScope(outer):
            assert current_scope() == "outer"
            with NameScope(Part("more")):
                assert current_scope() == "outer/more"
                await Part("bar", inner)()
            assert current_scope() == "outer"

    any_loop(main)
    assert seen == ["outer/more/bar", "outer/more/bar/note", "outer/more/bar/note/leaf"]


def test_entering_the_innermost_scope_again_adds_nothing(any_loop):
    """Blocks may be entered as often as one likes; equal names of two parts are two."""

    async def body(_):
        with NameScope(part), NameScope(part):
            return current_scope()

    part = Part("p", body)

    async def main():
        assert await part() == "p"
        scope = NameScope(part)
        with scope, scope, NameScope(Part("p")):
            assert current_scope() == "p/p"
            with scope:
                assert current_scope() == "p/p/p"

    any_loop(main)
    assert current_scope() == ""


def test_an_error_restores_the_scope():
    """It is what it was."""
    try:
        with NameScope(Part("a")):
            raise ValueError
    except ValueError:
        pass
    assert current_scope() == ""


def test_tasks_have_their_own_scope(any_loop):
    """Siblings do not see each other's labels."""
    seen = []

    async def one(name):
        with NameScope(Part(name)):
            await checkpoint()
            seen.append(current_scope())

    async def main():
        with NameScope(Part("all")):
            async with task_group() as group:
                for name in "abc":
                    group.start_soon(one, name)

    any_loop(main)
    assert sorted(seen) == ["all/a", "all/b", "all/c"]
