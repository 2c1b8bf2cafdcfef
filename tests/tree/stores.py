"""Nodes for the tests of this room: a store of anything, one that copies keep, one that can be frozen and sealed."""

import dataclasses
from collections import OrderedDict, deque
from typing import NamedTuple

from hypothesis import strategies as st

from synmod.tree import Memory, NodeImpl, Param, Stat, Variable, register_graph_node_type, register_impl, static


class Store:
    """Holds whatever it is given; its label is metadata."""

    def __init__(self, label=None, **entries):
        self.label = label
        self.entries = dict(entries)

    def __getattr__(self, name):
        try:
            return self.__dict__["entries"][name]
        except KeyError:
            raise AttributeError(name) from None


register_graph_node_type(
    Store,
    flatten=lambda x: (list(x.entries.items()), x.label),
    set_key=lambda x, key, value: x.entries.__setitem__(key, value),
    pop_key=lambda x, key: x.entries.pop(key),
    create_empty=Store,
    clear=lambda x: x.entries.clear(),
)


class Handle:
    """Stands for a language model: copies keep the very object."""

    def __init__(self, **entries):
        self.entries = entries


register_graph_node_type(
    Handle,
    flatten=lambda x: (list(x.entries.items()), None),
    set_key=lambda x, key, value: x.entries.__setitem__(key, value),
    pop_key=lambda x, key: x.entries.pop(key),
    create_empty=lambda metadata: Handle(),
    by_reference=True,
)


class Part:
    """Stands for a module: attributes in `__dict__`, a trainable bit, arguments in the metadata, a seal."""

    def __init__(self, *arguments, **attributes):
        self.__dict__.update(attributes)
        self.__dict__["_record"] = {"trainable": True, "sealed": False, "arguments": arguments, "hooks": ()}

    @property
    def record(self):
        return self.__dict__["_record"]


def _part_children(x):
    return [(name, child) for name, child in x.__dict__.items() if name != "_record"]


def _make_part(record):
    part = Part()
    part.record.update(record)
    return part


def _pop_part(x, key):
    return x.__dict__.pop(key)


def _set_part(x, key, value):
    x.__dict__[key] = value


register_impl(
    NodeImpl(
        Part,
        flatten=lambda x: (_part_children(x), _kept(x.record)),
        set_key=_set_part,
        pop_key=_pop_part,
        create_empty=_make_part,
        children=_part_children,
        metadata=lambda x: _kept(x.record),
        own_trainable=lambda x: x.record["trainable"],
        map_refs=lambda record, fn: _kept({**record, "arguments": tuple(map(fn, record["arguments"]))}),
        compared=lambda definition: {name: definition.metadata[name] for name in ("arguments", "trainable")},
        adopt=lambda x, record: x.record.update(arguments=record["arguments"]),
        is_module=True,
        subclasses=False,
    )
)


class _Record(dict):
    """A record that the tree takes for opaque, as it is no plain dict."""


def _kept(record):
    return _Record({**record, "hooks": ()})


class Pair(NamedTuple):
    """A namedtuple as a container."""

    left: object
    right: object


@dataclasses.dataclass
class Spot:
    """A dataclass as a container."""

    first: object
    second: object = None


class Ref:
    """Stands for the k-th thing of a pool until a program is put together."""

    def __init__(self, number):
        self.number = number


SCALARS = st.sampled_from([None, True, 0, 1, -5, 1.0, -0.0, 10**20, "", "é", "a/b~#", "text"])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["k", "", "~1"]), inner, max_size=2),
    max_leaves=4,
)
KEYS = st.sampled_from(["a", "b~", "a/b", "#1", "é", "x y"])
NAMES = st.sampled_from(["a", "b", "c", "layers", "x1"])
PARTS = st.one_of(st.integers(0, 9).map(Ref), SCALARS, SCALARS.map(static))
NESTS = st.recursive(
    PARTS | st.dictionaries(KEYS | st.integers(0, 12), PARTS, max_size=3),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3).map(lambda x: deque(x, maxlen=5)),
        st.builds(Pair, inner, inner),
        st.builds(Spot, inner, inner),
        st.dictionaries(KEYS, inner, max_size=3),
        st.dictionaries(KEYS, inner, max_size=2).map(OrderedDict),
    ),
    max_leaves=5,
)
VARIABLES = st.builds(
    lambda kind, value, trainable, tags: kind(value, schema=True, trainable=trainable, **tags),
    st.sampled_from([Param, Memory, Stat, Variable]),
    JSON,
    st.sampled_from([None, True, False]),
    st.sampled_from([{}, {"tag": "prompt"}, {"name": "label", "description": "what it is for"}]),
)
LABELS = st.sampled_from([None, "l", {"k": [1]}])
ATTRIBUTES = st.dictionaries(NAMES, NESTS, max_size=4)


def _resolved(x, pool):
    """Put the things of the pool in the place of the references."""
    if isinstance(x, Ref):
        return pool[x.number % len(pool)]
    if isinstance(x, Pair):
        return Pair(*(_resolved(item, pool) for item in x))
    if isinstance(x, Spot):
        return Spot(_resolved(x.first, pool), _resolved(x.second, pool))
    if isinstance(x, dict):
        return type(x)((key, _resolved(item, pool)) for key, item in x.items())
    if isinstance(x, deque):
        return deque((_resolved(item, pool) for item in x), maxlen=x.maxlen)
    return type(x)(_resolved(item, pool) for item in x) if isinstance(x, list | tuple) else x


def _program(leaves, stores, shape):
    """Put a program together; stores may hold one another, and themselves."""
    nodes = [Store(label) for label, _ in stores]
    pool = [*leaves, *nodes]
    for node, (_, attributes) in zip(nodes, stores, strict=True):
        node.entries = {name: _resolved(nest, pool) for name, nest in attributes.items()}
    return shape(nodes, leaves)


programs = st.builds(
    _program,
    st.lists(VARIABLES, max_size=4),
    st.lists(st.tuples(LABELS, ATTRIBUTES), min_size=1, max_size=4),
    st.sampled_from(
        [
            lambda nodes, leaves: nodes[0],
            lambda nodes, leaves: [nodes[0], nodes],
            lambda nodes, leaves: {"root": nodes[-1], "all": list(leaves)},
        ]
    ),
)
