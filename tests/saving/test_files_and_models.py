"""Files, language models, custom objects, data models that changed, variables files, edits by hand."""

import asyncio
import json
import os
import threading

import pytest

import synmod as sm
from synmod.errors import LoadError
from synmod.saving import FileLimits, LoadReport, dumps, load, load_variables, loads, save, save_variables
from synmod.testing import ScriptedLM, assert_saves
from tests.saving.hostile import document, edited, minimal, sections_of
from tests.saving.programs import PACKAGE, Answer, Built, Explain, Keep, Query


def test_save_gives_the_path_and_the_text_of_dumps(tmp_path):
    """`save` is `dumps` into a file, atomically; bytes load like text."""
    module = Explain()
    path = save(module, str(tmp_path / "new" / "faq.json"))
    assert path == tmp_path / "new" / "faq.json"
    assert path.read_text() == dumps(module)
    assert dumps(load(path)) == dumps(loads(path.read_bytes())) == dumps(module)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no such file on this system")
def test_a_file_that_cannot_be_read_is_named():
    """An error of reading has no path, unlike one of opening."""
    with pytest.raises(sm.LoadError, match=r"^/proc/self/mem: the file cannot be read: "):
        sm.load("/proc/self/mem")


def test_what_is_no_regular_file(tmp_path):
    """A pipe, a folder or a device is a LoadError; a missing file is Python's own error; nothing hangs."""
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(sm.LoadError, match="regular file") as caught:
            load(bad)
        assert caught.value.file == str(bad)
        assert str(caught.value).startswith(f"{bad}: ")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.json")
    big = tmp_path / "big.json"
    with big.open("wb") as file:
        file.truncate(17 * 2**20)
    with pytest.raises(sm.FormatError, match="max_bytes"):
        load(big)


def test_errors_begin_with_file_and_pointer(tmp_path):
    """`faq.json: /graph/nodes/0/config/thng: ...`, with `.where` and `.file`."""
    path = tmp_path / "faq.json"
    path.write_text(document(minimal(graph__nodes__0__config__thing={"function": "os>system"})))
    with pytest.raises(sm.LoadError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: /graph/nodes/0/config/thing/function: ")
    assert caught.value.where == "/graph/nodes/0/config/thing/function"
    assert caught.value.file == str(path)


def test_limits_are_raised_by_the_caller_only(tmp_path):
    """What saves with raised limits loads with them; deep containers, many values, many bytes."""
    deep = Keep()
    deep.nest = [sm.Param("bottom")]
    for _ in range(60):
        deep.nest = [deep.nest]
    with pytest.raises(sm.SaveError, match="max_depth"):
        dumps(deep)
    limits = FileLimits(max_depth=150)
    text = dumps(deep, limits=limits)
    with pytest.raises(sm.FormatError, match="max_depth"):
        loads(text)
    again = loads(text, limits=limits)
    assert dumps(again, limits=limits) == text
    for wrong in (3, {"max_bytes": 3}, "x"):
        with pytest.raises(sm.ArgumentError):
            dumps(deep, limits=wrong)
    for wrong in ({"max_bytes": 0}, {"max_depth": True}, {"max_values": 1.5}):
        with pytest.raises(sm.ArgumentError):
            FileLimits(**wrong)


@pytest.mark.slow
@pytest.mark.interpreter
def test_a_chain_of_5000_modules():
    """Graph depth is not nesting: nodes lie in a flat list."""
    root = module = Keep()
    for _ in range(5000):
        module.thing = Keep()
        module = module.thing
    module.end = sm.Param("end")
    text = dumps(root)
    again = loads(text)
    assert dumps(again) == text


# -- language models --------------------------------------------------------------------------------------------------


def models(module):
    return [value for _, value in sm.iter_graph(module, sm.LanguageModel)]


def test_models_are_saved_once_without_secrets():
    """Settings and sampling defaults come back; a shared model is one model, two of one name are two."""
    shared = sm.LanguageModel("openai/a", temperature=0, max_tokens=5, attempts=5, timeout_s=9, repairs=0)
    other = sm.LanguageModel("openai/a")
    named = sm.LanguageModel("openai/b", name="judge", structured="prompt")
    module = Keep([shared, {"x": shared}], [other, named, None])
    again = assert_saves(module)
    (one, rest), (two, judge, nothing) = again.thing, again.other
    assert one is rest["x"]
    assert (one.model, one.attempts, one.settings.timeout_s, one.settings.repairs) == ("openai/a", 5, 9.0, 0)
    assert one.defaults == {"temperature": 0, "max_tokens": 5}
    assert two is not one
    assert two.name == "openai/a#2"
    assert (judge.name, judge.model, judge.settings.structured) == ("judge", "openai/b", "prompt")
    assert nothing is None


def test_live_models_are_mapped_by_saved_name():
    """A mapping by name, where `m` serves `m#2` too; one alone stands for all; strings are models too."""
    a, b = sm.LanguageModel("openai/a"), sm.LanguageModel("openai/a")
    text = dumps(Keep([a, b], sm.LanguageModel("openai/c")))
    live, second = ScriptedLM([]), ScriptedLM([])
    again = loads(text, language_models={"openai/a": live})
    assert again.thing == [live, live]
    assert again.other.model == "openai/c"
    again = loads(text, language_models={"openai/a": live, "openai/a#2": second, "openai/c": "embedded/nearest"})
    assert again.thing == [live, second]
    assert again.other.model == "embedded/nearest"
    assert set(models(loads(text, language_models=live))) == {live}
    assert {model.model for model in models(loads(text, language_models="openai/z"))} == {"openai/z"}


def test_names_that_are_not_in_the_file():
    """A LoadError with the names in the file and 'Did you mean'; another kind of argument is refused."""
    text = dumps(Keep(sm.LanguageModel("openai/gpt-4o-mini")))
    with pytest.raises(sm.LoadError, match="Did you mean 'openai/gpt-4o-mini'"):
        loads(text, language_models={"openai/gpt-4o-mni": ScriptedLM([])})
    with pytest.raises(sm.ConfigError):
        loads(text, language_models={"openai/gpt-4o-mini": 3})
    with pytest.raises(sm.ArgumentError):
        loads(text, language_models=3)


@pytest.mark.parametrize(
    "given", [{"api_base": "http://localhost:1/v1"}, {"headers": {"X": "y"}}, {"extra_body": {"x": 1}}], ids=str
)
async def test_a_model_with_a_connection_of_its_own_loads_unbound(given):
    """Everything works but a call, which says what to write; the file holds names, never values."""
    program = sm.Generator(Answer, language_model=sm.LanguageModel("openai/x", temperature=1, **given))
    text = dumps(program)
    assert "localhost" not in text
    again = loads(text)
    assert dumps(again) == text
    with pytest.raises(sm.UnboundModelError, match=r"language_models=\{'openai/x'") as caught:
        await again(Query(question="?"))
    assert next(iter(given)) in str(caught.value)
    bound = loads(text, language_models=ScriptedLM(['{"answer": "yes", "score": 1}']))
    assert (await bound(Query(question="?")))["answer"] == "yes"


async def test_of_a_double_only_the_name_is_kept():
    """It loads unbound and saves the same again."""
    program = sm.Generator(Answer, language_model=ScriptedLM(['{"answer": "a", "score": 1}'], name="judge"))
    text = dumps(program)
    assert json.loads(text)["language_models"] == {"judge": {"type": None}}
    again = loads(text)
    assert dumps(again) == text
    with pytest.raises(sm.UnboundModelError, match="judge"):
        await again(Query(question="?"))


def test_limits_and_fallbacks_are_saved_with_a_model():
    """Numbers and names; a fallback that a module holds too is one model, chains and doubles included; no cache."""
    shared = sm.LanguageModel("openai/b", limit=sm.Limit(concurrency=2, rpm=60, tpm=1000))
    last = ScriptedLM([], name="judge", fallback="openai/c")
    first = sm.LanguageModel("openai/a", limit=3, cache=sm.Cache(), fallback=[shared, sm.LanguageModel("openai/b")])
    shared.fallback = last
    again = assert_saves(Keep(first, shared))
    records = json.loads(dumps(again))["language_models"]
    assert list(records) == ["openai/a", "openai/b", "judge", "openai/b#2"]
    assert records["openai/a"]["limit"] == {"concurrency": 3}
    assert records["openai/a"]["fallback"] == ["openai/b", "openai/b#2"]
    assert (records["judge"], "limit" in records["openai/b#2"]) == ({"type": None}, False)
    assert [each.name for each in again.thing.with_fallbacks()] == ["openai/a", "openai/b", "judge", "openai/b#2"]
    assert again.thing.fallback[0] is again.other
    assert repr(again.other.limit) == "Limit(concurrency=2, rpm=60, tpm=1000)"
    assert again.thing.cache is None
    assert sm.graphdef(again) == sm.graphdef(Keep(again.thing, again.other))
    for change in ({"limit": 4}, {"fallback": "openai/c"}):
        other = sm.LanguageModel("openai/a", **({"limit": 3, "fallback": first.fallback} | change))
        assert sm.graphdef(Keep(other, shared)) != sm.graphdef(Keep(first, shared))


def test_fallbacks_of_a_load_may_be_given_by_name():
    """A live one, and one of a model that loads unbound, which is saved as it stood."""
    live = ScriptedLM(["x"])
    first = sm.LanguageModel("openai/a", api_base="http://localhost:1/v1", limit=1, fallback="openai/b")
    text = dumps(Keep(first))
    assert loads(text, language_models={"openai/b": live}).thing.fallback == (live,)
    assert dumps(loads(text)) == text
    assert loads(text, language_models={"openai/a": live}).thing is live


def test_the_key_of_a_fallback_is_not_saved():
    """A text that holds it is refused, as with the key of any other model."""
    first = sm.LanguageModel("openai/a", fallback=sm.LanguageModel("openai/b", api_key="sk-of-a-fallback-1"))
    with pytest.raises(sm.SaveError, match="a key of a model"):
        dumps(Keep(first, "my sk-of-a-fallback-1"))


def test_fallbacks_that_lead_back_are_refused():
    """Or that are not in the file; before anything is made."""
    text = dumps(Keep(sm.LanguageModel("openai/a", fallback=["openai/b"])))
    for name, fallback, message in [
        ("openai/b", ["openai/a"], "form a cycle"),
        ("openai/a", ["openai/a"], "form a cycle"),
        ("openai/b", ["openai/x"], "not among"),
        ("openai/b", [], "a list of saved names"),
        ("openai/b", [3], "a list of saved names"),
    ]:
        with pytest.raises(sm.FormatError, match=message) as caught:
            loads(edited(text, lambda s, name=name, to=fallback: s["language_models"][name].update(fallback=to)))
        assert caught.value.where.startswith("/language_models/openai~1")
    for limit in ({}, {"rpm": 0}, {"rpm": True}, {"rps": 1}, 3, {"rpm": None}):
        with pytest.raises(sm.FormatError, match="whole numbers above 0"):
            loads(edited(text, lambda s, limit=limit: s["language_models"]["openai/b"].update(limit=limit)))


def test_a_long_chain_of_fallbacks_loads():
    """Models are made and linked without recursion."""
    text = dumps(Keep(sm.LanguageModel("openai/m", name="0")))

    def chain(sections):
        table = sections["language_models"]
        for n in range(3000):
            table[str(n)] = {**table["0"], "fallback": [str(n + 1)]}
        table["3000"] = {key: value for key, value in table["0"].items() if key != "fallback"}

    assert len(loads(edited(text, chain)).thing.with_fallbacks()) == 3001


def test_classes_of_language_models_of_ones_own():
    """A registered one comes back with its config; where nobody knows it, it loads unbound and keeps its record."""

    class House(sm.LanguageModel):
        def __init__(self, place, schema=None):
            super().__init__("openai/house", name=place)
            self._place, self._schema = place, schema

        __slots__ = ("_place", "_schema")

        def get_config(self):
            return {"place": self._place, "schema": self._schema}

    sm.register("tests_saving_house")(House)
    text = dumps(Keep(House("attic", Answer)))
    again = assert_saves(Keep(House("attic", Answer)))
    assert type(again.thing) is House
    assert again.thing._schema is Answer
    foreign = text.replace("tests_saving_house>House", "tests_saving_gone>House")
    text = edited(foreign, lambda sections: None)
    unbound = loads(text)
    assert isinstance(unbound.thing, sm.LanguageModel)
    assert json.loads(dumps(unbound))["language_models"] == json.loads(text)["language_models"]
    assert dumps(loads(dumps(unbound))) == dumps(unbound)


# -- what resolves ----------------------------------------------------------------------------------------------------


def test_custom_objects_by_id_and_bare_name():
    """This call's objects come first; a bare name only if it is not ambiguous; unused keys are ignored."""

    class Other(sm.Module):
        def __init__(self, thing=None, other=None):
            self.thing = thing

    text = dumps(Keep(1))
    for key in (f"{PACKAGE}>Keep", "Keep"):
        assert type(loads(text, custom_objects={key: Other, "unused": 3, "x>y": print})) is Other
    assert type(loads(text)) is Keep
    two = minimal(graph__root={"list": [{"node": 0}, {"node": 1}]})
    two["graph"]["nodes"] = [{**two["graph"]["nodes"][0], "type": name} for name in ("a>Keep", "b>Keep")]
    with pytest.raises(sm.LoadError, match="write the id"):
        loads(document(two), custom_objects={"Keep": Keep})
    assert len(loads(document(two), custom_objects={"a>Keep": Keep, "Keep": Other})) == 2
    with pytest.raises(sm.RegistryError):
        loads(text, custom_objects={"Keep": os.system})
    with pytest.raises(sm.LoadError):
        loads(text, custom_objects={"Keep": Answer})
    with pytest.raises(sm.ArgumentError):
        loads(text, custom_objects=[Keep])


def test_an_old_id_still_resolves():
    """Files are written with the present one."""

    @sm.register("tests_saving_alias", name="New", aliases=("tests_saving_alias>Old",))
    class Renamed(sm.Module):
        pass

    old = document(minimal(graph__nodes__0__type="tests_saving_alias>Old"))
    assert type(loads(old)) is Renamed
    assert "tests_saving_alias>New" in dumps(loads(old))


def test_a_data_model_that_nobody_knows_keeps_its_id():
    """It stands in as a symbol or a value, and is saved with its id again."""
    text = dumps(Keep([Answer, Answer(answer="x")], [Answer]))
    foreign = edited(text.replace(f"{PACKAGE}>Answer", "elsewhere>Answer"), lambda sections: None)
    again = loads(foreign)
    symbol, value = again.thing
    assert isinstance(symbol, sm.SymbolicDataModel)
    assert isinstance(value, sm.JsonDataModel)
    assert value["answer"] == "x"
    assert sections_of(dumps(again)) == sections_of(foreign)
    assert dumps(loads(dumps(again))) == dumps(again)
    assert sm.clone(again).thing[0] is symbol


def test_a_class_whose_schema_has_changed():
    """A LoadError that lists the pointers; None in custom_objects takes the schema of the file; key order is free."""
    text = dumps(Keep(Answer))

    def change(sections):
        sections["data_models"][0]["schema"]["properties"]["answer"]["description"] = "another"

    with pytest.raises(sm.LoadError, match='-   "description": "another"') as caught:
        loads(edited(text, change))
    assert caught.value.where == "/data_models/0"
    again = loads(edited(text, change), custom_objects={f"{PACKAGE}>Answer": None})
    assert again.thing.get_schema()["properties"]["answer"]["description"] == "another"

    def reorder(sections):
        schema = sections["data_models"][0]["schema"]
        sections["data_models"][0]["schema"] = dict(reversed(schema.items()))

    assert loads(edited(text, reorder)).thing is Answer


def test_a_class_that_has_changed_overrides_from_config():
    """It sees the old arguments."""

    @sm.register("tests_saving_changed")
    class Changed(sm.Module):
        def __init__(self, width):
            self.width = width

        @classmethod
        def from_config(cls, config):
            return cls(config.get("width", config.get("size")))

    record = {"type": "tests_saving_changed>Changed", "config": {"size": {"json": 3}}, "attributes": {}, "build": None}
    again = loads(document(minimal(graph__nodes=[record])))
    assert again.width == 3
    assert dumps(loads(dumps(again))) == dumps(again)


# -- variables only ---------------------------------------------------------------------------------------------------


def test_variables_alone(tmp_path):
    """By path, validated, all or nothing; a program's file is accepted too."""
    module = Explain()
    module.note.assign("saved")
    path = save_variables(module, tmp_path / "v.json")
    program = save(module, tmp_path / "p.json")
    assert json.loads(path.read_text())["header"]["kind"] == "variables"
    for file in (path, program):
        module.note.assign("other")
        report = load_variables(module, file)
        assert report == LoadReport(("note", "write/instructions", "write/examples"), (), ())
        assert module.note.value == "saved"
    with pytest.raises(sm.FormatError, match="load_variables"):
        load(path)


def test_variables_that_do_not_fit(tmp_path):
    """Missing and unknown paths are one StateError unless allowed; a bad value changes nothing."""
    path = save_variables({"a": sm.Param("1"), "b": sm.Param("2")}, tmp_path / "v.json")
    program = {"b": sm.Param("x"), "c": sm.Param("y")}
    with pytest.raises(sm.StateError) as caught:
        load_variables(program, path)
    assert str(caught.value).startswith(f"{path}: ")
    for text in ("'a'", "'c'"):
        assert text in str(caught.value)
    for allowed in ({"allow_missing": True}, {"allow_extra": True}):
        with pytest.raises(sm.StateError):
            load_variables(program, path, **allowed)
    assert program["b"].value == "x"
    for allowed in ({"allow_missing": True, "allow_extra": True}, {"strict": False}):
        program["b"].assign("x")
        assert load_variables(program, path, **allowed) == LoadReport(("b",), ("c",), ("a",))
        assert program["b"].value == "2"
    program = {"a": sm.Param("x"), "b": sm.Param(5)}
    with pytest.raises(sm.StateSchemaError) as caught:
        load_variables(program, path)
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.errors
    assert program["a"].value == "x"


def test_variables_by_filter(tmp_path):
    """Filters choose; a static without an encoding does not hinder saving values."""
    module = Explain()
    module.handle = threading.Lock()
    path = save_variables(module, tmp_path / "v.json", sm.Memory)
    assert json.loads(path.read_text())["state"] == {"note": "none yet"}
    assert load_variables(module, path, allow_missing=True).applied == ("note",)


# -- by hand, and waiting ---------------------------------------------------------------------------------------------


def test_a_file_may_be_edited_by_hand(tmp_path):
    """Values, names and white space are anybody's to change; what no longer fits is refused with its place."""
    path = save(Explain(), tmp_path / "faq.json")
    path.write_text(path.read_text().replace("none yet", "edited by hand"))
    assert load(path).note.value == "edited by hand"
    assert path.read_text() == dumps(load(path))
    path.write_text(json.dumps(json.loads(path.read_text()), ensure_ascii=False))
    assert load(path).note.value == "edited by hand"
    path.write_text(path.read_text().replace('"edited by hand"', "3"))
    with pytest.raises(sm.LoadError, match="/state/note"):
        load(path)
    values = save_variables(Explain(), tmp_path / "v.json")
    values.write_text(values.read_text().replace("none yet", "edited"))
    module = Explain()
    load_variables(module, values)
    assert module.note.value == "edited"


async def test_a_load_waits_for_nothing():
    """A `build_from_config` that waits is a LoadError that names the remedy."""

    @sm.register("tests_saving_waits")
    class Waits(Built):
        async def build_from_config(self, config):
            await asyncio.sleep(0)

    module = Waits()
    await sm.build(module, Query)
    with pytest.raises(sm.LoadError, match="override it as a plain function, and wait at the first call"):
        loads(dumps(module))


async def test_an_async_build_from_config_that_does_not_wait_loads_plainly():
    """Plain code drives it to its end."""

    @sm.register("tests_saving_waits")
    class Quick(Built):
        async def build_from_config(self, config):
            self.note = "seen"

    module = Quick()
    await sm.build(module, Query)
    assert loads(dumps(module)).note == "seen"


def test_hooks_and_events_do_not_see_a_load():
    """No call, build or assignment is told; hooks are not saved."""
    seen = []

    class Listens(sm.Hook):
        def on_build_begin(self, event):
            seen.append(event)

        def on_variable_assign(self, event):
            seen.append(event)

        def on_call_begin(self, event):
            seen.append(event)

    module = Explain(hooks=[Listens()])
    with sm.hooks(Listens()):
        again = loads(dumps(module))
    assert seen == []
    assert again.hooks == ()


def test_graph_definitions_through_json():
    """`to_json` and `from_json` round-trip under the same rules; equal graphs have equal fingerprints."""
    module = Explain("x")
    module.extra = [Keep(Answer), {"k": sm.Param(1)}]
    graph = sm.graphdef(module)
    json_form = graph.to_json()
    assert list(json_form) == ["graph", "data_models", "language_models"]
    assert {**json_form, "state": sm.state(module).to_json()} == sections_of(dumps(module))
    again = sm.GraphDef.from_json(json_form)
    assert again == graph
    assert again.fingerprint == graph.fingerprint
    assert again.to_json() == json_form
    assert sm.GraphDef.from_json(json.loads(json.dumps(json_form))) == graph
    twin = sm.merge(again, sm.state(module))
    assert dumps(twin) == dumps(module)
    for wrong in ({}, [], None, {"graph": 1, "data_models": [], "language_models": {}}, {**json_form, "x": 1}):
        with pytest.raises((LoadError, sm.ArgumentError)):
            sm.GraphDef.from_json(wrong)
