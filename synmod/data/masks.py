"""Masks: keep only, or remove, the fields that patterns name, in schemas and values alike.

A mask is compiled into *shapes*: the fate of each field at one place of a schema. *Positions* are the steps of each
pattern that remain at a place. A recursive schema has cyclic shapes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel

from synmod import errors, leaves

from . import schema as schemas
from .models import Described, declare
from .schema import Schema, trusted_schema

Pattern: TypeAlias = str | list[str]
"""A pattern as JSON: steps joined by `/`, or a list of steps."""

Positions: TypeAlias = frozenset[tuple[str, ...]]
"""The remaining steps of each pattern; `()` where one ends."""

_MOST_SHAPES: Final = 5_000
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
        SchemaError: There is no pattern.
        ArgumentError: The mask is not a pattern, a list of patterns, or a data model.
    """
    if isinstance(mask, Described | BaseModel) or (isinstance(mask, type) and issubclass(mask, BaseModel)):
        given: list[Any] = [(name,) for name in schemas.properties_of(declare(mask))]
    else:
        given = cast("list[Any]", mask) if isinstance(mask, list) else [mask]
    patterns: list[Pattern] = []
    for pattern in given:
        steps = ["**"] * recursive + _steps_of(pattern)
        patterns.append(steps if any("/" in step for step in steps) else "/".join(steps))
    if not patterns:
        raise errors.SchemaError("A mask without a pattern names no field: write at least one.")
    return patterns


def _steps_of(pattern: object) -> list[str]:
    """Return the steps of a pattern."""
    if isinstance(pattern, str):
        return pattern.split("/")
    if isinstance(pattern, list | tuple) and pattern and all(isinstance(step, str) for step in cast("Any", pattern)):
        return list(cast("list[str]", pattern))
    raise errors.ArgumentError(
        f"A mask is a pattern, a list of patterns or a data model, got {pattern!r:.100}: write 'field/field', or the "
        "steps as a tuple."
    )


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
        for each, pattern in zip(steps, patterns, strict=True):
            _Shapes(moved, [each]).check(pattern)
        self._keep = keep
        self._shape = _Shapes(moved, steps).pruned()
        self.schema = trusted_schema(_Writer(moved, self._shape, keep).written)

    def __call__(self, json: leaves.FrozenDict) -> Any:
        """Return the masked value; untouched parts are shared."""
        return _masked(json, self._shape, self._keep)


class _Shape:
    """The fate of the fields at one place.

    Attributes:
        nodes: The schemas at this place that declare an object.
        positions: The steps that remain here.
        last_steps: The steps that would end a pattern here.
        is_open: Whether one of the schemas admits undeclared keys.
        fates: For each declared field, and for None (any undeclared key): True if a pattern ends there, a shape if one
            continues below, else None.
    """

    def __init__(self, nodes: list[leaves.FrozenDict], positions: Positions) -> None:
        self.nodes = nodes
        self.positions = positions
        self.last_steps = {steps[0] for steps in positions if len(steps) == 1}
        self.is_open = any(True for node in nodes for _ in _extra_schemas(node))
        self.fates: dict[str | None, _Shape | bool | None] = {}

    def fate(self, key: str) -> "_Shape | bool | None":
        """Return the fate of a key, declared or not."""
        if key in self.fates:
            return self.fates[key]
        return True if any(_matches(step, key) for step in self.last_steps) else self.fates.get(None)


class _Shapes:
    """The shapes of some patterns on one schema, whose references all go to definitions."""

    def __init__(self, schema: Mapping[str, Any], patterns: Iterable[tuple[str, ...]]) -> None:
        self._schema = schema
        self._known: dict[tuple[frozenset[int], Positions], _Shape] = {}
        self._pending: list[_Shape] = []
        self.root = self._shape([schema], _closed(patterns))
        while self._pending:
            shape = self._pending.pop()
            declared = dict.fromkeys(name for node in shape.nodes for name in node.get("properties", ()))
            for name in (*declared, None) if shape.is_open else declared:
                shape.fates[name] = self._below(shape, name)

    def _shape(self, parts: Iterable[Any], positions: Positions) -> _Shape:
        nodes = {id(node): node for node in self._expanded(parts) if _declares_object(node)}
        key = frozenset(nodes), positions
        if key not in self._known:
            if len(self._known) >= _MOST_SHAPES:
                raise errors.SchemaTooComplex(f"The mask needs more than {_MOST_SHAPES:,} steps on this schema.")
            self._known[key] = _Shape(list(nodes.values()), positions)
            self._pending.append(self._known[key])
        return self._known[key]

    def _below(self, shape: _Shape, name: str | None) -> _Shape | bool | None:
        positions = _advanced(shape.positions, name)
        if () in positions:
            return True
        if not positions:
            return None
        parts: list[Any] = []
        for node in shape.nodes:
            declared = node.get("properties", {})
            parts.extend((declared[name],) if name in declared else _extra_schemas(node))
        return self._shape(parts, positions)

    def _expanded(self, parts: Iterable[Any]) -> Iterator[leaves.FrozenDict]:
        """Yield all schemas that describe the same place: alternatives, references and lists are followed."""
        pending, seen = list(parts)[::-1], set[int]()
        while pending:
            node = pending.pop()
            if not isinstance(node, leaves.FrozenDict) or id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            if isinstance(node.get("$ref"), str):
                pending.append(schemas.target_of(self._schema, node["$ref"]))
            for keyword in _ALTERNATIVES:
                pending.extend(reversed(node.get(keyword, ())))
            pending.extend(node[keyword] for keyword in ("items", "unevaluatedItems") if keyword in node)

    def pruned(self) -> _Shape:
        """Remove the shapes below which no pattern ends, and return the root."""
        useful: set[Any] = {True}
        found = -1
        while len(useful) > found:
            found = len(useful)
            for shape in self._known.values():
                if not useful.isdisjoint(shape.fates.values()) or (shape.is_open and shape.last_steps):
                    useful.add(shape)
        for shape in self._known.values():
            shape.fates = {name: fate if fate in useful else None for name, fate in shape.fates.items()}
        return self.root

    def check(self, pattern: Pattern) -> None:
        """Raise SchemaError unless the one pattern matches a declared field, or is an exact name at an open object."""
        for shape in self._known.values():
            exact = any(not ("*" in step or "?" in step) for step in shape.last_steps)
            if True in shape.fates.values() or (shape.is_open and exact) or () in shape.positions:
                return
        stuck = min((shape for shape in self._known.values() if shape.nodes), key=lambda shape: _left(shape.positions))
        step = max(steps for steps in stuck.positions if len(steps) == _left(stuck.positions))[0]
        fields = [name for name in stuck.fates if name is not None]
        below = " Below an open dictionary write `*` in place of the key." if stuck.is_open else ""
        raise errors.SchemaError(
            f"The mask {pattern!r} matches nothing: the fields at that place are "
            f"{', '.join(map(repr, fields)) or 'none'}.{leaves.did_you_mean(step, fields)}{below}"
        )


def _left(positions: Positions) -> int:
    """Return the smallest number of steps that remain."""
    return min(map(len, positions))


def _advanced(positions: Positions, name: str | None) -> Positions:
    """Return the positions below a field; None stands for a key whose name is not known."""
    after: list[tuple[str, ...]] = []
    for steps in positions:
        if steps and steps[0] == "**":
            after.append(steps)
        elif steps and (steps[0] in _ANY if name is None else _matches(steps[0], name)):
            after.append(steps[1:])
    return _closed(after)


def _closed(patterns: Iterable[tuple[str, ...]]) -> Positions:
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


def _masked(json: Any, shape: _Shape, keep: bool) -> Any:
    """Mask a value; lists are transparent, scalars stay."""
    if isinstance(json, leaves.FrozenList):
        return leaves.frozen_list([_masked(item, shape, keep) for item in json])
    if not isinstance(json, leaves.FrozenDict):
        return json
    left: dict[str, Any] = {}
    for key, content in json.items():
        fate = shape.fate(key)
        if isinstance(fate, _Shape):
            left[key] = _masked(content, fate, keep)
        elif (fate is True) is keep:
            left[key] = content
    return leaves.frozen_dict(left)


class _Writer:
    """Writes the schema of the masked values; a definition is split where its uses differ."""

    def __init__(self, schema: leaves.FrozenDict, shape: _Shape, keep: bool) -> None:
        self._schema = schema
        self._keep = keep
        self._variants: dict[tuple[str, int], str] = {}
        self._first_use: dict[str, str] = {}
        self._unwritten: list[tuple[str, str, _Shape]] = []
        whole: Mapping[str, Any] = schema.get("$defs", {})
        self._taken = set(whole)
        texts = {key: schema[key] for key in ("title", "description") if key in schema}
        written: Any = leaves.frozen_dict({**self._masked(schemas.root_of(schema), shape), **texts, "type": "object"})
        bodies: dict[str, Any] = {}
        while self._unwritten:
            name, reference, below = self._unwritten.pop()
            bodies[name] = self._masked(schemas.target_of(schema, reference), below)
        definitions = schemas.used_definitions([written], {**whole, **bodies})
        names = {new: old for old, new in self._first_use.items() if old not in definitions and new in definitions}
        written = schemas.renamed_definitions(written, names)
        kept = {names.get(name, name): schemas.renamed_definitions(body, names) for name, body in definitions.items()}
        self.written = dict(sorted({**({"$defs": leaves.frozen_dict(kept)} if kept else {}), **written}.items()))

    def _masked(self, schema: Any, shape: _Shape) -> Any:
        """Write one schema at a place that the mask passes through."""
        if not isinstance(schema, leaves.FrozenDict):
            return schema
        new: dict[str, Any] = {key: value for key, value in schema.items() if key not in _DROPPED}
        if any(isinstance(member, dict | list) for member in (*new.get("enum", ()), new.get("const"))):
            new = {key: value for key, value in new.items() if key not in {"enum", "const"}}
        for keyword in _ALTERNATIVES:
            if keyword in new:
                new[keyword] = leaves.frozen_list([self._masked(arm, shape) for arm in new[keyword]])
        if "items" in new:
            new["items"] = self._masked(new["items"], shape)
        if "$ref" in new:
            new["$ref"] = self._variant(new["$ref"], shape)
        if "oneOf" in new:  # masked alternatives may be equal
            arms = new.pop("oneOf")
            if "anyOf" in new:
                new["allOf"] = leaves.frozen_list([*new.get("allOf", ()), leaves.frozen_dict({"anyOf": arms})])
            else:
                new["anyOf"] = arms
        if "required" in new:
            new["required"] = leaves.frozen_list([name for name in new["required"] if self._stays(shape.fate(name))])
            if not new["required"]:
                del new["required"]
        if _declares_object(schema):
            if "properties" in new:
                new["properties"] = leaves.frozen_dict(
                    {
                        name: self._masked(field, fate) if isinstance(fate, _Shape) else field
                        for name, field in new["properties"].items()
                        if self._stays(fate := shape.fate(name))
                    }
                )
            self._mask_extra_keys(new, shape)
        return leaves.frozen_dict(new)

    def _stays(self, fate: _Shape | bool | None) -> bool:
        return isinstance(fate, _Shape) or (fate is True) is self._keep

    def _mask_extra_keys(self, new: dict[str, Any], shape: _Shape) -> None:
        """Write what undeclared keys may be; the object is closed only if no other schema describes it."""
        extra = shape.fates.get(None)
        # a pattern that is not just `*` may keep some of them whole
        also_whole = self._keep and any(step not in shape.fates and step not in _ANY for step in shape.last_steps)
        if isinstance(extra, _Shape):

            def masked(field: Any) -> Any:
                left = self._masked(field, extra)
                return leaves.frozen_dict({"anyOf": leaves.frozen_list([left, field])}) if also_whole else left

            if isinstance(new.get("additionalProperties"), leaves.FrozenDict):
                new["additionalProperties"] = masked(new["additionalProperties"])
            if "patternProperties" in new:
                new["patternProperties"] = leaves.frozen_dict(
                    {key: masked(field) for key, field in new["patternProperties"].items()}
                )
        elif not self._stays(extra) and len(shape.nodes) == 1 and not (shape.is_open and also_whole):
            new.pop("patternProperties", None)
            new["additionalProperties"] = False

    def _variant(self, reference: str, shape: _Shape) -> str:
        """Return the reference to a masked copy of a definition; the whole definition stays for other uses."""
        key = (reference, id(shape))
        if key not in self._variants:
            old = schemas.definition_of(reference) or "Root"
            name = leaves.numbered(old, self._taken)
            self._taken.add(name)
            self._first_use.setdefault(old, name)
            self._variants[key] = name
            self._unwritten.append((name, reference, shape))
        return f"#/$defs/{schemas.escape(self._variants[key])}"
