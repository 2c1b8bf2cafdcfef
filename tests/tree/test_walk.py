"""The walk: order, identity, containers, keys, depth; the live views."""

import dataclasses
import functools
from collections import OrderedDict, defaultdict, deque

import optree
import pytest

import synmod as sm
from synmod.errors import ArgumentError, GraphError, NotBuiltError
from synmod.tree import (
    NodeImpl,
    Param,
    Variable,
    iter_graph,
    register_impl,
    static,
    submodules_of,
    variables,
    variables_of,
    walk,
)
from tests.tree.stores import Handle, Pair, Part, Spot, Store


def paths(root, **options):
    """The paths of a walk."""
    return [visit.path for visit in walk(root, **options)]


def test_own_values_come_before_child_nodes():
    """Root's own Variables, then each child completely, depth first, whatever the order of assignment."""
    inner = Store(k=Store(q=Param("q"), v=Param("kv")), v=Param("av"))
    root = Store(a=inner, c=Param("c"), b=Store(k=Store(v=Param("bk"))), z=Param("z"))
    found = [path for path, value in iter_graph(root, Variable)]
    assert found == [("c",), ("z",), ("a", "v"), ("a", "k", "q"), ("a", "k", "v"), ("b", "k", "v")]
    assert [path for path, value in iter_graph(root, Store)] == [(), ("a",), ("a", "k"), ("b",), ("b", "k")]


def test_containers_are_own_values():
    """A Variable after a list of nodes comes before those nodes; the nodes come in the order of the list."""
    root = Store(layers=[Store(x=Param(1)), Param(2), {"deep": Store(y=Param(3))}], last=Param(4))
    assert [path for path, _ in iter_graph(root)] == [
        (), ("layers",), ("layers", 1), ("layers", 2), ("last",), ("layers", 0), ("layers", 0, "x"),
        ("layers", 2, "deep"), ("layers", 2, "deep", "y"),
    ]  # fmt: skip


def test_post_order_has_parents_last():
    """A container comes after the nodes in it, the root last at ()."""
    root = Store(layers=[Store(x=Param(1)), Param(2)], last=Param(4))
    assert [path for path, _ in iter_graph(root, order="post")] == [
        ("layers", 1), ("last",), ("layers", 0, "x"), ("layers", 0), ("layers",), (),
    ]  # fmt: skip


def test_shared_objects_are_visited_once_and_named_again():
    """The first visit has the canonical path; an alias visit is not descended."""
    shared = Store(v=Param(1))
    root = Store(a=shared, c=shared, l=[shared])
    visits = list(walk(root))
    assert [(v.path, v.kind, v.index, v.first) for v in visits if v.kind != "container"] == [
        ((), "node", 0, True), (("a",), "node", 1, True), (("a", "v"), "variable", 2, True),
        (("c",), "node", 1, False), (("l", 0), "node", 1, False),
    ]  # fmt: skip
    assert [path for path, _ in iter_graph(root, Store)] == [(), ("a",)]
    assert [path for path, _ in iter_graph(root, Store, repeats=True)] == [(), ("a",), ("c",), ("l", 0)]


def test_cycles_pass_through_nodes():
    """A node may hold itself, also through containers."""
    root = Store(v=Param(1))
    root.entries.update(me=root, l=[{"again": root}])
    assert [v.path for v in walk(root) if v.kind == "node"] == [(), ("me",), ("l", 0, "again")]


@pytest.mark.parametrize("make", [list, dict, deque])
def test_a_container_inside_itself_is_refused(make):
    """With the path of the inner one, whether or not there is a Variable in it."""
    loop = make()
    if make is dict:
        loop["x"] = [loop]
    else:
        loop.append([loop])
    with pytest.raises(GraphError, match=r"'c/(x|0)/0'.*inside itself"):
        list(walk(Store(c=loop)))


def test_a_container_seen_twice_is_no_cycle():
    """It is rebuilt as two."""
    twice = [Param(1)]
    assert paths(Store(a=twice, b=[twice])) == [(), ("a",), ("a", 0), ("b",), ("b", 0), ("b", 0, 0)]


def test_nodes_nest_5000_deep_and_containers_100():
    """Deeper containers are a GraphError with the path; width is no limit."""
    deep = Param("end")
    for _ in range(5_000):
        deep = Store(next=deep)
    assert sum(1 for _ in walk(deep)) == 5_001
    assert sum(1 for _ in walk([Param(0)] * 10_000)) == 10_001
    nest = Param(1)
    for _ in range(100):
        nest = [nest]
    assert sum(1 for _ in walk(Store(nest=nest))) == 102
    with pytest.raises(GraphError, match=r"^At 'nest(/0){100}': containers are nested more than 100 deep"):
        list(walk(Store(nest=[nest])))


def test_paths_are_made_when_asked_for():
    """The walk itself builds no path."""
    visit = list(walk(Store(a=[Param(1)])))[-1]
    assert visit.path == ("a", 0)
    assert visit.step == 0
    assert visit.parent.path == ("a",)


@pytest.mark.parametrize(
    ("key", "why"), [("", "empty"), (1.5, "float"), (True, "bool"), (None, "NoneType"), ((1, 2), "tuple")]
)
def test_keys_on_the_way_to_a_variable_are_steps(key, why):
    """Any other key is a GraphError that names the dict's path and the key; plain values take every key."""
    with pytest.raises(GraphError, match=f"'d'.*{why}"):
        list(walk(Store(d={key: [Param(1)]})))
    with pytest.raises(GraphError, match="'d'"):
        list(walk(Store(d={key: "plain", "v": {"deep": Store()}})))
    assert list(walk(Store(d={key: ["plain"]}), statics=True))


def test_keys_with_one_text_are_refused():
    """`1` and `"1"` would have one path text."""
    with pytest.raises(GraphError, match=r"'d'.*'1'"):
        list(walk(Store(d={1: Param(1), "1": Param(2)})))
    assert variables(Store(d={1: Param(1), "2": Param(2)})).keys() == {"d/1", "d/2"}


def test_a_dict_with_foreign_keys_and_plain_values_is_a_static():
    """Keys that cannot be steps of a path make it one static."""
    kinds = {v.path: v.kind for v in walk(Store(a={(1, 2): 3}, b={"": 1}, c={1: 1, "1": 2}, d={2: 1}), statics=True)}
    assert [kinds[(name,)] for name in "abcd"] == ["static"] * 3 + ["container"]


@pytest.mark.parametrize("make", [set, frozenset])
def test_sets_hold_no_nodes(make):
    """A set with a Variable or a node, also inside a tuple, is a GraphError with path and remedy."""
    for inside in (Param(1), Store(), (1, Param(1)), frozenset([Param(1)])):
        with pytest.raises(GraphError, match=r"'s'.*list or a dict"):
            list(walk(Store(s=make([inside]))))
    assert [v.kind for v in walk(Store(s=make([1, 2])), statics=True)] == ["node", "static"]


def test_every_kind_of_container_gives_steps():
    """Tuples and deques by index, namedtuples and dataclasses by field, dicts by key, None is no container."""
    parts = [Param(n) for n in range(9)]
    root = Store(
        t=(parts[0],), q=deque([parts[1]]), n=Pair(parts[2], 1), s=Spot(parts[3]), o=OrderedDict(k=parts[4]),
        d=defaultdict(list, {3: parts[5]}), none=None,
    )  # fmt: skip
    assert list(variables(root)) == ["t/0", "q/0", "n/left", "s/first", "o/k", "d/3"]


def test_dataclasses_are_read_without_running_code():
    """Slots and instance attributes only: no property, no cached property, no unset field."""

    @dataclasses.dataclass
    class Lazy:
        x: object
        y: object = dataclasses.field(init=False)

        @functools.cached_property
        def made(self):
            return Param("made")

        @property
        def loud(self):
            raise AssertionError("a property ran")

    @dataclasses.dataclass(slots=True)
    class Slotted:
        x: object

    lazy = Lazy(Param(1))
    assert lazy.made.value == "made"
    assert list(variables([lazy, Slotted(Param(2))])) == ["0/x", "1/x"]


def test_users_own_containers_are_seen_through():
    """Classes registered with optree, with and without named steps."""

    class Box:
        def __init__(self, *items):
            self.items = items

    class Named:
        def __init__(self, left, right):
            self.left, self.right = left, right

    register = functools.partial(optree.register_pytree_node, namespace="synmod")
    register(Box, lambda x: (x.items, "meta"), lambda meta, items: Box(*items))
    register(Named, lambda x: ((x.left, x.right), None, ("l", "r")), lambda _, items: Named(*items))
    assert list(variables([Box(Param(1), 2), Named(Param(3), Param(4))])) == ["0/0", "1/l", "1/r"]


def test_classes_registered_for_others_are_statics():
    """Only the namespace of synmod counts."""

    class Foreign:
        pass

    optree.register_pytree_node(Foreign, lambda x: ((Param(1),), None), lambda _, items: Foreign(), namespace="other")
    assert variables([Foreign()]) == {}


def test_static_hides_everything():
    """A Static is visited as a static and never descended, even with a node inside."""
    hidden = Store(v=Param(1))
    root = Store(a=static(hidden), l=[static(hidden)])
    assert len(variables(root)) == 0
    assert [v.kind for v in walk(root, statics=True)] == ["node", "static", "container", "static"]
    assert root.l[0].value is hidden
    assert static(static(hidden)).value is hidden


def test_masks_are_inherited_along_the_canonical_path():
    """A frozen node masks everything whose canonical path passes through it."""
    shared = Param(1)
    frozen = Part(x=Param(2), inner=Part(y=Param(3)), s=shared)
    frozen.record["trainable"] = False
    root = Part(first=Part(s=shared), frozen=frozen)
    masked = {visit.path: visit.masked for visit in walk(root) if visit.kind == "variable" and visit.first}
    assert masked == {("first", "s"): False, ("frozen", "x"): True, ("frozen", "inner", "y"): True}


def test_every_path_follows_shared_parents_and_cuts_back_edges():
    """With `every_path` a leaf under a shared node comes at both paths."""
    shared = Store(v=Param(1))
    root = Store(a=shared, b=shared)
    shared.entries["up"] = root
    assert [v.path for v in walk(root, every_path=True)] == [(), ("a",), ("a", "v"), ("b",), ("b", "v")]


def test_key_sorts_the_attributes_of_every_node():
    """Stable, by attribute name."""
    root = Store(b=Param(1), a=Store(d=Param(2), c=Param(3)))
    assert paths(root, key=lambda name: name) == [(), ("b",), ("a",), ("a", "c"), ("a", "d")]


def test_a_generator_raises_while_it_runs():
    """What stands above the fault is yielded before."""
    visits = walk(Store(good=Param(1), bad={Param(2)}))
    assert next(visits).path == ()
    with pytest.raises(GraphError, match="'bad'"):
        next(visits)


@pytest.mark.parametrize("root", [3, "text", None, object(), {1, 2}, Store, Param])
def test_what_holds_no_graph_is_no_root(root):
    """An ArgumentError names the type."""
    with pytest.raises(ArgumentError, match=type(root).__name__):
        iter_graph(root)
    with pytest.raises(ArgumentError, match="order"):
        iter_graph([], order="in")


def test_by_reference_nodes_are_walked():
    """They are found by type like any node."""
    handle = Handle()
    assert [value for _, value in iter_graph(Store(a=handle, b=[handle]), Handle)] == [handle]


@pytest.mark.parametrize(
    "entries", [{"": Param(1)}, {True: Param(1)}, {None: [Param(1)]}, {1: Param(1), "1": 2}, {10**2000: Param(1)}]
)
@pytest.mark.parametrize("wrap", [lambda entries: entries, lambda entries: _stored(entries)])
def test_keys_of_dicts_and_of_nodes_are_steps(entries, wrap):
    """Another key is an error that names the path of its holder, be that a dict or a node of a user's own type."""
    with pytest.raises(GraphError, match=r"At 'a/0': the key .*: keys on the path to one must be a non-empty str"):
        list(walk({"a": [wrap(entries)]}))


def _stored(entries):
    store = Store()
    store.entries.update(entries)
    return store


def test_a_node_may_hold_plain_values_under_any_key():
    """Its keys count only on the way to a node or Variable."""
    assert paths(_stored({"": 1, None: [2]}), statics=True)[0] == ()


def test_a_key_that_comes_twice_loses_nothing():
    """A container whose flatten gives one key for two Variables is refused."""

    class Twice:
        def __init__(self, *held):
            self.held = held

    optree.register_pytree_node(
        Twice, lambda x: (x.held, None, ("k",) * len(x.held)), lambda _, held: Twice(*held), namespace="synmod"
    )
    with pytest.raises(GraphError, match=r"At 'a': the key 'k' .* distinct as text"):
        list(walk({"a": Twice(Param(1), Param(2))}))


def test_a_namedtuple_is_read_without_its_own_iter():
    """No method of the user runs."""

    class Loud(Pair):
        def __iter__(self):
            raise RuntimeError

    assert paths(Loud(Param(1), 2)) == [(), ("left",)]


def test_views_are_tuples_without_doubles():
    """In definition order, computed anew each time; gone parts are gone."""
    shared = Param(1)
    root = Part(a=Part(x=shared), y=shared, l=[Part(z=Param(2))])
    assert variables_of(root) == (shared, root.l[0].z)
    assert submodules_of(root, Part) == (root.a, root.l[0])
    root.l.clear()
    assert variables_of(root) == (shared,)


def test_the_two_halves_make_the_whole():
    """Own bit and masks decide."""
    root = Part(a=Part(x=Param(1)), y=Param(2, trainable=False), z=Param(3))
    root.a.record["trainable"] = False
    assert variables_of(root, trainable=True) == (root.z,)
    assert variables_of(root, trainable=False) == (root.y, root.a.x)


def test_a_root_that_holds_itself_is_no_submodule_of_itself():
    """Nor is it one twice."""
    root = Part(a=Part())
    root.me = root
    assert submodules_of(root, Part) == (root.a,)


def test_unbuilt_parts_are_named():
    """With paths and the remedy."""

    class Lazy:
        pass

    register_impl(
        NodeImpl(
            Lazy,
            flatten=lambda x: ((), None),
            set_key=setattr,
            pop_key=lambda x, key: None,
            create_empty=lambda metadata: Lazy(),
            unbuilt=lambda x: True,
        )
    )
    with pytest.raises(NotBuiltError, match=r"'a/lazy' \(Lazy\), 'b' \(Lazy\).*sm\.build"):
        variables_of(Part(a=Store(lazy=Lazy()), b=Lazy()))
    assert sm.tree.state(Part(a=Lazy())) == sm.tree.State()
