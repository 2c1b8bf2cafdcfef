"""split, merge, clone and call."""

import asyncio

import pytest

import synmod as sm
from synmod.errors import ArgumentError, GraphError, SchemaError, StateError, StateSchemaError
from synmod.tree import (
    Memory,
    NodeRef,
    Param,
    RefMap,
    VariableState,
    clone,
    deepcopy_node,
    flatten,
    graphdef,
    merge,
    split,
    state,
    unflatten,
    using,
    variables,
)
from tests.module.models import Query
from tests.tree.parts import Leaf, Tree
from tests.tree.stores import Handle, Part, Store


@pytest.fixture
def program():
    """Two types, a shared node, a cycle, statics."""
    shared = Store(v=Param("v"))
    root = Store(a=shared, b=shared, x=Param("x"), m=Memory([]), style="brief", l=[Param(0), Param(1)])
    root.entries["me"] = root
    return root


def test_filters_part_the_state(program):
    """One State per filter, first match wins, a narrower second one may stay empty; any order merges."""
    shape, params, memory, rest = split(program, Param, Memory, ...)
    assert (len(params), len(memory), len(rest)) == (4, 1, 0)
    assert len(split(program, Param, Param, ...)[2]) == 0
    twin = merge(shape, memory, rest, params)
    assert state(twin) == state(program)
    assert twin.a is twin.b
    assert twin.me is twin
    assert twin.style == "brief"
    assert twin.l is not program.l


def test_filters_must_be_exhaustive(program):
    """The remainder is listed; `...` comes last; a filter must be one."""
    with pytest.raises(StateError, match=r"Non-exhaustive.*'m'.*`\.\.\.`"):
        split(program, Param)
    for early in (..., True):
        with pytest.raises(StateError, match=r"Filter 0.*can only be used as the last"):
            split(program, early, Param)
    with pytest.raises(ArgumentError, match="Invalid filter"):
        split(program, 3)


@pytest.mark.parametrize("root", [3, "text", None, object(), {1}])
def test_what_holds_no_graph_cannot_be_split(root):
    """The type is named."""
    for function in (split, state, variables, graphdef):
        with pytest.raises(ArgumentError, match=type(root).__name__):
            function(root)


def test_any_root_goes():
    """A bare Variable, plain containers, a registered node."""
    shape, values = split(Param("x", name="n"))
    twin = merge(shape, values)
    assert (type(twin), twin.value, twin.name) == (Param, "x", "n")
    both = merge(*split({"a": [twin, twin], "b": (1, None)}))
    assert both["a"][0] is both["a"][1]
    assert both["b"] == (1, None)
    assert merge(*split([])) == []


def test_sharing_may_be_refused(program):
    """Both paths are named."""
    with pytest.raises(StateError, match=r"Duplicate.*'a' and 'b'"):
        split(program, shared="error")
    assert split(Store(a=Param(1)), shared="error")
    with pytest.raises(ArgumentError):
        split(program, shared="maybe")


def test_values_are_shared_not_copied(program):
    """split and merge cost structure, not bytes."""
    big = Memory([["x"] * 100])
    program.entries["big"] = big
    shape, values = split(program)
    assert values["big"].value is big.value
    assert merge(shape, values).big.value is big.value


def test_alias_paths_are_accepted(program):
    """The State of an equal program whose attributes came in another order fits."""
    shape, values = split(program)
    raw = values.to_json()
    raw["b/v"] = raw.pop("a/v")
    assert merge(shape, raw).a.v.value == "v"
    raw["me/me/x"] = raw.pop("x")
    assert merge(shape, raw).x.value == "x"


def test_raw_json_is_validated(program):
    """Leaves may be raw values or VariableStates; a miss is both a StateError and a SchemaError."""
    shape, values = split(program)
    raw = {**values.to_json(), "x": VariableState(Param, "leaf", {"type": "string"})}
    assert merge(shape, raw).x.value == "leaf"
    with pytest.raises(StateSchemaError, match=r"(?s)x#.*wanted.*m#") as caught:
        merge(shape, {**values.to_json(), "x": 3, "m": "no"})
    assert isinstance(caught.value, SchemaError)
    assert [problem.pointer for problem in caught.value.errors] == ["x#", "m#"]


def test_every_fault_is_named_in_definition_order(program):
    """Missing, unknown, static, node for leaf and leaf for node, in one error."""
    shape, values = split(program)
    raw = values.to_json()
    del raw["x"], raw["a/v"]
    faults = {"style": 1, "l": 2, "m/deep": 3, "nope": 4, "no/where": 5}
    with pytest.raises(StateError) as caught:
        merge(shape, {**raw, **faults})
    text = str(caught.value)
    for phrase in (
        "Expected key 'x' (Param)", "Expected key 'a/v'", "Got state for static field 'style'",
        "Expected a subgraph at 'l'",
        "Expected a leaf at 'm', got 'm/deep'", "Unknown keys: 'nope', 'no/where'",
    ):  # fmt: skip
        assert phrase in text
    assert text.index("'x'") < text.index("'a/v'")


def test_another_type_is_refused(program):
    """A VariableState of a Memory does not fit a Param."""
    shape, values = split(program)
    other = values | state({"x": Memory("x")})
    with pytest.raises(StateError, match="'x': expected a Param, got a Memory"):
        merge(shape, other)


def test_two_values_for_one_path_are_a_conflict(program):
    """Unless they are equal, or `overwrite=True` lets the later win; aliases count as one path."""
    shape, values = split(program)
    assert merge(shape, values, values)
    with pytest.raises(StateError, match=r"two different values.*'x'.*'y'"):
        merge(shape, values, {"x": "y"})
    assert merge(shape, values, {"x": "y"}, overwrite=True).x.value == "y"
    with pytest.raises(StateError, match="'a/v' and 'b/v'"):
        merge(shape, values, {"b/v": "other"})


def test_metadata_comes_from_the_graph_unless_asked(program):
    """`metadata=True` takes that of the States."""
    shape, values = split(program)
    retagged = values | state({"x": program.x.replace(tag="new", trainable=False)})
    assert merge(shape, retagged).x.metadata == {}
    twin = merge(shape, retagged, metadata=True)
    assert (twin.x.metadata, twin.x.trainable) == ({"tag": "new"}, False)


def test_merge_needs_a_state(program):
    """No state argument is Python's TypeError; what is no State is an ArgumentError."""
    shape, _ = split(program)
    with pytest.raises(TypeError):
        merge(shape)
    with pytest.raises(ArgumentError, match="State"):
        merge(shape, 3)
    assert isinstance(merge(graphdef(Store(a=Store())), {}), Store)


def test_arguments_follow_the_copy():
    """References in metadata lead to the new objects; what only metadata reaches stays the same object."""
    outside, child = Part(), Part()
    root = Part(child, outside, child=child)
    twin = merge(*split(root))
    assert twin.record["arguments"][0] is twin.child is not child
    assert twin.record["arguments"][1] is outside


def test_arguments_may_lead_anywhere():
    """A chain of 3,000 parts given to one another; two that are given to one another, and one to itself."""
    part = Part()
    for _ in range(3_000):
        part = Part(part, inner=part)
    twin = merge(*split(part))
    assert twin.record["arguments"][0] is twin.inner
    one, two = Part(), Part()
    one.record["arguments"], two.record["arguments"] = (two,), (one,)
    new_one, new_two = merge(*split([one, two]))
    assert (new_one.record["arguments"], new_two.record["arguments"]) == ((new_two,), (new_one,))


def test_split_reads_the_overlay(program):
    """Inside `using`, State and split have the candidate's values."""
    with using(program, {"x": "candidate"}):
        assert split(program)[1]["x"].value == "candidate"
        assert state(program)["x"].value == "candidate"
    assert state(program)["x"].value == "x"


def test_state_and_variables_take_one_filter(program):
    """Snapshots by path, and the live Variables by path text."""
    assert set(state(program, Memory)) == {("m",)}
    live = variables(program, Param)
    assert live["x"] is program.x
    assert list(live) == ["x", "l/0", "l/1", "a/v"]


def test_one_index_space_for_several_splits():
    """What was numbered before becomes a reference with no State; unflatten restores the sharing."""
    shared = Param("s")
    one, two = Store(a=shared, b=Param("b")), Store(a=shared, c=Store())
    numbers = RefMap()
    first, first_state = flatten(one, numbers)
    second, second_state = flatten(two, numbers)
    assert list(second_state) == []
    assert numbers[shared] == 1
    assert isinstance(flatten(one, numbers)[0].root, NodeRef)
    objects = {}
    new_one = unflatten(first, first_state, index_ref=objects)
    new_two = unflatten(second, second_state, index_ref=objects)
    assert new_one.a is new_two.a is not shared
    with pytest.raises(StateError, match=r"'a' \(index 1\).*merge_context"):
        merge(second, second_state)
    with pytest.raises(GraphError, match="already used"):
        unflatten(first, first_state, index_ref=objects)


def test_unflatten_can_rewrite_in_place():
    """Objects in the cache keep their identity and get the new content; another type is refused."""
    live = Store(a=Param("old"), gone=1)
    shape, values = split(Store(label="l", a=Param("new"), b=Param("b")))
    again = unflatten(shape, values, index_ref_cache={0: live, 1: live.a})
    assert again is live
    assert list(live.entries) == ["a", "b"]
    assert (live.a.value, live.a.version) == ("new", 1)
    with pytest.raises(GraphError, match="Store in the graph, but a Param"):
        unflatten(shape, values, index_ref_cache={0: Param(1)})


@pytest.mark.slow
@pytest.mark.interpreter
def test_deep_chains_split_and_merge():
    """5,000 nodes, each holding the next, and a handle shared by all."""
    handle = Handle()
    node = Store(end=Param("x"), model=handle)
    for _ in range(5_000):
        node = Store(next=node, model=handle)
    shape, values = split(node)
    twin = merge(shape, values)
    assert graphdef(twin) == shape
    assert twin.next.model is handle


def test_copies_are_independent_and_share_values():
    """Structure copied, frozen values shared, statics and by-reference nodes kept."""
    client, handle = object(), Handle()
    shared = Store(v=Param(["big"]))
    root = Store(a=shared, b=shared, client=client, model=handle, l=[1, 2])
    root.entries["me"] = root
    twin = clone(root)
    assert graphdef(twin) == graphdef(root)
    assert twin.a is twin.b is not shared
    assert twin.me is twin
    assert twin.client is client
    assert twin.model is handle
    assert twin.a.v.value is root.a.v.value
    twin.l.append(3)
    twin.a.v.assign(["other"])
    assert (root.l, root.a.v.value, twin.a.v.version) == ([1, 2], ["big"], 1)


def test_some_variables_may_stay_common():
    """`share` keeps what the filter takes."""
    root = Store(p=Param("p"), m=Memory([]), inner=Store(m=Memory([])))
    twin = clone(root, share=Memory)
    assert twin.m is root.m
    assert twin.inner.m is root.inner.m
    assert twin.p is not root.p


def test_deepcopy_shares_what_was_copied_beside_it():
    """Two nodes with a common child, copied with one memo, have one common copy."""
    shared = Store(v=Param(1))
    one, two = Store(s=shared, x=Param(2)), Store(s=shared)
    memo = {}
    new_one, new_two = deepcopy_node(one, memo), deepcopy_node(two, memo)
    assert new_one.s is new_two.s is not shared
    assert new_one.s.v is not shared.v
    assert memo[id(one.x)] is new_one.x
    assert state(new_two) == state(two)


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
