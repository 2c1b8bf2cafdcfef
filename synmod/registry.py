"""The registry: the one table between public ids, as files write them, and objects of code.

An id is `package>Name`. Only what code has registered can ever come out of a file, and nothing here imports anything.
The rooms above say which classes may stand here (`admit`), since this floor knows none of them.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import re
import threading
import types
import weakref
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from synmod import errors
from synmod.errors import RegistryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "admit",
    "admit_when",
    "builtin_errors",
    "check_registrable",
    "id_of",
    "load_own",
    "lookup",
    "own_later",
    "register",
    "register_own",
    "registered",
]

T = TypeVar("T")

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_OWN_PACKAGE = "synmod"

_LOCK = threading.Lock()
_OBJECTS: dict[str, Any] = {}
_ALIASES: dict[str, Any] = {}
_LATER: list[Callable[[], object]] = []
_IDS: dict[int, tuple[weakref.ref[Any], str]] = {}  # by identity: a class may have a metaclass with its own `__eq__`
_BASES: list[type] = [enum.Enum, BaseException]
_TESTS: list[Callable[[type], bool]] = []

builtin_errors: Mapping[str, type[BaseException]] = MappingProxyType(
    {
        f"builtins>{name}": found
        for name, found in vars(builtins).items()
        if isinstance(found, type) and issubclass(found, BaseException) and found.__name__ == name
    }
)
"""Python's own exception classes by id: they are known without registration."""


def register(package: str, name: str | None = None, aliases: Iterable[str] = ()) -> Callable[[T], T]:
    """Give a class or function of yours a public id, under which files may name it.

    Args:
        package: What the id begins with, such as the name of your distribution; letters, digits, `_`, `.`, `-`.
        name: What it ends with; default the `__name__` of the object.
        aliases: Old ids (`package>Name`) that still lead to this object when a file is read.

    Returns:
        A decorator that returns what it is put on.

    Raises:
        RegistryError: A package or name that cannot be, the reserved package `synmod`, an object that is neither a
            class of a known kind nor a function made by `def`, or an id that another object has.

    Example:
        >>> @register(package="docs_of_registry")
        ... def shout(text):
        ...     return text.upper()
        >>> id_of(shout)
        'docs_of_registry>shout'

    Source: Keras `register_keras_serializable`; differs: allow-list by kind, no class path as a fallback.
    """
    _check_package(package)
    if isinstance(aliases, str):
        raise RegistryError(f"aliases is the str {aliases!r}, wanted a tuple of ids: write aliases=({aliases!r},).")
    old_ids = tuple(aliases)
    for alias in old_ids:
        _check_alias(alias)

    def decorate(target: T) -> T:
        check_registrable(target, name)
        word = _default_word(target) if name is None else name
        _check_word(word, "name")
        _enter(f"{package}>{word}", target, old_ids)
        return target

    return decorate


def register_own(*, name: str | None = None, public: bool = True) -> Callable[[T], T]:
    """Register a class or function of synmod itself as `synmod>Name`.

    `public=True` also makes the room its `__module__`, since that is where users find it; pydantic classes keep
    theirs, because pydantic resolves their annotations there.
    """

    def decorate(target: T) -> T:
        thing = cast("Any", target)
        if public and thing.__module__.count(".") > 1:
            thing.__module__ = ".".join(thing.__module__.split(".")[:2])
        _enter(f"{_OWN_PACKAGE}>{name or thing.__name__}", target, ())
        return target

    return decorate


def own_later(load: Callable[[], object]) -> None:
    """Tell how to load classes of synmod that are made late, so that nobody misses their ids."""
    _LATER.append(load)


def load_own() -> None:
    """Make all of synmod's own ids known.

    The first load of a process asks for it, whatever its file says: which modules are imported never depends on a file.
    """
    for load in _LATER:
        load()


def registered() -> Mapping[str, Any]:
    """Show what is registered.

    Returns:
        A read-only, live mapping from id to object, synmod's own included; aliases are not listed.

    Example:
        >>> registered()["synmod>SaveError"].__name__
        'SaveError'

    Source: Keras `get_registered_object`.
    """
    load_own()
    return MappingProxyType(_OBJECTS)


def lookup(public_id: str) -> Any:
    """Give the object of an id, an old id or a builtin exception's id; None if there is none."""
    found = _OBJECTS.get(public_id)
    if found is None:
        found = _ALIASES.get(public_id)
    return builtin_errors.get(public_id) if found is None else found


def id_of(target: object) -> str | None:
    """Give the id under which this very object is registered, None if it is not; a subclass has none of its base."""
    entry = _IDS.get(id(target))
    if entry is not None and entry[0]() is target:
        return entry[1]
    if isinstance(target, type) and target.__module__ == "builtins" and issubclass(target, BaseException):
        public_id = f"builtins>{target.__name__}"
        return public_id if builtin_errors.get(public_id) is target else None
    return None


def admit(base: type) -> None:
    """Let `base` and the classes derived from it be registered; each room calls it for the classes users extend."""
    if base not in _BASES:
        _BASES.append(base)


def admit_when(test: Callable[[type], bool]) -> None:
    """Let every class be registered for which `test` is true, such as the types of a table of node types."""
    _TESTS.append(test)


def check_registrable(target: object, name: str | None = None) -> None:
    """Check that an object is of a kind that files may name.

    Args:
        target: A class or function.
        name: The explicit name, which a lambda needs.

    Raises:
        RegistryError: It is of another kind; the message has the remedy.
    """
    if isinstance(target, type):
        if not _is_known_kind(target):
            raise RegistryError(
                f"{_place(target)} cannot be registered: a class must derive from {_base_names()}, or be an enum, "
                "a dataclass, a namedtuple, an exception class, or a registered graph-node or tree type."
            )
    elif not isinstance(target, types.FunctionType):
        raise RegistryError(
            f"{_show(target)} cannot be registered: only classes and functions made by `def` can. "
            "Wrap it in a `def` and decorate that."
        )
    elif target.__name__ == "<lambda>" and name is None:
        raise RegistryError(
            f"{_place(target)} has no name of its own: register a `def`, or give the name (name='my_function')."
        )


def _is_known_kind(cls: type) -> bool:
    """Whether files may name instances of this class, or the class itself."""
    if issubclass(cls, tuple(_BASES)) or dataclasses.is_dataclass(cls):
        return True
    if issubclass(cls, tuple) and isinstance(getattr(cast("Any", cls), "_fields", None), tuple):
        return True
    return any(test(cast("type", cls)) for test in _TESTS)


def _base_names() -> str:
    """The bases that rooms have admitted, as text."""
    names = [base.__name__ for base in _BASES if base not in (enum.Enum, BaseException)]
    return ", ".join(names) or "Module"


def _enter(public_id: str, target: Any, aliases: tuple[str, ...]) -> None:
    """Write the tables: all ids, or none if one is taken."""
    with _LOCK:
        for each in (public_id, *aliases):
            _check_free(each, target)
        _ALIASES.pop(public_id, None)
        _OBJECTS[public_id] = target
        for alias in aliases:
            if _OBJECTS.get(alias) is not target:
                _OBJECTS.pop(alias, None)
                _ALIASES[alias] = target
        _remember(target, public_id)


def _remember(target: Any, public_id: str) -> None:
    """Note the id of an object by identity, for as long as the object lives."""
    key = id(target)

    def forget(gone: weakref.ref[Any]) -> None:
        entry = _IDS.get(key)
        if entry is not None and entry[0] is gone:
            del _IDS[key]

    _IDS[key] = (weakref.ref(target, forget), public_id)


def _check_free(public_id: str, target: Any) -> None:
    """Refuse an id of another object; the same place defined again (a notebook cell, a reload) replaces silently."""
    holder = lookup(public_id)
    if holder is None or holder is target or _same_place(holder, target):
        return
    raise RegistryError(
        f"Id {public_id!r} is taken: by {_place(holder)}, now asked for {_place(target)}. "
        "Give one of them another name (@sm.register(package=..., name=...))."
    )


def _same_place(one: Any, other: Any) -> bool:
    """Whether two definitions come from the same line of the same module, one after the other."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def _place(target: Any) -> str:
    """Module and qualified name, as a reader finds the definition."""
    return f"{target.__module__}.{target.__qualname__}"


def _show(target: object) -> str:
    """Name an object by its type, and by its name where it has one."""
    name = getattr(target, "__qualname__", None)
    kind = type(target).__name__
    return f"{name} ({kind})" if isinstance(name, str) else f"an object of type {kind}"


def _default_word(target: Any) -> str:
    """The name an object has by itself."""
    return target.__name__


def _check_package(package: object) -> None:
    """Check the first half of an id; a class here means that the decorator was written without parentheses."""
    if not isinstance(package, str):
        raise RegistryError(
            f"package is {_show(package)}, wanted a str: write @sm.register(package='my_app') above the definition."
        )
    _check_word(package, "package")
    if package == _OWN_PACKAGE:
        raise RegistryError("Package 'synmod' is reserved for synmod itself: take the name of your own package.")


def _check_word(word: object, what: str) -> None:
    """Check one half of an id."""
    if not isinstance(word, str) or not _WORD.fullmatch(word):
        raise RegistryError(
            f"{word!r} cannot be the {what} of an id: it must match [A-Za-z_][A-Za-z0-9_.-]*, such as 'my_app'. "
            f"Give one: @sm.register(package='my_app', name='MyClass')."
        )


def _check_alias(alias: object) -> None:
    """Check an old id: two words joined by `>`, not of our package."""
    if not isinstance(alias, str) or alias.count(">") != 1:
        raise RegistryError(f"{alias!r} cannot be an alias: an old id has the form 'my_app>OldName'.")
    package, word = alias.split(">")
    _check_package(package)
    _check_word(word, "name")


def _register_errors() -> None:
    """Make synmod's own exception classes known: a module may take them as arguments."""
    for name in errors.__all__:
        found = getattr(errors, name)
        if isinstance(found, type) and issubclass(found, BaseException):
            register_own(public=False)(found)


_register_errors()
