"""Frozen JSON: values that nobody can change, so that they may be shared by everybody.

A JSON value is None, a bool, an int, a float, a str, a list, or a dict with str keys, of exactly these types. `frozen`
checks that once and gives the same content as `FrozenDict` and `FrozenList`; after that nothing is copied or checked
again. A class whose instances stand for JSON (a data model) says so with a method `__synmod_json__`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import copysign, isfinite
from typing import Any, Final, NoReturn, TypeAlias

from synmod.errors import DataError
from synmod.leaves.paths import pointer

__all__ = ["MAX_DEPTH", "MAX_DIGITS", "FrozenDict", "FrozenList", "Json", "frozen", "json_equal", "thaw"]

Json: TypeAlias = Any
"""A JSON value, plain or frozen."""

MAX_DEPTH: Final = 50
"""How deep JSON may nest; `[]` is 1."""

MAX_DIGITS: Final = 1_000
"""How many digits an int may have."""

_INT_END: Final = 10**MAX_DIGITS
_PLAIN: Final = (dict, list)


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    """Stand in the place of every method that would change a frozen container."""
    raise TypeError("This JSON is frozen: change a plain copy of it, as thaw(x) gives.")


class FrozenDict(dict[str, Any]):
    """A JSON object that cannot be changed; made by `frozen`, equal to the plain dict of the same content."""

    __slots__ = ("__weakref__", "_depth", "_hash")

    __init__ = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"A JSON object has no attribute {name!r}: write x[{name!r}], or take the typed value with .to()."
        )

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]  (a dict has none)
        return _hash_of(self)

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _frozen_again, (thaw(self),)


class FrozenList(list[Any]):
    """A JSON array that cannot be changed; made by `frozen`, equal to the plain list of the same content."""

    __slots__ = ("__weakref__", "_depth", "_hash")

    __init__ = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]  (a list has none)
        return _hash_of(self)

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: object) -> FrozenList:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _frozen_again, (thaw(self),)


Frozen: Final = (FrozenDict, FrozenList)

_new_dict = FrozenDict.__new__
_new_list = FrozenList.__new__
_fill_dict = dict.update
_fill_list = list.extend
_put_dict = dict.__setitem__
_put_list = list.__setitem__


def frozen(json: Json) -> Json:
    """Check a JSON value and freeze it, once.

    Linear, one pass, without recursion. What is frozen already is returned as it is and shared.

    Args:
        json: None, bool, int, float, str, list or dict with str keys, their frozen forms, or data models at any depth.

    Returns:
        The same content; objects as `FrozenDict`, arrays as `FrozenList`.

    Raises:
        DataError: Something in it is no JSON. Names the JSON Pointer, the type and the remedy.

    Example:
        >>> frozen({"a": [1, 2.0]})
        {'a': [1, 2.0]}

    Source: pyrsistent's `freeze`; differs: subclasses of dict and list, and nothing is converted.
    """
    kind = type(json)
    if kind is FrozenDict or kind is FrozenList or kind is str and json.isascii():
        return json
    if kind is dict or kind is list:
        return freeze(json, MAX_DEPTH)
    return _leaf(json, _nowhere)


class _Open:
    """A container that is being frozen: what is still to be put into it, and where it stands in its own container."""

    __slots__ = ("deepest", "key", "pending", "source", "target")

    def __init__(self, source: Any, target: Any, pending: list[tuple[Any, Any]], key: str | int) -> None:
        pending.reverse()
        self.source = source
        self.target = target
        self.pending = pending
        self.key = key
        self.deepest = 0


def freeze(json: Json, limit: int) -> Json:
    """Freeze a plain dict or list that nests at most `limit` deep."""
    steps: list[_Open] = []
    done: dict[int, Any] = {}  # id of a plain container -> its frozen form; None while it is open

    def here(key: str | int | None = None) -> str:
        path = [step.key for step in steps[1:]]
        return pointer(path if key is None else [*path, key])

    def start(source: Any, key: str | int) -> Any:
        """Freeze a container that holds scalars only; open any other, and return None."""
        done[id(source)] = None
        steps.append(_Open(source, None, [], key))
        target, pending = _filled(source, here)
        if pending:
            steps[-1] = _Open(source, target, pending, key)
            return None
        steps.pop()
        target._depth = 1
        done[id(source)] = target
        return target

    result = start(json, "")
    while steps:
        step = steps[-1]
        if step.pending:
            key, value = step.pending.pop()
            kind = type(value)
            if kind is dict or kind is list:
                if id(value) in done:
                    child = done[id(value)]
                    if child is None:
                        raise DataError(_at(here(key), "a container inside itself", "JSON has no cycles"))
                else:
                    if len(steps) >= limit:
                        raise DataError(_at(here(key), "nesting", f"the limit is {limit} levels"))
                    child = start(value, key)
                    if child is None:
                        continue
            else:
                child = value
        else:
            steps.pop()
            child = step.target
            child._depth = step.deepest + 1
            done[id(step.source)] = child
            if not steps:
                return child
            key, step = step.key, steps[-1]
        deep = depth_of(child)
        if deep + len(steps) > limit:
            raise DataError(_at(here(key), "nesting", f"the limit is {limit} levels"))
        step.deepest = max(step.deepest, deep)
        (_put_dict if type(step.target) is FrozenDict else _put_list)(step.target, key, child)
    return result


def _filled(source: Any, here: Callable[..., str]) -> tuple[Any, list[tuple[Any, Any]]]:
    """Make the frozen container with the scalars of `source`, and list the containers that must be put in."""
    pending: list[tuple[Any, Any]] = []
    entries: Iterator[tuple[Any, Any]]
    if type(source) is dict:
        target: Any = _new_dict(FrozenDict)
        _fill_dict(target, source)
        for key in target:
            if type(key) is not str:
                raise DataError(_at(here(), f"the key {key!r:.200} of type {type(key).__name__}", "write str(key)"))
            if not key.isascii():
                _check_text(key, here)
        entries = iter(target.items())
    else:
        target = _new_list(FrozenList)
        _fill_list(target, source)
        entries = enumerate(target)
    for key, value in entries:
        kind = type(value)
        if kind is str:
            if value.isascii():
                continue
        elif kind is int:
            if -_INT_END < value < _INT_END:
                continue
        elif kind is float:
            if isfinite(value):
                continue
        elif kind is bool or value is None:
            continue
        elif kind in _PLAIN:
            pending.append((key, value))
            continue
        leaf = _leaf(value, partial(here, key))
        if leaf is not value or isinstance(leaf, Frozen):
            pending.append((key, leaf))
    return target, pending


def _leaf(value: Any, here: Callable[[], str]) -> Any:
    """Freeze what is no plain container: a scalar, something frozen, or something that stands for JSON."""
    kind = type(value)
    if value is None or kind is bool or isinstance(value, Frozen):
        return value
    if kind is str:
        return _check_text(value, here)
    if kind is int and -_INT_END < value < _INT_END or kind is float and isfinite(value):
        return value
    stands_for = getattr(kind, "__synmod_json__", None)
    if stands_for is not None:
        return frozen(stands_for(value))
    raise DataError(_at(here(), *_what_and_remedy(value)))


def _check_text(text: str, here: Callable[[], str]) -> str:
    """Refuse a text with half a surrogate pair, which no UTF-8 file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            _at(here(), f"a lone surrogate at character {error.start}", "text must be valid Unicode")
        ) from None
    return text


def _nowhere() -> str:
    return ""


def _at(where: str, what: str, remedy: str) -> str:
    return f"{where or 'The value'}: {what} is not JSON: {remedy}."


def _what_and_remedy(value: object) -> tuple[str, str]:
    """Say what is no JSON, and what to write instead."""
    kind = type(value)
    name = kind.__name__
    if kind is float:
        return f"{value} (float)", "write None or a string"
    if kind is int:
        return f"an int of over {MAX_DIGITS:,} digits", "that is the limit; write a string"
    if hasattr(value, "value") and hasattr(kind, "__members__"):
        return f"{value!r:.200} of type {name}", "write x.value"
    if hasattr(value, "item") and hasattr(value, "dtype"):
        return f"a value of type {name}", "write x.item() (or x.tolist())"
    if isinstance(value, tuple | set | frozenset | list):
        return f"a value of type {name}", "write list(x)"
    if isinstance(value, dict):
        return f"a value of type {name}", "write dict(x)"
    for plain in (str, int, float):
        if isinstance(value, plain):
            return f"a value of type {name}", f"write {plain.__name__}(x)"
    return f"a value of type {name}", "declare a field of that type in a DataModel, or write a string"


def frozen_dict(content: dict[str, Any]) -> FrozenDict:
    """Wrap what is known to be JSON: scalars and frozen parts. Nothing is checked."""
    new = _new_dict(FrozenDict)
    _fill_dict(new, content)
    return new


def frozen_list(content: Iterable[Any]) -> FrozenList:
    """Wrap what is known to be JSON: scalars and frozen parts. Nothing is checked."""
    new = _new_list(FrozenList)
    _fill_list(new, content)
    return new


def depth_of(json: Json) -> int:
    """Tell how deep a frozen value nests; 0 for a scalar. Kept with each container."""
    return _kept(json, "_depth", _deepest) if isinstance(json, Frozen) else 0


def _hash_of(json: FrozenDict | FrozenList) -> int:
    """Hash the content, equal for whatever `==` takes for equal. Kept with each container."""
    return _kept(json, "_hash", _hash_here)


def _kept(json: Any, slot: str, measure: Callable[[Any], int]) -> int:
    """Measure a container, its parts first, and keep every result; no recursion."""
    known = getattr(json, slot, None)
    if known is not None:
        return known
    steps = [json]
    while steps:
        parts = _parts(steps[-1])
        unknown = [part for part in parts if isinstance(part, Frozen) and getattr(part, slot, None) is None]
        if unknown:
            steps.extend(unknown)
        else:
            done = steps.pop()
            setattr(done, slot, measure(done))
    return getattr(json, slot)


def _parts(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _deepest(container: Any) -> int:
    return 1 + max((part._depth for part in _parts(container) if isinstance(part, Frozen)), default=0)


def _hash_here(container: Any) -> int:
    return hash(frozenset(container.items())) if isinstance(container, dict) else hash(tuple(container))


def _frozen_again(json: Json) -> Json:
    """Rebuild a pickled value; it was within every limit when it was pickled."""
    return freeze(json, 10 * MAX_DEPTH)


def thaw(json: Json) -> Json:
    """Give a deep, plain, mutable copy of a JSON value.

    Args:
        json: A JSON value, plain or frozen, or a data model.

    Returns:
        dicts and lists all the way down; scalars as they are.

    Raises:
        DataError: It is no JSON value.

    Example:
        >>> thaw(frozen({"a": [1]}))["a"].append(2)

    Source: pyrsistent's `thaw`.
    """
    root = [frozen(json)]
    pending: list[Any] = [root]
    while pending:
        container = pending.pop()
        for key, value in container.items() if type(container) is dict else enumerate(container):
            if isinstance(value, Frozen):
                copy: Any = dict(value) if isinstance(value, dict) else list(value)
                container[key] = copy
                pending.append(copy)
    return root[0]


def json_equal(a: Json, b: Json) -> bool:
    """Tell whether two JSON values are the same, exactly.

    Unlike `==`, which takes `1`, `1.0` and `True` for equal, and `0.0` and `-0.0`. The order of keys does not count.

    Args:
        a: A JSON value, plain or frozen, or a data model.
        b: Another.

    Returns:
        Whether both have the same kinds and the same content everywhere.

    Raises:
        DataError: One of them is no JSON value.

    Example:
        >>> json_equal([1], [1.0])
        False

    Source: JSON-SRC's canonical equality; differs: ints and floats are apart.
    """
    pending = [(frozen(a), frozen(b))]
    seen: set[tuple[int, int]] = set()
    while pending:
        a, b = pending.pop()
        if a is b:
            continue
        if isinstance(a, Frozen):
            if not isinstance(b, Frozen) or isinstance(a, dict) != isinstance(b, dict) or len(a) != len(b):
                return False
            if (id(a), id(b)) in seen:
                continue
            seen.add((id(a), id(b)))
            if isinstance(a, dict):
                if a.keys() != b.keys():
                    return False
                pending.extend([(value, b[key]) for key, value in a.items()])
            else:
                pending.extend(zip(a, b, strict=True))
        elif type(a) is not type(b) or a != b or (type(a) is float and copysign(1.0, a) != copysign(1.0, b)):
            return False
    return True
