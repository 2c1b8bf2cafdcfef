"""What is wrong with a program that cannot be saved, or a file that cannot be loaded: each fault with its place."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from synmod.errors import FormatError, GraphError, LoadError, SaveError, SaveProblem
from synmod.leaves.frozen import Json, is_array, is_object
from synmod.leaves.names import pointer
from synmod.tree import class_of

Where: TypeAlias = tuple[str | int, ...]
"""A place in a document: the keys and indices that lead to it."""

_SHOWN = 200
_LISTED = 20
_LONGEST_PLACE = 500
_TO_DEF = "move it to a `def` of a module and decorate that with @sm.register(package='my_app')"
_KEEP_OUT = (
    "keep it out of the file with static(x) or an ignored attribute (`_graph_ignored`), set by the constructor; "
    "or override get_config"
)

# -- loading ----------------------------------------------------------------------------------------------------------


def load_fault(where: Where, text: str) -> LoadError:
    """Return the error of something that cannot be loaded here."""
    place = pointer(where)
    return LoadError(_placed(place, text), where=place)


def malformed(where: Where, text: str) -> FormatError:
    """Return the error of something that no file of this format holds."""
    place = pointer(where)
    return FormatError(_placed(place, text), where=place)


def _placed(place: str, text: str) -> str:
    """Return a message that begins with its place; a key of the file may be long."""
    short = place if len(place) <= _LONGEST_PLACE else f"{place[:_LONGEST_PLACE]}..."
    return f"{short}: {text}" if place else text


def shown(value: object) -> str:
    """Return a value from a file as text, cut: it may have megabytes."""
    text = repr(value) if isinstance(value, str | int | float | bool | type(None)) else type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@contextmanager
def in_file(file: str | None) -> Generator[None]:
    """Name the file in every LoadError that passes, once."""
    try:
        yield
    except LoadError as error:
        if file is not None and error.file is None:
            error.file = file
            error.args = (f"{file}: {error}",)
        raise


@contextmanager
def user_code(where: Where, cls: type, path: Callable[[], str] | None = None) -> Generator[None]:
    """Turn whatever code of a class that a file names raises into a LoadError with its place.

    Args:
        where: The place in the document.
        cls: The class.
        path: Where the object stands in the program, asked for when something has failed.

    Raises:
        LoadError: The block raised; that is its cause. Cancellation and interrupts pass.
    """
    try:
        yield
    except LoadError:
        raise
    except Exception as error:
        place = "" if path is None else f"{path()!r} "
        text = f"{place}({cls.__qualname__}) cannot be made: {type(error).__name__}: {error}"
        raise load_fault(where, text) from error


def check_fields(record: Mapping[str, Json], where: Where, needed: Sequence[str], optional: Sequence[str] = ()) -> None:
    """Raise unless a record has all the fields it needs, and no unknown one."""
    for name in needed:
        if name not in record:
            raise malformed(where, f"the field {name!r} is missing.")
    if len(record) > len(needed):
        for name in record:
            if name not in needed and name not in optional:
                raise malformed((*where, name), f"unknown field; known are {', '.join([*needed, *optional])}.")


def check_index(index: Json, size: int, where: Where, table: str) -> int:
    """Return an index into a table; a bool is not one."""
    if type(index) is not int or not 0 <= index < size:
        raise malformed(where, f"{shown(index)} is not an index into the {size:,} {table}.")
    return index


def check_object(value: Json, where: Where) -> dict[str, Json]:
    """Return an object."""
    if not is_object(value):
        raise malformed(where, f"wanted an object, got {_described(value)}.")
    return value


def check_array(value: Json, where: Where) -> list[Json]:
    """Return an array."""
    if not is_array(value):
        raise malformed(where, f"wanted an array, got {_described(value)}.")
    return value


def check_text(value: Json, where: Where) -> str:
    """Return a text."""
    if type(value) is not str:
        raise malformed(where, f"wanted a text, got {_described(value)}.")
    return value


def check_bool(value: Json, where: Where) -> bool:
    """Return true or false."""
    if type(value) is not bool:
        raise malformed(where, f"wanted true or false, got {_described(value)}.")
    return value


def check_pair(value: Json, where: Where) -> list[Json]:
    """Return an array of two."""
    if not is_array(value) or len(value) != 2:
        raise malformed(where, f"wanted a pair, got {_described(value)}.")
    return value


def _described(value: Json) -> str:
    """Return a phrase for what stands where something else belongs."""
    if is_object(value):
        keys = list(value)
        return f"an object with the keys {', '.join(map(shown, keys[:5]))}" if keys else "an empty object"
    return "an array" if type(value) is list else shown(value)


# -- saving -----------------------------------------------------------------------------------------------------------


class Problems(list[SaveProblem]):
    """The offenders found so far; saving goes on, so that one error lists them all."""

    def note(self, place: str, what: str, remedy: str) -> None:
        """Add an offender."""
        self.append(SaveProblem(place, what, remedy))

    def raise_if_any(self, *, as_graph: bool = False) -> None:
        """Raise one error for all offenders, if there are any.

        Raises:
            SaveError: There are.
            GraphError: There are, and a graph definition was to be written.
        """
        if self and as_graph:
            raise GraphError(self._text("This graph cannot be written as JSON"))
        if self:
            raise SaveError(self._text("This cannot be saved"), self)

    def _text(self, heading: str) -> str:
        """Return a message with a line per offender, the first twenty."""
        lines = [f"{place}: {what}: {remedy}." if place else f"{what}: {remedy}." for place, what, remedy in self]
        if len(lines) == 1:
            return f"{heading}: {lines[0]}"
        rest = [f"... and {len(lines) - _LISTED} more, in .problems"] if len(lines) > _LISTED else []
        return "\n- ".join([f"{heading}:", *lines[:_LISTED], *rest])


def what_and_remedy(value: Any) -> tuple[str, str]:
    """Return what an object is that no term can hold, and what to do."""
    kind = class_of(value)
    found = _function_like(value)
    if found is not None:
        return found, _TO_DEF
    if isinstance(value, type):
        return f"the class {value.__qualname__}, which is not registered", (
            f"decorate it: @sm.register(package='my_app') above `class {value.__name__}`"
        )
    if hasattr(kind, "get_secret_value"):
        return f"a {kind.__name__}", "secrets are never saved: pass it to the live model, which a load gets anew"
    if hasattr(kind, "item") and hasattr(kind, "dtype"):
        return f"a value of type {kind.__name__}", "write x.item() (or x.tolist())"
    if hasattr(kind, "__fspath__"):
        return f"a {kind.__name__}", "write str(path)"
    for plain in (str, bool, int, float, list, dict, tuple, set, frozenset, bytes):
        if isinstance(value, plain):
            return f"a value of type {kind.__name__}, a subclass of {plain.__name__}", (
                f"write the plain type: {plain.__name__}(x)"
            )
    return f"an object of type {kind.__module__}.{kind.__qualname__}", _KEEP_OUT


def unregistered(cls: type, holder: str) -> tuple[str, str]:
    """Return what an instance of a class without id is, and what to do."""
    return f"{holder} of class {cls.__qualname__}, which is not registered", (
        f"decorate it: @sm.register(package='my_app') above `class {cls.__name__}`"
    )


def _function_like(value: Any) -> str | None:
    """Return a phrase for a callable that is not a registered function."""
    if isinstance(value, types.FunctionType):
        if value.__name__ == "<lambda>":
            return "a lambda"
        kind = "a closure" if value.__closure__ else "a function that is not registered"
        return f"{kind} ({value.__qualname__})"
    if isinstance(value, functools.partial):
        return "a functools.partial"
    if isinstance(value, types.MethodType):
        return f"a bound method ({value.__qualname__})"
    if isinstance(value, types.BuiltinFunctionType | types.BuiltinMethodType):
        return f"a builtin function ({value.__name__})"
    return None
