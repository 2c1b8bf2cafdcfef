"""Config, repr, copies: all from one record of constructor arguments."""

import copy
import inspect
import pickle

import pytest

import synmod as sm
from synmod.errors import ConfigError
from synmod.module import Module
from synmod.scope import Hook
from synmod.tree import Param, split, static
from tests.module.models import Built, Echo, Query

q = Query(question="x")


class Knobs(Module):
    """All kinds of parameters."""

    def __init__(self, first, /, second=2, *rest, third=3, **others):
        names = ("name", "description", "trainable", "hooks")
        super().__init__(**{key: others.pop(key) for key in names if key in others})
        self.second = second
        self.others = others


def test_a_class_tells_what_its_constructor_takes():
    """To `help`, `inspect` and notebooks."""
    assert str(inspect.signature(Knobs)) == "(first, /, second=2, *rest, third=3, **others)"
    assert "hooks" in inspect.signature(Echo).parameters


def test_arguments_are_recorded_by_name():
    """Given ones only; `*args` as one list, `**kwargs` by name; from_config calls the constructor with them."""
    knobs = Knobs([1], 5, 6, 7, fourth={"a": [1]}, name="k")
    config = knobs.get_config()
    assert config == {"first": [1], "second": 5, "rest": [6, 7], "fourth": {"a": [1]}, "name": "k"}
    again = Knobs.from_config(config=config)
    assert again.get_config() == config
    assert again.name == "k"
    assert Knobs(1).get_config() == {"first": 1}


def test_plain_containers_are_copied_and_nodes_kept():
    """Later changes by the caller do not reach the record."""
    child, values = Echo(), [1, {"a": 2}]

    class Keeps(Module):
        def __init__(self, values, children):
            super().__init__()

    keeps = Keeps(values, [child])
    values[1]["a"] = 3
    assert keeps.get_config()["values"] == [1, {"a": 2}]
    assert keeps.get_config()["children"][0] is child


def test_an_attribute_assigned_anew_appears_with_its_present_value():
    """Outside build; not when it is a Variable; not when it is static."""

    class Tuned(Module):
        def __init__(self, k=1, prompt="a", client=None):
            super().__init__()
            self.k = k
            self.prompt = Param(prompt)
            self.client = static(client)

    tuned = Tuned(prompt="b", client=object())
    assert tuned.get_config() == {"prompt": "b"}
    tuned.k = 7
    tuned.prompt.assign("c")
    assert tuned.get_config() == {"prompt": "b", "k": 7}


def test_super_init_may_be_forgotten():
    """Name, description, trainable and hooks then have their defaults."""

    class Forgets(Module):
        """Does a thing.

        And more.
        """

        def __init__(self):
            self.x = 1

    module = Forgets()
    assert (module.name, module.description, module.trainable, module.hooks) == ("forgets", "Does a thing.", True, ())

    class Bare(Forgets):
        pass

    assert Bare().description == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MyModule", "my_module"),
        ("HTTPServer", "http_server"),
        ("LLMChain", "llm_chain"),
        ("GPT4Model", "gpt4_model"),
        ("aB", "a_b"),
        ("And", "and_"),
        ("_Private", "private"),
        ("検索", "検索"),
        ("ÉtudeDeCas", "étude_de_cas"),
        ("_", "_"),
        ("_1", "_1"),
    ],
)
def test_default_names(name, expected):
    """From the class, without a counter."""
    assert type(name, (Module,), {})().name == expected


def test_the_repr_of_a_deep_chain_is_cut_short():
    """Five thousand modules in one another are no recursion error; those far below show their class alone."""

    class Nested(Module):
        def __init__(self, a):
            super().__init__()

    chain = Nested(1)
    for _ in range(5_000):
        chain = Nested([chain])
    assert "Nested(...)" in repr(chain)
    assert repr(Nested([Nested([Nested(2)])])) == "Nested(a=[Nested(a=[Nested(a=2)])])"


def test_repr_is_the_constructor_call():
    """Given arguments in signature order, defaults left out, long ones one a line."""

    class Shown(Module):
        def __init__(self, a=1, b="x", *rest, model=None, fn=None):
            super().__init__()

    assert repr(Shown(1, "y")) == "Shown(b='y')"
    assert repr(Shown(model=Query, fn=len)) == f"Shown(model=Query, fn={len!r})"
    assert repr(Shown(1, "x", 3)) == "Shown(1, 'x', 3)"  # what stands in front of `*rest` is needed to paste it
    assert repr(Shown(b="x" * 80)) == f"Shown(b={'x' * 80!r})"

    class Hostile:
        def __eq__(self, other):
            raise RuntimeError

        def __repr__(self):
            return "Hostile()"

        __hash__ = None

    assert repr(Shown(Hostile())) == "Shown(a=Hostile())"


def test_labels_are_checked():
    """A name is an identifier, a description a text."""
    from synmod.errors import BadNameError

    for name in ("", "1a", "a/b", "a-b", "$x", "class"):
        with pytest.raises(BadNameError, match="is not a valid module name"):
            Echo(name=name)
    with pytest.raises(ConfigError):
        Echo(description=3)
    with pytest.raises(ConfigError):
        Echo(trainable="no")


class Tree(Module):
    """Shares a child, holds hooks, Variables and a live thing."""

    def __init__(self, k=1):
        super().__init__()
        self.k = k
        self.a = Built()
        self.b = [self.a]
        self.handle = static(object())

    async def call(self, inputs):
        return await self.b[0](await self.a(inputs))


async def test_a_clone_is_independent_and_equal():
    """Values and structure kept, sharing inside as before, counters at zero, no hooks; deepcopy is clone."""
    hook = Hook()
    tree = Tree(k=2)
    tree.add_hook(hook)
    await tree(q)
    for twin in (tree.clone(), copy.deepcopy(tree)):
        assert twin.b[0] is twin.a
        assert twin.a is not tree.a
        assert twin.handle is tree.handle
        assert twin.hooks == ()
        assert twin.counters.invocations == 0
        assert twin.built
        assert twin.a.built
        assert twin.get_config() == tree.get_config()
        assert split(twin) == split(tree)
        twin.a.notes.assign({"fields": []})
        assert tree.a.notes.value == {"fields": ["question"]}
        await twin(q)
        assert len(twin.a.builds) == 1
    assert tree.clone(name="twin").name == "twin"


async def test_an_unbuilt_clone_builds_itself():
    """Unbuilt stays unbuilt."""
    tree = Tree()
    twin = tree.clone()
    await twin(q)
    assert twin.a.built
    assert not tree.a.built


class Pickled(Module):
    """Found by name when it is unpickled."""

    def __init__(self, k=1):
        super().__init__()
        self.k = k
        self.child = Echo()
        self.v = self.add_variable({"a": [1]}, name="v")

    async def call(self, inputs):
        return inputs


async def test_pickle_goes_through_graph_and_state():
    """Without hooks; a live model is a TypeError naming its path."""
    module = Pickled(k=3)
    module.add_hook(Hook())
    again = pickle.loads(pickle.dumps(module))
    assert again.k == 3
    assert again.v.value == {"a": [1]}
    assert again.hooks == ()
    assert again.get_config() == {"k": 3}
    await again(q)


def test_a_live_model_cannot_be_pickled():
    """Its path is named, with the remedy."""
    from synmod.testing import ScriptedLM

    module = Pickled()
    module.lm = ScriptedLM([])
    with pytest.raises(TypeError, match="'lm'"):
        pickle.dumps(module)


def test_hooks_can_be_added_and_removed():
    """The tuple shows them in order."""
    from synmod.errors import ArgumentError

    first, second = Hook(), Hook()
    echo = Echo(hooks=[first])
    echo.add_hook(second)
    assert echo.hooks == (first, second)
    echo.remove_hook(first)
    assert echo.hooks == (second,)
    with pytest.raises(ArgumentError):
        echo.remove_hook(first)
    with pytest.raises(ArgumentError):
        echo.add_hook(object())


def test_a_config_comes_back_as_it_was_given():
    """What stands in front of filled `*rest` by position alone is not said to have been given."""

    class Starred(Module):
        def __init__(self, first=1, /, second="x", *rest):
            super().__init__()

    module = Starred.from_config({"rest": [3]})
    assert module.get_config() == {"rest": [3]}
    assert repr(module) == "Starred(1, 'x', 3)"


def test_a_notebook_shows_a_picture():
    """`_repr_html_` is the drawing of the module as SVG; it needs no build."""
    module = sm.Sequential([sm.Identity()])
    assert module._repr_html_() == module.plot(format="svg")  # the name that notebooks look for
    assert "<svg" in module._repr_html_()
