"""Factorize: fields `k, k_1 .. k_n` become one array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from synmod.data.parts import Parts, parts_of
from synmod.data.schema import Schema
from synmod.data.value import JsonDataModel, wrap
from synmod.errors import ArgumentError, SchemaError
from synmod.leaves.frozen import FrozenDict, frozen_dict, frozen_list
from synmod.leaves.names import did_you_mean, unused

from .merge import any_of
from .plans import Operands, Values


class Factorize:
    """The plan of `factorize`: which fields form a group, and what each group is called."""

    def __init__(self, operands: Operands, names: Mapping[str, str] | None = None) -> None:
        (schema,) = operands
        self.schema: Schema | None = None
        if schema is None:
            return
        parts = parts_of(schema)
        self._groups = _groups(parts)
        self._lists = self._named(parts, checked_names(names))
        self._members = {member for group in self._groups.values() for member in group}
        written = self._parts(parts)
        self._declared = parts.fields
        self._fields = written.fields
        self.schema = written.schema

    def _named(self, parts: Parts, names: Mapping[str, str]) -> dict[str, str]:
        """Name each group's array."""
        for head in names:
            if head not in self._groups:
                raise SchemaError(
                    f"factorize: {head!r} heads no group of numbered fields; the groups are {list(self._groups)}."
                    f"{did_you_mean(head, self._groups)}"
                )
        members = {member for group in self._groups.values() for member in group}
        taken = {name for name in parts.fields if name not in members}
        lists: dict[str, str] = {}
        for head in self._groups:
            lists[head] = unused(names.get(head, f"{head}_list"), taken)
            taken.add(lists[head])
        return lists

    def _parts(self, parts: Parts) -> Parts:
        """Write the schema: an array in the place of each head."""
        fields: dict[str, Any] = {}
        required: list[str] = []
        needed = set(parts.required)
        for name, field in parts.fields.items():
            if name in self._groups:
                group = self._groups[name]
                fields[self._lists[name]] = frozen_dict(
                    {
                        "items": any_of(parts.fields[member] for member in group),
                        "maxItems": len(group),
                        "minItems": sum(member in needed for member in group),
                        "type": "array",
                    }
                )
                required.append(self._lists[name])
            elif name not in self._members:
                fields[name] = field
                if name in needed:
                    required.append(name)
        return Parts(frozen_dict(fields), required, parts.extra, parts.definitions, parts.title, parts.description)

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:  # noqa: ARG002  (only concat tells where)
        """Gather the members that are there; everything else stays, in the order of the schema."""
        (value,) = args
        if value is None or self.schema is None:
            return None
        return wrap(self._gathered(value._json), self.schema)

    def _gathered(self, json: FrozenDict) -> FrozenDict:
        if not self._groups:
            return json
        gathered: dict[str, Any] = {}
        for name in self._declared:
            if name in self._groups:
                there = [json[member] for member in self._groups[name] if member in json]
                gathered[self._lists[name]] = frozen_list(there)
            elif name in json and name not in self._members:
                gathered[name] = json[name]
        if json.keys() <= self._declared.keys():
            return frozen_dict(gathered)
        taken = set(self._fields)
        for key, content in json.items():
            if key not in self._declared:  # an extra key gives way to the names of the schema
                name = unused(key, taken)
                taken.add(name)
                gathered[name] = content
        return frozen_dict(gathered)


def _groups(parts: Parts) -> dict[str, list[str]]:
    """Find the groups, in field order: a field and its numbered repeats, without a gap from 1."""
    groups: dict[str, list[str]] = {}
    grouped = set[str]()
    for head in parts.fields:
        if head in grouped:
            continue
        group = [head]
        while (member := f"{head}_{len(group)}") in parts.fields and member not in grouped:
            group.append(member)
        if len(group) > 1:
            groups[head] = group
            grouped.update(group)
    return groups


def checked_names(names: Any) -> dict[str, str]:
    """Give the names of arrays by field as a plain dict.

    Raises:
        ArgumentError: They are no dict of texts.
    """
    if names is None:
        return {}
    if isinstance(names, Mapping):
        given = dict(cast("Mapping[object, object]", names))
        if all(isinstance(word, str) for pair in given.items() for word in pair):
            return cast("dict[str, str]", given)
    raise ArgumentError(f"factorize: names must be a dict of array names by field, got {names!r:.100}.")
