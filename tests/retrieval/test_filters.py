"""Filters of passages: exact, whatever the values, for both kinds of index; and what is not a filter."""

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.retrieval import vectors

FIELDS = ("a", "b", "c")
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.0, -0.0, 1.0, 1.5, 10**20]),
    st.sampled_from(["", "1", "x", "X"]),
)
METADATA = st.dictionaries(st.sampled_from(FIELDS), st.one_of(VALUES, st.just([1]), st.just({"x": 1})), max_size=3)
CONDITIONS = st.one_of(
    VALUES,
    st.dictionaries(st.sampled_from("eq ne gt gte lt lte".split()), VALUES, min_size=1, max_size=2),
    st.fixed_dictionaries({"in": st.lists(VALUES, max_size=3)}),
)
WHERE = st.dictionaries(st.sampled_from(FIELDS), CONDITIONS, max_size=2)


def kind(value):
    """The kind of a value of JSON."""
    kinds = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "text"}
    return kinds.get(type(value), "other")


def holds(metadata, field, operation, value):
    """One condition, written out."""
    if field not in metadata:
        return operation == "ne"
    actual = metadata[field]
    alike = kind(actual) == kind(value)
    match operation:
        case "eq":
            return alike and actual == value
        case "ne":
            return not alike or actual != value
        case "in":
            return any(holds(metadata, field, "eq", item) for item in value)
    if not alike or value is None:
        return False
    return {"gt": actual > value, "gte": actual >= value, "lt": actual < value, "lte": actual <= value}[operation]


def fits(metadata, where):
    """A filter, written out."""
    conditions = [(field, c if isinstance(c, dict) else {"eq": c}) for field, c in where.items()]
    return all(holds(metadata, field, *item) for field, c in conditions for item in c.items())


@pytest.mark.parametrize("kind_of_index", ["words", "numpy", "python"])
@settings(max_examples=60, deadline=None)
@given(st.lists(METADATA, max_size=8), st.lists(WHERE, min_size=12, max_size=12))
def test_filters_are_exact(kind_of_index, rows, filters):
    """Each search finds the passages that satisfy its filter, and no others; so does each removal."""
    plain = vectors._numpy

    async def main():
        index = sm.KeywordIndex() if kind_of_index == "words" else sm.VectorIndex("embedded/hash")
        await index.add([{"id": str(at), "text": "tea", "metadata": metadata} for at, metadata in enumerate(rows)])
        for where in filters:
            expected = {str(at) for at, metadata in enumerate(rows) if fits(metadata, where)}
            assert {passage.id for passage in await index.search("tea", 99, where=where)} == expected
        assert await index.remove(where=filters[0]) == sum(fits(metadata, filters[0]) for metadata in rows)
        assert not await index.search("tea", 99, where=filters[0])

    try:
        vectors._numpy = (lambda: None) if kind_of_index == "python" else plain
        sm.run(main)
    finally:
        vectors._numpy = plain


async def test_the_limit_counts_what_the_filter_leaves():
    """The k best of those that fit, not those that fit among the k best."""
    index = sm.KeywordIndex()
    passages = [{"id": str(at), "text": "tea " * (9 - at), "metadata": {"year": 2020 + at}} for at in range(9)]
    await index.add(passages)
    assert {p.id for p in await index.search("tea", 2, where={"year": {"gte": 2024, "ne": 2025}})} <= set("4678")
    assert len(await index.search("tea", 2, where={"year": {"gte": 2024}})) == 2


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("lang", "where must be a mapping"),
        ({1: "x"}, r"where\[1\]: the name of a field must be a text"),
        ({"a": {"gtr": 1}}, r"where\['a'\]: no operator 'gtr'.*Did you mean 'gt'"),
        ({"a": {"in": "xy"}}, r"where\['a'\]\['in'\] must be a list of values"),
        ({"a": [1]}, r"where\['a'\] must be a text, a finite number"),
        ({"a": float("nan")}, "a finite number"),
        ({"a": {"in": [object()]}}, "a finite number"),
    ],
)
async def test_what_is_not_a_filter_is_named(where, words):
    """Where it is searched, removed or declared."""
    index = sm.KeywordIndex()
    with pytest.raises(sm.ArgumentError, match=words):
        await index.search("x", where=where)
    with pytest.raises(sm.ArgumentError, match=words):
        await index.remove(where=where)
    with pytest.raises(sm.ConfigError, match=words):
        sm.Retrieve(index, where=where)


async def test_ids_or_a_filter_are_removed():
    """Neither and both are mistakes, which remove nothing."""
    index = sm.KeywordIndex()
    await index.add([{"id": "1", "text": "tea"}])
    for ids, where in ((None, None), (["1"], {"a": 1})):
        with pytest.raises(sm.ArgumentError, match="either ids or where"):
            await index.remove(ids, where=where)
    assert (len(index), (await index.get("1")).text, await index.get("2")) == (1, "tea", None)
