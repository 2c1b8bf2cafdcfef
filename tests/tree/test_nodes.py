"""Registration of node types, RefMap."""

import dataclasses
import gc
import weakref

import optree
import pytest

from synmod.errors import ArgumentError, GraphError
from synmod.tree import (
    NodeImpl,
    Param,
    RefMap,
    clone,
    get_node_impl,
    merge,
    register_graph_node_type,
    register_impl,
    split,
    variables,
)
from tests.tree.stores import Handle, Store


def rules(cls, **more):
    """The plainest rules of a class with a `__dict__`."""
    return {
        "flatten": lambda x: (list(vars(x).items()), None),
        "set_key": setattr,
        "pop_key": lambda x, key: vars(x).pop(key),
        "create_empty": lambda metadata: cls(),
        **more,
    }


def test_a_registered_type_is_tracked_split_and_merged():
    """Its Variables appear in state and survive merge and clone."""

    class Toolbox:
        pass

    register_graph_node_type(Toolbox, **rules(Toolbox))
    box = Toolbox()
    box.prompt = Param("x")
    assert list(variables([box])) == ["0/prompt"]
    twin = merge(*split(box))
    assert type(twin) is Toolbox
    assert clone(box).prompt.value == "x"


def test_a_type_is_registered_once():
    """A second time is a GraphError naming the type; containers and Variables cannot be node types."""

    class Once:
        pass

    register_graph_node_type(Once, **rules(Once))
    with pytest.raises(GraphError, match=r"Once is already registered"):
        register_graph_node_type(Once, **rules(Once))
    for cls in (list, dict, set, Param, str):
        with pytest.raises(GraphError):
            register_graph_node_type(cls, **rules(cls))


def test_lookup_is_by_exact_type():
    """A subclass of a user's type is no node; with `subclasses` it follows the rules of its base."""

    class Base:
        pass

    class Derived(Base):
        pass

    register_graph_node_type(Base, **rules(Base))
    assert get_node_impl(Base()).type is Base
    with pytest.raises(GraphError, match="Unknown node type"):
        get_node_impl(Derived())

    class Wide:
        pass

    class Narrow(Wide):
        pass

    register_impl(NodeImpl(Wide, **rules(Wide), subclasses=True))
    assert get_node_impl(Narrow()).type is Wide


def test_asking_for_rules_of_no_node():
    """A Variable 'is not a node', another type is an 'Unknown node type'."""
    with pytest.raises(GraphError, match="is not a node"):
        get_node_impl(Param(1))
    with pytest.raises(GraphError, match="Unknown node type"):
        get_node_impl(object())


def test_init_fills_at_once_and_metadata_comes_back():
    """`init` gets all pairs; `create_empty` gets the metadata as plain JSON."""

    class Filled:
        def __init__(self, about=None):
            self.about = about
            self.rows = []

    register_graph_node_type(
        Filled,
        flatten=lambda x: (list(enumerate(x.rows)), x.about),
        set_key=lambda x, key, value: x.rows.insert(key, value),
        pop_key=lambda x, key: x.rows.pop(key),
        create_empty=Filled,
        init=lambda x, pairs: x.rows.extend(value for _, value in pairs),
    )
    old = Filled({"k": [1]})
    old.rows = [Param("a"), "b"]
    shape, values = split(old)
    old.about["k"].append(2)
    new = merge(shape, values)
    assert (new.rows[0].value, new.rows[1]) == ("a", "b")
    assert new.about == {"k": [1]}
    new.about["k"].append(3)


def test_by_reference_nodes_are_kept_and_never_looked_into():
    """merge and clone keep the very object."""
    handle = Handle(v=Param("x"))
    root = Store(model=handle, again=[handle])
    shape, values = split(root)
    assert len(values) == 0
    for twin in (merge(shape, values), clone(root)):
        assert twin.model is handle
        assert twin.again[0] is handle


def test_a_registration_dies_with_its_class():
    """Classes made on the fly are collected."""

    class Gone:
        pass

    register_graph_node_type(Gone, **rules(object))
    alive = weakref.ref(Gone)
    del Gone
    gc.collect()
    assert alive() is None


def test_users_containers_are_rebuilt():
    """A registered container is put together by its own function, a dataclass with what its constructor never saw."""

    class Ring:
        def __init__(self, size, *items):
            self.size, self.items = size, items

    @dataclasses.dataclass
    class Spot:
        x: object

    optree.register_pytree_node(
        Ring, lambda r: (r.items, r.size), lambda size, items: Ring(size, *items), namespace="synmod"
    )
    spot = Spot(Param(2))
    spot.beside = "kept"
    root = Store(ring=Ring(3, Param(1), None), spot=spot)
    twin = merge(*split(root))
    assert (twin.ring.size, twin.ring.items[0].value, twin.ring.items[1]) == (3, 1, None)
    assert twin.ring is not root.ring
    assert (twin.spot.x.value, twin.spot.beside) == (2, "kept")


def test_refmap_goes_by_identity():
    """Equal keys that are two objects are two; unhashable ones are fine; keys stay alive."""
    one, two = [], []
    seen = RefMap([(one, 1)])
    seen[two] = 2
    assert (len(seen), seen[one], seen[two]) == (2, 1, 2)
    assert one in seen
    assert [] not in seen
    assert list(seen)[1] is two
    seen[{}] = 3
    assert len(seen) == 3
    del seen[one]
    with pytest.raises(KeyError, match="list"):
        seen[one]
    with pytest.raises(KeyError, match="list"):
        del seen[one]
    assert RefMap(seen) == seen
    assert seen.pop(two) == 2
    with pytest.raises(TypeError):
        hash(seen)


@pytest.mark.parametrize("thing", [3, "Tray", None])
def test_a_node_type_is_a_class(thing):
    """Anything else is an ArgumentError that shows it."""
    with pytest.raises(ArgumentError, match=f"not {thing!r}"):
        register_graph_node_type(thing, **rules(dict))


def test_a_container_cannot_become_a_node_type():
    """Its instances are containers already."""

    class Tray:
        pass

    optree.register_pytree_node(Tray, lambda x: ((), None), lambda _, children: Tray(), namespace="synmod")
    with pytest.raises(GraphError, match=r"Tray is already registered"):
        register_graph_node_type(Tray, **rules(Tray))


def test_metadata_that_is_no_json_hinders_no_copy():
    """It is refused where its text is asked for, with the path."""

    class Handled:
        pass

    metadata = {"client": object()}
    register_graph_node_type(Handled, **rules(Handled, flatten=lambda x: (list(vars(x).items()), metadata)))
    assert type(clone([Handled()])[0]) is Handled
    with pytest.raises(GraphError, match=r"At '0': an object of type object cannot be encoded"):
        split([Handled()])[0].fingerprint
