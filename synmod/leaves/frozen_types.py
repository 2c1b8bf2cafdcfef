"""The two frozen containers: a dict and a list that refuse every change, know their depth, and hash by content."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Why: JSON is Any, and what isinstance(x, dict) or type(x) makes of that is unknown to the type checker.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeGuard, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "CONTAINERS",
    "FROZEN",
    "FrozenDict",
    "FrozenList",
    "depth_of",
    "fill",
    "frozen_dict",
    "frozen_list",
    "is_array",
    "is_object",
    "put",
    "thawed",
]


def _refuse(*_: object, **__: object) -> NoReturn:
    """Stand in the place of every method that would change a frozen container."""
    raise TypeError("This JSON is frozen: change a plain copy of it, such as thaw(x) gives.")


class FrozenDict(dict[str, Any]):
    """A JSON object that cannot be changed; made by `frozen`, equal to the plain dict of the same content."""

    __slots__ = ("__weakref__", "_depth", "_hash")

    _depth: int
    _hash: int

    __init__ = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"JSON object: write x[{name!r}], or take the typed value with .to()")

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]  (a dict has none)
        return _kept(self, "_hash", _hash_here)

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _refrozen, (thawed(self),)


class FrozenList(list[Any]):
    """A JSON array that cannot be changed; made by `frozen`, equal to the plain list of the same content."""

    __slots__ = ("__weakref__", "_depth", "_hash")

    _depth: int
    _hash: int

    __init__ = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]  (a list has none)
        return _kept(self, "_hash", _hash_here)

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: object) -> FrozenList:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _refrozen, (thawed(self),)


FROZEN: Final = (FrozenDict, FrozenList)
"""The frozen containers."""

CONTAINERS: Final = (dict, list)
"""All containers of JSON, for isinstance on hot paths: a union of types is made anew each time."""

_new_dict = FrozenDict.__new__
_new_list = FrozenList.__new__
_fill_dict = cast("Callable[[FrozenDict, Mapping[str, Any]], None]", dict.update)
_fill_list = cast("Callable[[FrozenList, Iterable[Any]], None]", list.extend)
_put_in_dict = cast("Callable[[Any, Any, Any], None]", dict.__setitem__)
_put_in_list = cast("Callable[[Any, Any, Any], None]", list.__setitem__)


def fill(new: FrozenDict, content: Mapping[str, Any]) -> None:
    """Give a frozen object that nobody has seen yet its content."""
    _fill_dict(new, content)


def frozen_dict(content: Mapping[str, Any]) -> FrozenDict:
    """Wrap what is known to be JSON: scalars and frozen parts. Nothing is checked."""
    new = _new_dict(FrozenDict)
    _fill_dict(new, content)
    return new


def frozen_list(content: Iterable[Any]) -> FrozenList:
    """Wrap what is known to be JSON: scalars and frozen parts. Nothing is checked."""
    new = _new_list(FrozenList)
    _fill_list(new, content)
    return new


def is_object(json: object) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value, frozen or plain, is an object."""
    return isinstance(json, dict)


def is_array(json: object) -> TypeGuard[list[Any]]:
    """Tell whether a JSON value, frozen or plain, is an array."""
    return isinstance(json, list)


def put(container: Any, key: Any, part: Any) -> None:
    """Put a part into a container that nobody has seen yet, frozen or plain."""
    (_put_in_dict if isinstance(container, dict) else _put_in_list)(container, key, part)


def thawed(json: Any) -> Any:
    """Copy frozen JSON into plain dicts and lists, all the way down."""
    return _rebuilt(json, dict, list)


def _refrozen(json: Any) -> Any:
    """Freeze what was frozen JSON before it was pickled, so that nothing need be checked."""
    return _rebuilt(json, frozen_dict, frozen_list)


def _rebuilt(json: Any, new_dict: Callable[[Any], Any], new_list: Callable[[Any], Any]) -> Any:
    """Copy every container with the given constructors; no recursion."""
    root = [json]
    pending: list[Any] = [root]
    while pending:
        container = pending.pop()
        entries: Iterable[Any] = container.items() if isinstance(container, dict) else enumerate(container)
        for key, part in entries:
            if isinstance(part, CONTAINERS):
                copy = new_dict(part) if isinstance(part, dict) else new_list(part)
                put(container, key, copy)
                pending.append(copy)
    return root[0]


def depth_of(json: Any) -> int:
    """Tell how deep frozen JSON nests; 0 for a scalar. Kept with each container."""
    return _kept(json, "_depth", _depth_here) if isinstance(json, FROZEN) else 0


def _kept(json: FrozenDict | FrozenList, slot: str, measure: Callable[[Any], int]) -> int:
    """Measure a container, its parts first, and keep every result; no recursion."""
    known = getattr(json, slot, None)
    if known is not None:
        return known
    steps: list[Any] = [json]
    while steps:
        unknown = [part for part in _parts(steps[-1]) if isinstance(part, FROZEN) and getattr(part, slot, None) is None]
        if unknown:
            steps.extend(unknown)
        else:
            measured = steps.pop()
            setattr(measured, slot, measure(measured))
    return getattr(json, slot)


def _parts(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _depth_here(container: Any) -> int:
    return 1 + max((part._depth for part in _parts(container) if isinstance(part, FROZEN)), default=0)


def _hash_here(container: Any) -> int:
    return hash(frozenset(container.items())) if isinstance(container, dict) else hash(tuple(container))
