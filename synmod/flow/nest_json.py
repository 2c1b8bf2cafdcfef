"""Nests of data as JSON, and made again: lists, tuples, named tuples and dicts, None, and values with their schemas.

The parts stand in one list, each container before what it holds, so that no depth is too deep.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from synmod.data import JsonDataModel, trusted_schema, wrap
from synmod.errors import DataError
from synmod.leaves.frozen import Json, frozen
from synmod.leaves.nests import LEAF, MAPPING, kind_of, leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from synmod.data import Schema

_Names: TypeAlias = "Callable[[type[Any]], str] | None"

_MAKERS: Final[dict[str, Callable[[list[Any], Any], Any]]] = {
    "list": lambda items, _: items,
    "tuple": lambda items, _: tuple(items),
    "dict": lambda items, keys: dict(zip(keys, items, strict=True)),
    "OrderedDict": lambda items, keys: OrderedDict(zip(keys, items, strict=True)),
}
_KINDS: Final = {list: "list", tuple: "tuple", dict: "dict", OrderedDict: "OrderedDict"}


def nest_json(nest: Any, name_of: Callable[[type[Any]], str] | None = None) -> Json:
    """Write a nest of data as JSON.

    Args:
        nest: What a module takes or gives.
        name_of: Names classes. Given, what is needed to make the nest again is written too; None: what a module can see
            of its inputs, JSON and schemas, in lists and dicts.

    Raises:
        DataError: It has a container or a key that JSON could not give back, or a leaf that is no data.
        CallError: A container holds itself.
    """
    leaves(nest)  # refuses circles
    types: list[Json] = []
    places: dict[tuple[int, Any], int] = {}
    parts: list[Json] = []
    pending = [nest]
    while pending:
        x = pending.pop()
        if x is None:
            parts.append(None)
        elif kind_of(x) == LEAF:
            parts.append(_leaf(x, types, places, name_of))
        else:
            part, children = _container(x, name_of)
            parts.append(part)
            pending.extend(reversed(children))
    return {"types": types, "parts": parts}


def nest_from(json: Json, class_of: Callable[[str], Any]) -> Any:
    """Make the nest again that `nest_json` has written.

    Args:
        json: What `nest_json` gave.
        class_of: Gives a class by its name; None where it is not known.

    Raises:
        LookupError: A class of named tuples is not known.
    """
    types: list[tuple[Schema, Any]] = [
        (trusted_schema(each["schema"]), each["class"] and class_of(each["class"])) for each in json["types"]
    ]
    done: list[Any] = []
    for part in reversed(json["parts"]):
        if part is None:
            done.append(None)
        elif "json" in part:
            schema, model = types[int(part["type"])]
            done.append(wrap(part["json"], schema, model, part["label"]))
        else:
            count = part["count"]
            items = done[len(done) - count :][::-1]
            del done[len(done) - count :]
            done.append(_rebuilt(part, items, class_of))
    return done[0]


def _leaf(x: Any, types: list[Json], places: dict[tuple[int, Any], int], name_of: _Names) -> Json:
    """Write a value; its schema and class stand once for all values that share them."""
    if not isinstance(x, JsonDataModel):
        raise DataError(f"{x!r:.100} is no data: a nest holds data models and None.")
    schema, model = x._schema, x._model if name_of else None
    place = places.setdefault((id(schema), model), len(types))
    if place == len(types):
        types.append({"schema": schema, "class": name_of(model) if name_of and model else None})
    return {"type": place, "json": x._json, "label": x._label if name_of else None}


def _container(x: Any, name_of: _Names) -> tuple[Json, list[Any]]:
    """Write a container without what it holds, and list that."""
    cls = cast("type[Any]", type(x))
    kind, is_mapping = _KINDS.get(cls), kind_of(x) == MAPPING
    if kind is None:
        kind = name_of(cls) if name_of else "dict" if is_mapping else "list"
        if name_of and not issubclass(cls, tuple):
            raise DataError(f"a {cls.__name__} cannot be made again: use a list, tuple, dict or namedtuple.")
    if not is_mapping:
        return {"kind": kind, "count": len(x)}, list(x)
    keys: list[Any] = list(x)
    odd = [key for key in keys if type(key) not in (str, int, float, bool, type(None))]
    if odd:
        raise DataError(f"the key {odd[0]!r:.100} of a dict is no JSON: use a str or a number.")
    return {"kind": kind, "count": len(keys), "keys": frozen(keys)}, [x[key] for key in keys]


def _rebuilt(part: Json, items: list[Any], class_of: Callable[[str], Any]) -> Any:
    """Make a container."""
    make = _MAKERS.get(part["kind"])
    if make is not None:
        return make(items, part.get("keys"))
    cls = class_of(part["kind"])
    if not (isinstance(cls, type) and issubclass(cls, tuple)):
        raise LookupError(part["kind"])  # noqa: TRY004  # no class of this name is known
    sequence: Any = tuple
    return sequence.__new__(cls, items)


def classes_in(nest: Any) -> Iterable[type[Any]]:
    """List the classes that making a nest again may ask for."""
    pending = [nest]
    while pending:
        x = pending.pop()
        if kind_of(x) == LEAF:
            if isinstance(x, JsonDataModel) and x._model is not None:
                yield x._model
        else:
            if type(x) not in _KINDS:
                yield type(x)
            pending.extend(x.values() if kind_of(x) == MAPPING else x)
