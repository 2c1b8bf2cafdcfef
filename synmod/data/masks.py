"""Masks: keep only, or remove, the fields that patterns name, in schemas and values alike.

A mask is compiled into *places*, each with a decision on its fields: keep, remove, or mask further. *Positions* are the
steps of each pattern that remain at a place. A recursive schema has cyclic places.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel

from synmod import errors, leaves

from . import schema as schemas
from .declaring import HasSchema, declare
from .schema import Schema, intern_schema

Pattern: TypeAlias = str | list[str]
"""A pattern as JSON: steps joined by `/`, or a list of steps."""

Positions: TypeAlias = frozenset[tuple[str, ...]]
"""The remaining steps of each pattern; `()` where one ends."""

_MOST_PLACES: Final = 5_000
_ANY: Final = ("*", "**")
_ALTERNATIVES: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_OBJECT_KEYWORDS: Final = frozenset({"properties", "additionalProperties", "patternProperties"})
_DROPPED: Final = frozenset(
    {
        *("$defs", "default", "discriminator", "examples", "contains", "maxContains", "minContains", "minProperties"),
        *("dependentRequired", "dependentSchemas", "if", "then", "else", "not"),
        *("unevaluatedItems", "unevaluatedProperties", "uniqueItems"),
    }
)
"""Keywords that may not be true of the masked value. A schema without them is looser, never wrong."""


def patterns_of(mask: Any, *, recursive: bool = False) -> list[Pattern]:
    """Return the patterns of a mask as JSON.

    Raises:
        SchemaError: The mask is empty.
        ArgumentError: The mask is not a pattern, a list of patterns, or a data model.
    """
    if isinstance(mask, HasSchema | BaseModel) or (isinstance(mask, type) and issubclass(mask, BaseModel)):
        items: list[Any] = [(name,) for name in schemas.properties_of(declare(mask))]
    else:
        items = cast("list[Any]", mask) if isinstance(mask, list) else [mask]
    patterns: list[Pattern] = []
    for pattern in items:
        steps = ["**"] * recursive + _steps_of(pattern)
        patterns.append(steps if any("/" in step for step in steps) else "/".join(steps))
    if not patterns:
        raise errors.SchemaError("A mask without a pattern names no field: write at least one.")
    return patterns


def _steps_of(pattern: object) -> list[str]:
    """Return the steps of a pattern."""
    if isinstance(pattern, str):
        return pattern.split("/")
    if leaves.is_sequence(pattern) and pattern and all(isinstance(step, str) for step in pattern):
        return list(pattern)
    expected = "a pattern such as 'field/field', a list of them or a data model"
    raise errors.ArgumentError(leaves.must_be("A mask", expected, pattern))


class Mask:
    """Applies `in_mask` or `out_mask` to a schema, and to its values.

    Attributes:
        schema: Schema of the result.

    Args:
        schema: Schema of the operand.
        patterns: As `patterns_of` returns them.
        keep: Whether the fields named are kept; else they are removed.

    Raises:
        SchemaError: A pattern matches nothing in the schema.
        SchemaTooComplex: The patterns go through a recursive schema in too many ways.
    """

    def __init__(self, schema: Schema, patterns: Sequence[Pattern], *, keep: bool) -> None:
        moved = schemas.portable(schema)
        steps = [tuple(_steps_of(pattern)) for pattern in patterns]
        for pattern, own_steps in zip(patterns, steps, strict=True):
            _Places(moved, [own_steps]).check(pattern)
        self._keep = keep
        self._place = _Places(moved, steps).prune()
        self.schema = intern_schema(_Writer(moved, self._place, keep).written)

    def __call__(self, json: leaves.FrozenDict) -> Any:
        """Return the masked value; untouched parts are shared."""
        return _mask_value(json, self._place, self._keep)


class _Place:
    """Which fields are kept, removed, or masked further at one place.

    Attributes:
        nodes: The schemas at this place that declare an object.
        positions: The steps that remain here.
        last_steps: The steps that would end a pattern here.
        is_open: Whether one of the schemas admits undeclared keys.
        decisions: For each declared field, and for None (any undeclared key): True if a pattern ends there, a place if
            one continues below, else None.
    """

    def __init__(self, nodes: list[leaves.FrozenDict], positions: Positions) -> None:
        self.nodes = nodes
        self.positions = positions
        self.left = min(map(len, positions), default=0)
        self.last_steps = {steps[0] for steps in positions if len(steps) == 1}
        self.is_open = any(True for node in nodes for _ in _extra_schemas(node))
        self.decisions: dict[str | None, _Place | bool | None] = {}

    def decision(self, key: str) -> "_Place | bool | None":
        """Return the decision of a key, declared or not."""
        if key in self.decisions:
            return self.decisions[key]
        return True if any(_matches(step, key) for step in self.last_steps) else self.decisions.get(None)


class _Places:
    """The places of some patterns on one schema, whose references all go to definitions."""

    def __init__(self, schema: Mapping[str, Any], patterns: Iterable[tuple[str, ...]]) -> None:
        self._schema = schema
        self._known: dict[tuple[frozenset[int], Positions], _Place] = {}
        self._pending: list[_Place] = []
        self.root = self._place_of([schema], _with_empty_matches(patterns))
        while self._pending:
            place = self._pending.pop()
            declared = dict.fromkeys(name for node in place.nodes for name in node.get("properties", ()))
            for name in (*declared, None) if place.is_open else declared:
                place.decisions[name] = self._next(place, name)

    def _place_of(self, parts: Iterable[Any], positions: Positions) -> _Place:
        nodes = {id(node): node for node in self._expand(parts) if _declares_object(node)}
        key = frozenset(nodes), positions
        if key not in self._known:
            if len(self._known) >= _MOST_PLACES:
                raise errors.SchemaTooComplex(f"The mask needs more than {_MOST_PLACES:,} steps on this schema.")
            self._known[key] = _Place(list(nodes.values()), positions)
            self._pending.append(self._known[key])
        return self._known[key]

    def _next(self, place: _Place, name: str | None) -> _Place | bool | None:
        positions = _advance(place.positions, name)
        if () in positions:
            return True
        if not positions:
            return None
        parts: list[Any] = []
        for node in place.nodes:
            declared = node.get("properties", {})
            parts.extend((declared[name],) if name in declared else _extra_schemas(node))
        return self._place_of(parts, positions)

    def _expand(self, parts: Iterable[Any]) -> Iterator[leaves.FrozenDict]:
        """Yield all schemas that describe the same place: alternatives, references and lists are followed."""
        pending, visited = list(parts)[::-1], set[int]()
        while pending:
            node = pending.pop()
            if not isinstance(node, leaves.FrozenDict) or id(node) in visited:
                continue
            visited.add(id(node))
            yield node
            if isinstance(node.get("$ref"), str):
                pending.append(schemas.target_of(self._schema, node["$ref"]))
            for keyword in _ALTERNATIVES:
                pending.extend(reversed(node.get(keyword, ())))
            pending.extend(node[keyword] for keyword in ("items", "unevaluatedItems") if keyword in node)

    def prune(self) -> _Place:
        """Remove the places below which no pattern ends, and return the root."""
        useful: set[Any] = {True}
        count = 0
        while len(useful) > count:
            count = len(useful)
            for place in self._known.values():
                if not useful.isdisjoint(place.decisions.values()) or (place.is_open and place.last_steps):
                    useful.add(place)
        for place in self._known.values():
            place.decisions = {name: below if below in useful else None for name, below in place.decisions.items()}
        return self.root

    def check(self, pattern: Pattern) -> None:
        """Raise SchemaError unless the one pattern matches a declared field, or is an exact name at an open object."""
        for place in self._known.values():
            exact = any(not ("*" in step or "?" in step) for step in place.last_steps)
            if True in place.decisions.values() or (place.is_open and exact) or () in place.positions:
                return
        stuck = min((place for place in self._known.values() if place.nodes), key=lambda place: place.left)
        step = max(steps for steps in stuck.positions if len(steps) == stuck.left)[0]
        fields = [name for name in stuck.decisions if name is not None]
        below = " Below an open dictionary write `*` in place of the key." if stuck.is_open else ""
        there = f"the fields at that place are {', '.join(map(repr, fields)) or 'none'}"
        hint = leaves.did_you_mean(step, fields)
        raise errors.SchemaError(f"The mask {pattern!r} matches nothing: {there}.{hint}{below}")


def _advance(positions: Positions, name: str | None) -> Positions:
    """Return the positions below a field, or below a key of unknown name (None)."""
    after: list[tuple[str, ...]] = []
    for steps in positions:
        if steps and steps[0] == "**":
            after.append(steps)
        elif steps and (steps[0] in _ANY if name is None else _matches(steps[0], name)):
            after.append(steps[1:])
    return _with_empty_matches(after)


def _with_empty_matches(patterns: Iterable[tuple[str, ...]]) -> Positions:
    """Add the positions that are reached when `**` matches no step."""
    closed = set[tuple[str, ...]]()
    for steps in patterns:
        closed.add(steps)
        while steps and steps[0] == "**":
            steps = steps[1:]
            closed.add(steps)
    return frozenset(closed)


def _matches(step: str, name: str) -> bool:
    return step == name or fnmatchcase(name, step.replace("[", "[[]"))


def _declares_object(node: leaves.FrozenDict) -> bool:
    """Whether a schema itself declares an object."""
    kind = node.get("type")
    if kind is None:
        return not _OBJECT_KEYWORDS.isdisjoint(node)
    return kind == "object" or (leaves.is_array(kind) and "object" in kind)


def _extra_schemas(node: leaves.FrozenDict) -> Iterator[Any]:
    """Yield the schemas of the keys that a schema does not declare."""
    yield from node.get("patternProperties", {}).values()
    extra = node.get("additionalProperties", True)
    if extra is not False:
        yield extra


def _mask_value(json: Any, place: _Place, keep: bool) -> Any:
    """Mask a value; lists are transparent, scalars stay."""
    if isinstance(json, leaves.FrozenList):
        return leaves.frozen_list([_mask_value(item, place, keep) for item in json])
    if not isinstance(json, leaves.FrozenDict):
        return json
    left: dict[str, Any] = {}
    for key, content in json.items():
        decision = place.decision(key)
        if isinstance(decision, _Place):
            left[key] = _mask_value(content, decision, keep)
        elif (decision is True) is keep:
            left[key] = content
    return leaves.frozen_dict(left)


class _Writer:
    """Writes the schema of the masked values; a definition is split where its uses differ."""

    def __init__(self, schema: leaves.FrozenDict, place: _Place, keep: bool) -> None:
        self._schema = schema
        self._keep = keep
        self._variants: dict[tuple[str, int], str] = {}
        self._first_use: dict[str, str] = {}
        self._unwritten: list[tuple[str, str, _Place]] = []
        whole: Mapping[str, Any] = schema.get("$defs", {})
        self._taken = set(whole)
        texts = {key: schema[key] for key in ("title", "description") if key in schema}
        root = self._mask_schema(schemas.root_of(schema), place)
        written: Any = leaves.frozen_dict({**root, **texts, "type": "object"})
        bodies: dict[str, Any] = {}
        while self._unwritten:
            name, reference, below = self._unwritten.pop()
            bodies[name] = self._mask_schema(schemas.target_of(schema, reference), below)
        definitions = schemas.used_definitions([written], {**whole, **bodies})
        names = {new: old for old, new in self._first_use.items() if old not in definitions and new in definitions}
        written = schemas.rename_definitions(written, names)
        bodies = {names.get(name, name): schemas.rename_definitions(body, names) for name, body in definitions.items()}
        self.written = dict(sorted({**({"$defs": leaves.frozen_dict(bodies)} if bodies else {}), **written}.items()))

    def _mask_schema(self, schema: Any, place: _Place) -> Any:
        """Write one schema at a place that the mask passes through."""
        if not isinstance(schema, leaves.FrozenDict):
            return schema
        new: dict[str, Any] = {key: value for key, value in schema.items() if key not in _DROPPED}
        if any(isinstance(member, dict | list) for member in (*new.get("enum", ()), new.get("const"))):
            new = {key: value for key, value in new.items() if key not in {"enum", "const"}}
        for keyword in _ALTERNATIVES:
            if keyword in new:
                new[keyword] = leaves.frozen_list([self._mask_schema(arm, place) for arm in new[keyword]])
        if "items" in new:
            new["items"] = self._mask_schema(new["items"], place)
        if "$ref" in new:
            new["$ref"] = self._variant(new["$ref"], place)
        if "oneOf" in new:  # masked alternatives may be equal
            arms = new.pop("oneOf")
            new.setdefault("anyOf", arms)
        if "required" in new:
            required = [name for name in new.pop("required") if self._stays(place.decision(name))]
            if required:
                new["required"] = leaves.frozen_list(required)
        if _declares_object(schema):
            if "properties" in new:
                new["properties"] = leaves.frozen_dict(
                    {
                        name: self._mask_schema(field, decision) if isinstance(decision, _Place) else field
                        for name, field in new["properties"].items()
                        if self._stays(decision := place.decision(name))
                    }
                )
            self._mask_extra_keys(new, place)
        return leaves.frozen_dict(new)

    def _stays(self, decision: _Place | bool | None) -> bool:
        return isinstance(decision, _Place) or (decision is True) is self._keep

    def _mask_extra_keys(self, new: dict[str, Any], place: _Place) -> None:
        """Write what undeclared keys may be; the object is closed only if no other schema describes it."""
        extra = place.decisions.get(None)
        # a pattern that is not just `*` may keep some of them whole
        also_whole = self._keep and any(step not in place.decisions and step not in _ANY for step in place.last_steps)
        if isinstance(extra, _Place):

            def mask(field: Any) -> Any:
                left = self._mask_schema(field, extra)
                return leaves.frozen_dict({"anyOf": leaves.frozen_list([left, field])}) if also_whole else left

            if isinstance(new.get("additionalProperties"), leaves.FrozenDict):
                new["additionalProperties"] = mask(new["additionalProperties"])
            if "patternProperties" in new:
                new["patternProperties"] = leaves.frozen_dict(
                    {key: mask(field) for key, field in new["patternProperties"].items()}
                )
        elif not self._stays(extra) and len(place.nodes) == 1 and not (place.is_open and also_whole):
            new.pop("patternProperties", None)
            new["additionalProperties"] = False

    def _variant(self, reference: str, place: _Place) -> str:
        """Return the reference to a masked copy of a definition; the whole definition stays for other uses."""
        key = (reference, id(place))
        if key not in self._variants:
            old = schemas.definition_of(reference) or "Root"
            name = leaves.next_name(old, self._taken)
            self._taken.add(name)
            self._first_use.setdefault(old, name)
            self._variants[key] = name
            self._unwritten.append((name, reference, place))
        return f"#/$defs/{schemas.escape(self._variants[key])}"
