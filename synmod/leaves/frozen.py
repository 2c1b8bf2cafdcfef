"""Frozen JSON: immutable values, which can be shared without a copy; and JSON text, read and written.

A JSON value is None, a bool, an int, a float, a str, a list, or a dict with str keys, of exactly these types. `frozen`
checks that once and returns the same content as `FrozenDict` and `FrozenList`; after that nothing is copied or checked
again. A class whose instances represent JSON (a data model) has a method `__synmod_json__`, which returns the frozen
JSON of an instance. Nesting is bounded, so the functions here recurse.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Why: JSON is Any, and isinstance(x, dict) or type(x) narrows that to a partly unknown type.

import json as _json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from math import copysign, isfinite
from typing import Any, Final, NoReturn, Self, TypeAlias, TypeGuard

from synmod.errors import ArgumentError, DataError

from .names import pointer

Json: TypeAlias = Any
"""A JSON value, plain or frozen."""

MAX_DEPTH: Final = 50
"""How deep JSON may nest; `[]` is 1."""

MAX_DIGITS: Final = 1_000
"""How many digits an int may have."""

INT_END: Final = 10**MAX_DIGITS
"""The first int with too many digits."""


def _refuse(*_: object, **__: object) -> NoReturn:
    """Raise TypeError in place of every method that would change a frozen container."""
    raise TypeError(
        'This JSON is frozen: write a changed copy of it, [*x, item] or {**x, "key": item}; for a Variable, '
        "variable.assign([*variable.value, item])."
    )


class _Frozen:
    """What frozen objects and arrays have in common; depth and hash are computed once."""

    __slots__ = ()

    def __copy__(self, memo: object = None) -> Self:
        return self

    __deepcopy__ = __copy__

    def __reduce__(self) -> tuple[Any, ...]:
        return frozen, (_thaw(self), _DEEPEST_PICKLE)


class FrozenDict(_Frozen, dict[str, Any]):
    """A JSON object that cannot be changed; made by `frozen`, equal to the plain dict of the same content."""

    __slots__ = ("__weakref__", "_depth", "_hash")

    __init__ = __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"JSON object: write x[{name!r}], or take the typed value with .to()")

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]  (a dict has none)
        return _compute_once(self, "_hash", lambda: hash(frozenset(self.items())))


class FrozenList(_Frozen, list[Any]):
    """A JSON array that cannot be changed; made by `frozen`, equal to the plain list of the same content."""

    __slots__ = ("__weakref__", "_depth", "_hash")

    __init__ = __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]  (a list has none)
        return _compute_once(self, "_hash", lambda: hash(tuple(self)))


CONTAINERS: Final = (dict, list)
"""All containers of JSON, for isinstance on hot paths: a union of types is built anew each time."""

_SHOWN: Final = 200  # characters of a pointer in an error
_FROZEN: Final = (FrozenDict, FrozenList)
_STR: Final = {str}
_DEEPEST_PICKLE: Final = 1_000  # schemas and cached entries nest deeper than values


def _compute_once(container: Any, slot: str, compute: Callable[[], int]) -> int:
    """Return the value of a slot of a frozen container, computed on first use."""
    try:
        return object.__getattribute__(container, slot)
    except AttributeError:
        computed = compute()
        setattr(container, slot, computed)
        return computed


def fill(new: FrozenDict, content: Mapping[str, Any]) -> None:
    """Put content into a new frozen object, before it is shared."""
    dict.update(new, content)


def frozen_dict(content: Mapping[str, Any]) -> FrozenDict:
    """Wrap content that is known to be JSON (scalars and frozen parts); nothing is checked."""
    new = FrozenDict.__new__(FrozenDict)
    dict.update(new, content)
    return new


def frozen_list(content: Iterable[Any]) -> FrozenList:
    """Wrap content that is known to be JSON (scalars and frozen parts); nothing is checked."""
    new = FrozenList.__new__(FrozenList)
    list.extend(new, content)
    return new


def empty_object() -> dict[str, Any]:
    """Return `{}`, as the default of a field: hot, and `dict[str, Any]()` takes ten times as long."""
    return {}


def is_object(json: object) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value, frozen or plain, is an object."""
    return isinstance(json, dict)


def is_array(json: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value, frozen or plain, is an array."""
    return isinstance(json, list)


def is_mapping(x: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether an object of unknown type is a mapping."""
    return isinstance(x, Mapping)


def is_sequence(x: object) -> TypeGuard[Sequence[Any]]:
    """Whether an object of unknown type is a list or a tuple."""
    return isinstance(x, list | tuple)


def depth_of(json: Any) -> int:
    """Return how deep frozen JSON nests; 0 for a scalar. Cached in each container."""
    if not isinstance(json, _FROZEN):
        return 0
    parts: Any = json.values() if isinstance(json, dict) else json
    return _compute_once(json, "_depth", lambda: 1 + max(map(depth_of, parts), default=0))


class _NotJson(Exception):
    """Something is not JSON; the path to it grows while the error passes through its containers."""

    def __init__(self, what: str, remedy: str, *, too_deep: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.too_deep = too_deep
        self.path: list[str | int] = []


def frozen(json: Json, limit: int = MAX_DEPTH, too_deep: type[Exception] = DataError) -> Json:
    """Check a JSON value, and return it frozen.

    Takes linear time. Parts that are frozen already are neither checked again nor copied.

    Args:
        json: None, bool, int, float, str, list or dict with str keys, their frozen forms, or data models at any depth.
        limit: How deep it may nest.
        too_deep: The exception raised where it nests deeper.

    Returns:
        The same content; objects as `FrozenDict`, arrays as `FrozenList`, which raise a TypeError on every change.

    Raises:
        DataError: Something in it is not JSON. Names the JSON Pointer, the type and the remedy.

    Example:
        >>> frozen({"a": [1, 2.0]})
        {'a': [1, 2.0]}

    Source: pyrsistent's `freeze`; differs: subclasses of dict and list, and nothing is converted.
    """
    if isinstance(json, _FROZEN):
        return json
    try:
        return _frozen(json, limit, {})
    except _NotJson as fault:
        place = pointer(reversed(fault.path))
        where = f"{place[:_SHOWN]}…" if len(place) > _SHOWN else place or "The value"
        what = f"nesting over {limit} levels, or a container inside itself," if fault.too_deep else fault.what
        error = too_deep if fault.too_deep else DataError
        raise error(f"{where}: {what} is not JSON: {fault.remedy or f'the limit is {limit}'}.") from None


def _frozen(value: Any, room: int, done: dict[int, Any]) -> Any:
    """Freeze one value, nested at most `room` deep; `done` has the frozen form of each plain container by its id."""
    kind: type[Any] = type(value)
    if kind is dict or kind is list:
        part = done.get(id(value))
        if part is None:
            return _frozen_container(value, room, done)
    elif isinstance(value, _FROZEN):
        part = value
    elif kind is str:
        _check_text(value)
        return value
    elif (
        value is None
        or kind is bool
        or (kind is int and -INT_END < value < INT_END)
        or (kind is float and isfinite(value))
    ):
        return value
    else:
        stands_for = getattr(kind, "__synmod_json__", None)
        if stands_for is None:
            raise _NotJson(*_fault_and_remedy(value))
        part = stands_for(value)
    if depth_of(part) > room:
        raise _NotJson("", "", too_deep=True)
    return part


def _frozen_container(source: Any, room: int, done: dict[int, Any]) -> Any:
    """Freeze a plain dict or list. Hot: most scalars are checked here, without a call."""
    if not room:
        raise _NotJson("", "", too_deep=True)
    new: Any
    entries: Iterable[tuple[Any, Any]]
    if type(source) is dict:
        if not (set(map(type, source)) <= _STR and "".join(source).isascii()):
            _check_keys(source)
        new, entries, put = frozen_dict(source), source.items(), dict.__setitem__
    else:
        new, entries, put = frozen_list(source), enumerate(source), list.__setitem__
    for key, value in entries:
        kind: type[Any] = type(value)
        if (
            (kind is str and value.isascii())
            or value is None
            or kind is bool
            or (kind is float and isfinite(value))
            or (kind is int and -INT_END < value < INT_END)
        ):
            continue
        try:
            part = _frozen(value, room - 1, done)
        except _NotJson as fault:
            fault.path.append(key)
            raise
        if part is not value:
            put(new, key, part)
    done[id(source)] = new
    return new


def _check_keys(source: dict[Any, Any]) -> None:
    """Raise unless every key is a str without lone surrogates."""
    for key in source:
        if type(key) is not str:
            raise _NotJson(f"the key {key!r:.100} of type {type(key).__name__}", "write str(key)")
        _check_text(key)


def _check_text(text: str) -> None:
    """Raise for a lone surrogate, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = f"a lone surrogate (character {error.start} of a str)"
        raise _NotJson(what, "text is limited to whole Unicode characters") from None


def mend(json: Any) -> Any:
    r"""Return JSON from outside with whole characters only: U+FFFD replaces half of one (a lone surrogate).

    Two halves that belong together become their character. What is not text, a list, a tuple or a dict is left alone.

    Example:
        >>> mend(["caf\udce9", "\ud83d\ude00"]) == ["caf\ufffd", "\U0001f600"]
        True

    Source: the Unicode standard's replacement character, as browsers use it.
    """
    if isinstance(json, str):
        return json if json.isascii() else json.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(json, dict):
        return {mend(key): mend(value) for key, value in json.items()}
    return [*map(mend, json)] if isinstance(json, (list, tuple)) else json


def _fault_and_remedy(value: object) -> tuple[str, str]:
    """Describe a value that is not JSON, and what to write instead."""
    kind = type(value)
    what = f"a value of type {kind.__name__}"
    if kind is float:
        return f"{value} (type float)", "write None or a string"
    if kind is int:
        return f"an int of over {MAX_DIGITS:,} digits", f"the limit is {MAX_DIGITS:,}; write a string"
    if isinstance(value, Enum):
        return what, "write x.value"
    if hasattr(kind, "item") and hasattr(kind, "dtype"):
        return what, "write x.tolist()" if getattr(value, "shape", ()) else "write x.item()"
    if isinstance(value, tuple | set | frozenset):
        return what, "write list(x)"
    for plain in (list, dict, str, int, float):
        if isinstance(value, plain):
            return what, f"write {plain.__name__}(x)"
    if isinstance(value, type):
        what = f"the class {value.__name__}"
    return what, "declare a field of that type in a DataModel, or write a string"


def thaw(json: Json) -> Json:
    """Return a deep, plain, mutable copy of a JSON value.

    Args:
        json: A JSON value, plain or frozen, or a data model.

    Returns:
        dicts and lists all the way down; scalars as they are.

    Raises:
        DataError: It is not a JSON value.

    Example:
        >>> thaw(frozen({"a": [1]}))["a"].append(2)

    Source: pyrsistent's `thaw`.
    """
    return _thaw(frozen(json))


def _thaw(json: Any) -> Any:
    """Copy frozen JSON into plain dicts and lists."""
    if isinstance(json, dict):
        return {key: _thaw(part) if isinstance(part, CONTAINERS) else part for key, part in json.items()}
    if isinstance(json, list):
        return [_thaw(part) if isinstance(part, CONTAINERS) else part for part in json]
    return json


def json_equal(a: Json, b: Json) -> bool:
    """Whether two JSON values are exactly the same.

    Unlike `==`, it distinguishes `1`, `1.0` and `True`, and `0.0` and `-0.0`. The order of keys does not matter.

    Args:
        a: A JSON value, plain or frozen, or a data model.
        b: Another.

    Returns:
        Whether both have the same types and the same content everywhere.

    Raises:
        DataError: One of them is not a JSON value.

    Example:
        >>> json_equal([1], [1.0])
        False

    Source: the equality of RFC 8785 texts; differs: ints and floats are never equal.
    """
    return frozen_equal(frozen(a), frozen(b))


def frozen_equal(a: Any, b: Any) -> bool:
    """Whether two frozen values are exactly the same, as `json_equal`."""
    if a is b:
        return True
    if isinstance(a, dict):
        return (
            isinstance(b, dict) and a.keys() == b.keys() and all(frozen_equal(part, b[key]) for key, part in a.items())
        )
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(frozen_equal, a, b))
    return type(a) is type(b) and a == b and (a != 0.0 or copysign(1.0, a) == copysign(1.0, b))


# -- text --------------------------------------------------------------------------------------------------------------


def parse_json(text: str | bytes, limit: int = MAX_DEPTH) -> Json:
    """Parse JSON text from outside, strictly.

    Args:
        text: A str, or bytes in UTF-8.
        limit: How deep it may nest.

    Returns:
        The value, in plain dicts and lists.

    Raises:
        DataError: It is not JSON, or JSON outside synmod's limits: NaN, a number that overflows, an int over 1,000
            digits, a lone surrogate, a duplicate key, deeper nesting, trailing text, a byte order mark. Names line and
            column of a syntax error, else the pointer or the key.
        ArgumentError: It is neither str nor bytes.

    Example:
        >>> parse_json('{"a": [1, 2.0]}')
        {'a': [1, 2.0]}

    Source: Python's `json.loads`; differs: nothing is repaired, and deep input is not a RecursionError.
    """
    return _read(text, limit)[0]


def parse_frozen(text: str | bytes) -> Json:
    """Return the JSON of a text as `parse_json` does, frozen.

    Raises:
        DataError, ArgumentError: As `parse_json`.
    """
    return _read(text, MAX_DEPTH)[1]


def _read(text: str | bytes, limit: int) -> tuple[Json, Json]:
    """Return the value, plain and frozen."""
    try:
        json = _DECODER.decode(_decode(text))
        return json, frozen(json, limit)
    except _json.JSONDecodeError as error:
        what = "text after the JSON value" if error.msg == "Extra data" else error.msg
        raise DataError(f"line {error.lineno} column {error.colno}: not JSON: {what}.") from None
    except RecursionError:
        raise DataError(f"The text nests over {limit} levels, or the stack is almost full.") from None
    except DataError:
        raise
    except ValueError:  # Python does not read an int of that length
        raise DataError(f"An int has over {MAX_DIGITS:,} digits, which is the limit: write a string.") from None


def dump_json(json: Json, indent: int | None = None) -> str:
    """Return JSON as text; characters outside ASCII are not escaped.

    Args:
        json: A JSON value, plain or frozen, or a data model.
        indent: Spaces per level; None for one line.

    Returns:
        The text, from which `parse_json` reads the same value.

    Raises:
        DataError: It is not a JSON value.

    Example:
        >>> dump_json({"a": "é"})
        '{"a": "é"}'

    Source: Python's `json.dumps`; differs: `ensure_ascii=False`, and nothing is converted.
    """
    json = frozen(json)
    return _ENCODER.encode(json) if indent is None else _json.dumps(json, ensure_ascii=False, indent=indent)


def _decode(text: str | bytes) -> str:
    """Return the characters; strict UTF-8 without a byte order mark."""
    if isinstance(text, bytes | bytearray):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            before = bytes(text[: error.start]).decode()
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            raise DataError(
                f"line {line} column {column}: not JSON: the bytes are not UTF-8 ({error.reason})."
            ) from None
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (callers may be untyped)
        raise ArgumentError(f"JSON is read from a str or from bytes, not from a value of type {type(text).__name__}.")
    if text.startswith("\ufeff"):
        raise DataError("line 1 column 1: not JSON: a byte order mark (BOM); leave it out.")
    return text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are all different."""
    content = dict(pairs)
    if len(content) < len(pairs):
        keys: set[str] = set()
        twice = next(key for key, _ in pairs if key in keys or keys.add(key))
        raise DataError(f"The key {twice!r:.100} appears twice in one object: write each key once.")
    return content


# Kept, since `json.loads` and `json.dumps` make new ones for each call with options. `frozen` refuses NaN.
_DECODER: Final = _json.JSONDecoder(object_pairs_hook=_object)
_ENCODER: Final = _json.JSONEncoder(ensure_ascii=False, allow_nan=False)
