"""Live views of a program."""

import pytest

import synmod as sm
from synmod.errors import NotBuiltError
from synmod.tree import NodeImpl, Param, register_impl, views
from tests.tree.stores import Part, Store


def test_views_are_tuples_without_doubles():
    """In definition order, computed anew each time; gone parts are gone."""
    shared = Param(1)
    root = Part(a=Part(x=shared), y=shared, l=[Part(z=Param(2))])
    assert views.variables_of(root) == (shared, root.l[0].z)
    assert list(views.variables_by_path(root)) == ["y", "l/0/z"]
    assert views.submodules_of(root, Part) == (root.a, root.l[0])
    root.l.clear()
    assert views.variables_of(root) == (shared,)


def test_the_two_halves_make_the_whole():
    """Own bit and masks decide."""
    root = Part(a=Part(x=Param(1)), y=Param(2, trainable=False), z=Param(3))
    root.a.record["trainable"] = False
    assert views.trainable_variables_of(root) == (root.z,)
    assert views.non_trainable_variables_of(root) == (root.y, root.a.x)


def test_a_root_that_holds_itself_is_no_submodule_of_itself():
    """Nor is it one twice."""
    root = Part(a=Part())
    root.me = root
    assert views.submodules_of(root, Part) == (root.a,)


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
        views.variables_of(Part(a=Store(lazy=Lazy()), b=Lazy()))
    assert sm.tree.state(Part(a=Lazy())) == sm.tree.State()
