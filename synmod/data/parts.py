"""A data model's schema taken apart into what merging, masks and containment work on.

Fields, required names, what extra keys may be, definitions and texts. All references in parts go to definitions, so
that fields can move to another root.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from synmod.leaves.frozen import FrozenDict, frozen_dict, frozen_list, is_object
from synmod.leaves.names import unused

from .schema import Schema, trusted_schema
from .subschemas import definition_of, escape, references, rereferenced, target_of, used_definitions

ANYTHING: Final = frozen_dict({})
"""The schema that admits everything; also an object without entries."""


class Parts:
    """A data model's schema, taken apart.

    Attributes:
        fields: Declared fields with their schemas, in order.
        required: Names of required fields, all of them declared here, in order.
        extra: What extra keys may be: False for none, True for anything, else a schema.
        definitions: What the references of `fields` and `extra` go to.
        title: Title or None.
        description: Description or None.
    """

    def __init__(
        self,
        fields: Mapping[str, Any],
        required: Iterable[str],
        extra: Any = False,
        definitions: Mapping[str, Any] = ANYTHING,
        title: str | None = None,
        description: str | None = None,
    ) -> None:
        self.fields = fields
        self.required = tuple(required)
        self.extra = extra
        self.definitions = definitions
        self.title = title
        self.description = description

    @cached_property
    def schema(self) -> Schema:
        """The schema written from these parts, in the order in which pydantic writes."""
        written: dict[str, Any] = {}
        if self.definitions:
            written["$defs"] = frozen_dict(self.definitions)
        if self.extra is not True:
            written["additionalProperties"] = self.extra
        if self.description is not None:
            written["description"] = self.description
        written["properties"] = frozen_dict(self.fields)
        if self.required:
            written["required"] = frozen_list(self.required)
        if self.title is not None:
            written["title"] = self.title
        written["type"] = "object"
        schema = trusted_schema(frozen_dict(written))
        schema.parts = schema.parts or self
        return schema


def parts_of(schema: Schema) -> Parts:
    """Take a schema apart; kept with the schema."""
    if schema.parts is None:
        schema.parts = _taken_apart(schema)
    return schema.parts


def _taken_apart(schema: Schema) -> Parts:
    moved = portable(schema)
    root = root_of(moved)
    fields: Mapping[str, Any] = root.get("properties", ANYTHING)
    is_open = "patternProperties" in root
    extra: Any = True if is_open else root.get("additionalProperties", True)
    if extra == {}:
        extra = True
    required: list[str] = list(dict.fromkeys(root.get("required", ())))
    undeclared = [name for name in required if name not in fields]
    if undeclared:  # a name that must be there is as good as declared
        anything = ANYTHING if is_open or isinstance(extra, bool) else extra
        fields = frozen_dict({**fields, **dict.fromkeys(undeclared, anything)})
    return Parts(
        fields,
        required,
        extra,
        used_definitions([*fields.values(), extra], moved.get("$defs", ANYTHING)),
        moved.get("title", root.get("title")),
        moved.get("description", root.get("description")),
    )


def portable(schema: Schema) -> FrozenDict:
    """Make every reference go to a definition: one to the root, or through it, finds a copy of the root there."""
    if all(definition_of(reference) is not None for reference in references(schema)):
        return schema
    definitions: Mapping[str, Any] = schema.get("$defs", ANYTHING)
    name = unused(str(schema.get("title") or "Root"), definitions)
    here = f"#/$defs/{escape(name)}"

    def change(reference: str) -> str:
        return reference if definition_of(reference) is not None else here + reference[1:]

    moved: FrozenDict = rereferenced(schema, change)
    root = frozen_dict({key: value for key, value in moved.items() if key != "$defs"})
    return frozen_dict({**moved, "$defs": frozen_dict({**moved.get("$defs", {}), name: root})})


def root_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that declares the fields: the root, or the definition that a root `$ref` names."""
    reference = schema.get("$ref")
    if "properties" in schema or not isinstance(reference, str):
        return schema
    target = target_of(schema, reference)
    return target if is_object(target) else schema


def properties_of(schema: Schema) -> Mapping[str, Any]:
    """Return the declared fields with their schemas, in order."""
    return root_of(schema).get("properties", ANYTHING)
