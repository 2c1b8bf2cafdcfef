"""Whether a value satisfies its schema, and if not, why; and the schemas and JSON of pydantic classes.

A library decides whether (`checking.py`). This file finds out why not, by walking schema and value together and
checking each subschema; of alternatives that all fail, it follows the one that was meant. The schema of a class is made
once and kept with the class.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import chain, islice
from json import JSONEncoder
from typing import Any, Final, cast, get_args, get_origin

from pydantic import BaseModel, Secret, SecretBytes, SecretStr, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from synmod import errors, leaves
from synmod.leaves.frozen import CONTAINERS, FrozenDict, Json, frozen, frozen_dict, is_array, is_object, thaw
from synmod.leaves.nests import map_leaves

from .checking import MAX_VALUE_DEPTH, compiled, matcher, nests_too_deep, schema_from, validator_of
from .schema import (
    ANNOTATIONS,
    NO_DEMANDS,
    IsValid,
    Schema,
    Step,
    portable,
    properties_of,
    references,
    root_of,
    target_of,
)

MAX_SHOWN: Final = 200
"""How many characters of a value an error shows."""

_CHOICES: Final = 12


def is_valid(schema: Schema, json: Json) -> bool:
    """Whether a value, plain or frozen, satisfies a schema. Hot.

    Example:
        >>> from synmod.data import schema_from
        >>> is_valid(schema_from({"type": "integer"}, root="any"), 1.0)
        True

    Source: jsonschema's `is_valid`; differs: compiled once, patterns in linear time.
    """
    try:
        return (schema.validator or validator_of(schema))(json)
    except ValueError:  # two values of unbounded depth were compared
        return False


def problems(schema: Schema, json: Json, *, limit: int = 10) -> tuple[errors.Problem, ...]:
    """Return the faults of a value, in document order; none for a valid value.

    Args:
        schema: An interned schema.
        json: A JSON value, plain or frozen.
        limit: How many faults to list.

    Returns:
        `(pointer, wanted, got)` of each fault. `got` is JSON text, cut to 200 characters.

    Example:
        >>> from synmod.data import schema_from
        >>> problems(schema_from({"type": "integer"}, root="any"), "1")
        (Problem(pointer='', wanted='integer', got='"1"'),)

    Source: jsonschema's `iter_errors`; differs: follows the one alternative that was meant, and never takes time
    exponential in the depth of alternatives.
    """
    if is_valid(schema, json):
        return ()
    if nests_too_deep(json):
        return (errors.Problem("", f"at most {MAX_VALUE_DEPTH} levels of nesting", "…"),)
    found: dict[errors.Problem, None] = {}
    walk = _FaultWalk(schema)
    for fault in walk.faults([walk.root], json, ()):
        found[fault] = None
        if len(found) == limit:
            break
    return tuple(found) or (errors.Problem("", "a value that satisfies the schema", shown(json)),)


def validate(schema: Schema, json: Json, where: str) -> None:
    """Raise unless a value satisfies a schema.

    Args:
        schema: An interned schema.
        json: A JSON value, plain or frozen.
        where: What the value is for, such as a module path or the name of an argument; the message begins with it.

    Raises:
        SchemaError: The value does not satisfy the schema. Its `errors` are the faults, up to ten.

    Example:
        >>> from synmod.data import schema_from
        >>> validate(schema_from({"type": "integer"}, root="any"), 1, "answer/count")

    Source: jsonschema's `validate`; differs: names every fault with its place.
    """
    if not is_valid(schema, json):
        found = problems(schema, json)
        lines = [f"{fault.pointer[:200] or 'the whole'}: wanted {fault.wanted}, got {fault.got}" for fault in found]
        details = lines[0] if len(lines) == 1 else "\n  " + "\n  ".join(lines)
        raise errors.SchemaError(f"{where}: the value does not satisfy its schema: {details}", found)


class SubschemaChecks:
    """Checks values against any part of a schema, each part compiled once."""

    def __init__(self, schema: Schema) -> None:
        self.root: FrozenDict = portable(schema)
        self._compiled: dict[object, tuple[IsValid, Any]] = {}  # with the schema, so that its id is not reused

    def holds(self, schema: Any, json: Any) -> bool:
        """Whether a value satisfies a subschema."""
        return self._holds(id(schema), schema, schema, json) if is_object(schema) else schema

    def passes(self, keyword: str, schema: Mapping[str, Any], json: Any) -> bool:
        """Whether a value satisfies one keyword of a schema, together with the keywords that modify it."""
        names = schema.keys() if keyword.startswith("unevaluated") else (keyword, *_BESIDE.get(keyword, ()))
        alone = frozen_dict({name: schema[name] for name in names if name in schema})
        return self._holds((id(schema), keyword), alone, schema, json)

    def _holds(self, key: object, schema: Mapping[str, Any], kept: Any, json: Any) -> bool:
        if key not in self._compiled:
            whole = {"$defs": self.root["$defs"], **schema} if references(schema) else schema
            self._compiled[key] = compiled(thaw(whole)), kept
        try:
            return self._compiled[key][0](json)
        except ValueError:  # two values of unbounded depth were compared
            return False

    def target(self, schema: Mapping[str, Any]) -> Any:
        """Return the target of a schema's `$ref`."""
        return target_of(self.root, schema["$ref"])

    def followed(self, schema: Any) -> Any:
        """Return the target of a reference without other demands, else the schema itself."""
        while is_object(schema) and "$ref" in schema and schema.keys() <= NO_DEMANDS | {"$ref"}:
            schema = self.target(schema)
        return schema


_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {"contains": ("minContains", "maxContains")}

# Faults of these keywords are found at the parts of the value, or in the schemas that they name.
_FOUND_ELSEWHERE: Final = (
    NO_DEMANDS
    | {"$ref", "additionalProperties", "allOf", "dependentSchemas", "else", "if", "items", "maxContains", "minContains"}
    | {"patternProperties", "prefixItems", "properties", "propertyNames", "required", "then"}
)


class _FaultWalk(SubschemaChecks):
    """Finds the faults of one invalid value."""

    def faults(self, schemas: list[Any], json: Any, steps: tuple[Step, ...]) -> Iterator[errors.Problem]:
        """Yield the faults of a value that violates at least one of the schemas, in document order."""
        in_force = self._in_force(schemas, json)
        for schema in in_force:
            for wanted in self._own_faults(schema, json) if schema is not False else ("nothing here",):
                yield errors.Problem(leaves.pointer(steps), wanted, shown(json))
        demanding = [schema for schema in in_force if is_object(schema)]
        for step, part in json.items() if is_object(json) else enumerate(json) if is_array(json) else ():
            demands = [demand for schema in demanding for demand in _demands_of(schema, step)]
            if False in demands:
                yield errors.Problem(leaves.pointer((*steps, step)), _no_place(step, demanding, json), shown(part))
            failing = [demand for demand in demands if demand is not False and not self.holds(demand, part)]
            if failing:
                yield from self.faults(failing, part, (*steps, step))

    def _in_force(self, schemas: list[Any], json: Any) -> list[Any]:
        """Return all schemas that apply: those given, references, `allOf`, branches taken, the alternative meant."""
        found: dict[int, Any] = {}
        pending = list(schemas)
        for part in pending:  # grows while it is read
            if part is True or id(part) in found:
                continue
            found[id(part)] = part
            if not is_object(part):
                continue
            if "$ref" in part:
                pending.append(self.target(part))
            pending.extend(part.get("allOf", ()))
            if "if" in part:
                pending.append(part.get("then" if self.holds(part["if"], json) else "else", True))
            if is_object(json):
                pending.extend(arm for name, arm in part.get("dependentSchemas", {}).items() if name in json)
            pending.extend(self._meant(part, json))
        return list(found.values())

    def _own_faults(self, schema: Mapping[str, Any], json: Any) -> Iterator[str]:
        """Yield the faults of the value itself, without those of its parts."""
        for keyword in schema:
            if keyword in _FOUND_ELSEWHERE or self.passes(keyword, schema, json):
                continue
            if keyword not in ("anyOf", "oneOf"):
                yield self._wanted(keyword, schema)
            elif not self._meant(schema, json):
                right = [arm for arm in self._alternatives(schema, keyword) if self._has_type(arm, json)]
                texts = [next(self._own_faults(arm, json), "") for arm in right if is_object(arm)]
                yield _joined(texts) if texts and all(texts) else self._wanted(keyword, schema)
        if is_object(json):
            yield from (f"the key {name!r}" for name in schema.get("required", ()) if name not in json)
            names = schema.get("propertyNames", True)
            for name in json:
                if not self.holds(names, name):
                    yield f"keys that are {self._described(names)}, and not {shown(name)}"

    def _meant(self, schema: Mapping[str, Any], json: Any) -> list[Any]:
        """Return the alternative that fits best, if none holds: its faults are more precise; none where several do."""
        keyword = "anyOf" if "anyOf" in schema else "oneOf"
        arms = self._alternatives(schema, keyword) if keyword in schema else []
        if any(self.holds(arm, json) for arm in arms):
            return []
        right = [arm for arm in arms if self._has_type(arm, json)]
        meant = [arm for arm in right if self._has_constants(arm, json)]
        if is_object(json) and (tag := self._tag(schema, right)) and (not meant or {*tag["properties"]} - json.keys()):
            return [tag]
        if len(meant) > 1 and isinstance(json, CONTAINERS):
            fits = [self._fit(arm, json) for arm in meant]
            meant = [arm for arm, fit in zip(meant, fits, strict=True) if fit == max(fits)]
        meant = meant or right
        return meant if len(meant) == 1 else []

    def _alternatives(self, schema: Mapping[str, Any], keyword: str) -> list[Any]:
        """Return the arms of `anyOf` or `oneOf`; an arm that only holds alternatives is replaced by them."""
        arms: list[Any] = []
        for arm in map(self.followed, schema[keyword]):
            inner = [name for name in ("anyOf", "oneOf") if is_object(arm) and arm.keys() - ANNOTATIONS == {name}]
            arms.extend(self._alternatives(arm, inner[0]) if inner else [arm])
        return arms

    def _has_type(self, arm: Any, json: Any) -> bool:
        """Whether a value has the type of an alternative, as far as this declares one."""
        return arm if not is_object(arm) else "type" not in arm or self.passes("type", arm, json)

    def _has_constants(self, arm: Any, json: Any) -> bool:
        """Whether a value has the constants that distinguish an alternative from others."""
        if not is_object(arm) or not isinstance(json, CONTAINERS):
            return True
        fields = arm.get("properties", {}).items() if isinstance(json, dict) else ()
        return all(self.passes(keyword, arm, json) for keyword in ("const", "enum") if keyword in arm) and all(
            self.holds(schema, json[name])  # pyright: ignore[reportCallIssue, reportArgumentType]  (an object)
            for name, schema in fields
            if name in json and _constants(schema)
        )

    def _tag(self, schema: Mapping[str, Any], arms: list[Any]) -> FrozenDict | None:
        """Return the schema of the field whose constants tell alternatives apart; None where there is no such field."""
        declared: list[Mapping[str, Any]] = [arm.get("properties", {}) if is_object(arm) else {} for arm in arms]
        discriminator: Any = schema.get("discriminator")
        first: Any = discriminator.get("propertyName", "") if is_object(discriminator) else ""
        for name in (first, *declared[0]) if len(arms) > 1 else ():
            constants = [_constants(self.followed(fields.get(name))) for fields in declared]
            if all(constants):
                values = list(dict.fromkeys(chain.from_iterable(constants)))
                return frozen_dict({"properties": {name: {"enum": values}}, "required": [name]})
        return None

    def _fit(self, arm: Any, json: Any) -> int:
        """Return how many parts of a container an alternative accepts, less those that it lacks or has no place for."""
        if not is_object(arm):
            return 0
        declared = arm.get("properties", {})
        fit = -sum(name not in json for name in arm.get("required", ())) if is_object(json) else 0
        for step, part in json.items() if is_object(json) else enumerate(json):
            holds = all(self.holds(demand, part) for demand in _demands_of(arm, step))
            fit += (step in declared or is_array(json)) if holds else -1
        return fit

    def _wanted(self, keyword: str, schema: Mapping[str, Any], within: int = 2) -> str:
        """Describe what one keyword of a schema demands; alternatives are described `within` levels deep."""
        value = schema[keyword]
        if keyword in _WORDS:
            return _WORDS[keyword](value)
        if keyword in ("anyOf", "oneOf"):
            arms = _joined([self._described(arm, within - 1) for arm in islice(value, _CHOICES + 1)])
            return f"exactly one of: {arms}" if keyword == "oneOf" else arms
        if keyword == "not":
            return f"not {self._described(value)}"
        if keyword == "contains":
            least, most = schema.get("minContains", 1), schema.get("maxContains")
            return f"{f'at least {least}' if most is None else f'{least} to {most}'} item(s) that are " + (
                self._described(value)
            )
        return f"{keyword} {shown(value)}"

    def _described(self, schema: Any, within: int = 2) -> str:
        """Describe what a schema demands, in a few words."""
        schema = self.followed(schema)
        if not is_object(schema):
            return "anything" if schema else "nothing"
        for keyword in ("const", "enum", "type", *(("anyOf", "oneOf") if within else ())):
            if keyword in schema:
                return self._wanted(keyword, schema, within)
        return "anything" if schema.keys() <= ANNOTATIONS else f"a value for {shown(schema)}"


def _constants(schema: Any) -> list[Any]:
    """Return the constants that a schema allows; none where it allows others."""
    if not is_object(schema):
        return []
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _demands_of(schema: Mapping[str, Any], step: Step) -> list[Any]:
    """Return what a schema demands of one part of a value."""
    if isinstance(step, int):
        prefix = schema.get("prefixItems", ())
        return [prefix[step] if step < len(prefix) else schema.get("items", True)]
    declared = schema.get("properties", {})
    demands = [declared[step]] if step in declared else []
    demands += [part for pattern, part in schema.get("patternProperties", {}).items() if matcher(pattern)(step)]
    return demands or [schema.get("additionalProperties", True)]


def _no_place(step: Step, schemas: list[dict[str, Any]], json: Any) -> str:
    """Describe the fault of a part that must not be there, with the key that may have been meant."""
    if isinstance(step, int):
        return "no item"
    missing = [name for schema in schemas for name in schema.get("properties", ()) if name not in json]
    guess = leaves.did_you_mean(step, missing[:500])
    return f"no key {step!r:.100}{guess and f'.{guess}'}"


def shown(json: Any) -> str:
    """Return a value as JSON text, cut to 200 characters; a large value is encoded only as far as it is shown."""
    cut = json[: MAX_SHOWN + 1] if isinstance(json, str) else json
    text = ""
    for chunk in _ENCODER.iterencode(cut):
        text += chunk[: MAX_SHOWN + 1]
        if len(text) > MAX_SHOWN:
            return text[: MAX_SHOWN - 1] + "…"
    return text


_ENCODER: Final = JSONEncoder(ensure_ascii=False)


def _joined(texts: list[str]) -> str:
    """Join alternatives, each once."""
    several = list(dict.fromkeys(texts))
    return " or ".join(several[:_CHOICES]) + (" or …" if len(several) > _CHOICES else "")


def _members(value: list[Any]) -> str:
    return f"one of {', '.join(map(shown, value[:_CHOICES]))}" + (", …" if len(value) > _CHOICES else "")


_WORDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "const": shown,
    "enum": _members,
    "exclusiveMaximum": "a number under {}".format,
    "exclusiveMinimum": "a number over {}".format,
    "maxItems": "at most {} items".format,
    "maxLength": "at most {} characters".format,
    "maxProperties": "at most {} keys".format,
    "maximum": "a number of at most {}".format,
    "minItems": "at least {} items".format,
    "minLength": "at least {} characters".format,
    "minProperties": "at least {} keys".format,
    "minimum": "a number of at least {}".format,
    "multipleOf": "a multiple of {}".format,
    "pattern": lambda value: f"a text that matches {shown(value)}",
    "type": lambda value: _joined(value if is_array(value) else [value]),
    "uniqueItems": lambda _: "items that all differ",
}


_KEPT: Final = "__synmod_schema__"


def schema_of_class(cls: type[BaseModel]) -> Schema:
    """Return the schema of a pydantic class; one dictionary read after the first call.

    Raises:
        SchemaError: The class cannot be written as a schema, or breaks a rule of data models. Names the field.
    """
    return cls.__dict__.get(_KEPT) or _kept_schema(cls)


def dump(instance: BaseModel) -> FrozenDict:
    """Return the JSON of an instance by alias, None and defaults kept, frozen. Hot.

    Raises:
        DataError: It has no JSON, or its JSON does not satisfy the schema of its class. Names the place.
        SchemaError: The class breaks a rule of data models.
    """
    cls = type(instance)
    schema = cls.__dict__.get(_KEPT) or _kept_schema(cls)
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
    except errors.SchemaError as error:
        raise errors.DataError(
            f"{error} The instance was changed in place, or is serialized differently than declared."
        ) from None
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
            return frozen(to_jsonable_python(map_leaves(_scalar, x)))
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


def _kept_schema(cls: type[BaseModel]) -> Schema:
    """Generate the schema of a class with pydantic, check it, and keep it with the class."""
    try:
        if not cls.__pydantic_complete__:
            cls.model_rebuild()
        written = cls.model_json_schema(by_alias=True, schema_generator=_Writer, mode="validation")
    except PydanticUndefinedAnnotation as error:
        raise errors.SchemaError(
            f"{cls.__name__}: the name {error.name!r} in its annotations is not defined yet: define it first."
        ) from error
    except PydanticUserError as error:
        raise errors.SchemaError(f"{cls.__name__}: {error.message}") from error
    if secret := _secret_field(cls):
        raise errors.SchemaError(f"{secret}: a secret is written as stars: keep it out of the data.")
    schema = schema_from(written, root="any")
    setattr(cls, _KEPT, schema)
    return schema


def _secret_field(cls: type[BaseModel]) -> str | None:
    """Return the first field of a class, or of the classes in it, that holds a secret; None where there is none."""
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
                    raise errors.SchemaError(f"{owner}{name}: it has no JSON Schema: {error.message}") from error
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
    kept = {key: value for key, value in written.items() if key != "pattern"}
    if "anyOf" in kept:
        kept["anyOf"] = [_without_pattern(arm) for arm in kept["anyOf"]]
    return kept


def typed_instance(json: FrozenDict, model: Any) -> BaseModel:
    """Return an instance of `model`, built from the keys that its schema takes.

    Raises:
        ArgumentError: `model` is not a pydantic class.
        SchemaError: A field is missing or wrong.
    """
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        got = "only a schema is known here" if model is None else f"got {model!r:.100}"
        raise errors.ArgumentError(f"There is no class to build: {got}. Write x.to(Model) with a data-model class.")
    schema = schema_of_class(model)
    root, declared = root_of(schema), properties_of(schema)
    takes_more = root.get("additionalProperties", False) is not False or "patternProperties" in root
    if not takes_more and not json.keys() <= declared.keys():
        json = frozen_dict({key: value for key, value in json.items() if key in declared})
    validate(schema, json, model.__name__)
    return validator_faults(model, json, model.__name__)


def validator_faults(model: type[BaseModel], json: FrozenDict, where: str) -> BaseModel:
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
        raise errors.SchemaError(f"{where}: the class does not accept the value:\n{lines}", faults) from error


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
