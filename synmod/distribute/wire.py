"""What crosses between processes, as JSON: rows on the way out, and on the way back what became of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, cast

from synmod.data import DataModel, JsonDataModel, schema_from, schema_of
from synmod.errors import RunError
from synmod.leaves import Json, frozen
from synmod.scope import Usage
from synmod.train import Example, Ran, Several, as_json

_SEQUENCES: Final[Mapping[str, type[Any]]] = {"several": Several, "tuple": tuple, "list": list}


def packed(value: Any) -> Json:
    """Return a nest of data models and JSON as JSON from which `unpacked` makes an equal one.

    Raises:
        DataError: A part of it is not JSON.

    Example:
        >>> unpacked(packed(({"a": 1}, None)))
        ({'a': 1}, None)
    """
    if isinstance(value, JsonDataModel | DataModel):
        return {"json": frozen(value), "schema": schema_of(cast("Any", value))}
    if isinstance(value, dict):
        return {"dict": {str(key): packed(part) for key, part in cast("dict[Any, Any]", value).items()}}
    for kind, cls in _SEQUENCES.items():
        if isinstance(value, cls):
            return {kind: [packed(part) for part in cast("Sequence[Any]", value)]}
    return {"plain": frozen(value)}


def unpacked(json: Any) -> Any:
    """Return what `packed` was given; a data model as a `JsonDataModel` of its schema."""
    if "schema" in json:
        return JsonDataModel.of(frozen(json["json"]), schema_from(json["schema"]))
    if "dict" in json:
        return {key: unpacked(part) for key, part in json["dict"].items()}
    for kind, cls in _SEQUENCES.items():
        if kind in json:
            return cast("Any", cls([unpacked(part) for part in json[kind]]))
    return json["plain"]


def row_as_json(example: Example) -> Json:
    """Return a row as JSON.

    Raises:
        DataError: Inputs, target or extra are not JSON.
    """
    values = {"inputs": example.inputs, "target": example.target, "extra": dict(example.extra)}
    return {"id": example.id, "group": example.group, **{name: packed(value) for name, value in values.items()}}


def row_of(json: Any) -> Example:
    """Return a row of JSON."""
    values = {name: unpacked(json[name]) for name in ("inputs", "target", "extra")}
    return Example(json["id"], **values, group=json["group"])


def ran_as_json(ran: Ran) -> Json:
    """Return what became of a run as JSON."""
    record = ran.record()
    if "feedback" in record:
        record["feedback"]["target"] = as_json(record["feedback"]["target"])
    return {**record, "outputs": packed(ran.outputs), "usage": asdict(ran.usage)}


def ran_of(json: Any) -> Ran:
    """Return what became of a run elsewhere; its failure is a `RunError` with the same text."""
    ran = Ran.of({**json, "outputs": unpacked(json["outputs"]), "usage": Usage(**json["usage"])})
    ran.failure = None if ran.error is None else RunError(str(ran.error))
    return ran
