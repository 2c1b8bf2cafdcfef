"""Filters: every form, every class, content equality."""

import pytest

import synmod as sm
from synmod.errors import ArgumentError
from synmod.tree import Memory, Param, filters, state, variables
from tests.tree.stores import Part, Store


class Query(sm.DataModel):
    """One required field."""

    question: str


@pytest.fixture
def program():
    """Variables of two types, tags and depths."""
    return Store(
        encoder=Store(prompt=Param("p", tag="prompt"), layers=[Store(prompt=Param("q"))]),
        memory=Memory([], tag="notes"),
        query=Param({"question": "", "more": 1}, schema={**Query.get_schema(), "additionalProperties": True}),
    )


def taken(program, filter):
    """The path texts that a filter takes."""
    return set(variables(program, filter))


EVERYTHING = {"encoder/prompt", "encoder/layers/0/prompt", "memory", "query"}


@pytest.mark.parametrize(
    ("filter", "paths"),
    [
        (Param, {"encoder/prompt", "encoder/layers/0/prompt", "query"}),
        (Memory, {"memory"}),
        (filters.OfType(Param), {"encoder/prompt", "encoder/layers/0/prompt", "query"}),
        ("prompt", {"encoder/prompt"}),
        (filters.WithTag("notes"), {"memory"}),
        (..., EVERYTHING),
        (True, EVERYTHING),
        (filters.Everything(), EVERYTHING),
        (None, set()),
        (False, set()),
        (filters.Nothing(), set()),
        (lambda path, value: value.value == "q", {"encoder/layers/0/prompt"}),
        ((Memory, "prompt"), {"memory", "encoder/prompt"}),
        ([Memory, "prompt"], {"memory", "encoder/prompt"}),
        ((), set()),
        (filters.All(Param, filters.PathContains("layers")), {"encoder/layers/0/prompt"}),
        (filters.Any(Memory, filters.PathContains(0)), {"memory", "encoder/layers/0/prompt"}),
        (filters.Not(Param), {"memory"}),
        (filters.PathContains("0"), {"encoder/layers/0/prompt"}),
        (filters.PathContains(False), set()),
        (filters.PathContains("mpt", exact=False), {"encoder/prompt", "encoder/layers/0/prompt"}),
        (filters.PathIn(("memory",), "encoder/layers/0/prompt"), {"memory", "encoder/layers/0/prompt"}),
        (filters.Path("encoder/**/prompt"), {"encoder/prompt", "encoder/layers/0/prompt"}),
        (filters.Path("encoder/*"), {"encoder/prompt"}),
        (filters.Path("**"), EVERYTHING),
        (filters.Path("*"), {"memory", "query"}),
        (filters.Path("Memory"), set()),
        (filters.Trainable(), {"encoder/prompt", "encoder/layers/0/prompt", "query"}),
        (filters.Trainable, {"encoder/prompt", "encoder/layers/0/prompt", "query"}),
        ([filters.Nothing, Memory], {"memory"}),
        (filters.Schema(Query), {"query"}),
    ],
)
def test_what_a_filter_takes(program, filter, paths):
    """On live Variables, and the same on a detached State."""
    assert taken(program, filter) == paths
    if not callable(filter) or not hasattr(filter, "__code__"):
        assert {sm.tree.path_str(p) for p in state(program).filter(filter)} == paths


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("", (), True),
        ("", ("a",), False),
        ("**", (), True),
        ("a/**/b", ("a", "b"), True),
        ("a/**/b", ("a", "x", 0, "b"), True),
        ("a/**/b", ("a", "x"), False),
        ("**/b/**", ("a", "b", "c"), True),
        ("a*c", ("abc",), True),
        ("a*c", ("abd",), False),
        ("*/*", ("a",), False),
        ("layers/1*", ("layers", 12), True),
        ("a~1b", ("a/b",), True),
        ("a.c", ("abc",), False),
        ("a?c", ("abc",), False),
        ("[ab]", ("a",), False),
    ],
)
def test_globs(pattern, path, matches):
    """`*` stays within a step, `**` spans steps, everything else is literal, and the whole path must match."""
    assert filters.Path(pattern)(path, None) is matches


def test_trainable_sees_masks_from_the_root_that_is_asked():
    """A frozen part masks below itself; its own child as root is not masked; a State knows own bits only."""
    child = Part(x=Param(1))
    root = Part(child=child, y=Param(2, trainable=False), z=Param(3))
    root.child.record["trainable"] = False
    assert set(variables(root, filters.Trainable())) == {"z"}
    assert set(variables(Part(inner=child.x), filters.Trainable())) == {"inner"}
    assert set(variables(root, filters.Not(filters.Trainable()))) == {"child/x", "y"}
    assert set(state(root).filter(filters.Trainable())) == {("child", "x"), ("z",)}
    root.child.record["trainable"] = True
    assert set(variables(root, filters.Trainable())) == {"child/x", "z"}


def test_path_filters_look_at_the_canonical_path():
    """An alias path takes nothing."""
    shared = Param(1)
    root = Store(a=shared, b=shared)
    assert len(variables(root, filters.PathIn("a"))) == 1
    assert len(variables(root, filters.PathIn("b"))) == 0


def test_filters_compare_hash_and_print_by_content():
    """Two made of the same things are equal; repr is the call."""
    assert filters.to_filter((Param, "x")) == filters.Any(filters.OfType(Param), filters.WithTag("x"))
    assert len({filters.Path("a/*"), filters.Path("a/*"), filters.Path("b")}) == 2
    assert filters.PathIn("a", "b") == filters.PathIn("b", ("a",))
    assert filters.Schema(Query) == filters.Schema(Query)
    assert hash(filters.Schema({"type": "object"})) == hash(filters.Schema({"type": "object"}))
    assert filters.All(Param) != filters.Any(Param)
    assert repr(filters.All(Param, filters.Path("a/*"), filters.Not(...))) == (
        "All(OfType(Param), Path('a/*'), Not(Everything()))"
    )
    assert repr(filters.PathContains("a", exact=False)) == "PathContains('a', exact=False)"


@pytest.mark.parametrize("bad", [3, 1.5, {"a": 1}, b"x", {Param}, filters.PathContains, filters.Not, filters.OfType])
def test_anything_else_is_no_filter(program, bad):
    """An ArgumentError shows the value, also from inside a combination."""
    for use in (filters.to_filter, lambda x: variables(program, x), filters.Not, lambda x: filters.to_filter([x])):
        with pytest.raises(ArgumentError, match="Invalid filter"):
            use(bad)


def test_filters_are_callables_of_path_and_value():
    """Each may be asked directly."""
    assert filters.PathContains("a")(("a", 0), None)
    assert filters.OfType(Param)((), Param(1))
    assert not filters.Trainable()((), Param(1, trainable=False))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (filters.WithTag(1), filters.WithTag(True)),
        (filters.WithTag([1]), filters.WithTag([1.0])),
        (filters.PathContains(1), filters.PathContains(True)),
    ],
)
def test_filters_that_take_different_leaves_are_not_equal(one, other):
    """They compare as they match: `1` is not `True`."""
    assert one != other


@pytest.mark.parametrize(
    "make",
    [
        lambda: filters.OfType(5),
        lambda: filters.Path(5),
        lambda: filters.PathIn({"a"}),
        lambda: filters.PathContains(1.5),
        lambda: filters.Not(5),
    ],
)
def test_filters_of_the_wrong_things_are_refused_when_made(make):
    """Not at the first leaf that they meet."""
    with pytest.raises(ArgumentError, match=r"Invalid filter .*"):
        make()
