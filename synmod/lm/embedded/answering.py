"""Composing an answer: the schema is walked, and each field is decided by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.lm.embedded.closed import closed_values, ranked
from synmod.lm.embedded.columns import MISSING, Field
from synmod.lm.embedded.fitting import fits
from synmod.lm.embedded.quantities import number
from synmod.lm.embedded.scene import Scene
from synmod.lm.embedded.sentences import string, telling
from synmod.lm.prompt.escape import value_text
from synmod.lm.prompt.subschemas import alternatives, fields_of, is_array, is_object, resolved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.leaves.frozen import Json

_DEEPEST = 40  # a recursive type that demands itself has no answer; the reply will fail validation


def answer(scene: Scene) -> Json:
    """Answer in the schema of the question."""
    return _value(scene.root, scene.examples.whole, scene, 0)


def text_answer(scene: Scene) -> str:
    """Answer in plain text: what the nearest example says, else a sentence of the input."""
    for index in scene.nearest:
        output = scene.examples.outputs[index]
        said = output.get("content") if is_object(output) else output
        if isinstance(said, str):
            return said
        return value_text(output)
    return telling(scene, "sentences")


def _value(schema: Json, field: Field, scene: Scene, depth: int) -> Json:
    """Answer one field."""
    target = _arm(resolved(schema, scene.root), field, scene)
    values = closed_values(target, field, scene)
    if values:
        return ranked(values, field, scene)[0]
    kind = target.get("type", "object" if "properties" in target else None)
    if kind == "object":
        return _object(target, field, scene, depth)
    if kind == "array":
        return _array(target, field, scene, depth)
    if kind in ("integer", "number"):
        return number(target, field, scene)
    if kind == "string":
        return string(target, field, scene)
    seen = _nearest_value(field, target, scene)
    return telling(scene, f"sentences of {field.path}") if seen is MISSING else seen


def _object(target: Mapping[str, Json], field: Field, scene: Scene, depth: int) -> Json:
    """Answer an object field by field; what is optional only where the nearest example has it."""
    fields = fields_of(target)
    if not fields and (nearest := _nearest_value(field, target, scene)) is not MISSING:
        return nearest
    has: Json = next((field.seen[index] for index in scene.nearest if is_object(field.seen[index])), ())
    required = target.get("required", ())
    if depth > _DEEPEST:
        return {}
    return {
        name: _value(schema, field.below(name), scene, depth + 1)
        for name, schema in fields.items()
        if name in required or name in has
    }


def _array(target: Mapping[str, Json], field: Field, scene: Scene, depth: int) -> Json:
    """Answer an array: as the nearest example does, else with the fewest items allowed."""
    nearest = _nearest_value(field, target, scene)
    if nearest is not MISSING:
        return nearest
    fewest = target.get("minItems", 0)
    first = target.get("prefixItems")
    places: list[Json] = (first if is_array(first) else [])[:fewest]
    items: list[Json] = [
        _value(schema, field.below(str(place)), scene, depth + 1) for place, schema in enumerate(places)
    ]
    if len(items) == fewest or depth > _DEEPEST:
        return items
    item = Field(field.below("*").path, [MISSING] * len(field.seen))
    inner = _arm(resolved(target.get("items", {}), scene.root), item, scene)
    values = closed_values(inner, item, scene)
    if values and target.get("uniqueItems"):
        return [*items, *ranked(values, item, scene)[: fewest - len(items)]]
    return [*items, *(_value(inner, item, scene, depth + 1) for _ in range(fewest - len(items)))]


def _arm(target: Mapping[str, Json], field: Field, scene: Scene) -> Mapping[str, Json]:
    """The alternative to answer in: that of the nearest example's value, else the first that is not null."""
    for _ in range(_DEEPEST):
        arms = [resolved(arm, scene.root) for arm in alternatives(target)]
        kinds = target.get("type")
        if not arms and is_array(kinds):
            arms = [{**target, "type": kind} for kind in kinds]
        if not arms:
            return target
        fitting = [arm for arm in arms if _nearest_value(field, arm, scene, alone=True) is not MISSING]
        said = [arm for arm in arms if arm.get("type") != "null"]
        target = (fitting or said or arms)[0]
    return target


def _nearest_value(field: Field, target: Mapping[str, Json], scene: Scene, *, alone: bool = False) -> Json:
    """The value of the nearest example that has one which fits (`alone`: of the nearest that has any), or MISSING."""
    for index in scene.nearest:
        value = field.seen[index]
        if value is not MISSING:
            if fits(value, target, scene.root):
                return value
            if alone:
                return MISSING
    return MISSING
