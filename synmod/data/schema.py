"""Schemas as interned frozen objects, the keywords in them, walks over those, and a schema taken apart.

Equal schemas, key order included, are one object, so that schemas are compared with `is`, and facts about a schema are
kept with it: that it was checked, how it validates, its parts, what it is a subschema of. Walks visit only the places
where keywords of 2020-12 hold schemas: a `$ref` inside a default, an enum or an example is data.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from json import JSONEncoder
from typing import Any, Final, TypeAlias, TypeGuard
from urllib.parse import unquote
from weakref import WeakValueDictionary

from synmod import leaves
from synmod.errors import SchemaError, SchemaTooComplex
from synmod.leaves import FrozenDict, Json, frozen, frozen_dict, frozen_list, is_array, is_object

# -- keywords ----------------------------------------------------------------------------------------------------------

IsValid: TypeAlias = Callable[[Json], bool]
Step: TypeAlias = str | int

_MAX_NESTING: Final = 200
"""How deep the JSON of a schema may nest: two levels per subschema inside another, and an example at the bottom."""

ONE_SUBSCHEMA: Final = frozenset(
    {"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
"""Keywords whose value is a schema."""

SUBSCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""

SUBSCHEMA_MAPS: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose value is an object of schemas."""

IN_PLACE: Final = frozenset({"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
"""Keywords whose subschemas are applied to the same value as the schema itself; `$ref` is another."""

ANNOTATIONS: Final = frozenset(
    {"$comment", "contentEncoding", "contentMediaType", "contentSchema", "default", "deprecated", "description"}
    | {"discriminator", "examples", "format", "readOnly", "title", "writeOnly"}
)
"""Keywords that describe a value and demand nothing of it."""

NO_DEMANDS: Final = ANNOTATIONS | {"$defs", "definitions"}
"""Keywords that demand nothing of the value itself."""

_DEFS: Final = "#/$defs/"
_MISSING: Final = object()


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Yield every direct subschema with the steps to it, in document order; malformed keywords are skipped."""
    for keyword, value in schema.items():
        if keyword in ONE_SUBSCHEMA:
            yield (keyword,), value
        elif keyword in SUBSCHEMA_LISTS and is_array(value):
            for index, part in enumerate(value):
                yield (keyword, index), part
        elif keyword in SUBSCHEMA_MAPS and is_object(value):
            for name, part in value.items():
                yield (keyword, name), part


def map_subschemas(schema: Any, change: Callable[[FrozenDict], FrozenDict]) -> Any:
    """Apply `change` to every schema inside a frozen schema, innermost first, then to itself."""
    if not is_object(schema):
        return schema
    changed: dict[str, Any] = dict(schema)
    for keyword, value in schema.items():
        if keyword in ONE_SUBSCHEMA:
            changed[keyword] = map_subschemas(value, change)
        elif keyword in SUBSCHEMA_LISTS and is_array(value):
            changed[keyword] = frozen_list([map_subschemas(arm, change) for arm in value])
        elif keyword in SUBSCHEMA_MAPS and is_object(value):
            changed[keyword] = frozen_dict({name: map_subschemas(part, change) for name, part in value.items()})
    return change(frozen_dict(changed))


def without_annotations(schema: Any) -> Any:
    """Return a schema without the keywords that only describe."""
    return map_subschemas(schema, lambda part: frozen_dict({key: part[key] for key in part if key not in ANNOTATIONS}))


def target_of(root: Mapping[str, Any], reference: str) -> Any:
    """Return the target of a local reference.

    Raises:
        SchemaError: It has no target.
    """
    place: Any = root
    for name in steps_of(reference):
        if is_object(place):
            place = place.get(name, _MISSING)
        elif is_array(place) and name.isdecimal() and len(name) < 10 and name == str(int(name)):
            place = place[int(name)] if int(name) < len(place) else _MISSING
        else:
            place = _MISSING
        if place is _MISSING:
            raise SchemaError(f"The schema refers to {reference!r:.200}, where there is nothing.")
    return place


def references(schema: Any) -> set[str]:
    """Return every reference in a schema: `$ref`s and the targets of discriminator mappings."""
    targets = set[str]()
    pending = [schema]
    while pending:
        here = pending.pop()
        if is_object(here):
            targets.update(
                target for target in (here.get("$ref"), *_discriminator_mapping(here).values()) if _is_local(target)
            )
            pending.extend(part for _, part in subschemas(here))
    return targets


def _discriminator_mapping(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the mapping of a discriminator, or an empty one."""
    discriminator = schema.get("discriminator")
    mapping = discriminator.get("mapping") if is_object(discriminator) else None
    return mapping if is_object(mapping) else {}


def _is_local(target: object) -> TypeGuard[str]:
    """Whether a value is a reference into the schema itself."""
    return isinstance(target, str) and target.startswith("#")


def map_references(schema: Any, change: Callable[[str], str]) -> Any:
    """Rewrite every reference in a frozen schema."""

    def rewrite(here: FrozenDict) -> FrozenDict:
        new: dict[str, Any] = {}
        reference = here.get("$ref")
        if _is_local(reference) and (target := change(reference)) != reference:
            new["$ref"] = target
        mapping = _discriminator_mapping(here)
        targets = {value: change(target) if _is_local(target) else target for value, target in mapping.items()}
        if targets != mapping:
            new["discriminator"] = frozen_dict({**here["discriminator"], "mapping": frozen_dict(targets)})
        return frozen_dict({**here, **new}) if new else here

    return map_subschemas(schema, rewrite)


def steps_of(reference: str) -> tuple[str, ...]:
    """Return the steps from the root to the target of a local reference."""
    return tuple(unquote(step).replace("~1", "/").replace("~0", "~") for step in reference.split("/")[1:])


def definition_of(reference: str) -> str | None:
    """Return the name of the root's definition that a reference goes through, None if it goes elsewhere."""
    return steps_of(reference)[1] if reference.startswith(_DEFS) else None


def escape(step: str) -> str:
    """Return one step of a reference, escaped."""
    return step.replace("%", "%25").replace("~", "~0").replace("/", "~1")


def rename_definitions(schema: Any, names: Mapping[str, str]) -> Any:
    """Return a schema whose references use the new names of definitions."""
    if not names:
        return schema

    def change(reference: str) -> str:
        name = definition_of(reference)
        if name is None or name not in names:
            return reference
        rest = reference[len(_DEFS) :].partition("/")[2]
        return _DEFS + escape(names[name]) + ("/" + rest if rest else "")

    return map_references(schema, change)


def is_recursive(schema: Mapping[str, Any]) -> bool:
    """Whether a definition refers to itself, or a reference does not go to a definition."""
    targets = {name: set(map(definition_of, references(part))) for name, part in schema.get("$defs", {}).items()}
    return None in map(definition_of, references(schema)) or bool(leaves.find_cycle(targets))


def used_definitions(roots: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
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


# -- interned schemas --------------------------------------------------------------------------------------------------


class Schema(FrozenDict):
    """A JSON Schema, frozen and interned; made by `schema_from` and `intern_schema`.

    Attributes:
        serial: A number that no other schema ever has, unlike an id.
        checked: Whether it is known to be well formed, closed and within the limits.
        validator: Its compiled form, None until `validator_of` makes it.
        parts: Its parts, None until `parts_of` makes them.
        answers: To questions about this schema and others, by question and serial of the other.
    """

    __slots__ = ("answers", "checked", "parts", "serial", "validator")

    serial: int
    checked: bool
    validator: IsValid | None
    parts: Any
    answers: dict[tuple[Callable[..., bool], int], bool]

    def __reduce__(self) -> tuple[Any, ...]:
        return intern_schema, (leaves.thaw(self),)


_ENCODER: Final = JSONEncoder(ensure_ascii=False)  # frozen JSON has no NaN, so that need not be checked

_interned: WeakValueDictionary[str, Schema] = WeakValueDictionary()
_recent: deque[Schema] = deque(maxlen=256)  # so that the schema of a dict, and the facts kept with it, are found again
_interning = leaves.aio.lock()  # reentrant: a finaliser may run while it is held
_serials = count()


def intern_schema(json: Json) -> Schema:
    """Intern a schema that needs no check: a result of the algebra, or of another `Schema`.

    True becomes the object that demands nothing.

    Raises:
        SchemaError: It is neither an object nor True.
        SchemaTooComplex: It nests too deep.
    """
    if isinstance(json, Schema):
        return json
    if json is False:
        raise SchemaError("The schema False admits no value: write what is allowed.")
    if json is not True and not is_object(json):
        raise SchemaError(f"A schema is an object or True, not a value of type {type(json).__name__}.")
    written = frozen({} if json is True else json, _MAX_NESTING, SchemaTooComplex)
    text = _ENCODER.encode(written)  # equal for equal schemas only: kinds of numbers and the order of keys count
    with _interning:
        schema = _interned.get(text)
        if schema is None:
            schema = _interned[text] = _new_schema(written)
            _recent.append(schema)
        return schema


def foreign_schema(json: Json) -> Schema:
    """Return a schema as somebody else wrote it, which is not checked, and which every value satisfies here.

    It is not interned, so that the same text elsewhere is checked.

    Raises:
        SchemaTooComplex: It nests too deep.
        DataError: It is not JSON.
    """
    schema = _new_schema(frozen(json, _MAX_NESTING, SchemaTooComplex))
    schema.checked, schema.validator = True, _is_anything
    return schema


def is_foreign(schema: Json) -> TypeGuard[Schema]:
    """Whether a schema is that of somebody else, which is not checked."""
    return isinstance(schema, Schema) and schema.validator is _is_anything


def _is_anything(_: Json) -> bool:
    return True


def _new_schema(written: Json) -> Schema:
    """Return a schema of frozen JSON, about which nothing is known yet."""
    schema = Schema.__new__(Schema)
    leaves.fill(schema, written)
    schema.serial = next(_serials)
    schema.checked = False
    schema.validator = schema.parts = None
    schema.answers = {}
    return schema


# -- a data model's schema, taken apart --------------------------------------------------------------------------------

ANYTHING: Final = frozen_dict({})
"""The schema that admits everything; also an object without entries."""


@dataclass(eq=False)
class SchemaParts:
    """A data model's schema, taken apart for merging, masks and containment.

    All references in parts go to definitions, so that fields can move to another root.

    Attributes:
        fields: Declared fields with their schemas, in order.
        required: Names of required fields, all of them declared here, in order.
        extra: The demand on extra keys: False for none, True for anything, else a schema.
        definitions: The targets of the references in `fields` and `extra`.
        title: Title or None.
        description: Description or None.
    """

    fields: Mapping[str, Any]
    required: Sequence[str] = ()
    extra: Any = False
    definitions: Mapping[str, Any] = ANYTHING
    title: str | None = None
    description: str | None = None

    @cached_property
    def schema(self) -> Schema:
        """The schema written from these parts, in the order in which pydantic writes."""
        keywords = {
            "$defs": frozen_dict(self.definitions) or None,
            "additionalProperties": None if self.extra is True else self.extra,
            "description": self.description,
            "properties": frozen_dict(self.fields),
            "required": frozen_list(self.required) or None,
            "title": self.title,
            "type": "object",
        }
        schema = intern_schema(frozen_dict({name: value for name, value in keywords.items() if value is not None}))
        schema.parts = schema.parts or self
        return schema


def parts_of(schema: Schema) -> SchemaParts:
    """Take a schema apart; kept with the schema."""
    if schema.parts is not None:
        return schema.parts
    moved = portable(schema)
    root = root_of(moved)
    fields: Mapping[str, Any] = root.get("properties", ANYTHING)
    extra: Any = True if "patternProperties" in root else root.get("additionalProperties", True)
    extra = True if extra == {} else extra
    required: list[str] = list(dict.fromkeys(root.get("required", ())))
    undeclared = [name for name in required if name not in fields]
    if undeclared:  # a required name counts as declared
        fields = frozen_dict({**fields, **dict.fromkeys(undeclared, ANYTHING if isinstance(extra, bool) else extra)})
    title, description = (moved.get(text, root.get(text)) for text in ("title", "description"))
    definitions = used_definitions([*fields.values(), extra], moved.get("$defs", ANYTHING))
    schema.parts = SchemaParts(fields, required, extra, definitions, title, description)
    return schema.parts


def _is_among_subschemas(reference: str) -> bool:
    """Whether the way to the target of a reference leads through keywords that hold schemas."""
    steps = iter(steps_of(reference))
    for keyword in steps:
        if keyword in SUBSCHEMA_LISTS or keyword in SUBSCHEMA_MAPS:
            next(steps, None)
        elif keyword not in ONE_SUBSCHEMA:
            return False
    return True


def with_own_definitions(schema: Schema) -> Schema:
    """Move the targets that other keywords hold, such as `components`, to the definitions, where walks find them."""
    definitions: dict[str, Any] = dict(schema.get("$defs", ANYTHING))
    moved: dict[str, str] = {}
    pending = references(schema)
    while pending:
        reference = pending.pop()
        if reference not in moved and not _is_among_subschemas(reference):
            name = leaves.unique_name(steps_of(reference)[-1], definitions)
            definitions[name] = target_of(schema, reference)
            moved[reference] = f"{_DEFS}{escape(name)}"
            pending |= references(definitions[name])
    if not moved:
        return schema
    whole = frozen_dict({**schema, "$defs": frozen_dict(definitions)})
    return intern_schema(map_references(whole, lambda reference: moved.get(reference, reference)))


def portable(schema: Schema) -> FrozenDict:
    """Make every reference go to a definition: one to the root, or through it, goes to a copy of the root."""
    if all(definition_of(reference) is not None for reference in references(schema)):
        return schema
    definitions: Mapping[str, Any] = schema.get("$defs", ANYTHING)
    name = leaves.unique_name(str(schema.get("title") or "Root"), definitions)
    here = f"#/$defs/{escape(name)}"

    def change(reference: str) -> str:
        return reference if definition_of(reference) is not None else here + reference[1:]

    moved: FrozenDict = map_references(schema, change)
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
