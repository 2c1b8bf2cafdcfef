"""The registry: the one table that maps public ids, as files write them, to classes and functions.

An id is `package>Name`. A file can only name what code has registered; a lookup imports nothing. The rooms above
declare which classes may be registered (`admit`), since this floor does not know them.
"""

import builtins
import dataclasses
import enum
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, MappingProxyType
from typing import Any, Final, TypeVar, cast

from synmod import errors

T = TypeVar("T")

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_OWN_PACKAGE: Final = "synmod"
_ID: Final = "__synmod_id__"

_LOCK = threading.Lock()
_OBJECTS: dict[str, Any] = {}
_ALIASES: dict[str, Any] = {}
_TESTS: list[Callable[[type], bool]] = [
    dataclasses.is_dataclass,
    lambda cls: issubclass(cls, enum.Enum | BaseException),
    lambda cls: hasattr(cls, "_fields") and issubclass(cls, tuple),
]
"""Whether a class may be registered: one test must pass."""

builtin_errors: Mapping[str, type[BaseException]] = MappingProxyType(
    {
        f"builtins>{name}": member
        for name, member in vars(builtins).items()
        if isinstance(member, type) and issubclass(member, BaseException) and member.__name__ == name
    }
)
"""Python's own exception classes by id: they are known without registration."""


def register(package: str = "", name: str | None = None, aliases: Iterable[str] = ()) -> Callable[[T], T]:
    """Return a decorator that gives a class or function a public id, under which files may name it.

    Args:
        package: The beginning of the id, such as the name of your distribution; letters, digits, `_`, `.`, `-`.
        name: Its end; default the `__name__` of the object.
        aliases: Old ids (`package>Name`) that still resolve to this object when a file is read.

    Returns:
        A decorator that returns its argument unchanged.

    Raises:
        RegistryError: A malformed package or name, the reserved package `synmod`, an object that is neither a class of
            a known kind nor a function made by `def`, or an id that is taken.

    Example:
        >>> @register(package="docs_of_registry")
        ... def shout(text):
        ...     return text.upper()
        >>> id_of(shout)
        'docs_of_registry>shout'

    Source: Keras `register_keras_serializable`; differs: allow-list by kind, no class path as a fallback.
    """
    _check_package(package)
    old_ids = tuple(aliases)
    for alias in old_ids:
        if not isinstance(alias, str) or alias.count(">") != 1:  # pyright: ignore[reportUnnecessaryIsInstance]  (callers may be untyped)
            raise errors.RegistryError(
                f"{alias!r} cannot be an alias: write a tuple of old ids, aliases=('my_app>OldName',)."
            )
        _check_package(alias.split(">")[0])
        _check_word(alias.split(">")[1], "name")

    def decorate(target: T) -> T:
        check_registrable(target, name)
        word = cast("Any", target).__name__ if name is None else name
        _check_word(word, "name")
        _enter(f"{package}>{word}", target, old_ids)
        return target

    return decorate


def register_own(*, public: bool = True) -> Callable[[T], T]:
    """Register a class or function of synmod itself as `synmod>Name`.

    `public=True` also sets its `__module__` to the room, where users find it; pydantic classes keep theirs, because
    pydantic resolves their annotations there.
    """

    def decorate(target: T) -> T:
        target_object = cast("Any", target)
        if public and target_object.__module__.count(".") > 1:
            target_object.__module__ = ".".join(target_object.__module__.split(".")[:2])
        _enter(f"{_OWN_PACKAGE}>{target_object.__name__}", target, ())
        return target

    return decorate


def registered() -> Mapping[str, Any]:
    """Return all registered objects by id.

    Returns:
        A read-only, live mapping from id to object, synmod's own included; aliases are not listed.

    Example:
        >>> registered()["synmod>SaveError"].__name__
        'SaveError'

    Source: Keras `get_registered_object`.
    """
    return MappingProxyType(_OBJECTS)


def lookup(public_id: str) -> Any:
    """Return the object of an id, an old id or a builtin exception's id; None if it is unknown."""
    for table in (_OBJECTS, _ALIASES, builtin_errors):
        if public_id in table:
            return table[public_id]
    return None


def id_of(target: object) -> str | None:
    """Return the id under which this object is registered, None if it is not; a subclass does not inherit one."""
    entry = getattr(target, "__dict__", {}).get(_ID)
    if entry is not None and entry[0]() is target:  # `functools.wraps` copies attributes
        return entry[1]
    if isinstance(target, type) and target.__module__ == "builtins" and issubclass(target, BaseException):
        public_id = f"builtins>{target.__name__}"
        return public_id if builtin_errors.get(public_id) is target else None
    return None


def admit(base: type) -> None:
    """Allow `base` and its subclasses to be registered; each room calls this for the classes that users extend."""
    admit_when(lambda cls: issubclass(cls, base))


def admit_when(test: Callable[[type], bool]) -> None:
    """Allow every class that passes `test` to be registered, such as the types in a table of node types."""
    _TESTS.append(test)


def check_registrable(target: object, name: str | None = None) -> None:
    """Check that an object is of a kind that files may name.

    Args:
        target: A class or function.
        name: The explicit name, which a lambda needs.

    Raises:
        RegistryError: It is of another kind; the message gives the remedy.
    """
    if isinstance(target, type):
        if not any(test(target) for test in _TESTS):
            raise errors.RegistryError(
                f"{_place(target)} cannot be registered: a class must derive from one of synmod, such as Module or "
                "DataModel, or be an enum, a dataclass, a namedtuple, an exception, or a registered node or tree type."
            )
    elif not isinstance(target, FunctionType):
        raise errors.RegistryError(
            f"{_show(target)} cannot be registered: only classes and functions made by `def` can. "
            "Wrap it in a `def` and decorate that."
        )
    elif target.__name__ == "<lambda>" and name is None:
        raise errors.RegistryError(
            f"{_place(target)} has no name: register a `def`, or give the name (name='my_function')."
        )


def _enter(public_id: str, target: Any, aliases: tuple[str, ...]) -> None:
    """Add all ids to the tables, or none if one is taken."""
    with _LOCK:
        for new_id in (public_id, *aliases):
            holder = lookup(new_id)
            if holder is None or holder is target or _place(holder) == _place(target):
                continue  # the same place defined again, by a notebook cell or a reload, replaces silently
            raise errors.RegistryError(
                f"Id {new_id!r} is taken by {_place(holder)}, so {_place(target)} cannot have it. "
                "Give one of them another name (@sm.register(package=..., name=...))."
            )
        _ALIASES.pop(public_id, None)
        _OBJECTS[public_id] = target
        for alias in aliases:
            if _OBJECTS.get(alias) is not target:
                _OBJECTS.pop(alias, None)
                _ALIASES[alias] = target
        entry = weakref.ref(target), public_id
        if isinstance(target, type):
            type.__setattr__(target, _ID, entry)  # a metaclass may have a `__setattr__` of its own
        else:
            setattr(target, _ID, entry)


def _place(target: Any) -> str:
    """Return the module and qualified name, where a reader finds the definition."""
    return f"{target.__module__}.{target.__qualname__}"


def _show(target: object) -> str:
    """Return the type of an object, after its name if it has one."""
    name = getattr(target, "__qualname__", None)
    kind = type(target).__name__
    return f"{name} ({kind})" if isinstance(name, str) else f"an object of type {kind}"


def _check_package(package: object) -> None:
    """Check the first half of an id; a class here means that the decorator was written without parentheses."""
    if not isinstance(package, str):
        raise errors.RegistryError(
            f"package is {_show(package)}, wanted a str: write @sm.register(package='my_app') above the definition."
        )
    _check_word(package, "package")
    if package == _OWN_PACKAGE:
        raise errors.RegistryError("Package 'synmod' is reserved for synmod itself: take the name of your own package.")


def _check_word(word: object, what: str) -> None:
    """Check one half of an id."""
    if not isinstance(word, str) or not _WORD.fullmatch(word):
        raise errors.RegistryError(
            f"{word!r} cannot be the {what} of an id: it must match [A-Za-z_][A-Za-z0-9_.-]*, such as 'my_app'. "
            f"Give one: @sm.register(package='my_app', name='MyClass')."
        )


for _member in vars(errors).values():  # a module may take synmod's own exception classes as arguments
    if isinstance(_member, type) and issubclass(_member, BaseException):
        register_own(public=False)(_member)
