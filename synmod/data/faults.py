"""Whether a value satisfies its schema, and if not, why.

A library decides whether (`validators.py`). This file finds out why not, by walking schema and value together and
checking each subschema; of alternatives that all fail, it follows the one that was meant.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from json import JSONEncoder
from typing import Any, Final

from synmod import errors, leaves
from synmod.leaves.frozen import CONTAINERS, FrozenDict, Json, frozen_dict, is_array, is_object, thaw

from .schema import ANNOTATIONS, NO_DEMANDS, IsValid, Schema, Step, portable, references, target_of
from .validators import MAX_VALUE_DEPTH, compile_schema, matcher, nests_too_deep, validator_of

_LONGEST: Final = 200  # characters of a value in an error
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
    faults: dict[errors.Problem, None] = {}
    walk = _FaultWalk(schema)
    for fault in walk.faults([walk.root], json, ()):
        faults[fault] = None
        if len(faults) == limit:
            break
    return tuple(faults) or (errors.Problem("", "a value that satisfies the schema", short_json(json)),)


def validate(schema: Schema, json: Json, where: str) -> None:
    """Raise unless a value satisfies a schema.

    Args:
        schema: An interned schema.
        json: A JSON value, plain or frozen.
        where: The purpose of the value, such as a module path or the name of an argument; the message begins with it.

    Raises:
        SchemaError: The value does not satisfy the schema. Its `errors` are the faults, up to ten.

    Example:
        >>> from synmod.data import schema_from
        >>> validate(schema_from({"type": "integer"}, root="any"), 1, "answer/count")

    Source: jsonschema's `validate`; differs: names every fault with its place.
    """
    if not is_valid(schema, json):
        faults = problems(schema, json)
        lines = [f"{fault.pointer[:200] or 'the whole'}: wanted {fault.wanted}, got {fault.got}" for fault in faults]
        details = lines[0] if len(lines) == 1 else "\n  " + "\n  ".join(lines)
        raise errors.SchemaError(f"{where}: the value does not satisfy its schema: {details}", faults)


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
        modifiers = ("minContains", "maxContains") if keyword == "contains" else ()
        names = schema.keys() if keyword.startswith("unevaluated") else (keyword, *modifiers)
        alone = frozen_dict({name: schema[name] for name in names if name in schema})
        return self._holds((id(schema), keyword), alone, schema, json)

    def _holds(self, key: object, schema: Mapping[str, Any], owner: Any, json: Any) -> bool:
        if key not in self._compiled:
            whole = {"$defs": self.root["$defs"], **schema} if references(schema) else schema
            self._compiled[key] = compile_schema(thaw(whole)), owner
        try:
            return self._compiled[key][0](json)
        except ValueError:  # two values of unbounded depth were compared
            return False

    def target(self, schema: Mapping[str, Any]) -> Any:
        """Return the target of a schema's `$ref`."""
        return target_of(self.root, schema["$ref"])

    def resolve(self, schema: Any) -> Any:
        """Return the target of a reference without other demands, else the schema itself."""
        while is_object(schema) and "$ref" in schema and schema.keys() <= NO_DEMANDS | {"$ref"}:
            schema = self.target(schema)
        return schema


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
            for demand in self._own_faults(schema, json) if schema is not False else ("nothing here",):
                yield errors.Problem(leaves.pointer(steps), demand, short_json(json))
        demanding = [schema for schema in in_force if is_object(schema)]
        for step, part in json.items() if is_object(json) else enumerate(json) if is_array(json) else ():
            demands = [demand for schema in demanding for demand in _demands_of(schema, step)]
            if False in demands:
                yield errors.Problem(
                    leaves.pointer((*steps, step)), _surplus_text(step, demanding, json), short_json(part)
                )
            failing = [demand for demand in demands if demand is not False and not self.holds(demand, part)]
            if failing:
                yield from self.faults(failing, part, (*steps, step))

    def _in_force(self, schemas: list[Any], json: Any) -> list[Any]:
        """Return all schemas that apply: those given, references, `allOf`, branches taken, the alternative meant."""
        in_force: dict[int, Any] = {}
        pending = list(schemas)
        for part in pending:  # grows while it is read
            if part is True or id(part) in in_force:
                continue
            in_force[id(part)] = part
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
        return list(in_force.values())

    def _own_faults(self, schema: Mapping[str, Any], json: Any) -> Iterator[str]:
        """Yield the faults of the value itself, without those of its parts."""
        for keyword in schema:
            if keyword in _FOUND_ELSEWHERE or self.passes(keyword, schema, json):
                continue
            if keyword not in ("anyOf", "oneOf"):
                yield self._demand_text(keyword, schema)
            elif not self._meant(schema, json):
                right = [arm for arm in self._alternatives(schema, keyword) if self._has_type(arm, json)]
                texts = [next(self._own_faults(arm, json), "") for arm in right if is_object(arm)]
                yield _join(texts) if texts and all(texts) else self._demand_text(keyword, schema)
        if is_object(json):
            yield from (f"the key {name!r}" for name in schema.get("required", ()) if name not in json)
            names = schema.get("propertyNames", True)
            for name in json:
                if not self.holds(names, name):
                    yield f"keys that are {self._describe(names)}, and not {short_json(name)}"

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
        for arm in map(self.resolve, schema[keyword]):
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
            if name in json and constants_of(schema)
        )

    def _tag(self, schema: Mapping[str, Any], arms: list[Any]) -> FrozenDict | None:
        """Return the schema of the field whose constants tell alternatives apart, or None."""
        declared: list[Mapping[str, Any]] = [arm.get("properties", {}) if is_object(arm) else {} for arm in arms]
        discriminator: Any = schema.get("discriminator")
        first: Any = discriminator.get("propertyName", "") if is_object(discriminator) else ""
        for name in (first, *declared[0]) if len(arms) > 1 else ():
            constants = [constants_of(self.resolve(fields.get(name))) for fields in declared]
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

    def _demand_text(self, keyword: str, schema: Mapping[str, Any], within: int = 2) -> str:
        """Describe what one keyword of a schema demands; alternatives are described `within` levels deep."""
        value = schema[keyword]
        if keyword in _WORDS:
            return _WORDS[keyword](value)
        if keyword in ("anyOf", "oneOf"):
            arms = _join([self._describe(arm, within - 1) for arm in islice(value, _CHOICES + 1)])
            return f"exactly one of: {arms}" if keyword == "oneOf" else arms
        if keyword == "not":
            return f"not {self._describe(value)}"
        if keyword == "contains":
            least, most = schema.get("minContains", 1), schema.get("maxContains")
            return f"{f'at least {least}' if most is None else f'{least} to {most}'} item(s) that are " + (
                self._describe(value)
            )
        return f"{keyword} {short_json(value)}"

    def _describe(self, schema: Any, within: int = 2) -> str:
        """Describe what a schema demands, in a few words."""
        schema = self.resolve(schema)
        if not is_object(schema):
            return "anything" if schema else "nothing"
        for keyword in ("const", "enum", "type", *(("anyOf", "oneOf") if within else ())):
            if keyword in schema:
                return self._demand_text(keyword, schema, within)
        return "anything" if schema.keys() <= ANNOTATIONS else f"a value for {short_json(schema)}"


def constants_of(schema: Any) -> list[Any]:
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


def _surplus_text(step: Step, schemas: list[dict[str, Any]], json: Any) -> str:
    """Describe an item or key that the schema does not allow, with the key that may have been meant."""
    if isinstance(step, int):
        return "no item"
    missing = [name for schema in schemas for name in schema.get("properties", ()) if name not in json]
    guess = leaves.did_you_mean(step, missing[:500])
    return f"no key {step!r:.100}{guess and f'.{guess}'}"


def short_json(json: Any) -> str:
    """Return a value as JSON text, cut to 200 characters; a large value is encoded only as far as it is shown."""
    cut = json[: _LONGEST + 1] if isinstance(json, str) else json
    text = ""
    for chunk in _ENCODER.iterencode(cut):
        text += chunk[: _LONGEST + 1]
        if len(text) > _LONGEST:
            return text[: _LONGEST - 1] + "…"
    return text


_ENCODER: Final = JSONEncoder(ensure_ascii=False)


def _join(texts: list[str]) -> str:
    """Join alternatives, each once."""
    distinct = list(dict.fromkeys(texts))
    return " or ".join(distinct[:_CHOICES]) + (" or …" if len(distinct) > _CHOICES else "")


def _any_of_these(values: list[Any]) -> str:
    return f"one of {', '.join(map(short_json, values[:_CHOICES]))}" + (", …" if len(values) > _CHOICES else "")


_WORDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "const": short_json,
    "enum": _any_of_these,
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
    "pattern": lambda value: f"a text that matches {short_json(value)}",
    "type": lambda value: _join(value if is_array(value) else [value]),
    "uniqueItems": lambda _: "items that all differ",
}
