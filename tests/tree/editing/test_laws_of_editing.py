"""Laws over generated programs: order of the walk, parts, refusals that change nothing, editing in place."""

import dataclasses
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

import synmod as sm
from synmod.tree import RefMap, Variable, flatten, unflatten
from tests.tree.stores import JSON, Store, programs


def parts(value):
    """The pairs of a container."""
    if isinstance(value, dict):
        return list(value.items())
    if dataclasses.is_dataclass(value):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    if hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))
    return list(enumerate(value)) if isinstance(value, list | tuple | deque) else []


def by_hand(x, path=(), seen=None, out=None):
    """The order of the walk, written as the plainest recursion: a node, its own values, then its child nodes."""
    seen, out = set() if seen is None else seen, [] if out is None else out

    def own(pairs, at, later):
        for step, value in pairs:
            here = (*at, step)
            if isinstance(value, Variable):
                if id(value) not in seen:
                    seen.add(id(value))
                    out.append((here, value))
            elif isinstance(value, Store):
                later.append((here, value))
            elif isinstance(value, list | tuple | dict | deque) or dataclasses.is_dataclass(value):
                out.append((here, value))
                own(parts(value), here, later)

    def node(value, at):
        if id(value) in seen:
            return
        seen.add(id(value))
        out.append((at, value))
        later = []
        own(list(value.entries.items()), at, later)
        for place, child in later:
            node(child, place)

    later = []
    if isinstance(x, Store):
        node(x, path)
    else:
        out.append((path, x))
        own(parts(x), path, later)
        for place, child in later:
            node(child, place)
    return out


@given(programs)
def test_the_walk_goes_as_the_page_says(program):
    """Against a recursion that does nothing else."""
    wanted = [(path, id(x)) for path, x in by_hand(program)]
    assert [(path, id(x)) for path, x in sm.iter_graph(program)] == wanted
    paths = [path for path, _ in wanted]
    assert list(sm.state(program)) == [path for path in paths if path in sm.state(program).flat()]


@given(
    programs, st.lists(st.sampled_from([sm.Param, sm.Memory, "prompt", sm.Trainable(), sm.Path("**/a")]), max_size=3)
)
def test_filters_part_a_program_without_rest_or_overlap(program, filters):
    """With `...` last every leaf is in exactly one State, the first that takes it; without it a rest is an error."""
    graphdef, *states = sm.split(program, *filters, ...)
    whole = sm.state(program)
    assert sum(map(len, states)) == len(whole)
    assert {path for state in states for path in state} == set(whole)
    assert sm.state(sm.merge(graphdef, *reversed(states))) == whole
    assert sm.state(program, *filters, ...) == (tuple(states) if filters else states[0])
    if len(states[-1]) and filters:
        with pytest.raises(sm.StateError, match="Non-exhaustive") as caught:
            sm.split(program, *filters)
        assert all(repr(sm.tree.path_str(path)) in str(caught.value) for path in states[-1])


@given(programs, st.lists(st.sampled_from(["nowhere", "no/where", "a/b/c/d/e"]), min_size=1, max_size=3, unique=True))
def test_a_refused_state_names_every_path_and_changes_nothing(program, lost):
    """Whatever else in it would have fitted."""
    whole = sm.state(program)
    before = sm.split(program)
    versions = [variable.version for variable in sm.variables(program).values()]
    bad = {sm.tree.path_str(path): "other" for path in whole} | dict.fromkeys(lost, 1)
    if () in whole:
        return
    for refuse in (lambda: sm.update(program, bad), lambda: sm.merge(before[0], bad), lambda: whole.replace(bad)):
        with pytest.raises(sm.StateError) as caught:
            refuse()
        assert all(path in str(caught.value) for path in lost)
    assert sm.split(program) == before
    assert [variable.version for variable in sm.variables(program).values()] == versions


@given(programs, programs)
def test_live_objects_become_what_another_program_is(program, other):
    """Those whose type fits keep their identity; afterwards both are equal."""
    numbers, wanted = RefMap(), RefMap()
    flatten(program, numbers)
    graphdef, state = flatten(other, wanted)
    live = {index: x for x, index in numbers.items()}
    fitting = {index: live[index] for x, index in wanted.items() if type(live.get(index)) is type(x)}
    made = {}
    again = unflatten(graphdef, state, index_ref=made, index_ref_cache=fitting)
    assert (sm.graphdef(again), sm.state(again)) == (graphdef, state)
    assert all(made[index] is x for index, x in fitting.items())


@given(programs)
def test_what_is_popped_is_gone(program):
    """The State has it, the program has it no more, and a second pop is empty; or nothing has changed."""
    before = sm.split(program)
    wanted = sm.state(program, sm.Param)
    try:
        gone = sm.pop(program, sm.Param)
    except sm.GraphError as error:
        assert "Cannot pop key" in str(error)  # noqa: PT017
        assert sm.split(program) == before
        return
    assert gone == wanted
    assert len(sm.state(program, sm.Param)) == 0
    assert len(sm.pop(program, sm.Param)) == 0


@given(programs, JSON)
def test_candidates_do_not_know_one_another(program, value):
    """A merge of one State, or a call on it, leaves every other value as it was."""
    graphdef, state = sm.split(program)
    other = state.map(lambda path, leaf: value)
    twin = sm.merge(graphdef, other)
    assert sm.state(twin) == other
    assert sm.split(program) == (graphdef, state)


@given(programs)
def test_metadata_is_changed_where_it_is_meant(program):
    """And nowhere else; values stay."""
    values = sm.state(program).to_json()
    changed = sm.set_metadata(program, only=sm.Memory, tag="changed")
    assert sm.state(program).to_json() == values
    tagged = {path for path, leaf in sm.state(program).items() if leaf.metadata.get("tag") == "changed"}
    assert set(changed) <= tagged
    assert tagged == {path for path, leaf in sm.state(program).items() if leaf.type is sm.Memory}
