"""Targets: the expected outputs of a program, checked against the schemas of its outputs before any run."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from types import NoneType
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast

from pydantic import BaseModel

from synmod import data, leaves
from synmod.errors import CallError, DataError, SchemaError, add_note

OTHER_SHAPE: Final = (
    "Targets are checked against what the program returns. One of another shape, for a reward of your own, is a data "
    "model of your own, (inputs, Gold(...)), or columns that y= names."
)
_PLAIN: Final[frozenset[type]] = frozenset({dict, str, int, float, bool, list, tuple, data.JsonDataModel})
_QUOTED: Final = re.compile(r'"([^"]+)"')
_SMALL: Final = re.compile(r"[\W_]+")


def names_of(nest: Any) -> list[str]:
    """Return the names of the data models in a nest: their keys, or in a list their labels where these differ."""
    places = leaves.leaves_with_path(nest)
    labels = [_label_of(leaf) for _, leaf in places]
    is_list = all(isinstance(step, int) for path, _ in places for step in path)
    by_label = is_list and all(labels) and max(Counter(labels).values(), default=0) == 1
    pairs = zip(places, labels, strict=True)
    return labels if by_label else [leaves.path_str(path) or label for (path, _), label in pairs]


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
        is_whole = isinstance(value, data.DataModel | data.JsonDataModel | None) or leaves.is_object(value)
        if is_whole or len(self.fields) != 1:
            return cast("Any", value)
        return self.read(dict.fromkeys(self.fields, cast("Any", value)), place)

    def _check_names(self, target: Mapping[str, Any], place: Sequence[str | int]) -> list[str]:
        """Return the names that no output has; raise DataError for one that differs from a field by case or spaces."""
        unknown = self.unknown(target)
        for name in unknown:
            if twin := twin_of(name, self.fields):
                expected = f"{', '.join(self.fields)}. Did you mean {twin!r}?"
                _refuse(place, f"the field {name!r}", f"one of {expected}")
        return unknown

    def _takes_bare(self, json: leaves.Json, place: Sequence[str | int]) -> bool:
        """Whether some field takes a value; one of a type that no field has is of another shape.

        Raises:
            DataError: No field takes it.
        """
        expected: dict[str, None] = {}
        for schema in self.fields.values():
            faults = data.problems(schema, json, limit=1)
            if not faults:
                return True
            if faults[0].pointer or type(json) in types_of(schema):
                expected[faults[0].wanted] = None
        if expected:
            labels = [label for schema in self.fields.values() for label in _labels_of(schema)]
            _refuse(place, f"{leaves.dump_json(json):.200}", " or ".join(expected), labels)
        return not self.fields

    def _shape(self, names: tuple[str, ...]) -> data.SymbolicDataModel:
        """Return the symbol of the output, or of those of its fields that a target has."""
        whole = self.outputs
        if names not in self._symbols:
            parts = data.parts_of(data.schema_of(whole))
            is_whole = all(name in names for name in parts.fields)
            fields = leaves.frozen_dict({name: parts.fields.get(name, {}) for name in names})
            schema = replace(parts, fields=fields, required=names).schema
            self._symbols[names] = whole if is_whole else data.symbol(schema)
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
        _refuse((*place, *steps), fault.got, fault.wanted, _labels_of(schema))


def _labels_of(schema: Any) -> list[Any]:
    """Return the values that a schema lists, if it does."""
    own = data.target_of(schema, schema["$ref"]) if "$ref" in schema else schema
    return own.get("enum", [])


def _refuse(place: Sequence[str | int], got: str, expected: str, labels: Sequence[Any] = ()) -> NoReturn:
    """Raise DataError for what no output can have; one of the labels, or of those that are quoted, may be meant."""
    near = leaves.did_you_mean(got.strip('"'), labels or _QUOTED.findall(expected))
    error = DataError(f"{leaves.pointer(place)}: no output has {got}; wanted {expected}.{near}")
    add_note(error, OTHER_SHAPE)
    raise error


# -- comparing targets with outputs ------------------------------------------------------------------------------------

_ANY: Final = {"$ref": "#/$defs/Any"}
_OPEN: Final = {"$defs": {"Any": {"type": "object", "additionalProperties": _ANY}}, "additionalProperties": _ANY}
"""A schema in which a mask may name any field, however deep."""
_END: Final = " \t\n.,;:!?。！？"


def fields_to_compare(
    who: str, y_true: Any, y_pred: Any, in_mask: Any = None, out_mask: Any = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of a target that count, and those of an output, as plain JSON.

    A target that is not an object, such as a label, is the value of the only field of the output that the masks leave.
    Of several outputs the fields are named `output.field`.

    Raises:
        CallError: There is no target, an output is not a data model, no field of the target counts, or a label could
            be the value of several fields.
        SchemaError: A mask names nothing in the output.
        DataError: The target is not JSON.
    """
    if y_true is None:
        raise CallError(f"{who}: there is no target.")
    if not isinstance(y_pred, (data.JsonDataModel, data.DataModel, NoneType)):
        if leaves.kind_of(y_pred) != leaves.LEAF:
            return _parts_to_compare(who, y_true, y_pred, in_mask, out_mask)
        raise CallError(f"{who}: the output is a {type(y_pred).__name__}; fields are compared of data models.")
    outputs, expected = apply_masks(y_pred, in_mask, out_mask), mask_target(y_true, y_pred, in_mask, out_mask)
    names = ["output"] if outputs is None else data.parts_of(data.schema_of(outputs)).fields
    return _by_field(who, expected, y_true, names), {} if outputs is None else leaves.thaw(outputs)


def _by_field(who: str, expected: Any, target: Any, names: Collection[str]) -> dict[str, Any]:
    """Return the fields of a target that count, by name; a label is the value of the only field.

    Raises:
        CallError: No field of the target counts, or a label could be the value of several fields.
    """
    if not leaves.is_object(expected):
        if len(names) != 1:
            raise CallError(
                f"{who}: the target is {expected!r:.100}, and the output has the fields {', '.join(names)}; write "
                "in_mask=[...] with the one that is meant."
            )
        return dict.fromkeys(names, expected)
    if not expected:
        raise CallError(f"{who}: no field of the target counts; it has {', '.join(leaves.thaw(target)) or 'none'}.")
    return expected


def _parts_to_compare(
    who: str, y_true: Any, y_pred: Any, in_mask: Any, out_mask: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of several targets and outputs as `output.field`; masks are names of outputs here.

    Raises:
        CallError: The target has another number of parts, or none that counts.
        SchemaError: A mask names no output.
    """
    parts = _parts(who, y_pred, in_mask, out_mask)
    targets = _targets_by_name(who, y_true, y_pred)
    expected: dict[str, Any] = {}
    actual: dict[str, Any] = {}
    for name, output in parts.items():
        if targets[name] is not None:
            compared = fields_to_compare(f"{who}: {name}", targets[name], output)
            for fields, of in zip((expected, actual), compared, strict=True):
                fields |= {f"{name}.{field}": value for field, value in of.items()}
    if not expected:
        raise CallError(f"{who}: no part of the target counts; the outputs are {', '.join(targets)}.")
    return expected, actual


def _targets_by_name(who: str, targets: Any, outputs: Any) -> dict[str, Any]:
    """Return the parts of a target by the names of the outputs (CallError: it has others)."""
    if [path for path, _ in leaves.leaves_with_path(targets)] != [path for path, _ in leaves.leaves_with_path(outputs)]:
        raise CallError(
            f"{who}: the output is a {type(outputs).__name__} of {', '.join(names_of(outputs))}, and the target "
            f"{targets!r:.100} is not; give a part for each."
        )
    return dict(zip(names_of(outputs), leaves.leaves(targets), strict=True))


def _parts(who: str, outputs: Any, in_mask: Any, out_mask: Any) -> dict[str, Any]:
    """Return several outputs, or their symbols, by name, as far as masks leave them (SchemaError: one names none)."""
    parts = dict(zip(names_of(outputs), leaves.leaves(outputs), strict=True))
    masks = [None if mask is None else [mask] if isinstance(mask, str) else [*mask] for mask in (in_mask, out_mask)]
    for name in (name for mask in masks for name in mask or ()):
        if name not in parts:
            raise SchemaError(
                f"{who}: The mask {name!r} matches none of several outputs: {', '.join(parts)}."
                f"{leaves.did_you_mean(name, parts)}"
            )
    included, excluded = masks
    names = [name for name in parts if included is None or name in included]
    return {name: parts[name] for name in names if name not in (excluded or ())}


Compares: TypeAlias = Literal["exactly", "closely", "one label"] | None
"""How the fields of target and output are compared, if they are: an exact one must have a value of its field."""


def target_checker(
    who: str, outputs: Any, in_mask: Any = None, out_mask: Any = None, *, compares: Compares = None
) -> Callable[[Any], None] | None:
    """Return a function that raises for a target that `fields_to_compare` would find equal to no output.

    Args:
        who: Begins the messages.
        outputs: The nest of symbols that the program returns; None where it is not known.
        in_mask: The fields that count.
        out_mask: Fields that do not count.
        compares: How they are compared; None where any target may do, and only the masks are checked.

    Raises:
        SchemaError: The output has no such field, or a value that it cannot have, or a mask names nothing.
        CallError: As `fields_to_compare`; or several fields where one label is compared.
    """
    if isinstance(outputs, data.SymbolicDataModel):
        counted = check_masks(who, outputs, in_mask, out_mask)
        names, reader = data.parts_of(data.schema_of(counted)).fields, Targets(counted)
        if compares == "one label" and in_mask is not None and names:
            check_one_field(who, names)

        def check(target: Any) -> None:
            expected = _by_field(who, mask_target(target, outputs, in_mask, out_mask), target, names)
            check_known_fields(who, reader, expected)
            if compares == "one label":
                check_one_field(who, expected)
            if compares != "closely":
                try:
                    reader.check(expected)
                except DataError as error:
                    raise SchemaError(f"{who}: {error}") from None

        return check if compares else None
    if compares is None or leaves.kind_of(outputs) == leaves.LEAF:
        return None
    parts = _parts(who, outputs, in_mask, out_mask).items()
    checks = {name: target_checker(f"{who}: {name}", part, compares=compares) for name, part in parts}

    def check_parts(target: Any) -> None:
        for name, part in _targets_by_name(who, target, outputs).items():
            if part is not None and (check := checks.get(name)):
                check(part)

    return check_parts


def mask_target(y_true: Any, y_pred: Any, in_mask: Any, out_mask: Any) -> Any:
    """Return the fields of a target that the masks leave, as plain JSON; without an output, by its own fields."""
    json: Any = leaves.thaw(y_true)
    if not leaves.is_object(json) or (in_mask is None and out_mask is None):
        return json
    schema = {**_OPEN, "properties": dict.fromkeys(json, _ANY)} if y_pred is None else data.schema_of(y_pred)
    return leaves.thaw(apply_masks(data.JsonDataModel.of(json, schema), in_mask, out_mask))


def check_masks(who: str, declared: Any, in_mask: Any, out_mask: Any = None) -> data.SymbolicDataModel:
    """Return a symbol of the fields that masks leave of a schema, or of another declaration.

    Raises:
        SchemaError: A mask names nothing; has the fields and 'Did you mean'.
    """
    try:
        return apply_masks(data.symbol(data.declare(declared)), in_mask, out_mask)
    except SchemaError as error:
        raise SchemaError(f"{who}: {error}", error.errors) from None


def check_one_field(who: str, fields: Collection[str]) -> None:
    """Raise CallError unless there is one field to compare."""
    if len(fields) != 1:
        raise CallError(f"{who}: the target has the fields {', '.join(fields)}; write in_mask=[...] with one.")


def check_known_fields(who: str, output: Targets, names: Iterable[str]) -> None:
    """Raise SchemaError for the name of a field that no output has."""
    if unknown := output.unknown(names):
        new = {unknown[0]: next(iter(output.fields))} if len(output.fields) == 1 else "{...}"
        raise SchemaError(
            f"{who}: no output has the field {unknown[0]!r} of the target; it has {', '.join(output.fields)}."
            f"{leaves.did_you_mean(unknown[0], output.fields)} in_mask=[...] names what counts, "
            f"sm.load_examples(rename={new}) gives columns other names."
        )


def apply_masks(x: Any, in_mask: Any, out_mask: Any) -> Any:
    """Return a value or symbol with the fields that the masks leave."""
    x = x if in_mask is None else data.ops.in_mask(x, in_mask)
    return x if out_mask is None else data.ops.out_mask(x, out_mask)


def normal(json: Any, *, is_text: bool = False) -> Any:
    """Return JSON in which whole numbers are ints, and with `is_text` strings differ by their words alone."""
    if leaves.is_object(json):
        return {name: normal(value, is_text=is_text) for name, value in json.items()}
    if leaves.is_array(json):
        return [normal(value, is_text=is_text) for value in json]
    if isinstance(json, str) and is_text:
        return " ".join(unicodedata.normalize("NFKC", json).casefold().split()).rstrip(_END)
    return int(json) if isinstance(json, float) and json.is_integer() else json


def equal_fields(expected: Mapping[str, Any], actual: Mapping[str, Any], *, is_text: bool = False) -> dict[str, float]:
    """Return 1 for each expected field that is equal, else 0; `1` and `1.0` are equal, `1` and `true` are not."""
    expected, actual = normal(expected, is_text=is_text), normal(actual, is_text=is_text)
    return {name: float(name in actual and leaves.json_equal(value, actual[name])) for name, value in expected.items()}
