"""Declaring skips: what a class says, and who may say it."""

import copy

import pytest

import synmod as sm
from synmod.skip import Namespace, skippable
from tests.skip.parts import Cite, Document, Retrieve


def test_the_class_stays_what_it_is():
    """The decorator returns the same class, which tells its names; instances, subclasses and config stay."""

    class Plain(sm.Module):
        def __init__(self, k=1):
            super().__init__()
            self.k = k

    same = skippable(stash={"b": Document, "a": None}, pop=["c"])(Plain)
    assert same is Plain
    module = Plain(k=2)
    assert isinstance(module, Plain)
    assert module.get_config() == {"k": 2}
    assert Plain.stashable_names == {"a", "b"}
    assert module.poppable_names == {"c"}
    assert module.skip_schemas == {"b": Document.get_schema()}
    assert repr(module) == "Plain(k=2) stash=['a', 'b'] pop=['c']"


def test_a_subclass_inherits_and_may_add():
    """Declarations are united, also over several bases; those of the base stay."""

    @skippable(pop=["more"])
    class Sub(Retrieve):
        pass

    class Both(Retrieve, Cite):
        pass

    class Quiet(Retrieve):
        pass

    assert (Sub.stashable_names, Sub.poppable_names) == ({"doc"}, {"more"})
    assert Retrieve.poppable_names == frozenset()
    assert Quiet.stashable_names == {"doc"}
    assert (Both.stashable_names, Both.poppable_names) == ({"doc"}, {"doc"})
    assert repr(Quiet()).endswith("stash=['doc'] pop=[]")


@pytest.mark.parametrize("wrong", [{"stash": [""]}, {"pop": [1]}, {"stash": "doc"}, {"optional": ["x"]}])
def test_names_are_texts(wrong):
    """An empty name, another kind of name, a bare string, or an optional name that is not popped is a ConfigError."""
    with pytest.raises(sm.ConfigError):

        @skippable(**wrong)
        class Bad(sm.Module):
            pass


def test_it_stands_on_modules_only():
    """Another class, or a function, is a ConfigError that names it."""
    with pytest.raises(sm.ConfigError, match="Other"):

        @skippable(stash=["x"])
        class Other:
            pass

    with pytest.raises(sm.ConfigError, match="Module class"):
        skippable(stash=["x"])(lambda: None)


def test_call_is_not_a_generator():
    """Commands are plain functions: a `call` that yields is a ConfigError when the class is made."""
    with pytest.raises(sm.ConfigError, match="call is a generator"):

        @skippable(stash=["doc"])
        class Yields(sm.Module):
            async def call(self, inputs):
                yield inputs


def test_an_instance_is_asked_for_pairs():
    """Pairs of Namespace and name, by name; None for the default one."""

    @skippable(stash=["b", "a"], pop=["d", "c"])
    class Many(sm.Module):
        pass

    one = Namespace("one")
    module = Many().isolate(one)
    assert list(module.stashable()) == [(one, "a"), (one, "b")]
    assert list(module.poppable()) == [(one, "c"), (one, "d")]
    assert module.namespaced("a") == (one, "a")
    assert list(sm.Identity().stashable()) == []


def test_later_isolation_overrides_and_chains():
    """`isolate` returns the module; all of its names go into the Namespace."""

    @skippable(stash=["x"], pop=["y"])
    class Two(sm.Module):
        pass

    a, b = Namespace(), Namespace("b")
    module = Two()
    assert module.isolate(a).isolate(b) is module
    assert (module.namespaced("x"), module.namespaced("y")) == ((b, "x"), (b, "y"))


def test_isolation_refuses_what_is_not_declared():
    """A module that declares nothing; something that is not a Namespace."""
    with pytest.raises(sm.SkipNameError):
        sm.Identity().isolate(Namespace())
    with pytest.raises(ValueError, match="declare"):
        sm.Identity().isolate(Namespace())
    with pytest.raises(sm.ArgumentError):
        Retrieve().isolate("one")


async def test_isolation_ends_with_build():
    """After build it is a SealedError."""
    module = Retrieve()
    await module(Document(text="x"))
    with pytest.raises(sm.SealedError):
        module.isolate(Namespace())


def test_namespaces_are_identities():
    """Equal to nothing but themselves and their copies; sorted by name, then by the order of making."""
    a, again, b, nameless = Namespace("a"), Namespace("a"), Namespace("b"), Namespace()
    assert a != again and hash(a) != hash(again)
    assert copy.copy(a) == a
    assert copy.deepcopy(a) != a and copy.deepcopy(a).name == "a"
    assert sorted([b, again, a, nameless]) == [nameless, a, again, b]
    assert "'a'" in repr(a)
    with pytest.raises(sm.BadNameError):
        Namespace("not a name")
