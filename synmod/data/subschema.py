"""Whether every value of one schema is known to be a value of another, and whether one data model contains another.

Proofs are sound, and decide the schemas that programs use: types, enums, properties, items, bounds, alternatives and
references are analysed; any other keyword of the wider schema must be equal in the narrower one. A pair that comes up
again below a property or an item is assumed to be proven, which is sound because values are finite (induction over
their depth); the assumption is withdrawn if the proof that made it fails.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, Final

from synmod.leaves import frozen_dict, is_object, json_equal

from .faults import SubschemaChecks, constants_of
from .merge import same_definitions
from .schema import NO_DEMANDS, Schema, SchemaParts, definition_of, parts_of, references, without_annotations

_MAX_KEPT: Final = 1_024
_MAX_STEPS: Final = 20_000


def proven(sub: Schema, sup: Schema) -> bool:
    """Whether every value that is valid for `sub` is known to be valid for `sup`; kept per pair. Hot."""
    return sub is sup or _remember(_is_provable, sub, sup)


def includes(whole: Schema, part: Schema) -> bool:
    """Whether a schema contains another; kept per pair."""
    return whole is part or _remember(_includes, whole, part)


def _remember(question: Callable[[Schema, Schema], bool], left: Schema, right: Schema) -> bool:
    """Return the answer to a question about two schemas; it is kept with the first."""
    key = question, right.serial
    answer = left.answers.get(key)
    if answer is None:
        answer = question(left, right)
        if len(left.answers) >= _MAX_KEPT:
            left.answers.clear()
        left.answers[key] = answer
    return answer


def _includes(schema: Schema, included: Schema) -> bool:
    whole, part = parts_of(schema), parts_of(included)
    if not set(part.required) <= set(whole.required):
        return False
    shared = [name for name in part.fields if name in whole.fields]
    narrow, wide = (
        SchemaParts({name: parts.fields[name] for name in shared}, (), extra, parts.definitions).schema
        for parts, extra in ((whole, False), (part, True))
    )
    return proven(narrow, wide)


_TYPES: Final = frozenset({"array", "boolean", "fraction", "integer", "null", "object", "string"})
"""The types of JSON values; a number is an integer (as is 1.0) or a fraction."""

_LOWER: Final = {"minItems": "array", "minLength": "string", "minProperties": "object"}
_UPPER: Final = {"maxItems": "array", "maxLength": "string", "maxProperties": "object"}
_CONCERNED: Final[Mapping[str, str]] = {
    **_LOWER,
    **_UPPER,
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"), "number"),
    **dict.fromkeys(("contains", "items", "prefixItems", "unevaluatedItems", "uniqueItems"), "array"),
    **dict.fromkeys(("additionalProperties", "dependentRequired", "dependentSchemas", "patternProperties"), "object"),
    **dict.fromkeys(("properties", "propertyNames", "required", "unevaluatedProperties"), "object"),
    "pattern": "string",
}
"""The type of value that a keyword constrains; values of other types satisfy it."""

_FOLLOWED: Final = NO_DEMANDS | {"$ref", "allOf", "then", "else", "minContains", "maxContains"}
"""Keywords that demand nothing, are followed by `_together`, or belong to another keyword."""

_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "additionalProperties": ("additionalProperties", "patternProperties", "properties"),
    "contains": ("contains", "minContains", "maxContains"),
    "if": ("if", "then", "else"),
    "items": ("items", "prefixItems"),
}
"""Keywords whose meaning depends on others in the same schema."""


class _TooManySteps(Exception):
    """A proof took too many steps."""


def _is_provable(left: Schema, right: Schema) -> bool:
    """Try to prove; what is too complex to decide is not proven."""
    proof = _Proof(left, right)
    try:
        return proof.same(proof.left.root, proof.right.root) or proof.implies([proof.left.root], proof.right.root)
    except (_TooManySteps, RecursionError):
        return False


class _Proof:
    """One attempt to prove; `left` is the schema that may be the narrower one."""

    def __init__(self, left: Schema, right: Schema) -> None:
        self.left = SubschemaChecks(left)
        self.right = SubschemaChecks(right)
        self.known: dict[tuple[frozenset[int], int], bool] = {}
        self.proven: list[tuple[frozenset[int], int]] = []
        self.made: dict[object, Any] = {}  # schemas made on the way, kept so that each is one object with one id
        self.steps = 0

    def implies(self, lefts: list[Any], right: Any) -> bool:
        """Prove that what satisfies all of `lefts` satisfies `right`."""
        key = frozenset(map(id, lefts)), id(right)
        if key in self.known:
            return self.known[key]
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise _TooManySteps
        self.known[key] = True
        start = len(self.proven)
        self.proven.append(key)
        if not self._follows(lefts, right):
            for later in self.proven[start:]:  # what was proven since then may rest on the assumption
                del self.known[later]
            del self.proven[start:]
            self.known[key] = False
        return self.known[key]

    def _follows(self, lefts: list[Any], right: Any) -> bool:
        parts = _together(self.left, lefts)
        if False in parts or not (types := _types(parts)):
            return True
        if all(self._meets(parts, types, demand) for demand in _together(self.right, [right])):
            return True
        for part in parts:  # each alternative must prove it
            for keyword in ("anyOf", "oneOf"):
                if keyword in part:
                    rest = [self._alone(fact, keyword if fact is part else None) for fact in parts]
                    return all(self.implies([*rest, arm], right) for arm in part[keyword])
        return False

    def _alone(self, part: Any, keyword: str | None) -> Any:
        """Return a part without one keyword, and without `$ref` and `allOf`, whose targets are parts of their own."""
        dropped = {keyword, "$ref", "allOf"}
        if not is_object(part) or dropped.isdisjoint(part):
            return part
        # `unevaluated...` would forbid what the dropped ones evaluate
        left = {k: v for k, v in part.items() if k not in dropped and not k.startswith("unevaluated")}
        return self.made.setdefault((id(part), keyword), frozen_dict(left))

    def _meets(self, parts: list[Any], types: frozenset[str], demand: Any) -> bool:
        """Prove every keyword of one schema."""
        if not is_object(demand):
            return demand
        members = _members(parts, types)
        if members is not None:
            real = [member for member in members if all(self.left.holds(part, member) for part in parts)]
            return all(self.right.holds(demand, member) for member in real)
        if not demand.keys().isdisjoint(("unevaluatedItems", "unevaluatedProperties")):
            return any(self.same(part, demand) for part in parts)  # they depend on all other keywords
        return all(
            self._meets_keyword(keyword, parts, types, demand)
            for keyword in demand
            if keyword not in _FOLLOWED and not types.isdisjoint(_kinds(_CONCERNED.get(keyword, _TYPES)))
        )

    def _meets_keyword(self, keyword: str, parts: list[Any], types: frozenset[str], demand: Mapping[str, Any]) -> bool:
        rule = _RULES.get(keyword)
        if rule is not None and rule(self, parts, types, demand):
            return True
        if keyword in _LOWER or keyword in _UPPER:
            return _meets_count(keyword, parts, demand[keyword])
        names = _TOGETHER.get(keyword, (keyword,))
        sought = {name: demand[name] for name in names if name in demand}
        return any(
            keyword in part and self.same({name: part[name] for name in names if name in part}, sought)
            for part in parts
        )

    def meets_any_of(self, parts: list[Any], types: frozenset[str], arms: list[Any]) -> bool:
        """Prove one alternative, or one for each type of value."""
        if any(self.implies(parts, arm) for arm in arms):
            return True
        if len(types) < 2:
            return False
        names = {kind: "number" if kind == "fraction" else kind for kind in sorted(types)}
        of_type = [self.made.setdefault(kind, frozen_dict({"type": name})) for kind, name in names.items()]
        return all(any(self.implies([*parts, only], arm) for arm in arms) for only in of_type)

    @cached_property
    def common(self) -> set[str]:
        """The definitions that demand the same on both sides."""
        return same_definitions(_definitions(self.left.root), _definitions(self.right.root))

    def same(self, a: Any, b: Any) -> bool:
        """Whether a part of the left and a part of the right demand the same in the same words, annotations aside."""
        is_equal = json_equal(_demands(a), _demands(b))
        return is_equal and all(definition_of(reference) in self.common for reference in references(a))


def _demands(schema: Any) -> Any:
    """Return what a part of a schema demands."""
    plain = without_annotations(schema)
    return {name: plain[name] for name in plain if name not in NO_DEMANDS} if is_object(plain) else plain


def _definitions(root: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definitions of a schema, without annotations."""
    return {name: without_annotations(definition) for name, definition in root.get("$defs", {}).items()}


def _together(checks: SubschemaChecks, schemas: Iterable[Any]) -> list[Any]:
    """Return the schemas and all that apply with them, through references and `allOf`; each once."""
    parts: dict[int, Any] = {}
    pending = list(schemas)
    for part in pending:  # grows while it is read
        if part is not True and id(part) not in parts:
            parts[id(part)] = part
            if is_object(part):
                pending.extend(part.get("allOf", ()))
                if "$ref" in part:
                    pending.append(checks.target(part))
    return list(parts.values())


def _kinds(types: Any) -> frozenset[str]:
    names = frozenset({types} if isinstance(types, str) else types)
    return names | {"integer", "fraction"} if "number" in names else names


def _types(parts: Iterable[Any]) -> frozenset[str]:
    return _TYPES.intersection(*(_kinds(part["type"]) for part in parts if is_object(part) and "type" in part))


def _members(parts: list[Any], types: frozenset[str]) -> list[Any] | None:
    """Return a list of all possible values, None where they are not finitely many."""
    for part in parts:
        if "const" in part:
            return [part["const"]]
        if "enum" in part:
            return part["enum"]
    finite = {"null": [None], "boolean": [True, False]}
    return [value for kind in types for value in finite[kind]] if types <= finite.keys() else None


def _values(parts: list[Any], keyword: str) -> list[Any]:
    return [part[keyword] for part in parts if keyword in part]


def _mandatory_names(parts: list[Any]) -> set[str]:
    return {name for names in _values(parts, "required") for name in names}


def _of_key(parts: list[Any], name: str | None) -> list[Any]:
    """Return the schemas that the value of a key satisfies, declared or not (None)."""
    schemas: list[Any] = []
    for part in parts:
        if name is not None and name in part.get("properties", ()):
            schemas.append(part["properties"][name])
        elif "patternProperties" not in part:  # a pattern may match it
            schemas.append(part.get("additionalProperties", True))
    return schemas


def _of_item(parts: list[Any], index: int) -> list[Any]:
    """Return the schemas that the item at an index satisfies."""
    prefixes = [(part.get("prefixItems", ()), part.get("items", True)) for part in parts]
    return [prefix[index] if index < len(prefix) else rest for prefix, rest in prefixes]


def _most_items(parts: list[Any]) -> float:
    closed = [len(part.get("prefixItems", ())) for part in parts if part.get("items") is False]
    return min([*_values(parts, "maxItems"), *closed], default=float("inf"))


def _meets_count(keyword: str, parts: list[Any], bound: Any) -> bool:
    """Prove a bound on a length or a number of entries."""
    bounds = _values(parts, keyword)
    if keyword in _LOWER:
        bounds.append(len(_mandatory_names(parts)) if keyword == "minProperties" else 0)
        return max(bounds) >= bound
    if keyword == "maxItems":
        bounds.append(_most_items(parts))
    if keyword == "maxProperties" and False in _of_key(parts, None):
        bounds.append(len({name for names in _values(parts, "properties") for name in names}))
    return min(bounds, default=float("inf")) <= bound


def _additional_properties(proof: _Proof, parts: list[Any], demand: Mapping[str, Any]) -> bool:
    """Prove the keys that only the left declares, and those that neither side declares."""
    if "patternProperties" in demand:
        return False
    declared = {name for names in _values(parts, "properties") for name in names}
    extra = sorted(declared - demand.get("properties", {}).keys())
    return all(proof.implies(_of_key(parts, name), demand["additionalProperties"]) for name in (*extra, None))


def _items(proof: _Proof, parts: list[Any], demand: Mapping[str, Any]) -> bool:
    """Prove the items behind the prefix on the right: those of a longer prefix on the left, then all others."""
    start = len(demand.get("prefixItems", ()))
    last = max(start, *(len(part.get("prefixItems", ())) for part in parts), 0)
    indices = range(start, last + 1)
    return all(at >= _most_items(parts) or proof.implies(_of_item(parts, at), demand["items"]) for at in indices)


def _one_of(proof: _Proof, parts: list[Any], types: frozenset[str], demand: Mapping[str, Any]) -> bool:
    """Prove `oneOf` as `anyOf` if no two arms can both hold: a required property has different constants in each."""
    arms = [proof.right.resolve(arm) for arm in demand["oneOf"]]
    names = [name for name in _constants(arms[0]) if all(name in _constants(arm) for arm in arms)]
    for name in names:
        constants = [_constants(arm)[name] for arm in arms]
        differ = len(set[str]().union(*constants)) == sum(map(len, constants))
        always = name in _mandatory_names(parts) or all(name in arm.get("required", ()) for arm in arms)
        if differ and always and types <= {"object"}:
            return proof.meets_any_of(parts, types, demand["oneOf"])
    return False


def _constants(arm: Any) -> Mapping[str, set[str]]:
    """Return the properties of an arm that are limited to some texts, with these texts."""
    fields: Mapping[str, Any] = arm.get("properties", {}) if is_object(arm) else {}
    constants = {name: constants_of(field) for name, field in fields.items()}
    return {name: {*texts} for name, texts in constants.items() if texts and all(isinstance(x, str) for x in texts)}


def _meets_bound(keyword: str, _: _Proof, parts: list[Any], __: frozenset[str], demand: Mapping[str, Any]) -> bool:
    """Prove a bound of numbers by an equal or a tighter one, inclusive or exclusive."""
    bound = demand[keyword]
    exclusive = keyword.startswith("exclusive")
    end = keyword[-7:].lower()
    sign = 1 if end == "minimum" else -1
    inclusive, strict = _values(parts, end), _values(parts, f"exclusive{end.capitalize()}")
    return any(sign * value > sign * bound or (value == bound and not exclusive) for value in inclusive) or any(
        sign * value >= sign * bound for value in strict
    )


def _prefix_items(proof: _Proof, parts: list[Any], demand: Mapping[str, Any]) -> bool:
    most = _most_items(parts)
    return all(at >= most or proof.implies(_of_item(parts, at), item) for at, item in enumerate(demand["prefixItems"]))


_Rule = Callable[[_Proof, list[Any], frozenset[str], Mapping[str, Any]], bool]

_BOUNDS: Final = ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum")
_RULES: Final[Mapping[str, _Rule]] = {
    **{keyword: partial(_meets_bound, keyword) for keyword in _BOUNDS},
    "additionalProperties": lambda proof, parts, _, demand: _additional_properties(proof, parts, demand),
    "anyOf": lambda proof, parts, types, demand: proof.meets_any_of(parts, types, demand["anyOf"]),
    "items": lambda proof, parts, _, demand: _items(proof, parts, demand),
    "oneOf": _one_of,
    "prefixItems": lambda proof, parts, _, demand: _prefix_items(proof, parts, demand),
    "properties": lambda proof, parts, _, demand: all(
        proof.implies(_of_key(parts, name), schema) for name, schema in demand["properties"].items()
    ),
    "required": lambda _, parts, __, demand: _mandatory_names(parts).issuperset(demand["required"]),
    "type": lambda _, __, types, demand: types <= _kinds(demand["type"]),
    "uniqueItems": lambda _, parts, __, demand: not demand["uniqueItems"] or _most_items(parts) <= 1,
}
"""What proves a keyword, in addition to an equal one on the left."""
