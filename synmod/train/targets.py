"""Targets: the expected outputs of a program, checked against the schemas of its outputs before any run."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import reduce
from typing import Any, Final, NoReturn, cast

from pydantic import BaseModel

from synmod import data, leaves
from synmod.errors import DataError, SchemaError, add_note

OTHER_SHAPE: Final = (
    "Targets are checked against what the program returns. One of another shape, for a reward of your own, is a data "
    "model of your own, (inputs, Gold(...)), or columns that y= names."
)
_PLAIN: Final[frozenset[type]] = frozenset({dict, str, int, float, bool, list, tuple, data.JsonDataModel})
_SMALL: Final = re.compile(r"[\W_]+")


def names_of(nest: Any) -> list[str]:
    """Return the names of the data models in a nest: their keys, or in a list their labels where these differ."""
    places = leaves.leaves_with_path(nest)
    labels = [_label_of(leaf) for _, leaf in places]
    is_list = all(isinstance(step, int) for path, _ in places for step in path)
    by_label = is_list and all(labels) and max(Counter(labels).values(), default=0) == 1
    return (
        labels if by_label else [leaves.path_str(path) or text for (path, _), text in zip(places, labels, strict=True)]
    )


def _label_of(leaf: Any) -> str:
    """Return the label of a symbol or value, "" of None."""
    label = cast("Any", leaf)._label if isinstance(leaf, data.HasSchema) else None
    return label or (data.label_of(data.schema_of(leaf)) if isinstance(leaf, data.HasSchema | data.DataModel) else "")


def fields_of(x: data.SymbolicDataModel | None) -> dict[str, data.Schema]:
    """Return the schema of each field that a symbol declares; none of None."""
    if x is None:
        return {}
    parts = data.parts_of(data.schema_of(x))
    definitions: Any = {"$defs": parts.definitions} if parts.definitions else {}
    return {name: data.schema_from({**definitions, **part}, root="any") for name, part in parts.fields.items()}


def twin_of(name: str, names: Iterable[str]) -> str | None:
    """Return the known name that a name differs from by case, spaces and punctuation alone, if there is one."""
    small = _SMALL.sub("", name.casefold())
    return next((field for field in names if field != name and _SMALL.sub("", field.casefold()) == small), None)


def read_fields(x: Any) -> Any:
    """Return the fields of a pydantic model, dataclass or named tuple by name; anything else as it is.

    Raises:
        DataError: A pydantic model has no JSON.
    """
    kind = cast("type[Any]", type(x))
    names: list[str] = []
    if kind in _PLAIN:  # hot: most targets
        return x
    if leaves.is_namedtuple(kind):
        names = [*kind._fields]
    elif is_dataclass(kind):
        names = [field.name for field in fields(kind)]
    elif issubclass(kind, BaseModel) and not issubclass(kind, data.DataModel):
        return data.plain_json(x)
    return {name: getattr(x, name) for name in names} if names else x


class Targets:
    """Reads targets by the schemas of a program's outputs.

    Args:
        outputs: The nest of symbols that it returns; None if unknown, and nothing is checked.

    Attributes:
        outputs: That nest.
        fields: The schemas of the parts of a target: the fields of the one data model, or several data models by name.
        parts: A reader of the target of each of several data models, by name.
    """

    def __init__(self, outputs: Any) -> None:
        self.outputs: Any = outputs
        self.fields: dict[str, data.Schema] = {}
        self.parts: dict[str, Targets] = {}
        self._is_open = True
        self._symbols: dict[tuple[str, ...], data.SymbolicDataModel] = {}
        if isinstance(outputs, data.SymbolicDataModel):
            self.fields = fields_of(outputs)
            self._is_open = data.parts_of(data.schema_of(outputs)).extra is not False
        elif leaves.kind_of(outputs) != leaves.LEAF:
            symbols = dict(zip(names_of(outputs), (leaf for _, leaf in leaves.leaves_with_path(outputs)), strict=True))
            if None not in symbols.values():
                self._is_open = False
                self.fields = {name: data.schema_of(part) for name, part in symbols.items()}
                self.parts = {name: Targets(part) for name, part in symbols.items()}

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Return those of some names that no target can have."""
        return [] if self._is_open else [name for name in names if name not in self.fields]

    def read(self, target: Any, place: Sequence[str | int] = ("target",)) -> Any:
        """Return a target as a value of the outputs, where it has their fields; one of another shape as it is.

        A data model is taken as it is, and so is an object with other fields, or a value of a type that no field has.

        Args:
            target: A data model or JSON: an object, or the value of one field.
            place: Where it stands.

        Raises:
            DataError: It is not JSON, or no output can have it: a field has another value than its schema allows, its
                name differs by case or spaces, or the schema or class refuses the whole. Names the place, the value,
                what was wanted, and 'Did you mean'.
        """
        if target is None or isinstance(target, data.DataModel | data.JsonDataModel):
            return cast("Any", target)
        if self.parts:
            return self._read_several(target, place)
        try:
            json = data.plain_json(read_fields(target))
        except DataError:  # an object of a reward of the user's own
            return target
        if self.outputs is None:
            return target
        if not leaves.is_object(json):
            return json if self._takes_bare(json, place) else target
        if self._check_names(json, place):
            self.check(json, place)
            return target
        shape = self._shape(tuple(json))
        try:
            return data.value_from(json, shape._schema, shape._model, leaves.pointer(place))
        except SchemaError as error:
            self.check(json, place)
            raise DataError(str(error)) from None

    def check(self, fields: Mapping[str, Any], place: Sequence[str | int] = ("target",)) -> None:
        """Raise DataError for a field that has another value than its schema allows; errors of `read`."""
        for name, value in fields.items():
            if name in self.fields:
                _check_value(self.fields[name], value, (*place, name))

    def _read_several(self, target: Any, place: Sequence[str | int]) -> Any:
        """Return the target of a program that returns several data models, in a nest like theirs."""
        names = list(self.parts)
        by_name: Any = read_fields(target)
        if isinstance(by_name, list | tuple):
            values = cast("Sequence[Any]", by_name)
            by_name = dict(zip(names, values, strict=True)) if len(values) == len(names) else None
        if not leaves.is_object(by_name) or self._check_names(by_name, place):
            return target  # of another shape
        remaining = iter([self.parts[name]._whole(by_name.get(name), (*place, name)) for name in names])
        return leaves.map_leaves(lambda _: next(remaining), self.outputs)

    def _whole(self, target: Any, place: Sequence[str | int]) -> Any:
        """Return the target of one output of several; a bare value becomes its only field."""
        value: Any = self.read(target, place)
        if (
            value is None
            or isinstance(value, data.DataModel | data.JsonDataModel)
            or leaves.is_object(value)
            or len(self.fields) != 1
        ):
            return cast("Any", value)
        return self.read(dict.fromkeys(self.fields, value), place)

    def _check_names(self, target: Mapping[str, Any], place: Sequence[str | int]) -> list[str]:
        """Return the names that no output has; raise DataError for one that differs from a field by case or spaces."""
        unknown = self.unknown(target)
        for name in unknown:
            if twin := twin_of(name, self.fields):
                _refuse(place, f"the field {name!r}", "one of " + ", ".join(self.fields), f" Did you mean {twin!r}?")
        return unknown

    def _takes_bare(self, json: leaves.Json, place: Sequence[str | int]) -> bool:
        """Whether some field takes a value; one of a type that no field has is of another shape.

        Raises:
            DataError: No field takes it.
        """
        faults: list[tuple[data.Schema, str]] = []
        for schema in self.fields.values():
            faults_of_field = data.problems(schema, json, limit=1)
            if not faults_of_field:
                return True
            if faults_of_field[0].pointer or type(json) in types_of(schema):
                faults.append((schema, faults_of_field[0].wanted))
        if faults:
            expected = " or ".join(dict.fromkeys(text for _, text in faults))
            _refuse(
                place,
                f"{leaves.dump_json(json):.200}",
                expected,
                _remedy(faults[0][0], json) if len(faults) == 1 else "",
            )
        return not self.fields

    def _shape(self, names: tuple[str, ...]) -> data.SymbolicDataModel:
        """Return the symbol of the output, or of those of its fields that a target has."""
        whole = self.outputs
        if names not in self._symbols:
            parts = data.parts_of(data.schema_of(whole))
            is_whole = all(name in names for name in parts.fields)
            fields = leaves.frozen_dict({name: parts.fields.get(name, {}) for name in names})
            self._symbols[names] = (
                whole if is_whole else data.symbol(replace(parts, fields=fields, required=names).schema)
            )
        return self._symbols[names]


_TYPES: Final[Mapping[str, frozenset[type[Any]]]] = {
    "string": frozenset({str}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int, float}),
    "number": frozenset({int, float}),
    "array": frozenset({leaves.FrozenList}),
}


def types_of(schema: Any, root: Any = None) -> frozenset[type[Any]]:
    """Return the Python types of the frozen JSON that a schema may take; texts, numbers, bools and arrays."""
    root = schema if root is None else root
    if "$ref" in schema:
        return types_of(data.target_of(root, schema["$ref"]), root)
    if "enum" in schema or "const" in schema:
        return frozenset(map(type, schema.get("enum", [schema.get("const")])))
    arms = [arm for name in ("anyOf", "oneOf") for arm in schema.get(name, ()) if leaves.is_object(arm)]
    names = schema.get("type", () if arms else _TYPES)
    types = [_TYPES.get(name, frozenset()) for name in ([names] if isinstance(names, str) else names)]
    return frozenset[type[Any]]().union(*types, *(types_of(arm, root) for arm in arms))


def _check_value(schema: data.Schema, json: leaves.Json, place: Sequence[str | int]) -> None:
    """Raise DataError for a value that a field cannot have."""
    if not data.is_valid(schema, json):
        fault = data.problems(schema, json, limit=1)[0]
        steps = [step.replace("~1", "/").replace("~0", "~") for step in fault.pointer.split("/")[1:]]
        _refuse((*place, *steps), fault.got, fault.wanted, _remedy(schema, reduce(_part, steps, json)))


def _part(json: Any, step: str) -> Any:
    """Return the part of JSON at a step of a pointer; None where it has none."""
    if leaves.is_array(json):
        return json[int(step)]
    return json.get(step) if leaves.is_object(json) else None


def _refuse(place: Sequence[str | int], got: str, expected: str, remedy: str = "") -> NoReturn:
    """Raise DataError for what no output can have."""
    error = DataError(f"{leaves.pointer(place)}: no output has {got}; wanted {expected}.{remedy}")
    add_note(error, OTHER_SHAPE)
    raise error


def _remedy(schema: data.Schema, json: Any) -> str:
    """Return what to write in place of a value: without quotes, with quotes, or the label that was meant."""
    if isinstance(json, str):
        try:
            if data.is_valid(schema, data.parse_json(json)):
                return f" Write {json.strip()}, without quotes."
        except ValueError:
            pass
        labels = [*_labels(schema)]
        return "" if json in labels else leaves.did_you_mean(json, labels)
    text = leaves.dump_json(json)
    return f' Write "{text:.100}", as a text.' if data.is_valid(schema, text) else ""


def _labels(schema: Any) -> Iterator[str]:
    """Yield the texts that a schema lists, in any of its parts."""
    if leaves.is_object(schema):
        yield from (value for value in schema.get("enum", ()) if isinstance(value, str))
        if isinstance(schema.get("const"), str):
            yield schema["const"]
        for part in schema.values():
            yield from _labels(part)
    elif leaves.is_array(schema):
        for part in schema:
            yield from _labels(part)
