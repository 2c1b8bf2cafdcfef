"""What cannot be saved fails at save time, before any file is touched, each offender with its place and remedy."""

import functools
import io
import math
import pathlib
import threading
from collections import defaultdict

import pydantic
import pytest

import synmod as sm
from synmod.saving import FileLimits, dumps, save
from synmod.testing import assert_saves
from tests.saving.programs import Keep, Query, Store


def local(text):
    return text


def closure():
    seen = []
    return lambda text: seen.append(text + "!")


class Unknown:
    """Not registered, and no kind of thing that files know."""

    def method(self):
        return None


class Loose(sm.Module):
    """A module that nobody registered."""

    async def call(self, inputs):
        return inputs


class Text(str):
    __slots__ = ()


class Number(int):
    __slots__ = ()


class Items(list):
    pass


class Table(dict):
    pass


def circle():
    found = [Keep()]
    found.append(found)
    return found


UNSAVEABLE = [
    (lambda x: x, "lambda", "register"),
    (closure(), "lambda", "register"),
    (local, "function that is not registered", "register"),
    (functools.partial(local, 1), "partial", "register"),
    (Unknown().method, "bound method", "register"),
    (len, "builtin function", "register"),
    (Unknown, "class Unknown", "class Unknown"),
    (int, "class int", "register"),
    (threading.Lock(), "lock", "static"),
    (io.StringIO(), "StringIO", "static"),
    ((x for x in ()), "generator", "static"),
    (Unknown(), "Unknown", "static"),
    (object(), "object", "get_config"),
    (pydantic.SecretStr("hidden-away"), "SecretStr", "live model"),
    (math.nan, "nan", "None"),
    (math.inf, "inf", "None"),
    ([1, {"a": -math.inf}], "inf", "None"),
    (10**1000, "int", "string"),
    ("a\ud800", "surrogate", "Unicode"),
    ({"a\udfff": 1}, "surrogate", "Unicode"),
    ({1.5: "x"}, "key", "str"),
    ({None: "x"}, "key", "str"),
    ({True: "x"}, "key", "str"),
    ({("a",): "x"}, "key", "str"),
    (pathlib.Path("x"), "Path", "str(path)"),
    (Text("x"), "Text", "str"),
    (Number(3), "Number", "int"),
    (Items([1]), "Items", "list"),
    (Table(a=1), "Table", "dict"),
    (defaultdict(list), "defaultdict", "dict"),
    ({(1, 2)}, "set", "list"),
    ([sm.static(1)], "static", "around the whole container"),
    (list[int], "GenericAlias", "static"),
]


@pytest.mark.parametrize(
    ("value", "what", "remedy"), UNSAVEABLE, ids=lambda x: x if isinstance(x, str) else type(x).__name__
)
def test_each_is_found_as_argument_and_as_attribute(value, what, remedy):
    """The place is the path of the node and the argument or attribute."""
    root = Keep(other=[Keep()])
    root.critic = Keep()
    root.critic.parser = Keep(value)
    root.critic.parser.later = [1, (value,)]
    with pytest.raises(sm.SaveError) as caught:
        dumps(root)
    places = [problem.path for problem in caught.value.problems]
    assert any(place.startswith("critic/parser, argument 'thing'") for place in places)
    assert any(place.startswith("critic/parser, attribute 'later'") for place in places)
    for problem in caught.value.problems:
        assert what in problem.what
        assert remedy in problem.remedy
        assert problem.path in str(caught.value)


def test_all_offenders_are_listed_once_and_no_file_is_touched(tmp_path):
    """One error for everything that is wrong; an argument that is kept as an attribute too was once listed twice."""
    root = {"a": Keep(lambda: 1), "b": Keep([open, {"k": object()}]), "c": Loose()}
    with pytest.raises(sm.SaveError) as caught:
        save(root, tmp_path / "deep" / "x.json")
    assert [problem.path for problem in caught.value.problems] == [
        "a, argument 'thing'",
        "b, argument 'thing' [0]",
        "b, argument 'thing' [1] ['k']",
        "c",
    ]
    assert list(tmp_path.iterdir()) == []


def test_an_unregistered_class_of_modules_is_told_with_its_name():
    """The remedy has the decorator line with the class name filled in."""
    with pytest.raises(sm.SaveError, match=r"@sm.register\(package='my_app'\) above `class Loose`"):
        dumps(Keep(Loose()))


def test_a_graph_definition_raises_the_same_as_graph_error():
    """`GraphDef.to_json` alone."""
    with pytest.raises(sm.GraphError, match="lambda"):
        sm.graphdef(Keep(lambda: 1)).to_json()


def test_circles_of_containers():
    """A container that holds itself, with or without a node in it."""
    module = Keep()
    module.circle = circle()
    with pytest.raises((sm.SaveError, sm.GraphError)):
        dumps(module)
    plain = []
    plain.append(plain)
    module = Keep()
    module.plain = plain
    with pytest.raises((sm.SaveError, sm.GraphError)):
        dumps(module)


def test_statics_are_left_out_and_need_a_default():
    """An argument that is static, or whose attribute is, is not written; without a default that is an error."""

    @sm.register("tests_saving_statics")
    class Client(sm.Module):
        graph_ignored = frozenset({"_cache"})

        def __init__(self, url, client=None, handle=None):
            self.url = url
            self.client = sm.static(client)
            self._cache = object()

    module = Client("u", client=object(), handle=sm.static(object()))
    again = assert_saves(module)
    assert again.client is None

    @sm.register("tests_saving_statics")
    class Needs(sm.Module):
        def __init__(self, client):
            self.client = sm.static(client)

    with pytest.raises(sm.SaveError, match="default") as caught:
        dumps(Needs(object()))
    assert "from_config" in str(caught.value)


async def test_statics_made_in_build():
    """Something outside the graph that `build` makes is made anew by a load."""

    @sm.register("tests_saving_statics")
    class Index(sm.Module):
        graph_ignored = frozenset({"index"})

        async def build(self, inputs):
            self.index = {"of": list(inputs.keys())}

        async def call(self, inputs):
            return inputs

    @sm.register("tests_saving_statics")
    class Anew(Index):
        def build_from_config(self, config):
            self.index = {"of": list(config["schemas"]["inputs"]["properties"])}

    module = Anew()
    await sm.build(module, Query)
    again = assert_saves(module)
    assert again.built
    assert again.index == {"of": ["question"]}


def test_attributes_that_hide_something_of_the_class():
    """Such a name could not be loaded, so it is not saved."""
    for name in ("call", "variables", "__odd__", "not an identifier", "get_config"):
        module = Keep()
        module.__dict__[name] = 1
        with pytest.raises(sm.SaveError, match="another name"):
            dumps(module)


@pytest.mark.parametrize("entries", [{True: 1}, {("a",): 1}, {None: 1}, {1: "a", "1": "b"}])
def test_keys_of_a_users_node_that_no_file_holds(entries):
    """They are refused when the node is saved, since the file could not be loaded."""
    store = Store()
    store.entries.update(entries)
    with pytest.raises(sm.SaveError, match="flatten with keys that are str or int, and differ as text"):
        dumps(store)


def test_modules_without_a_record():
    """Not made by calling the class, or with keyword arguments that hide parameters."""
    with pytest.raises(sm.SaveError, match="override get_config"):
        dumps(Keep.__new__(Keep))

    @sm.register("tests_saving_record")
    class Doubled(sm.Module):
        def __init__(self, name_, /, **kwargs):
            super().__init__()

    with pytest.raises(sm.SaveError, match="override get_config"):
        dumps(Doubled(1, name_=2))


def test_no_key_is_ever_written(monkeypatch):
    """Neither those of live models nor those of the environment, wherever they stand; never shown in the message."""
    secret = 'sk-very"secret\\key-123456'
    model = sm.LanguageModel(
        "openai/x", api_key=secret, api_base="http://localhost:1/v1", headers={"X-Key": pydantic.SecretStr("h" * 20)}
    )
    text = dumps(Keep(model))
    assert "very" not in text
    assert "localhost" not in text
    assert "hhhhhh" not in text
    for thing in (f"see {secret}!", {"a": [secret]}, {secret: 1}, ("h" * 20,)):
        module = Keep(model, thing)
        module.note = sm.Param("x")
        with pytest.raises(sm.SaveError) as caught:
            dumps(module)
        assert secret not in str(caught.value)
        assert caught.value.problems
        assert [problem.path for problem in caught.value.problems] == ["argument 'other'"]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "env-key-env-key-env")
    module = Keep()
    module.note = sm.Param("the env-key-env-key-env is here")
    with pytest.raises(sm.SaveError, match="note: a key"):
        dumps(module)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "too short")
    module.note.assign("too short")
    dumps(module)


def test_a_known_key_is_reported_by_the_path_of_what_holds_it():
    """By module and argument, attribute or Variable, never by a pointer into a file that was not written."""
    secret = "sk-very-secret-key-123456"
    parser = Keep(f"use {secret}")
    parser.note, parser.said = f"with {secret}", sm.Param("x", description=f"as {secret}")
    program = Keep(sm.LanguageModel("openai/x", api_key=secret))
    program.critic = Keep()
    program.critic.parser = parser
    with pytest.raises(sm.SaveError) as caught:
        dumps(program)
    assert {problem.path for problem in caught.value.problems} == {
        "critic/parser, argument 'thing'",
        "critic/parser, attribute 'note'",
        "critic/parser/said, description",
    }


def test_a_file_beyond_the_limits():
    """Which limit, by how much, the keyword that raises it; what saves within them loads within them."""
    module = Keep("x" * 1000)
    size = len(dumps(module))
    with pytest.raises(sm.SaveError, match=rf"max_bytes is 500, the file has {size:,}.*FileLimits\(max_bytes={size}\)"):
        dumps(module, limits=FileLimits(max_bytes=500))
    with pytest.raises(sm.SaveError) as caught:
        dumps(sm.Sequential([Keep(), module]), limits=FileLimits(max_bytes=500))
    assert [problem.path for problem in caught.value.problems] == ["1, argument 'thing'"]
    assert "sm.static" in caught.value.problems[0].remedy
    assert dumps(module, limits=FileLimits(max_bytes=size))
    with pytest.raises(sm.SaveError, match="max_values"):
        dumps(Keep(list(range(100))), limits=FileLimits(max_values=100))
    deep = [Keep()]
    for _ in range(40):
        deep = [deep]
    with pytest.raises(sm.SaveError, match="max_depth"):
        dumps(Keep(deep))
