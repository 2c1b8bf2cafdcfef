"""`call`: a method on a private merge; state in, state out."""

import asyncio

import pytest

import synmod as sm
from tests.module.models import Query
from tests.tree.parts import Leaf, Tree


@pytest.fixture
def parts():
    return sm.split(Tree())


async def test_methods_run_on_a_private_merge(parts):
    """Attributes and items walk down; the state comes back, the original is untouched, the graph is the same object."""
    graphdef, state = parts
    out, (again, after) = await sm.call(parts).a.write("new")
    assert out == 3
    assert again is graphdef
    assert after["more/again/prompt"].value == "new"
    assert state["more/again/prompt"].value == "a"
    out, (again, _) = await sm.call((graphdef, after)).more["again"].write("x")
    assert out == 1
    assert again is graphdef


def test_the_proxy_hides_no_name():
    """Whatever a module calls its attributes, they are walked to."""
    for name in ("_states", "_steps", "_graphdef", "states", "merge"):
        holder = Tree()
        setattr(holder, name, Leaf("q"))
        assert getattr(sm.call(sm.split(holder)), name).read()[0] == "q"


def test_plain_methods_return_at_once(parts):
    """No coroutine."""
    out, (graphdef, state) = sm.call(parts).b.read(by="!")
    assert out == "b!"
    assert (graphdef, state) == parts
    assert sm.call(sm.split({"b": Leaf("q")}))["b"].read()[0] == "q"


async def test_streams_have_their_state(parts):
    """It is final at the end of the iterator."""
    stream = sm.call(parts).a.stream("x", "y")
    assert [item async for item in stream] == ["x", "y"]
    assert stream.state["more/again/prompt"].value == "y"
    assert stream.graphdef is parts[0]
    early = sm.call(parts).a.stream("x", "y")
    await anext(early)
    await early.aclose()
    assert early.state["more/again/prompt"].value == "x"


async def test_calling_the_program_itself(parts):
    """A first call seals it, so its graph is another; from then on it is the same."""
    out, pair = await sm.call(parts)(Query(question="q"))
    assert out["question"] == "q"
    out, again = await sm.call(pair)(Query(question="q"))
    assert again[0] is pair[0]


async def test_fifty_calls_with_fifty_states(parts):
    """They know nothing of one another."""
    graphdef, state = parts
    states = [state.replace({"b/prompt": str(n)}) for n in range(50)]
    results = await asyncio.gather(*(sm.call((graphdef, each)).b.write("=" * n) for n, each in enumerate(states)))
    assert [len(after["b/prompt"].value) for _, (_, after) in results] == list(range(50))
    assert [each["b/prompt"].value for each in states] == [str(n) for n in range(50)]


def test_what_is_no_pair_is_refused(parts):
    """An ArgumentError, at once; a State that does not fit, at the call; no method, an AttributeError."""
    for wrong in (parts[0], (parts[0],), 3, (1, 2)):
        with pytest.raises(sm.ArgumentError):
            sm.call(wrong)
    with pytest.raises(sm.StateError, match="Expected key"):
        sm.call((parts[0], {})).a.read()
    with pytest.raises(AttributeError):
        sm.call(parts).a.nothing()
    params, rest = sm.split(Tree(), sm.Param, ...)[1:]
    assert sm.call((parts[0], params, rest)).a.read()[0] == "a"
