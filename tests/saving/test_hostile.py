"""Hostile documents: refused at the check stage, with the class and the pointer; nothing is constructed."""

import copy
import itertools
import json
import random
import re
import time

import pytest

import synmod as sm
from synmod.saving import dumps, loads
from tests.saving.hostile import at, document, edited, minimal, places, sections_of
from tests.saving.programs import PACKAGE, Built, Explain, Keep, Query, Store, shout


@pytest.fixture(autouse=True)
def no_constructors(monkeypatch):
    """Counts what is constructed while a test loads."""
    made = []
    original = type(sm.Module).__call__

    def counted(cls, *args, **kwargs):
        made.append(cls)
        return original(cls, *args, **kwargs)

    monkeypatch.setattr(type(sm.Module), "__call__", counted)
    return made


def refused(text, error, made=None, where=None):
    """Load a text that must be refused; gives the error."""
    if made is not None:
        made.clear()
    with pytest.raises(sm.LoadError) as caught:
        loads(text)
    assert type(caught.value) is error, caught.value
    if made is not None:
        assert made == []
    if where is not None:
        assert caught.value.where == where
        assert str(caught.value).startswith(f"{where}:" if where else "")
    return caught.value


GOOD = dumps(Keep(1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("no json", "not JSON"),
        (GOOD[: len(GOOD) // 2], "not JSON"),
        (GOOD[:-3], "not JSON"),
        (GOOD + "x", "text after the JSON value"),
        (GOOD + "{}", "text after the JSON value"),
        ("\ufeff" + GOOD, "BOM"),
        (GOOD.replace('"format": 1', '"format": 1, "format": 1'), "twice"),
        (GOOD.replace('"json": 1', '"json": 1, "json": 1'), "twice"),
        (GOOD.replace('"json": 1', '"json": NaN'), "nan (type float) is not JSON"),
        (GOOD.replace('"json": 1', '"json": -Infinity'), "-inf (type float) is not JSON"),
        (GOOD.replace('"json": 1', '"json": 1e999'), "inf (type float) is not JSON"),
        (GOOD.replace('"json": 1', '"json": "\\ud800"'), "surrogate"),
        (GOOD.replace('"json": 1', f'"json": {"9" * 1001}'), "digits"),
        (GOOD.replace('"json": 1', f'"json": {"9" * 5000}'), "digits"),
        (GOOD.replace('"json": 1', '"json": 01'), "not JSON"),
        (GOOD.replace('"json": 1', "\"json\": 'a'"), "not JSON"),
        (GOOD.replace('"json": 1', '"json": "a\nb"'), "not JSON"),
        ("[]", "object"),
        ("3", "object"),
        ("{}", "header"),
        ('{"header": []}', "object"),
        ("[" * 100_000, "nesting"),
        ("[" * 100_000 + "]" * 100_000, "nesting"),
        ("[" + "1," * 1_000_001 + "1]", "values"),
        ("[" + "[]," * 1_100_000 + "1]", "values"),
        ("[][]", "text after the JSON value"),
        ('{"a":1}]', "text after the JSON value"),
    ],
    ids=lambda text: text[:30],
)
def test_what_is_no_document(text, says, no_constructors):
    """FormatError for everything that is not the JSON text of a document."""
    assert says in str(refused(text, sm.FormatError, no_constructors))
    if "\\ud800" not in text:
        assert says in str(refused(text.encode(), sm.FormatError, no_constructors))


@pytest.mark.parametrize(
    "data", [b"\xff", GOOD.encode()[:-3] + b"\xc3}", "é".encode("latin-1"), b"\xed\xa0\x80", b"\0"]
)
def test_bytes_that_are_not_utf_8(data):
    """Strict UTF-8 only."""
    for text in (data, GOOD.encode().replace(b"0.1.0", data)):
        assert re.search("UTF-8|not JSON", str(refused(text, sm.FormatError)))


def test_text_with_a_lone_surrogate_and_wrong_argument_types():
    """A str must be Unicode; anything but str and bytes is an ArgumentError."""
    refused(GOOD.replace("0.1.0", "\ud800"), sm.FormatError)
    for wrong in (None, 3, {"a": 1}, Keep):
        with pytest.raises(sm.ArgumentError):
            loads(wrong)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"format": 2}, "upgrade to synmod-lm >= 0.1.0"),
        ({"format": 99, "synmod": "7.0.0"}, "upgrade to synmod-lm >= 7.0.0"),
        ({"format": 99, "synmod": "7.0.0; rm -rf", "news": 1}, "format 99"),
        ({"format": 0}, "is not a format"),
        ({"format": True}, "is not a format"),
        ({"format": 1.0}, "is not a format"),
        ({"format": "1"}, "is not a format"),
        ({"format": -1}, "is not a format"),
        ({"kind": "variables"}, "load_variables"),
        ({"kind": "checkpoint"}, "Trainer"),
        ({"kind": "other"}, "is not a kind"),
        ({"kind": ["program"]}, "is not a kind"),
        ({"synmod": 3}, "is not a release"),
        ({"extra": 1}, "unknown field"),
    ],
    ids=str,
)
def test_headers(header, says):
    """A newer format names both numbers; another kind names the function to use; unknown fields are refused."""
    error = refused(document(minimal(), header), sm.FormatError)
    assert says in str(error)
    assert error.where.startswith("/header")


def test_missing_header_fields():
    """Each is needed."""
    for name in ("synmod", "format", "kind"):
        changed = json.loads(GOOD)
        del changed["header"][name]
        refused(json.dumps(changed), sm.FormatError, where=f"/header/{name}")


VALUES = [
    None,
    True,
    -1,
    10**6,
    0.5,
    "x",
    [],
    {},
    {"json": 1, "node": 0},
    {"eval": "1"},
    [[]],
    {"node": -1},
    {"node": True},
]


def test_each_field_at_each_level_is_checked():
    """S5: a field that is missing or unknown is refused wherever it stands, with its pointer."""
    text = dumps([Explain("x"), Keep([sm.LanguageModel("openai/x"), Query])])
    sections = sections_of(text)
    user_data = ("json", "state", "schema", "language_models")
    for place in places(sections):
        if any(step in user_data for step in place):
            continue
        here = at(sections, place)
        if isinstance(here, dict) and place[-1:] not in (("config",), ("attributes",), ("kwargs",)):
            changed = copy.deepcopy(sections)
            at(changed, place)["unheard-of"] = 1
            assert refused(document(changed), sm.FormatError).where
            for name in here:
                if name not in ("name", "description", "title"):
                    changed = copy.deepcopy(sections)
                    del at(changed, place)[name]
                    refused_somehow(document(changed))


def thing(term):
    """A document whose one node is given this term."""
    return {"graph__nodes__0__config__thing": term}


def tree(type_, children, config):
    """A tree term."""
    return thing({"tree": {"type": type_, "children": children, "config": config}})


def refused_somehow(text):
    """Refused as a document or as a program."""
    with pytest.raises(sm.LoadError) as caught:
        loads(text)
    return caught.value


@pytest.mark.parametrize(
    ("changes", "error", "where"),
    [
        ({"graph": []}, sm.FormatError, "/graph"),
        ({"graph__nodes": {}}, sm.FormatError, "/graph/nodes"),
        ({"graph__nodes__0": 3}, sm.FormatError, "/graph/nodes/0"),
        ({"data_models": {}}, sm.FormatError, "/data_models"),
        ({"language_models": []}, sm.FormatError, "/language_models"),
        ({"state": []}, sm.FormatError, "/state"),
        ({"more": 1}, sm.FormatError, "/more"),
        ({"graph__root": {"node": 1}}, sm.FormatError, "/graph/root/node"),
        ({"graph__root": {"node": -1}}, sm.FormatError, "/graph/root/node"),
        ({"graph__root": {"node": True}}, sm.FormatError, "/graph/root/node"),
        ({"graph__root": {"node": 0.0}}, sm.FormatError, "/graph/root/node"),
        ({"graph__root": {"node": 0, "json": 1}}, sm.FormatError, "/graph/root"),
        ({"graph__root": {}}, sm.FormatError, "/graph/root"),
        ({"graph__root": [0]}, sm.FormatError, "/graph/root"),
        ({"graph__root": {"eval": "x"}}, sm.FormatError, "/graph/root/eval"),
        ({"graph__root": {"symbol": 0}}, sm.FormatError, "/graph/root/symbol"),
        ({"graph__root": {"json": 0}}, sm.FormatError, "/graph/nodes/0"),
        ({"graph__nodes__0__type": "os>system"}, sm.LoadError, "/graph/nodes/0/type"),
        ({"graph__nodes__0__type": "os.system"}, sm.LoadError, "/graph/nodes/0/type"),
        ({"graph__nodes__0__type": "synmod.blocks.Generator"}, sm.LoadError, "/graph/nodes/0/type"),
        ({"graph__nodes__0__type": f"{PACKAGE}>shout"}, sm.LoadError, "/graph/nodes/0/type"),
        ({"graph__nodes__0__type": f"{PACKAGE}>Query"}, sm.LoadError, "/graph/nodes/0/type"),
        ({"graph__nodes__0__type": "synmod>LanguageModel"}, sm.LoadError, "/graph/nodes/0/type"),
        ({"graph__nodes__0__type": "builtins>ValueError"}, sm.LoadError, "/graph/nodes/0/type"),
        ({"graph__nodes__0__type": "builtins>eval"}, sm.LoadError, "/graph/nodes/0/type"),
        ({"graph__nodes__0__type": None}, sm.LoadError, "/graph/nodes/0/type"),
        ({"graph__nodes__0__type": ["a"]}, sm.LoadError, "/graph/nodes/0/type"),
        (thing({"function": "os>system"}), sm.LoadError, None),
        (thing({"function": "builtins>eval"}), sm.LoadError, None),
        (thing({"function": f"{PACKAGE}>Query"}), sm.LoadError, None),
        (thing({"class": f"{PACKAGE}>shout"}), sm.LoadError, None),
        (thing({"class": "builtins>int"}), sm.LoadError, None),
        (thing({"enum": {"class": f"{PACKAGE}>Colour", "member": "BLUE"}}), sm.LoadError, None),
        (thing({"enum": {"class": f"{PACKAGE}>Colour", "member": "__class__"}}), sm.LoadError, None),
        (thing({"enum": {"class": f"{PACKAGE}>Query", "member": "x"}}), sm.LoadError, None),
        (thing({"enum": {"class": f"{PACKAGE}>Colour"}}), sm.FormatError, None),
        (thing({"scalar": {"type": "date", "text": "2024-13-01"}}), sm.FormatError, None),
        (thing({"scalar": {"type": "decimal", "text": "1_0"}}), sm.FormatError, None),
        (thing({"scalar": {"type": "bytes", "text": "a"}}), sm.FormatError, None),
        (thing({"scalar": {"type": "complex", "text": "1j"}}), sm.FormatError, None),
        (thing({"scalar": {"type": "uuid", "text": "0" * 10**6}}), sm.FormatError, None),
        (thing({"timedelta": 1}), sm.FormatError, None),
        (thing({"set": [[]]}), sm.FormatError, None),
        (thing({"set": [1, True]}), sm.FormatError, None),
        (thing({"dict": [[[], {"json": 1}]]}), sm.FormatError, None),
        (thing({"dict": [["a", {"json": 1}], ["a", {"json": 1}]]}), sm.FormatError, None),
        (thing({"dict": {"a": 1}}), sm.FormatError, None),
        (thing({"list": [1]}), sm.FormatError, None),
        (tree(f"{PACKAGE}>Query", [], {"json": None}), sm.LoadError, None),
        (tree(f"{PACKAGE}>Point", [], {"json": None}), sm.LoadError, None),
        (tree(f"{PACKAGE}>Pair", [{"json": 1}] * 2, {"json": {"__class__": 1}}), sm.LoadError, None),
        (tree("collections>deque", [{"json": 1}] * 2, {"json": 1}), sm.LoadError, None),
        (tree("collections>OrderedDict", [{"json": 1}], {"json": [[]]}), sm.LoadError, None),
        (thing({"data_model": 0}), sm.FormatError, None),
        (thing({"data": {"data_model": 0, "json": {}}}), sm.FormatError, None),
        (thing({"language_model": "x"}), sm.FormatError, None),
        (thing({"variable": 0}), sm.FormatError, None),
        ({"graph__nodes__0__config__hooks": {"json": []}}, sm.LoadError, "/graph/nodes/0/config/hooks"),
        (thing({"node": 0}), sm.LoadError, "/graph/nodes/0/config"),
        ({"graph__nodes__0__attributes____class__": {"json": 1}}, sm.LoadError, None),
        ({"graph__nodes__0__attributes__call": {"json": 1}}, sm.LoadError, "/graph/nodes/0/attributes/call"),
        ({"graph__nodes__0__attributes__variables": {"json": 1}}, sm.LoadError, None),
        ({"graph__nodes__0__attributes___record": {"json": 1}}, sm.LoadError, None),
        ({"graph__nodes__0__attributes__a-b": {"json": 1}}, sm.LoadError, None),
        ({"graph__nodes__0__attributes__": {"json": 1}}, sm.LoadError, None),
        ({"graph__nodes__0__name": "a b"}, sm.LoadError, "/graph/nodes/0/name"),
        ({"graph__nodes__0__name": "class"}, sm.LoadError, "/graph/nodes/0/name"),
        ({"graph__nodes__0__name": 3}, sm.FormatError, "/graph/nodes/0/name"),
        ({"graph__nodes__0__description": 3}, sm.FormatError, None),
        ({"graph__nodes__0__trainable": 1}, sm.FormatError, None),
        ({"graph__nodes__0__removed": "thing"}, sm.FormatError, None),
        ({"graph__nodes__0__removed": ["__dict__"]}, sm.LoadError, None),
        ({"graph__nodes__0__flow": {}}, sm.LoadError, None),
        ({"graph__nodes__0__build": {"node": 0}}, sm.LoadError, None),
    ],
    ids=lambda x: json.dumps(x)[:70] if isinstance(x, dict) else "",
)  # fmt: skip
def test_what_cannot_be(changes, error, where, no_constructors):
    """Each fault with its class and its pointer."""
    if "graph__nodes__0__attributes____class__" in changes:
        sections = minimal()
        sections["graph"]["nodes"][0]["attributes"]["__class__"] = {"json": 1}
    elif "graph__nodes__0__attributes___record" in changes:
        sections = minimal()
        sections["graph"]["nodes"][0]["attributes"]["_record"] = {"json": 1}
    else:
        sections = minimal(**changes)
    found = refused(document(sections), error, no_constructors, where)
    assert found.where.startswith("/")
    assert found.file is None


def variable(**changes):
    """A document with one Variable at `v`."""
    record = {"type": "synmod>Param", "schema": {"type": "string"}, "trainable": True, **changes}
    sections = minimal(graph__variables=[record], state__v="x")
    sections["graph"]["nodes"][0]["attributes"]["v"] = {"variable": 0}
    return sections


@pytest.mark.parametrize(
    ("sections", "error"),
    [
        (variable(type="synmod>Generator"), sm.LoadError),
        (variable(type="nobody>Knows"), sm.LoadError),
        (variable(schema=True), sm.FormatError),
        (variable(schema={"$ref": "http://example.com/x"}), sm.LoadError),
        (variable(schema={"$ref": "file:///etc/passwd"}), sm.LoadError),
        (variable(schema={"type": "strin"}), sm.LoadError),
        (variable(schema={"type": "string", "pattern": "(?=a)b"}), sm.LoadError),
        (variable(schema={"$ref": "#"}), sm.LoadError),
        (variable(trainable=1), sm.FormatError),
        (variable(name="1a"), sm.LoadError),
        (variable(description=None), sm.FormatError),
        (variable(metadata=[]), sm.FormatError),
        (variable(metadata={"trainable": False}), sm.FormatError),
        (variable(value="x"), sm.FormatError),
    ],
    ids=lambda x: json.dumps(x["graph"]["variables"])[:60] + json.dumps(x["state"]) if isinstance(x, dict) else "",
)
def test_variables_that_cannot_be(sections, error, no_constructors):
    """Types, schemas, names, values and paths are all checked before anything is made."""
    refused(document(sections), error, no_constructors)


def test_the_good_ones_load():
    """What the faults above are made of is a good document."""
    assert loads(document(minimal())).thing is None
    assert loads(document(variable())).v.value == "x"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "http://evil.example/v1"),
        ("model", "openai"),
        ("model", "openai/../x"),
        ("model", "OPENAI/x"),
        ("model", "openai/x y"),
        ("model", None),
        ("attempts", 0),
        ("attempts", True),
        ("attempts", 1.0),
        ("timeout_s", 0),
        ("timeout_s", "1"),
        ("repairs", -1),
        ("structured", "magic"),
        ("limit", 1),
        ("fallback", ["openai/y"]),
        ("defaults", {"api_base": "http://evil.example"}),
        ("defaults", {"temprature": 1}),
        ("defaults", []),
        ("supply", ["api_key"]),
        ("supply", "api_base"),
        ("supply", 3),
        ("supply", ["headers", "api_base"]),
        ("api_base", "http://evil.example"),
        ("api_key", "sk"),
        ("headers", {}),
        ("config", {}),
        ("type", 3),
        ("type", "synmod>Generator"),
    ],
    ids=str,
)
def test_records_of_language_models(field, value, no_constructors):
    """S6: there is no field for an endpoint, header or key, and settings lie within bounds."""
    text = dumps(Keep(sm.LanguageModel("openai/x")))
    no_constructors.clear()
    refused_somehow(edited(text, lambda s: s["language_models"]["openai/x"].__setitem__(field, value)))
    assert no_constructors == []


@pytest.mark.parametrize(
    ("sections", "where"),
    [
        (minimal(state__x=1), "/state/x"),
        (minimal() | {"state": {"..": 1}}, "/state/.."),
        (minimal() | {"state": {"": 1}}, "/state/"),
        (variable() | {"state": {}}, "/state"),
        (variable() | {"state": {"v": "x", "w": "y"}}, "/state/w"),
        (variable() | {"state": {"w": "x"}}, "/state/w"),
        (variable() | {"state": {"v/..": "x"}}, "/state/v~1.."),
        (variable() | {"state": {"v": 3}}, "/state/v"),
        (variable(schema={"type": "integer"}), "/state/v"),
        (variable(schema={"type": "string", "maxLength": 0}), "/state/v"),
    ],
    ids=lambda x: json.dumps(x["state"]) if isinstance(x, dict) else "",
)
def test_a_state_that_does_not_fit(sections, where):
    """The state is applied last, all or nothing: unknown, missing and invalid values are a LoadError with the place."""
    refused(document(sections), sm.LoadError, where=where)


@pytest.mark.parametrize(
    "term",
    [
        {"set": [number * (2**61 - 1) for number in range(4_000)]},
        {"dict": [[number * (2**61 - 1), {"json": 1}] for number in range(4_000)]},
        {
            "tree": {
                "type": "collections>OrderedDict",
                "children": [{"json": 1}] * 4_000,
                "config": {"json": [number * (2**61 - 1) for number in range(4_000)]},
            }
        },
        {"tree": {"type": "collections>deque", "children": [], "config": {"json": 10**30}}},
    ],
    ids=["set", "dict", "OrderedDict", "deque"],
)
def test_ints_that_other_readers_round(term):
    """Ints beyond 2**53 are refused in sets, as keys and as lengths: hashes collide, or no container takes them."""
    start = time.process_time()
    refused_somehow(document(minimal(**thing(term))))
    assert time.process_time() - start < 1


def test_many_modules_that_share_others_load_in_linear_time():
    """What a constructor made is looked at once per load, however many modules hold it."""
    count, held = 320, 40
    record = minimal()["graph"]["nodes"][0]
    holders = [
        {**record, "config": {"thing": {"list": [{"node": count + 1 + number} for number in range(held)]}}}
        for _ in range(count)
    ]
    root = {**record, "config": {"thing": {"list": [{"node": 1 + number} for number in range(count)]}}}
    sections = minimal(graph__nodes=[root, *holders, *[record] * held])
    start = time.process_time()
    loads(document(sections))
    assert time.process_time() - start < 3


def test_bookkeeping_of_the_base_class_never_comes_from_a_file(no_constructors):
    """Private names that Module defines are refused as attributes, and what only a class declares."""
    private = ("_record", "graph_ignored", "_declaration", "_is_module_base", "_abc_impl")
    for name in (*private, "stashable_names", "poppable_names", "skip_schemas", "call"):
        sections = minimal()
        sections["graph"]["nodes"][0]["attributes"][name] = {"json": ["x"]}
        refused(document(sections), sm.LoadError, no_constructors, f"/graph/nodes/0/attributes/{name}")


def test_an_unknown_id_is_told_with_the_nearest_and_the_package():
    """The loader never imports it."""
    error = refused(document(minimal(graph__nodes__0__type=f"{PACKAGE}>Kep")), sm.LoadError)
    assert "Did you mean 'tests_saving>Keep'" in str(error)
    assert f"Import the package that registers it ('{PACKAGE}')" in str(error)
    long = refused(document(minimal(graph__nodes__0__type=f"a>{'x' * 10_000}")), sm.LoadError)
    assert len(str(long)) < 2_000


def test_an_argument_that_the_class_does_not_take():
    """Contains 'Did you mean'; nothing is constructed."""
    sections = sections_of(dumps(Built(3)))
    sections["graph"]["nodes"][0]["config"] = {"sise": {"json": 3}}
    error = refused(document(sections), sm.LoadError)
    assert "Did you mean 'size'" in str(error)
    assert error.where == "/graph/nodes/0/config/sise"


def test_a_keyword_that_cannot_come_from_a_file_is_not_proposed():
    """A class that takes any keyword takes no `hooks` from a file; 'Did you mean' once proposed the refused name."""

    @sm.register(PACKAGE)
    class TakesAny(sm.Module):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)

    sections = sections_of(dumps(TakesAny()))
    sections["graph"]["nodes"][0]["config"] = {"hooks": {"json": []}}
    error = refused(document(sections), sm.LoadError, where="/graph/nodes/0/config/hooks")
    assert "'hooks'" in str(error)
    assert "Did you mean" not in str(error)


def test_arguments_that_need_one_another(no_constructors):
    """A circle of any length is a LoadError; the same circle of attributes is fine."""
    for length in (1, 2, 3000):
        sections = minimal()
        sections["graph"]["nodes"] = [
            {
                "type": f"{PACKAGE}>Keep",
                "config": {"thing": {"node": (number + 1) % length}},
                "attributes": {"thing": {"node": (number + 1) % length}},
                "build": None,
            }
            for number in range(length)
        ]
        error = refused(document(sections), sm.LoadError, no_constructors)
        assert "need one another" in str(error)
        for record in sections["graph"]["nodes"]:
            record["config"] = {}
        assert loads(document(sections)).thing is not None


@pytest.mark.parametrize("keys", [[""], ["1", 1]])
def test_keys_on_the_way_to_a_node_that_make_no_path(keys):
    """An empty key, or two that read alike, is a LoadError, not an error of the graph."""
    sections = minimal()
    sections["graph"]["nodes"] = [
        {**sections["graph"]["nodes"][0], "attributes": {"extra": {"dict": [[key, {"node": 1}] for key in keys]}}},
        {**sections["graph"]["nodes"][0], "attributes": {}},
    ]
    error = refused(document(sections), sm.LoadError, where="/graph")
    assert isinstance(error.__cause__, sm.GraphError)


def test_parts_that_nothing_leads_to(no_constructors):
    """A node or Variable that belongs to nothing is refused."""
    sections = minimal()
    sections["graph"]["nodes"] *= 2
    refused(document(sections), sm.FormatError, no_constructors, "/graph/nodes/1")
    sections = variable()
    sections["graph"]["nodes"][0]["attributes"] = {}
    sections["state"] = {}
    refused(document(sections), sm.FormatError, no_constructors, "/graph/variables/0")


def test_a_value_that_looks_like_a_template_is_text():
    """Nothing is rendered."""
    for text in ("{{ 7 * 7 }}", "{x.__class__}", "${HOME}", "%(a)s", "{% import os %}", "__import__('os')"):
        assert loads(document(minimal(graph__nodes__0__config__thing={"json": text}))).thing == text


def test_names_are_no_paths():
    """`..` and slashes inside keys of user data have no effect."""
    sections = minimal()
    sections["graph"]["nodes"][0]["config"]["thing"] = {"json": {"../../etc/passwd": "..", "C:\\x": "/"}}
    assert list(loads(document(sections)).thing) == ["../../etc/passwd", "C:\\x"]


def test_what_a_constructor_raises_is_a_load_error():
    """With the class, the place and the cause; the class that has changed has a remedy."""

    @sm.register("tests_saving_raises")
    class Raises(sm.Module):
        def __init__(self, how="value"):
            if how == "value":
                raise ValueError("not today")
            if how == "exit":
                raise SystemExit(3)
            self.new = sm.Param("new")

    record = {"type": "tests_saving_raises>Raises", "config": {}, "attributes": {}, "build": None}
    with pytest.raises(sm.LoadError, match="Raises.*ValueError: not today") as caught:
        loads(document(minimal(graph__nodes=[record])))
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.where == "/graph/nodes/0"
    record["config"] = {"how": {"json": "exit"}}
    with pytest.raises(SystemExit):
        loads(document(minimal(graph__nodes=[record])))
    record["config"] = {"how": {"json": "variable"}}
    with pytest.raises(sm.LoadError, match="from_config"):
        loads(document(minimal(graph__nodes=[record])))
    assert not hasattr(loads(document(minimal(graph__nodes=[{**record, "removed": ["new"]}]))), "new")


def test_a_schema_over_budget_has_its_cause():
    """SchemaTooComplex is the cause."""
    names = [f"d{number}" for number in range(20)]
    definitions = {a: {"anyOf": [{"$ref": f"#/$defs/{b}"}] * 3} for a, b in itertools.pairwise(names)}
    schema = {"$defs": {**definitions, "d19": {"type": "string"}}, "$ref": "#/$defs/d0"}
    error = refused(document(variable(schema=schema)), sm.LoadError)
    assert isinstance(error.__cause__, sm.SchemaTooComplex)


def test_mutations_never_raise_anything_else():
    """Whatever is put anywhere: a LoadError, or a program that saves again."""
    chance = random.Random(5)
    store = Store("s")
    store.entries = {"a": sm.Memory([1]), 3: Keep((1, {2: shout}))}
    text = dumps({"e": Explain("x"), "k": Keep([sm.LanguageModel("openai/x"), Query, {1: sm.Param(1)}]), "s": store})
    sections = sections_of(text)
    spots = [place for place in places(sections) if place]
    pool = [at(sections, place) for place in spots] + VALUES
    for _ in range(300):

        def mutate(found):
            for _ in range(chance.choice([1, 1, 1, 2, 5])):
                place = chance.choice(spots)
                try:
                    holder = at(found, place[:-1])
                    what = chance.random()
                    if what < 0.2:
                        del holder[place[-1]]
                    elif what < 0.3 and isinstance(holder, list):
                        holder.insert(place[-1], chance.choice(pool))
                    elif what < 0.4 and isinstance(holder, dict):
                        holder[chance.choice(["node", "type", "json", "x", "__class__", "call"])] = chance.choice(pool)
                    else:
                        holder[place[-1]] = chance.choice(pool)
                except (KeyError, IndexError, TypeError):
                    continue

        mutated = edited(text, mutate)
        try:
            again = loads(mutated)
        except sm.LoadError:
            continue
        if isinstance(again, dict) and again:
            once = dumps(again)
            assert dumps(loads(once)) == once
