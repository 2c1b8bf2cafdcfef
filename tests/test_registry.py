"""The registry: what may be registered, under which id, and what comes back."""

import dataclasses
import enum
import functools
import gc
import os
import weakref
from collections import namedtuple
from typing import NamedTuple

import pytest

from synmod.errors import RegistryError, SaveError
from synmod.registry import admit_when, builtin_errors, id_of, lookup, register, registered

PACKAGE = "tests_of_registry"


def local(name="f"):
    """A new function at a place of its own for each name."""

    def made(x):
        return x

    made.__qualname__ = made.__name__ = name
    return made


def test_register_returns_its_argument_and_gives_the_id():
    """The decorator changes nothing; the id is package>Name, the name that of the object or the one given."""

    class Colour(enum.Enum):
        RED = 1

    assert register(package=PACKAGE)(Colour) is Colour
    assert id_of(Colour) == f"{PACKAGE}>Colour"
    assert registered()[f"{PACKAGE}>Colour"] is Colour
    fn = local("shout")
    assert register(PACKAGE, name="loud.one-2")(fn) is fn
    assert lookup(f"{PACKAGE}>loud.one-2") is fn


def test_registered_is_read_only_and_live():
    """The mapping shows later registrations and cannot be written."""
    shown = registered()
    register(PACKAGE)(local("later"))
    assert f"{PACKAGE}>later" in shown
    with pytest.raises(TypeError):
        shown["a>b"] = 1


@pytest.mark.parametrize("word", ["", "1a", "a b", "a>b", "a/b", "ä", "a\n", "-a", None, 3, "a:b"])
def test_words_of_an_id_are_checked(word):
    """Package and name match `[A-Za-z_][A-Za-z0-9_.-]*`."""
    with pytest.raises(RegistryError):
        register(package=word)(local("f"))
    if word is not None:
        with pytest.raises(RegistryError):
            register(package=PACKAGE, name=word)(local("f"))


def test_our_package_is_reserved():
    """Nobody but synmod registers under `synmod`, also not as an alias."""
    with pytest.raises(RegistryError, match="reserved"):
        register(package="synmod")
    with pytest.raises(RegistryError, match="reserved"):
        register(PACKAGE, aliases=("synmod>Generator",))


def test_forgotten_parentheses_are_told():
    """`@sm.register` without a call says what to write."""
    with pytest.raises(RegistryError, match="package='my_app'"):
        register(local("f"))
    for make in (lambda: register(), lambda: register(name="f")):
        with pytest.raises(RegistryError, match="package='my_app'"):
            make()


class Callable_:
    def __call__(self):
        return None

    def method(self):
        return None

    async def later(self):
        return None


@pytest.mark.parametrize(
    "thing",
    [os.system, len, print, Callable_().method, functools.partial(local("f"), 1), Callable_(), 3, "x", [].append, None],
    ids=lambda thing: type(thing).__name__,
)
def test_only_functions_made_by_def_are_functions(thing):
    """Builtins, bound methods, partials and callable objects are refused with the remedy."""
    with pytest.raises(RegistryError, match="`def`"):
        register(PACKAGE, name="thing")(thing)


def test_functions_by_def_async_def_and_named_lambda():
    """A lambda needs an explicit name."""

    async def waits():
        return None

    register(PACKAGE)(waits)
    register(PACKAGE, name="named")(lambda x: x)
    with pytest.raises(RegistryError, match="name="):
        register(PACKAGE)(lambda x: x)


def test_only_classes_of_known_kinds():
    """Enum, dataclass, namedtuple, exception; a plain class is refused, one admitted by a room is not."""

    @dataclasses.dataclass
    class Data:
        x: int = 1

    class Named(NamedTuple):
        x: int

    class Failure(Exception):
        pass

    old_style = namedtuple("old_style", "a b")

    class Shade(enum.IntEnum):
        RED = 1

    for cls in (Data, Named, Failure, old_style, Shade):
        register(PACKAGE)(cls)

    class Plain:
        pass

    with pytest.raises(RegistryError, match="Plain"):
        register(PACKAGE)(Plain)
    with pytest.raises(RegistryError):
        register(PACKAGE)(tuple)
    admit_when(lambda cls: cls is Plain)
    register(PACKAGE)(Plain)


def test_registration_is_not_inherited():
    """A subclass has no id until it is registered itself."""

    @register(PACKAGE)
    class Fault(Exception):
        pass

    class Worse(Fault):
        pass

    assert id_of(Worse) is None
    register(PACKAGE)(Worse)
    assert id_of(Worse) == f"{PACKAGE}>Worse"


def test_a_wrapper_of_a_registered_function_is_not_registered():
    """Ids go by identity: what `functools.wraps` copies is not one."""
    fn = register(PACKAGE)(local("inner"))

    @functools.wraps(fn)
    def wrapper(x):
        return fn(x)

    assert id_of(wrapper) is None


def test_a_taken_id_names_both_places():
    """Another object under the same id is an error that names both definitions."""
    register(PACKAGE, name="same")(local("one"))
    with pytest.raises(RegistryError, match=r"(?s)one.*two"):
        register(PACKAGE, name="same")(local("two"))


def test_the_same_place_again_replaces_silently():
    """A notebook cell or a reload defines the same qualified name again; the older object keeps its id to be saved."""

    def define():
        class Cell(enum.Enum):
            A = 1

        return register(PACKAGE)(Cell)

    old, new = define(), define()
    assert lookup(f"{PACKAGE}>Cell") is new
    assert id_of(new) == id_of(old) == f"{PACKAGE}>Cell"
    gone = weakref.ref(old)
    del old
    gc.collect()
    assert gone() is None


def test_aliases_resolve_and_files_are_written_with_the_present_id():
    """An old id leads to the object, and is not listed; one that is taken, or no id, is refused."""
    fn = register(PACKAGE, aliases=("old_app>f", f"{PACKAGE}>older"))(local("present"))
    assert lookup("old_app>f") is lookup(f"{PACKAGE}>older") is fn
    assert id_of(fn) == f"{PACKAGE}>present"
    assert "old_app>f" not in registered()
    with pytest.raises(RegistryError, match="taken"):
        register(PACKAGE)(local("older"))
    with pytest.raises(RegistryError, match="taken"):
        register(PACKAGE, aliases=(f"{PACKAGE}>present",))(local("another"))
    assert lookup(f"{PACKAGE}>another") is None
    for bad in ("old", "a>b>c", 3, "a>1"):
        with pytest.raises(RegistryError):
            register(PACKAGE, aliases=(bad,))(local("g"))
    with pytest.raises(RegistryError, match="tuple"):
        register(PACKAGE, aliases="old_app>f")


def test_exceptions_of_python_and_of_synmod_are_known():
    """As arguments, Python's own exception classes need no registration, and ours have ids."""
    assert id_of(ValueError) == "builtins>ValueError"
    assert lookup("builtins>TimeoutError") is TimeoutError
    assert builtin_errors["builtins>KeyError"] is KeyError
    assert id_of(SaveError) == "synmod>SaveError"
    assert id_of(int) is None
    assert lookup("builtins>eval") is None
    assert lookup("builtins>IOError") is None
    assert lookup("os>system") is None


def test_a_hostile_metaclass_cannot_confuse_ids():
    """Ids are found by identity, never by `==` or `hash`."""

    class Meta(type):
        def __eq__(cls, other):
            return True

        def __hash__(cls):
            return 1

    class First(Exception, metaclass=Meta):
        pass

    class Second(Exception, metaclass=Meta):
        pass

    register(PACKAGE)(First)
    assert id_of(First) == f"{PACKAGE}>First"
    assert id_of(Second) is None
