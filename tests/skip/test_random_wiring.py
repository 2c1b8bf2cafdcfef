"""Random wiring: verification agrees with a naive model, and running agrees with verification."""

import asyncio

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.skip import Namespace, SkipVerifyError, pop, skip_layout, skippable, stash, verify_skippables
from tests.skip.parts import QUERY, Query

NAMES = ("a", "b")
SPACES = (None, Namespace("one"), Namespace("two"))

leaf = st.tuples(
    st.frozensets(st.sampled_from(NAMES)), st.frozensets(st.sampled_from(NAMES)), st.integers(0, len(SPACES) - 1)
)
row = st.recursive(st.lists(leaf, max_size=4), lambda inner: st.lists(leaf | inner, max_size=4), max_leaves=8)


def made(spec, log):
    """A program of a specification: a tuple is a leaf, a list a Sequential."""
    if isinstance(spec, list):
        return sm.Sequential([made(each, log) for each in spec])
    stashes, pops, space = spec

    @skippable(stash=stashes, pop=pops)
    class Leaf(sm.Module):
        async def call(self, inputs):
            for name in sorted(pops):
                log.append((name, space, pop(name)))
            for name in sorted(stashes):
                stash(name, (name, space, len(log)))
            await asyncio.sleep(0)
            return inputs

    module = Leaf()
    return module.isolate(SPACES[space]) if SPACES[space] is not None and stashes | pops else module


def flat(spec, path=()):
    """The leaves with their paths, in order."""
    for index, each in enumerate(spec):
        if isinstance(each, list):
            yield from flat(each, (*path, index))
        else:
            yield "/".join(map(str, (*path, index))), each


def naive(spec):
    """The problems and routes, by the rules as they are written, one leaf after the other."""
    stashed, popped, found, routes = {}, {}, [], {}
    for position, (path, (stashes, pops, space)) in enumerate(flat(spec)):
        both = stashes & pops
        found += [(position, "both", path, name) for name in sorted(both)]
        for name in sorted(stashes - both):
            if (name, space) in stashed:
                found.append((position, "restashed", path, name))
            else:
                stashed[name, space] = position, path
        for name in sorted(pops - both):
            if (name, space) in popped:
                found.append((position, "repopped", path, name))
            elif (name, space) not in stashed:
                found.append((position, "unstashed", path, name))
            else:
                popped[name, space] = path
                routes[SPACES[space], name] = stashed[name, space][1], path
    found += [
        (position, "unpopped", path, name)
        for (name, space), (position, path) in stashed.items()
        if (name, space) not in popped
    ]
    return sorted(each[1:] for each in found), routes


@pytest.mark.slow
@given(row)
@settings(deadline=None)
def test_verification_agrees_with_a_naive_model(spec):
    """The same problems, and the same routes."""
    program = made(spec, [])
    expected, routes = naive(spec)
    assert dict(skip_layout(program)) == routes
    problems = []
    try:
        verify_skippables(program)
    except SkipVerifyError as error:
        problems = error.problems
    assert sorted((each.kind, each.path, each.name) for each in problems) == expected
    positions = [[path for path, _ in flat(spec)].index(each.path) for each in problems]
    assert positions == sorted(positions)


@given(row)
@settings(deadline=None)
def test_running_agrees_with_verification(spec):
    """What verifies runs, alone and in crowds, and leaves nothing; what does not is refused before anything runs."""
    log = []
    program = made(spec, log)
    if not spec:
        return

    async def crowd():
        await asyncio.gather(*(program(QUERY) for _ in range(3)))

    expected, routes = naive(spec)
    if expected:
        with pytest.raises(SkipVerifyError):
            sm.run(program, QUERY)
        assert log == []
        return
    dropped = []

    class Hook(sm.Hook):
        def on_skip_dropped(self, event):
            dropped.append(event)

    with sm.hooks(Hook()):
        sm.run(program, QUERY)
        sm.run(crowd)
    assert dropped == []
    assert len(log) == 4 * len(routes)
    assert all(value[:2] == (name, space) for name, space, value in log)
    sm.run(sm.build, made(spec, []), Query)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=6), st.randoms())
@settings(deadline=None)
def test_random_graphs_run_in_an_order_that_skips_allow(needs, random):
    """Pairs over random branches: either a cycle is told, or every consumer gets its value."""

    async def compose():
        x = sm.Input(Query)
        order = list(range(len(needs)))
        random.shuffle(order)
        symbols = [x]
        for index in order:
            after, stashes = needs[index]
            symbols.append(await half(index // 2, stashes)(symbols[after % len(symbols)]))
        return sm.Program(inputs=x, outputs=symbols[1:])

    pairs = [needs[index : index + 2] for index in range(0, len(needs), 2)]
    is_paired = all(len(pair) == 2 and pair[0][1] != pair[1][1] for pair in pairs)
    try:
        program = sm.run(compose)
    except SkipVerifyError as error:
        kinds = {each.kind for each in error.problems}
    else:
        kinds = set()
        for _ in range(2):
            outs = sm.run(program, QUERY)
            assert all(out["question"] for out in outs)
    assert kinds <= {"cycle"} if is_paired else kinds


def half(number, stashes):
    """One end of a pair."""
    name = f"skip{number}"

    if stashes:

        @skippable(stash={name: Query})
        class End(sm.Module):
            async def call(self, inputs) -> Query:
                await asyncio.sleep(0)
                stash(name, inputs)
                return inputs

    else:

        @skippable(pop={name: Query})
        class End(sm.Module):
            async def call(self, inputs) -> Query:
                return pop(name)

    return End()
