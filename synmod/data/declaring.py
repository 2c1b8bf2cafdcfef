"""From a declaration to its schema: schemas from outside, pydantic classes, values and symbols.

A schema is checked before it is used: well formed, closed and within the limits of complexity. That of a class is made
once and kept with the class. The operators `+ & | ^ ~`, `in` and the methods of values are functions of `ops`, which
combines what is declared here; `data/__init__.py` binds them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, cast, get_args, get_origin

from pydantic import BaseModel, Secret, SecretBytes, SecretStr, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python
from typing_extensions import TypeVar

from synmod import errors, leaves
from synmod.errors import ArgumentError, SchemaError, SchemaTooComplex
from synmod.leaves import FrozenDict, Json, frozen, frozen_dict, is_array, is_object, thaw

from . import schema as schemas
from .faults import validate
from .schema import Schema, is_foreign, properties_of, root_of, steps_of, subschemas, target_of
from .validators import MalformedSchemaError, matcher, validator_of

if TYPE_CHECKING:
    from .models import SymbolicDataModel

ModelT = TypeVar("ModelT", bound=BaseModel, default=Any)

# -- schemas from outside ----------------------------------------------------------------------------------------------

Root: TypeAlias = Literal["object", "any"]
"""What the root must be: an object, as in a data model, or anything, as in a Variable."""

Steps: TypeAlias = tuple[str | int, ...]
"""The steps to a place in a schema."""

MAX_NESTED: Final = 50
"""How deep subschemas may nest."""

MAX_SUBSCHEMAS: Final = 10_000
"""How many subschemas a schema may have."""

MAX_AT_ONE_PLACE: Final = 1_000
"""How many subschemas one value may be checked against, references and combinations expanded."""


def schema_from(json: Json, *, root: Root = "object") -> Schema:
    """Check a schema from outside, and intern it.

    Args:
        json: A JSON Schema, read as 2020-12, or True for anything.
        root: "object" demands an object at the root, as a data model does.

    Returns:
        The one `Schema` of that content, without `$schema` and `$id`; a root `$ref` to an object is resolved one step.

    Raises:
        SchemaError: It is not a schema, is not closed, uses keywords of older drafts, or has no object at its root.
            Names the pointer.
        SchemaTooComplex: It is over the limits of complexity. Names the pointer and the limit.
        DataError: It is not JSON.

    Example:
        >>> schema_from({"type": "object", "properties": {"a": {"type": "integer"}}})
        {'type': 'object', 'properties': {'a': {'type': 'integer'}}}

    Source: jsonschema's `check_schema`; differs: closed, bounded, once for each schema.
    """
    if is_foreign(json):
        return json
    if is_object(json) and not _NAMES.isdisjoint(json):  # references inside the schema do not need them
        json = {key: value for key, value in json.items() if not (key in _NAMES and type(value) is str)}
    schema = schemas.intern_schema(json)
    if not schema.checked:
        _check(schema)
        own = schemas.with_own_definitions(schema)
        schema.checked = own is schema  # one that was rewritten is rewritten each time
        schema, own.checked = own, True
    schema = _with_resolved_root(schema)
    if root == "object" and not _is_of_objects(schema):
        got = schema.get("type") or "a schema of another kind"
        raise SchemaError(f"A data model's schema has an object at its root, not {got}: put it under a key of one.")
    return schema


_NAMES: Final = frozenset({"$schema", "$id", "id"})
"""The keywords that name the draft and the document."""


def _at(steps: Steps) -> str:
    """Return the name of a place in a schema: its JSON Pointer."""
    return f"Schema at {leaves.pointer(steps) or 'its root'}"


def _with_resolved_root(schema: Schema) -> Schema:
    """Resolve a bare `$ref` at the root one step, where it names an object: recursive models are written that way."""
    if "$ref" not in schema or not schema.keys() <= schemas.NO_DEMANDS | {"$ref"}:
        return schema
    target = target_of(schema, schema["$ref"])
    if not is_object(target) or "$ref" in target or not _is_of_objects(target):
        return schema
    resolved = schemas.intern_schema(frozen_dict({**{key: schema[key] for key in schema if key != "$ref"}, **target}))
    resolved.checked = True
    return resolved


def _is_of_objects(schema: Mapping[str, Any]) -> bool:
    return schema.get("type", "object" if "properties" in schema else None) == "object"


def _check(schema: Schema) -> None:
    """Check what does not depend on where a schema is used, and compile it.

    Raises:
        SchemaError: It is malformed, not closed, or written for an older draft.
        SchemaTooComplex: It is over a limit.
    """
    _check_expansion(schema, _positions(schema))
    try:
        validator_of(schema)
    except MalformedSchemaError as error:
        hint = next((_HINTS[step] for step in error.steps[-1:] if step in _HINTS), "")
        raise SchemaError(f"{_at(error.steps)}: {str(error)[:300]}{hint and f': {hint}'}.") from None
    schema.checked = True


_HINTS: Final[Mapping[Any, str]] = {
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), "write the bound itself here"),
    "items": "write a list of schemas as 'prefixItems'",
    "type": "write one or a list of array, boolean, integer, null, number, object, string",
}

_REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("$anchor", "$dynamicAnchor"), "name the place by its JSON Pointer instead: '#/$defs/name'"),
    **dict.fromkeys(("$dynamicRef", "$recursiveRef"), "write a '$ref' to '#' or '#/...'"),
    "$id": "only the root may have one; references are '#' or '#/...'",
    "$schema": "only the root may name a draft",
    "$vocabulary": "schemas use the standard vocabulary of 2020-12",
    "additionalItems": "write the list of 'items' as 'prefixItems', and 'additionalItems' as 'items'",
    "dependencies": "write 'dependentRequired' for lists of names, 'dependentSchemas' for schemas",
}


def _positions(root: Schema) -> list[tuple[Steps, Any]]:
    """List every subschema with the steps to it, the targets of references included.

    Raises:
        SchemaError: A keyword is refused, a pattern does not compile, or a reference has no target in the schema.
        SchemaTooComplex: There are too many subschemas, or they nest too deep.
    """
    positions: list[tuple[Steps, Any]] = []
    visited: set[tuple[str, ...]] = set()
    pending: list[tuple[Steps, Any, int]] = [((), root, 0)]
    while pending:
        steps, schema, depth = pending.pop()
        place = tuple(map(str, steps))
        if place in visited:
            continue
        visited.add(place)
        positions.append((steps, schema))
        if len(positions) > MAX_SUBSCHEMAS + 1:
            raise SchemaTooComplex(f"{_at(steps)}: the limit of {MAX_SUBSCHEMAS:,} subschemas is exceeded here.")
        if depth > MAX_NESTED:
            raise SchemaTooComplex(f"{_at(steps)}: the limit of {MAX_NESTED} nested subschemas is exceeded here.")
        if not is_object(schema):
            continue
        for keyword in _REFUSED.keys() & schema.keys():
            raise SchemaError(f"{_at((*steps, keyword))}: {keyword!r} is not supported: {_REFUSED[keyword]}.")
        _check_patterns(schema, steps)
        if isinstance(reference := schema.get("$ref"), str):
            pending.append((steps_of(reference), _target(root, reference, steps), 0))
        pending.extend(reversed([((*steps, *more), part, depth + 1) for more, part in subschemas(schema)]))
    return positions


def _target(root: Schema, reference: str, steps: Steps) -> Any:
    """Return the target of a reference, which must be a schema."""
    where = _at((*steps, "$ref"))
    if reference != "#" and not reference.startswith("#/"):
        raise SchemaError(f"{where}: {reference!r:.200} leads out of the schema: write '#/$defs/name'.")
    try:
        target = target_of(root, reference)
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None
    if not is_object(target) and type(target) is not bool:
        raise SchemaError(f"{where}: {reference!r:.200} names a value that is not a schema.")
    return target


def _check_patterns(schema: Mapping[str, Any], steps: Steps) -> None:
    """Raise SchemaError for a pattern that the linear-time engine cannot run."""
    keys: Any = schema.get("patternProperties", ())
    for place, pattern in (("pattern",), schema.get("pattern")), *((("patternProperties", key), key) for key in keys):
        try:
            if isinstance(pattern, str):
                matcher(pattern)
        except MalformedSchemaError:
            what = f"{pattern!r:.200} does not compile in the linear-time engine, which has no look-around"
            raise SchemaError(f"{_at((*steps, *place))}: {what}.") from None


def _check_expansion(root: Schema, positions: list[tuple[Steps, Any]]) -> None:
    """Count, at the place of each schema, the subschemas that a value is checked against.

    Raises:
        SchemaError: A reference leads back to itself without a property or an item between.
        SchemaTooComplex: There are too many, or a chain of them is too long.
    """
    measured: dict[int, int | None] = {}  # how many schemas in all; None while under way

    def measure(schema: Any, steps: Steps, depth: int) -> int:
        if not is_object(schema):
            return 1
        if id(schema) not in measured:
            if depth > MAX_NESTED:
                raise SchemaTooComplex(f"{_at(steps)}: the limit of {MAX_NESTED} subschemas in one chain is exceeded.")
            measured[id(schema)] = None
            parts = [((*steps, *more), part) for more, part in subschemas(schema) if more[0] in schemas.IN_PLACE]
            if isinstance(reference := schema.get("$ref"), str):
                parts.append((steps_of(reference), target_of(root, reference)))
            measured[id(schema)] = 1 + sum(measure(part, place, depth + 1) for place, part in parts)
        total = measured[id(schema)]
        if total is None:
            remedy = "let the cycle pass through 'properties', 'items' or 'additionalProperties'"
            raise SchemaError(f"{_at(steps)}: a reference leads back here with no property or item between: {remedy}.")
        if total > MAX_AT_ONE_PLACE:
            limit = f"the limit of {MAX_AT_ONE_PLACE:,} subschemas"
            raise SchemaTooComplex(f"{_at(steps)}: a value here is checked against more than {limit}.")
        return total

    for steps, schema in positions:
        measure(schema, steps, 0)


# -- classes -----------------------------------------------------------------------------------------------------------

_KEPT: Final = "__synmod_schema__"


def schema_of_class(cls: type[BaseModel]) -> Schema:
    """Return the schema of a pydantic class; one dictionary read after the first call.

    Raises:
        SchemaError: The class cannot be written as a schema, or breaks a rule of data models. Names the field.
    """
    return cls.__dict__.get(_KEPT) or _generate_schema(cls)


def dump(instance: BaseModel) -> FrozenDict:
    """Return the JSON of an instance by alias, None and defaults kept, frozen. Hot.

    Raises:
        DataError: It has no JSON, or its JSON does not satisfy the schema of its class. Names the place.
        SchemaError: The class breaks a rule of data models.
    """
    cls = type(instance)
    schema = cls.__dict__.get(_KEPT) or _generate_schema(cls)
    try:
        # round_trip leaves out computed fields, at every depth
        plain = instance.__pydantic_serializer__.to_python(
            instance, mode="json", by_alias=True, round_trip=True, warnings=False
        )
    except (PydanticSerializationError, UnicodeDecodeError) as error:  # the latter for bytes in a field of Any
        raise errors.DataError(f"{cls.__name__}: has no JSON: {error}") from error
    json = frozen(plain)
    try:
        validate(schema, json, cls.__name__)
    except SchemaError as error:
        raise errors.DataError(f"{error} It was changed in place, or is serialized otherwise than declared.") from None
    return json


def plain_json(x: Any) -> Json:
    """Return JSON, frozen, of a value from outside: dates, enums, decimals, sets and arrays as pydantic writes them.

    Raises:
        DataError: It has no JSON; names the JSON Pointer, the type and the remedy.
    """
    try:
        return frozen(x)
    except errors.DataError:
        try:
            return frozen(to_jsonable_python(leaves.map_leaves(_scalar, x)))
        except (PydanticSerializationError, errors.CallError, UnicodeDecodeError):
            pass
        raise


def _scalar(leaf: Any) -> Any:
    """Return a decimal as a number, a set in order, arrays and numbers of other libraries as Python's."""
    if isinstance(leaf, Decimal):
        return int(leaf) if leaf.is_finite() and leaf == leaf.to_integral_value() else float(leaf)
    if isinstance(leaf, set | frozenset):
        return sorted(cast("set[Any]", leaf), key=repr)  # which has another order in each process
    to_list = getattr(leaf, "tolist", None)
    return to_list() if callable(to_list) else leaf


def _generate_schema(cls: type[BaseModel]) -> Schema:
    """Generate the schema of a class with pydantic, check it, and keep it with the class."""
    try:
        if not cls.__pydantic_complete__:
            cls.model_rebuild()
        written = cls.model_json_schema(by_alias=True, schema_generator=_Writer, mode="validation")
    except PydanticUndefinedAnnotation as error:
        raise SchemaError(f"{cls.__name__}: {error.name!r} in its annotations is not defined yet.") from error
    except PydanticUserError as error:
        raise SchemaError(f"{cls.__name__}: {error.message}") from error
    if secret := _secret_field(cls):
        raise SchemaError(f"{secret}: a secret is written as stars: keep it out of the data.")
    schema = schema_from(written, root="any")
    setattr(cls, _KEPT, schema)
    return schema


def _secret_field(cls: type[BaseModel]) -> str | None:
    """Return the first field of a class, or of the classes in it, that holds a secret, or None."""
    pending = [cls]
    for model in pending:  # grows while it is read
        for name, field in model.model_fields.items():
            for part in _classes_in(field.annotation):
                if issubclass(part, SecretStr | SecretBytes | Secret):
                    return f"{model.__name__}.{name}"
                if issubclass(part, BaseModel) and part not in pending:
                    pending.append(part)
    return None


def _classes_in(annotation: Any) -> Iterator[type[Any]]:
    """Yield every class in an annotation."""
    for part in (annotation, get_origin(annotation)):
        if isinstance(part, type):
            yield part
    for part in get_args(annotation):
        yield from _classes_in(part)


class _Writer(GenerateJsonSchema):
    """Pydantic's generator, without the patterns that it writes for some types; errors name the field."""

    _failed: Any = None  # the part of pydantic's own schema that an error has passed through last

    def generate_inner(self, schema: Any) -> dict[str, Any]:
        """Generate the schema of one part; an error names the field.

        The pattern of numbers written as texts is dropped: it needs look-around, and `.to(Model)` checks these numbers.
        """
        try:
            written = super().generate_inner(schema)
        except PydanticInvalidForJsonSchema as error:
            for name, field in schema["fields"].items() if schema["type"] == "model-fields" else ():
                if field is self._failed:
                    owner = f"{schema['model_name']}." if "model_name" in schema else ""
                    raise SchemaError(f"{owner}{name}: it has no JSON Schema: {error.message}") from error
            self._failed = schema
            raise
        return _without_pattern(written) if schema["type"] in ("complex", "decimal") else written

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Write `default_factory=list` and `dict` as the defaults they make, which pydantic leaves out."""
        written = super().default_schema(schema)
        factory = schema.get("default_factory")
        return {**written, "default": factory()} if factory in (list, dict) else written

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Raise for a default that is not JSON; pydantic would leave it out with a warning."""
        if kind == "non-serializable-default":
            raise PydanticInvalidForJsonSchema(detail)


def _without_pattern(written: dict[str, Any]) -> dict[str, Any]:
    """Remove `pattern` from a schema and its alternatives."""
    rest = {key: value for key, value in written.items() if key != "pattern"}
    if "anyOf" in rest:
        rest["anyOf"] = [_without_pattern(arm) for arm in rest["anyOf"]]
    return rest


def build_instance(json: FrozenDict, model: Any) -> BaseModel:
    """Return an instance of `model`, built from the keys that its schema takes.

    Raises:
        ArgumentError: `model` is not a pydantic class.
        SchemaError: A field is missing or wrong.
    """
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        got = "only a schema is known here" if model is None else f"got {model!r:.100}"
        raise ArgumentError(f"There is no class to build: {got}. Write x.to(Model) with a data-model class.")
    schema = schema_of_class(model)
    root, declared = root_of(schema), properties_of(schema)
    takes_more = root.get("additionalProperties", False) is not False or "patternProperties" in root
    if not takes_more and not json.keys() <= declared.keys():
        json = frozen_dict({key: value for key, value in json.items() if key in declared})
    validate(schema, json, model.__name__)
    return run_validators(model, json, model.__name__)


def run_validators(model: type[BaseModel], json: FrozenDict, where: str) -> BaseModel:
    """Run the validators of a class on JSON that is valid for its schema; return the instance.

    Raises:
        SchemaError: The class does not accept it. Begins with `where`.
    """
    try:
        # From text, so that strict classes read dates, and no frozen part gets into an instance. The root is made plain
        # before, since `to_json` tries all other types before a subclass of dict.
        return model.model_validate_json(to_json(dict(json)))
    except ValidationError as error:
        faults = [
            errors.Problem(leaves.pointer(_place(fault["loc"], json)), fault["msg"], f"{fault['input']!r:.200}")
            for fault in error.errors(include_url=False)[:10]
        ]
        lines = "\n".join(f"  {fault.pointer or 'the whole'}: {fault.wanted}; got {fault.got}" for fault in faults)
        raise SchemaError(f"{where}: the class does not accept the value:\n{lines}", faults) from error


def _place(steps: tuple[str | int, ...], json: Any) -> list[str | int]:
    """Keep the steps that exist in the JSON: pydantic also names the alternatives it has tried."""
    place: list[str | int] = []
    for step in steps:
        if is_object(json) and step in json:
            json = json[str(step)]
        elif is_array(json) and isinstance(step, int) and step < len(json):
            json = json[step]
        else:
            continue
        place.append(step)
    return place


# -- what has a schema -------------------------------------------------------------------------------------------------


class Operand:
    """Something with a schema that the operators `+ & | ^ ~` take."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _binary(self, operand: Any) -> Any: ...

        __add__ = __radd__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _binary

        def __invert__(self) -> Any: ...
        def __contains__(self, part: Any) -> bool: ...


class OperandClass(type):
    """The operators between classes: each makes a new symbol. `|` stays Python's union of types."""

    if TYPE_CHECKING:

        def _binary(cls, operand: Any) -> SymbolicDataModel: ...

        __add__ = __radd__ = __and__ = __rand__ = __xor__ = __rxor__ = _binary

        def __invert__(cls) -> SymbolicDataModel: ...
        def __contains__(cls, part: Any) -> bool: ...


class HasSchema(Operand, Generic[ModelT]):
    """What values and symbols share: a schema, possibly the class behind it, a label, and the operations."""

    __slots__ = ("_label", "_model", "_schema")

    _schema: Schema
    _model: type[BaseModel] | None
    _label: str | None

    def get_schema(self) -> dict[str, Any]:
        """Return a fresh plain copy of the JSON Schema."""
        return thaw(self._schema)

    def prettify_schema(self) -> str:
        """Return the JSON Schema as text with an indent of two."""
        return leaves.dump_json(self._schema, indent=2)

    if TYPE_CHECKING:

        def in_mask(self, mask: Any, *, recursive: bool = False) -> Any:
            """Keep only the fields named; see `sm.ops.in_mask`."""

        def out_mask(self, mask: Any, *, recursive: bool = False) -> Any:
            """Remove the fields named; see `sm.ops.out_mask`."""

        def prefix(self, prefix: str) -> Any:
            """Rename every top-level field `k` to `prefix_k`; see `sm.ops.prefix`."""

        def suffix(self, suffix: str) -> Any:
            """Rename every top-level field `k` to `k_suffix`; see `sm.ops.suffix`."""

        def factorize(self, names: Mapping[str, str] | None = None) -> Any:
            """Gather numbered repeats into arrays; see `sm.ops.factorize`."""


# -- declarations ------------------------------------------------------------------------------------------------------

_NOT_IN_A_NAME: Final = re.compile(r"\W+")


def declare(x: Any, *, root: Root = "object") -> Schema:
    """Return the schema of a declaration.

    Args:
        x: A data-model or pydantic class, an instance of one, a JsonDataModel, a SymbolicDataModel, a schema dict, or
            True (any JSON, where `root` is "any").
        root: "object" for data models; "any" for Variables, whose schema may be of any kind.

    Returns:
        The interned schema.

    Raises:
        SchemaError: The schema is bad, or its root is not an object.
        SchemaTooComplex: The schema is over the limits of complexity.
        ArgumentError: `x` declares nothing.

    Example:
        >>> declare({"type": "object", "properties": {"a": {"type": "integer"}}})["type"]
        'object'

    Source: Synalinks' `data_model or schema` arguments; differs: one function, and the schema is checked.
    """
    if isinstance(x, bool) and not (x and root == "any"):
        raise SchemaError(f"The schema {x} cannot be used here: write a schema with an object at its root.")
    return schema_from(x if isinstance(x, dict | bool) else schema_of(x), root=root)


def declaration(
    schema: Any, data_model: Any, what: str, *, root: Root = "object"
) -> tuple[Schema, type[BaseModel] | None]:
    """Resolve the pair of arguments `schema`, `data_model` to one schema and, where known, its class.

    Raises:
        ArgumentError: Neither is given, or the two differ.
        SchemaError: The schema is bad, or its root is not an object.
    """
    if data_model is None:
        if schema is None:
            raise ArgumentError(f"{what} needs a schema: write `schema=` (a JSON Schema) or `data_model=` (a class).")
        return declare(schema, root=root), model_of(schema)
    declared = declare(data_model, root=root)
    if schema is not None and not leaves.json_equal(declare(schema, root=root), declared):
        raise ArgumentError(f"{what}: `schema` and `data_model` differ; write one of them.")
    return declared, model_of(data_model)


def schema_of(x: Any) -> Schema:
    """Return the schema of a value, symbol, class or instance: frozen and interned, not a copy.

    Raises:
        ArgumentError: `x` is none of them.

    Example:
        >>> schema_of(sm.SymbolicDataModel(schema={"type": "object", "properties": {"a": {}}}))["properties"]
        {'a': {}}

    Source: Keras' `KerasTensor.shape`.
    """
    if isinstance(x, HasSchema):
        return x._schema
    if (model := model_of(x)) is not None:
        return schema_of_class(model)
    if isinstance(x, type):
        remedy = f"make it the type of a field, `class Query(sm.DataModel): field: {x.__name__}`"
        raise ArgumentError(f"The class {x.__name__} does not declare data: {remedy}, or derive it from sm.DataModel.")
    raise ArgumentError(f"{x!r:.200} does not declare data: write a data model, a symbol or a JSON Schema as a dict.")


def model_of(x: Any) -> type[BaseModel] | None:
    """Return the class behind a declaration, a value or a symbol; None where only a schema is known."""
    if isinstance(x, HasSchema):
        return x._model
    cls = x if isinstance(x, type) else type(x)
    return cls if issubclass(cls, BaseModel) else None


def label(x: HasSchema[Any]) -> str:
    """Return the label of a value or a symbol, even where a declared field `name` hides it."""
    return x._label or label_of(x._schema)


def label_of(schema: Schema) -> str:
    """Return the label of a nameless value or symbol: the snake case of the schema's title."""
    title = schema.get("title")
    words = _NOT_IN_A_NAME.sub("_", title).strip("_") if isinstance(title, str) else ""
    return leaves.snake_case(words) if words else "data_model"


def own_field(x: Any, name: str) -> str | None:
    """Return the last declared field with a name, or with that name and a number from merging; None without one.

    Merging puts the own fields of a module after those of the inputs that it returns with them, and numbers them.

    Args:
        x: A value, symbol or class.
        name: The name before merging.
    """
    pattern = re.compile(rf"{re.escape(name)}(_\d+)?")
    fields = schemas.parts_of(schema_of(x)).fields
    return next((field for field in reversed([*fields]) if pattern.fullmatch(field)), None)


def field_list(names: Iterable[str]) -> str:
    """Return the names of fields as an error shows them."""
    return ", ".join(map(repr, names)) or "none"


def importable(model: type[BaseModel] | None) -> type[BaseModel] | None:
    """Return a class if a pickle can name it; a class made in a function is left out, its schema is enough."""
    if model is None:
        return None
    target: Any = sys.modules.get(model.__module__)
    for step in model.__qualname__.split("."):
        target = getattr(target, step, None)
    return model if target is model else None
