"""Laws that hold for every program, tried on generated ones."""

import copy
import dataclasses
import json
import pickle
from collections import deque

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.leaves.names import path_str
from synmod.tree import (
    RefMap,
    State,
    Variable,
    VariableState,
    clone,
    find_duplicates,
    flatten,
    graphdef,
    iter_graph,
    merge,
    paths_of,
    split,
    state,
    unflatten,
    update,
    using,
    variables,
    walk,
)
from tests.tree.stores import JSON, Store, programs

LAW = settings(max_examples=25, deadline=None)


def at(root, path):
    """Follow a path through live objects."""
    for step in path:
        if hasattr(root, "entries"):
            root = root.entries[step]
        elif isinstance(step, str) and hasattr(root, step):
            root = getattr(root, step)
        else:
            root = root[step]
    return root


@LAW
@given(programs)
def test_merge_after_split_is_identity(program):
    """Structure, State, order, sharing and types all come back; no object but statics is the same."""
    shape, values = split(program)
    twin = merge(shape, values)
    assert graphdef(twin) == shape
    assert hash(graphdef(twin)) == hash(shape)
    assert graphdef(twin).fingerprint == shape.fingerprint
    assert state(twin) == values
    assert list(state(twin)) == list(values)
    assert find_duplicates(twin) == find_duplicates(program)
    old = {id(value) for _, value in iter_graph(program)}
    assert not old & {id(value) for _, value in iter_graph(twin) if value not in ((), None)}


@LAW
@given(programs)
def test_a_clone_is_equal_and_independent(program):
    """Writing to the copy never reaches the original; values are shared until then."""
    twin = clone(program)
    before = state(program)
    assert graphdef(twin) == graphdef(program)
    for path, variable in variables(twin).items():
        assert variable.value is before[path].value
        variable.assign("changed")
    assert state(program) == before


@LAW
@given(programs)
def test_a_definition_is_walked_as_the_program_is(program):
    """The canonical paths of a graph definition are those of the live walk."""
    shape, values = split(program)
    assert list(shape.leaf_paths) == list(values)
    assert list(graphdef(program).leaf_paths) == list(values)


@LAW
@given(programs)
def test_paths_lead_to_what_they_name(program):
    """Every visit's path, followed by hand, leads to the visited value; shared objects are found at every path."""
    for visit in walk(program, statics=True):
        assert at(program, visit.path) is visit.value
    for paths in find_duplicates(program):
        assert len({id(at(program, path)) for path in paths}) == 1
        every = paths_of(program, at(program, paths[0]))
        assert every[0] == paths[0]
        assert len(set(every)) == len(every)
        assert all(at(program, path) is at(program, paths[0]) for path in every)


@LAW
@given(programs, JSON)
def test_update_writes_what_state_reads(program, value):
    """After `update` with a State the program has that State; the changed paths are told."""
    goal = state(program).map(lambda path, leaf: value)
    changed = update(program, goal)
    assert state(program) == goal
    assert update(program, goal) == ()
    assert set(changed) <= set(goal)


@LAW
@given(programs, JSON)
def test_an_overlay_is_seen_inside_and_nowhere_else(program, value):
    """Inside the block State and reads come from the overlay; live values are as before, inside other tasks too."""
    before = state(program)
    goal = before.map(lambda path, leaf: value)
    with using(program, goal) as overlay:
        assert state(program) == goal
        for variable in variables(program).values():
            variable.assign([1])
        assert overlay.changes == overlay.state == state(program)
    assert state(program) == before
    assert overlay.state == goal.map(lambda path, leaf: [1])


@LAW
@given(programs)
def test_states_survive_json_byte_for_byte(program):
    """With types and key types; ten round trips give the same bytes."""
    shape, values = split(program)
    text = json.dumps(values.to_json())
    for _ in range(10):
        again = State.from_json(shape, json.loads(text))
        assert again == values
        assert json.dumps(again.to_json()) == text
    assert merge(shape, json.loads(text)) is not None


@LAW
@given(programs, JSON)
def test_a_diff_lists_what_differs(program, value):
    """And nothing else; the other way round it is turned round."""
    a = state(program)
    changed = {path: VariableState(leaf.type, value, leaf.schema, leaf.metadata) for path, leaf in list(a.items())[1:]}
    b = State.from_flat(changed)
    there, back = a.diff(b), b.diff(a)
    paths = {path_str(path): path for path in a}
    for text, (old, new) in there.items():
        assert (old, new) == (a.flat().get(paths[text]), b.flat().get(paths[text]))
        assert old != new
    assert all(a[paths[text]] == b[paths[text]] for text in paths if text not in there)
    assert back == {text: (new, old) for text, (old, new) in there.items()}


@LAW
@given(programs)
def test_fingerprints_follow_equality(program):
    """Equal States have equal fingerprints, also after pickling, deepcopy and another order."""
    values = state(program)
    turned = State.from_flat(dict(reversed(list(values.items()))))
    assert turned == values
    assert turned.fingerprint == values.fingerprint
    assert hash(turned) == hash(values)
    assert pickle.loads(pickle.dumps(values)) == values
    assert copy.deepcopy(values) is values


@LAW
@given(programs)
def test_each_leaf_is_found_by_every_spelling(program):
    """A leaf is there by tuple, by text, and step by step."""
    values = state(program)
    for path, leaf in values.items():
        assert values[path] is leaf
        assert values[path_str(path)] is leaf
        assert path in values
        here = values
        for step in path:
            here = here[(step,)]
        assert here is leaf or here == leaf


@LAW
@given(programs)
def test_both_orders_visit_the_same(program):
    """Post-order has the visits of pre-order, parents last."""
    before = [(path, id(value)) for path, value in iter_graph(program)]
    after = [(path, id(value)) for path, value in iter_graph(program, order="post")]
    assert sorted(map(str, before)) == sorted(map(str, after))
    assert after[-1][0] == ()
    place = {path: n for n, (path, _) in enumerate(after)}
    assert all(place[path[:-1]] > place[path] for path in place if path and path[:-1] in place)


@LAW
@given(programs)
def test_copies_are_pickled_and_deep_copied_whole(program):
    """Variables survive pickle and deepcopy with type, value, schema and metadata."""
    for variable in variables(program).values():
        for twin in (pickle.loads(pickle.dumps(variable)), copy.deepcopy(variable), copy.copy(variable)):
            assert isinstance(twin, Variable)
            assert twin is not variable
            assert twin.to_state() == variable.to_state()


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@given(programs, JSON)
def test_candidates_do_not_know_one_another(program, value):
    """A merge of one State, or a call on it, leaves every other value as it was."""
    graphdef, state = sm.split(program)
    other = state.map(lambda path, leaf: value)
    twin = sm.merge(graphdef, other)
    assert sm.state(twin) == other
    assert sm.split(program) == (graphdef, state)


@pytest.mark.slow
@given(programs)
def test_metadata_is_changed_where_it_is_meant(program):
    """And nowhere else; values stay."""
    values = sm.state(program).to_json()
    changed = sm.set_metadata(program, only=sm.Memory, tag="changed")
    assert sm.state(program).to_json() == values
    tagged = {path for path, leaf in sm.state(program).items() if leaf.metadata.get("tag") == "changed"}
    assert set(changed) <= tagged
    assert tagged == {path for path, leaf in sm.state(program).items() if leaf.type is sm.Memory}
