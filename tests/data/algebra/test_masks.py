"""Masks: keep only, or remove, what patterns name; alike on schemas and values."""

from typing import Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import Field

from synmod.data import OPERATIONS, DataModel, JsonDataModel, ops, schema_from, schema_of, symbol
from synmod.errors import ArgumentError, SchemaError, SchemaTooComplex
from tests.data.model_strategies import is_sound, symbol_of, values


class Doc(DataModel):
    title: str
    note: str = ""


class Report(DataModel):
    note: str
    docs: list[Doc]
    best: Doc | None = None
    by_key: dict[str, Doc] = {}
    answer: str = ""
    answers: str = ""
    answer_1: str = ""


REPORT = Report(
    note="n", docs=[Doc(title="t", note="m")], best=Doc(title="b"), by_key={"x": Doc(title="u", note="v")}
).to_json_data_model()


def kept(*patterns, **how):
    return ops.in_mask(REPORT, list(patterns), **how).get_json()


def left(*patterns, **how):
    return ops.out_mask(REPORT, list(patterns), **how).get_json()


def test_exact_names():
    """`answer` is the top-level field `answer` only."""
    assert kept("answer") == {"answer": ""}
    assert left("answer").keys() == REPORT.keys() - {"answer"}


def test_wild_names():
    """`*` and `?` are wild within a step."""
    assert list(kept("answer*")) == ["answer", "answers", "answer_1"]
    assert list(kept("answer?")) == ["answers"]
    assert list(kept("*e*")) == ["note", "best", "by_key", "answer", "answers", "answer_1"] and "docs" not in kept(
        "*e*"
    )


def test_paths_through_lists_and_alternatives():
    """Lists are transparent, alternatives are entered."""
    assert kept("docs/title") == {"docs": [{"title": "t"}]}
    assert kept("best/title") == {"best": {"title": "b"}}
    assert left("docs/title", "best/title")["docs"] == [{"note": "m"}]


def test_any_depth():
    """`**` is any number of steps, none included; `recursive` puts it before each pattern."""
    everywhere = {"note": "n", "docs": [{"note": "m"}], "best": {"note": ""}, "by_key": {"x": {"note": "v"}}}
    assert kept("**/note") == everywhere
    assert kept("note", recursive=True) == everywhere
    assert kept("**") == REPORT.get_json()
    assert left("**") == {}
    assert left("**/note")["docs"] == [{"title": "t"}]


def test_open_dictionaries():
    """Below an open dictionary the step of the key is `*`; an exact name there may exist at run time."""
    assert kept("by_key/*/title") == {"by_key": {"x": {"title": "u"}}}
    assert kept("by_key/x") == {"by_key": {"x": {"title": "u", "note": "v"}}}
    assert kept("by_key/y") == {"by_key": {}}
    assert left("by_key/x")["by_key"] == {}
    with pytest.raises(SchemaError):
        kept("by_key/x/title")
    with pytest.raises(SchemaError):
        kept("by_key/x*")


def test_keeping_a_branch_keeps_all_below():
    """A named field is kept whole, also where another pattern names a part of it."""
    assert kept("docs", "docs/title")["docs"] == REPORT.get_json()["docs"]


def test_required_follows():
    """What was required and is kept stays required."""
    schema = ops.in_mask(REPORT, ["note", "answer", "docs/note"]).get_schema()
    assert schema["required"] == ["note", "docs"]
    assert list(schema["properties"]) == ["note", "docs", "answer"]
    assert "required" not in schema["$defs"]["Doc"]


def test_a_definition_is_split():
    """Masked in one place, untouched in the other."""
    schema = ops.out_mask(Report, "docs/note").get_schema()
    assert list(schema["$defs"]["Doc"]["properties"]) == ["title", "note"]
    assert schema["properties"]["docs"]["items"] == {"$ref": "#/$defs/Doc_1"}
    assert list(schema["$defs"]["Doc_1"]["properties"]) == ["title"]


def test_recursive_models():
    """A schema that refers to itself is masked all the way down."""

    class Tree(DataModel):
        note: str
        secret: str = "s"
        children: list["Tree"] = []

    tree = Tree(note="a", children=[Tree(note="b", children=[Tree(note="c")])]).to_json_data_model()
    assert "secret" not in str(tree.out_mask("**/secret").get_json())
    assert is_sound(tree.out_mask("**/secret"))
    assert tree.in_mask("children/note").get_json() == {"children": [{"note": "b"}]}
    assert is_sound(tree.in_mask("children/note"))


def test_alternatives_with_a_discriminator():
    """Each alternative keeps what is named in it, and stays valid."""

    class Cat(DataModel):
        kind: Literal["cat"] = "cat"
        name: str
        claws: int = 4

    class Dog(DataModel):
        kind: Literal["dog"] = "dog"
        name: str
        barks: bool = True

    class Home(DataModel):
        pet: Cat | Dog = Field(discriminator="kind")

    home = Home(pet=Dog(name="rex")).to_json_data_model()
    assert home.in_mask("pet/name").get_json() == {"pet": {"name": "rex"}}
    assert home.out_mask("pet/claws").get_json() == home.get_json()
    for masked in (home.in_mask("pet/name"), home.out_mask("pet/claws"), home.in_mask(["pet/kind", "pet/name"])):
        assert is_sound(masked)


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("anwser", "Did you mean 'answer'"),
        ("docs/titel", "Did you mean 'title'"),
        ("Note", "Did you mean 'note'"),
        ("answer/x", "matches nothing"),
        ("docs/0/title", "'title', 'note'"),
        ("", "matches nothing"),
        ("**/nothing_of_that_kind/x", "matches nothing"),
    ],
)
def test_a_pattern_that_matches_nothing(pattern, hint):
    """It is named, with the fields at that place."""
    for mask in (ops.in_mask, ops.out_mask):
        for x in (REPORT, Report, symbol_of(REPORT)):
            with pytest.raises(SchemaError, match=hint) as error:
                mask(x, ["note", pattern])
            assert repr(pattern) in str(error.value)


def test_a_mask_without_a_pattern():
    """Nothing named is nothing meant."""

    class Empty(DataModel):
        pass

    for mask in ([], Empty):
        with pytest.raises(SchemaError):
            ops.in_mask(REPORT, mask)
    for mask in (5, None, [5], {"a": 1}, (), [()], ("a", 1)):
        with pytest.raises(ArgumentError):
            ops.in_mask(REPORT, mask)


def test_a_data_model_as_mask():
    """Its top-level names; only `*` and `?` in them stay wild."""
    odd = {"a/b": 1, "c*": 2, "[d]": 3, "~e": 4, "f#": 5, "cc": 6, "d": 7}
    fields = {name: {"type": "integer"} for name in odd}
    value = JsonDataModel(odd, schema={"type": "object", "properties": fields})
    named = symbol(schema_from({"type": "object", "properties": {k: fields[k] for k in ("a/b", "[d]", "~e", "f#")}}))
    assert list(value.in_mask(named).get_json()) == ["a/b", "[d]", "~e", "f#"]
    assert list(value.in_mask("c*").get_json()) == ["c*", "cc"]


def test_a_tuple_of_steps_as_pattern():
    """Its names may hold slashes; a list holds patterns, written either way, also as JSON."""
    inner = {"type": "object", "properties": {"c/d": {"type": "integer"}, "e": {"type": "integer"}}}
    inner["additionalProperties"] = False
    schema = {"type": "object", "properties": {"a/b": inner, "f": {"type": "integer"}}}
    value = JsonDataModel({"a/b": {"c/d": 1, "e": 2}, "f": 3}, schema=schema)
    assert value.in_mask(("a/b", "c/d")).get_json() == {"a/b": {"c/d": 1}}
    assert value.in_mask(["f", ("*", "e")]).get_json() == {"a/b": {"e": 2}, "f": 3}
    assert value.in_mask(("c/d",), recursive=True).get_json() == {"a/b": {"c/d": 1}}
    plan = OPERATIONS["out_mask"].plan((value,), {"mask": [["a/b", "c/d"], "f"]})
    assert plan.apply((value,)) == value.out_mask([("a/b", "c/d"), "f"])
    with pytest.raises(SchemaError, match="Did you mean 'c/d'"):
        value.in_mask(("a/b", "c/dd"))


def test_none_passes():
    """No value, no mask; classes and symbols give symbols."""
    assert ops.in_mask(None, "a") is None
    assert list(ops.out_mask(Report, "docs").keys())[:2] == ["note", "best"]
    assert OPERATIONS["in_mask"].plan((None,), {"mask": ["a"]}).apply((None,)) is None


def test_open_root():
    """An exact name at an open root may exist at run time only."""
    value = JsonDataModel({"a": 1, "b": 2}, schema={"type": "object", "properties": {"a": {}}})
    assert value.in_mask("b").get_json() == {"b": 2}
    assert is_sound(value.in_mask("b"))
    assert value.out_mask("b").get_json() == {"a": 1}
    assert value.in_mask("a").get_json() == {"a": 1}
    assert value.in_mask("a").get_schema()["additionalProperties"] is False


def test_defaults_of_masked_fields_are_dropped():
    """The default of a field does not bring back what the mask took away."""
    field = {"type": "object", "properties": {"a": {}, "b": {}}, "default": {"a": 1, "b": 2}}
    value = JsonDataModel({}, schema={"type": "object", "properties": {"x": field}})
    assert "default" not in value.in_mask("x/a").get_schema()["properties"]["x"]
    assert value.in_mask("x")["x"] == {"a": 1, "b": 2}


def test_patterns_that_would_explode():
    """A mask that needs too many steps is refused, not run."""

    class Tree(DataModel):
        a: "Tree | None" = None
        b: "Tree | None" = None

    with pytest.raises(SchemaTooComplex):
        ops.out_mask(Tree, "**/a/" + "/".join("*" * 20))


PATTERNS = ["k", "k_?", "*", "**/note", "note", "*/note", "k/deep/note", "**/deep", "a/**", "k*/note", "**"]


@given(values(), st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3), st.booleans())
def test_values_agree_with_their_symbol(value, patterns, keep):
    """The masked value satisfies the masked schema, which is the symbol's, and holds nothing new."""
    mask = ops.in_mask if keep else ops.out_mask
    try:
        masked = mask(value, patterns)
    except SchemaError:
        with pytest.raises(SchemaError):
            mask(symbol_of(value), patterns)
        return
    assert schema_of(masked) is schema_of(mask(symbol_of(value), patterns))
    assert is_sound(masked)
    assert set(masked.keys()) <= set(value.keys())
    assert list(masked.keys()) == [key for key in value.keys() if key in masked.keys()]


@given(values(), st.lists(st.sampled_from(["k", "k_?", "note", "*", "a"]), min_size=1, max_size=3))
def test_kept_and_removed_make_the_whole(value, patterns):
    """Of top-level names, what one mask keeps the other removes."""
    try:
        inside, outside = value.in_mask(patterns), value.out_mask(patterns)
    except SchemaError:
        return
    assert {**inside.get_json(), **outside.get_json()} == value.get_json()
    assert not set(inside.keys()) & set(outside.keys())


def nested_fields(depth):
    """Closed objects of objects, some in lists, with integers at the ends."""
    if not depth:
        return st.just(None)
    inner = nested_fields(depth - 1)
    return st.dictionaries(st.sampled_from(["a", "b", "note"]), st.none() | inner | st.tuples(inner), max_size=3)


def schema_of_fields(fields):
    if fields is None:
        return {"type": "integer"}
    if isinstance(fields, tuple):
        return {"type": "array", "items": schema_of_fields(fields[0])}
    properties = {name: schema_of_fields(inner) for name, inner in fields.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def value_of_fields(fields):
    if fields is None:
        return 1
    if isinstance(fields, tuple):
        return [value_of_fields(fields[0])] * 2
    return {name: value_of_fields(inner) for name, inner in fields.items()}


def paths_of_fields(fields, path=()):
    while isinstance(fields, tuple):
        fields = fields[0]
    for name, inner in (fields or {}).items():
        yield (*path, name)
        yield from paths_of_fields(inner, (*path, name))


def named(pattern, path):
    """Whether a pattern names a path, step by step."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return named(pattern[1:], path) or (bool(path) and named(pattern, path[1:]))
    return bool(path) and pattern[0] in {"*", path[0]} and named(pattern[1:], path[1:])


def selected(json, keeps, path=()):
    if isinstance(json, list):
        return [selected(item, keeps, path) for item in json]
    if isinstance(json, dict):
        return {key: selected(item, keeps, (*path, key)) for key, item in json.items() if keeps((*path, key))}
    return json


@given(
    nested_fields(3),
    st.lists(
        st.lists(st.sampled_from(["a", "b", "note", "*", "**"]), min_size=1, max_size=3).map(tuple),
        min_size=1,
        max_size=3,
    ),
)
def test_masks_by_the_letter(fields, patterns):
    """Against a mask that enumerates every path."""
    paths = list(paths_of_fields(fields))
    chosen = {path for path in paths for pattern in patterns if named(pattern, path)}
    matched = all(any(named(pattern, path) for path in [(), *paths]) for pattern in patterns)
    value = JsonDataModel(value_of_fields(fields), schema=schema_of_fields(fields))
    texts = ["/".join(pattern) for pattern in patterns]
    if not matched:
        with pytest.raises(SchemaError):
            value.in_mask(texts)
        return

    def within(path):
        return any(path[: len(top)] == top for top in chosen)

    def leads(path):
        return any(down[: len(path)] == path for down in chosen)

    inside, outside = value.in_mask(texts), value.out_mask(texts)
    assert inside.get_json() == selected(value.get_json(), lambda path: within(path) or leads(path))
    assert outside.get_json() == selected(value.get_json(), lambda path: not within(path))
    assert is_sound(inside)
    assert is_sound(outside)
