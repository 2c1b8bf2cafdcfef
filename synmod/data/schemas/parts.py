"""Parts: a data model's schema taken apart into what merging works on.

Fields, required names, what extra keys may be, definitions and texts. All references in parts go to definitions, so
that fields can move to another root. A result of merging is parts first; its schema is written when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from json import dumps
from json.encoder import encode_basestring as quoted
from typing import Any, Final

from synmod.leaves.frozen import FrozenDict, frozen_dict, frozen_list
from synmod.leaves.names import unused

from .rooted import root_of
from .schema import Schema, _intern
from .subschemas import definition_of, escape, references, rereferenced

ANYTHING: Final = frozen_dict({})
"""The schema that admits everything."""


class Parts:
    """A data model's schema, taken apart.

    Attributes:
        fields: Declared fields with their schemas, in order.
        required: Names of required fields, all of them declared here, in order.
        extra: What extra keys may be: False for none, True for anything, else a schema.
        definitions: What the references of `fields` and `extra` go to.
        title: Title or None.
        description: Description or None.
        fields_text: The fields as JSON, if they were written; merging only adds to it.
        numbers: For a field `k`, that `k_1 .. k_n` are known to be declared; saves merging a search.
    """

    __slots__ = (
        "_schema",
        "definitions",
        "description",
        "extra",
        "fields",
        "fields_text",
        "numbers",
        "required",
        "title",
    )

    def __init__(
        self,
        fields: Mapping[str, Any],
        required: Iterable[str],
        extra: Any = False,
        definitions: Mapping[str, Any] | None = None,
        title: str | None = None,
        description: str | None = None,
    ) -> None:
        self.fields = fields
        self.required = tuple(required)
        self.extra = extra
        self.definitions: Mapping[str, Any] = definitions or {}
        self.title = title
        self.description = description
        self.fields_text: str | None = None
        self.numbers: dict[str, int] = {}
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        """The schema written from these parts, in the order in which pydantic writes."""
        if self._schema is None:
            self._schema = _written(self)
            if getattr(self._schema, "_parts", None) is None:
                self._schema._parts = self
        return self._schema


def parts_of(schema: Schema) -> Parts:
    """Take a schema apart; kept with the schema."""
    try:
        return schema._parts
    except AttributeError:
        parts = schema._parts = _taken_apart(schema)
        return parts


def _taken_apart(schema: Schema) -> Parts:
    schema_in_defs = portable(schema)
    root = root_of(schema_in_defs)
    fields = root.get("properties", ANYTHING)
    open_names = "patternProperties" in root
    extra: Any = True if open_names else root.get("additionalProperties", True)
    if extra == {}:
        extra = True
    required: list[str] = list(dict.fromkeys(root.get("required", ())))
    undeclared = [name for name in required if name not in fields]
    if undeclared:  # a name that must be there is as good as declared
        anything = ANYTHING if open_names or isinstance(extra, bool) else extra
        fields = frozen_dict({**fields, **dict.fromkeys(undeclared, anything)})
    return Parts(
        fields,
        required,
        extra,
        used_definitions([*fields.values(), extra], schema_in_defs.get("$defs", ANYTHING)),
        schema_in_defs.get("title", root.get("title")),
        schema_in_defs.get("description", root.get("description")),
    )


def portable(schema: Schema) -> FrozenDict:
    """Make every reference go to a definition: one to the root, or through it, finds a copy of the root there."""
    elsewhere = [reference for reference in references(schema) if definition_of(reference) is None]
    if not elsewhere:
        return schema
    definitions: Mapping[str, Any] = schema.get("$defs", ANYTHING)
    name = unused(str(schema.get("title") or "Root"), definitions)
    here = f"#/$defs/{escape(name)}"

    def change(reference: str) -> str:
        return reference if definition_of(reference) is not None else here + reference[1:]

    moved: FrozenDict = rereferenced(schema, change)
    root = frozen_dict({key: value for key, value in moved.items() if key != "$defs"})
    return frozen_dict({**moved, "$defs": frozen_dict({**moved.get("$defs", {}), name: root})})


def used_definitions(roots: Iterable[Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the definitions that `roots` refer to, directly or through others, in their order."""
    if not definitions:
        return {}
    used = set[str]()
    pending = list(roots)
    while pending:
        for reference in references(pending.pop()):
            name = definition_of(reference)
            if name is not None and name in definitions and name not in used:
                used.add(name)
                pending.append(definitions[name])
    return {name: definition for name, definition in definitions.items() if name in used}


def _written(parts: Parts) -> Schema:
    extra = parts.extra
    written: dict[str, Any] = {}
    if parts.definitions:
        written["$defs"] = frozen_dict(dict(parts.definitions))
    if extra is not True:
        written["additionalProperties"] = extra
    if parts.description is not None:
        written["description"] = parts.description
    written["properties"] = parts.fields if isinstance(parts.fields, FrozenDict) else frozen_dict(dict(parts.fields))
    if parts.required:
        written["required"] = frozen_list(parts.required)
    if parts.title is not None:
        written["title"] = parts.title
    written["type"] = "object"
    return _intern(frozen_dict(written), _text_of(parts, written))


def _text_of(parts: Parts, written: Mapping[str, Any]) -> str:
    """Write the text by which schemas are interned."""
    if parts.fields_text is None:
        parts.fields_text = text_of_fields(parts.fields)
    members = [
        f"{quoted(keyword)}: "
        + (f"{{{parts.fields_text}}}" if keyword == "properties" else dumps(value, ensure_ascii=False))
        for keyword, value in written.items()
    ]
    return f"{{{', '.join(members)}}}"


def text_of_fields(fields: Mapping[str, Any]) -> str:
    """Write fields as they stand in the text of their schema."""
    return dumps(fields, ensure_ascii=False)[1:-1]
