"""clone and deepcopy: independent, sharing kept, references and hooks carried over."""

import copy

from synmod.tree import Memory, Param, clone, deepcopy_node, graphdef, state
from tests.tree.stores import Handle, Store


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


def test_subclasses_keep_their_own_attributes():
    """What a Variable's class keeps on its instances is there in every copy."""

    class Bounded(Param):
        def __init__(self, value, limit):
            super().__init__(value)
            self.limit = limit

    root = Store(b=Bounded("x", 3))
    assert clone(root).b.limit == 3
    assert copy.deepcopy(root.b).limit == 3


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
