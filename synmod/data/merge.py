"""The rules of merging: `C(A, B)`, the fields of B after those of A, and `U(S1, .., Sn)`, any one of these.

Both are made from schemas alone. A `Concatenation` keeps the names that `C` has chosen, and applies them to values. The
items of a list field are taken out, and replaced, in the same way.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, Final

from synmod import errors, leaves
from synmod.leaves.frozen import FrozenDict, fill, frozen_dict, frozen_list, is_object, json_equal

from . import schema as schemas
from .schema import ANYTHING, Schema, SchemaParts, intern_schema, parts_of

_NOTHING: Final[dict[str, Any]] = {}
_LONGEST_TITLE: Final = 64
_LONGEST_DESCRIPTION: Final = 2_000


class Concatenation:
    """`C` of two or more operands, a left fold, with every name decided.

    Attributes:
        operands: Parts of the operands, their definitions named as in the result.
        parts: The result.
    """

    __slots__ = ("_declared", "_renames", "operands", "parts")

    def __init__(self, operands: Sequence[SchemaParts]) -> None:
        fields: dict[str, Any] = {}
        definitions: dict[str, Any] = {}
        required: list[str] = []
        self.operands: list[SchemaParts] = []
        self._renames: list[dict[str, str]] = []  # for each operand the new names of fields whose names were taken
        self._declared: list[list[str]] = []  # for each operand the fields of the fold up to it
        for operand in operands:
            operand = with_unique_definitions(definitions, operand)
            renames = _new_names([name for name in operand.fields if name in fields], {*fields, *operand.fields})
            fields.update({renames.get(name, name): schema for name, schema in operand.fields.items()})
            required.extend(renames.get(name, name) for name in operand.required)
            definitions.update(operand.definitions)
            self.operands.append(operand)
            self._renames.append(renames)
            self._declared.append(list(fields))
        title = reduce(_join_titles, [parts.title for parts in operands])
        description = reduce(_join_descriptions, [parts.description for parts in operands])
        extra = _looser([parts.extra for parts in self.operands])
        definitions = schemas.used_definitions([*fields.values(), extra], definitions)
        self.parts = SchemaParts(frozen_dict(fields), required, extra, definitions, title, description)

    def __call__(self, values: Sequence[FrozenDict]) -> FrozenDict:
        """Merge values, one for each operand. Hot: contents are shared, keys are copied."""
        merged = frozen_dict(_NOTHING)
        for operand, renames, value in zip(self.operands, self._renames, values, strict=True):
            if not value.keys() <= operand.fields.keys():
                return self._with_extra_keys(values)
            fill(merged, {renames.get(key, key): content for key, content in value.items()} if renames else value)
        return merged

    def _with_extra_keys(self, values: Sequence[FrozenDict]) -> FrozenDict:
        """Merge values with keys that no schema declares: those may get a suffix, declared fields keep their names."""
        merged: dict[str, Any] = {}
        before: set[str] = set()
        for operand, renames, declared, value in zip(self.operands, self._renames, self._declared, values, strict=True):
            reserved = set(declared)
            placed: dict[str, Any] = {}
            for key, content in merged.items():
                name = key if key in before else leaves.unique_name(key, reserved)
                reserved.add(name)
                placed[name] = content
            for key, content in value.items():
                name = renames.get(key, key) if key in operand.fields else leaves.unique_name(key, reserved)
                reserved.add(name)
                placed[name] = content
            merged, before = placed, set(declared)
        return frozen_dict(merged)


def either(alternatives: Sequence[SchemaParts]) -> SchemaParts:
    """Return `U`: one object that admits what each of the alternatives admits."""
    operands: list[SchemaParts] = []
    definitions: dict[str, Any] = {}
    for alternative in alternatives:
        operands.append(with_unique_definitions(definitions, alternative))
        definitions.update(operands[-1].definitions)
    names = dict.fromkeys(name for parts in operands for name in parts.fields)
    fields = {
        name: any_of(
            [
                parts.fields.get(name, ANYTHING if parts.extra is True else parts.extra)
                for parts in operands
                if name in parts.fields or parts.extra is not False
            ]
        )
        for name in names
    }
    needed = set(names).intersection(*(parts.required for parts in operands))
    extra = _looser([parts.extra for parts in operands])
    return SchemaParts(
        frozen_dict(fields),
        [name for name in names if name in needed],
        extra,
        schemas.used_definitions([*fields.values(), extra], definitions),
        _join_titles(*(parts.title for parts in operands)),
        _join_descriptions(*(parts.description for parts in operands)),
    )


def any_of(alternatives: Iterable[Any]) -> Any:
    """Return the schema if all are equal, else `anyOf` of the distinct ones; the first annotations are kept."""
    distinct = {id(schema): schema for schema in alternatives}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    arms: list[Any] = []
    by_hash: dict[int, list[Any]] = {}
    for schema in distinct.values():
        for arm in schema["anyOf"] if is_object(schema) and schema.keys() == {"anyOf"} else (schema,):
            demands = schemas.without_annotations(arm)
            alike = by_hash.setdefault(hash(demands), [])
            if not any(json_equal(demands, previous) for previous in alike):
                arms.append(arm)
                alike.append(demands)
    return arms[0] if len(arms) == 1 else frozen_dict({"anyOf": frozen_list(arms)})


def _looser(extras: Sequence[Any]) -> Any:
    """Return the loosest of what extra keys may be: False, then a schema, then True; `anyOf` for several schemas."""
    if any(extra is True for extra in extras):
        return True
    admitted = [extra for extra in extras if extra is not False]
    return any_of(admitted) if admitted else False


def _join_titles(*titles: str | None) -> str | None:
    return "_".join(dict.fromkeys(filter(None, titles)))[:_LONGEST_TITLE] or None


def _join_descriptions(*descriptions: str | None) -> str | None:
    return "\n\n".join(dict.fromkeys(filter(None, descriptions)))[:_LONGEST_DESCRIPTION] or None


def with_unique_definitions(left: Mapping[str, Any], right: SchemaParts) -> SchemaParts:
    """Return `right` with the definitions renamed that clash with those of `left`."""
    definitions = right.definitions
    if not definitions or not left or all(left.get(name) is definition for name, definition in definitions.items()):
        return right
    same = same_definitions(left, definitions)
    names = _new_names([name for name in definitions if name in left and name not in same], {*left, *definitions})
    if not names:
        return right
    rename = partial(schemas.rename_definitions, names=names)
    return replace(
        right,
        fields={field: rename(schema) for field, schema in right.fields.items()},
        extra=rename(right.extra),
        definitions={names.get(name, name): rename(schema) for name, schema in definitions.items()},
    )


def _new_names(names: Iterable[str], reserved: set[str]) -> dict[str, str]:
    """Return a numbered name for each of some names, none of them reserved."""
    new: dict[str, str] = {}
    for name in names:
        new[name] = leaves.next_name(name, reserved)
        reserved.add(new[name])
    return new


def same_definitions(left: Mapping[str, Any], right: Mapping[str, Any]) -> set[str]:
    """Return the names whose definitions are equal on both sides, and so are all that they refer to."""
    same = {name for name in right if name in left and json_equal(left[name], right[name])}
    needs = {name: {schemas.definition_of(reference) for reference in schemas.references(right[name])} for name in same}
    while True:
        broken = {name for name in same if any(need in right and need not in same for need in needs[name])}
        if not broken:
            return same
        same -= broken


# -- lists of objects --------------------------------------------------------------------------------------------------

_PLAIN: Final = ("string", "integer", "number", "boolean")
_OBJECT_OF_VALUE: Final = {"type": "object", "required": ["value"], "additionalProperties": False}


def items_of(schema: Schema, field: str) -> Schema:
    """Return the schema of the objects in a list field, as a self-contained schema.

    Texts, numbers and booleans become objects with the one field `value`.

    Args:
        schema: Schema of a data model.
        field: Its list field.

    Raises:
        SchemaError: The field is not declared ('Did you mean'), or is not a list of objects (or null).
    """
    parts = parts_of(schema)
    if field not in parts.fields:
        hint = leaves.did_you_mean(field, parts.fields)
        raise errors.SchemaError(f"no field {field!r}; there are {', '.join(parts.fields)}.{hint}")
    written, array = _list_of(field, parts)
    items: Any = frozen_dict({"type": "object"}) if array.get("maxItems") == 0 else array.get("items")
    item = _resolve(items, parts)
    if item.get("type") in _PLAIN:
        item = frozen_dict({"title": "Value", **_OBJECT_OF_VALUE, "properties": {"value": item}})
    if array.get("type") != "array" or not (item.get("type") == "object" or "properties" in item):
        got = f"its schema is {dict(written)!r:.200}; make its items data models, `list[Item]`"
        raise errors.SchemaError(f"the field {field!r} is not a list of objects: {got}.")
    definitions = schemas.used_definitions([item], parts.definitions)
    return intern_schema({"$defs": frozen_dict(definitions), **item} if definitions else item)


def with_items(schema: Schema, field: str, item: Schema | None) -> Schema:
    """Return a data model's schema with other items in a list field, at the same place.

    A nullable field stays nullable.

    Args:
        schema: Schema of a data model.
        field: Its list field.
        item: Schema of the new items; None for a list without items.
    """
    parts = parts_of(schema)
    written, array = _list_of(field, parts)
    new: dict[str, Any] = {keyword: value for keyword, value in array.items() if keyword in _LIST_KEYWORDS}
    definitions = parts.definitions
    if item is None:
        new["maxItems"] = 0
    else:
        parts_of_item = with_unique_definitions(definitions, parts_of(item))
        definitions = {**definitions, **parts_of_item.definitions}
        new["items"] = frozen_dict(_without(parts_of_item.schema, "$defs"))
    new["type"] = "array"
    if array is not written:
        new = {**_without(written, "anyOf", "default"), "anyOf": frozen_list([frozen_dict(new), _NULL])}
    if "default" in written and not written["default"]:  # null and the empty list are valid for any items
        new["default"] = written["default"]
    fields = {**parts.fields, field: frozen_dict(new)}
    definitions = schemas.used_definitions([*fields.values(), parts.extra], definitions)
    return replace(parts, fields=fields, definitions=definitions).schema


_LIST_KEYWORDS = ("title", "description", "minItems", "maxItems")
"""Keywords that stay true of a list when each of its items is replaced."""

_NULL = frozen_dict({"type": "null"})


def _list_of(field: str, parts: SchemaParts) -> tuple[FrozenDict, FrozenDict]:
    """Return the schema of a field, and that of the list in it: the same, or the alternative to null."""
    written = _resolve(parts.fields[field], parts)
    arms: Any = written.get("anyOf", ())
    rest = [arm for arm in arms if not (is_object(arm) and arm.get("type") == "null")]
    return written, _resolve(rest[0], parts) if len(arms) == 2 and len(rest) == 1 else written


def _without(schema: FrozenDict, *keywords: str) -> dict[str, Any]:
    """Return a schema without some of its keywords."""
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}


def _resolve(schema: Any, parts: SchemaParts) -> FrozenDict:
    """Return the schema itself, or the target of its reference."""
    name = schemas.definition_of(schema["$ref"]) if is_object(schema) and "$ref" in schema else None
    target: Any = schema if name is None else parts.definitions[name]
    return target if isinstance(target, FrozenDict) else frozen_dict({})
