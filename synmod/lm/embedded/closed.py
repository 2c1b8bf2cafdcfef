"""Closed fields: one of some values, chosen by the nearest examples and the rules that hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.leaves.frozen import json_equal
from synmod.lm.embedded.columns import MISSING, Field
from synmod.lm.embedded.fitting import meets_text_demands
from synmod.lm.embedded.noise import hashed
from synmod.lm.embedded.scene import NEAREST, Scene
from synmod.lm.prompt.escape import value_text
from synmod.lm.prompt.subschemas import fields_of, is_array, is_object, resolved

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from synmod.leaves.frozen import Json


def closed_values(target: Mapping[str, Json], field: Field, scene: Scene) -> list[Json] | None:
    """The values that a field is chosen from, all of which its schema admits; None for a field that is open."""
    declared = declared_values(target)
    if declared is not None or target.get("type") != "string":
        return declared
    seen, distinct = field.texts()
    if seen:
        admitted: list[Json] = [text for text in distinct if meets_text_demands(text, target)]
        return admitted if len(distinct) < seen else None
    labels: list[Json] = [
        rule.label for rule in scene.rules.values() if rule.names_a_label and meets_text_demands(rule.label, target)
    ]
    if labels and not scene.examples.outputs and _only_string(scene.root):
        return labels
    return None


def declared_values(target: Mapping[str, Json]) -> list[Json] | None:
    """The values that a schema lists; None where it lists none."""
    if is_array(values := target.get("enum")):
        return values
    if "const" in target:
        return [target["const"]]
    if target.get("type") == "boolean":
        return [True, False]
    return [None] if target.get("type") == "null" else None


def ranked(values: list[Json], field: Field, scene: Scene) -> list[Json]:
    """The values, the one with the highest score first; ties by declaration, then first seen.

    The score of a value: the similarities of those of the three nearest examples that have it, and half a point for
    each hit of its rule. Where nothing speaks for any, the hash of seed, field and text chooses.
    """
    scores = [_score(value, field, scene) for value in values]
    if not any(scores) and scene.noise.silent:
        first = hashed(scene.seed, field.path, scene.asked) % len(values)
        return values[first:] + values[:first]
    scores = scene.noise.added(scores, f"values of {field.path}")
    order = sorted(range(len(values)), key=lambda index: -scores[index])
    return [values[index] for index in order]


def _score(value: Json, field: Field, scene: Scene) -> float:
    """How much speaks for a value."""
    score = 0.0
    for index in scene.nearest[:NEAREST]:
        if _same(field.seen[index], value):
            score += scene.similarities[index]
    rule = scene.rules.get(_head(value).casefold())
    return score if rule is None else score + 0.5 * rule.hits(scene.spoken)


def _same(seen: Json, value: Json) -> bool:
    """Whether an example has a value."""
    if isinstance(seen, str) or isinstance(value, str):  # nearly always, and cheaper
        return seen == value
    return seen is not MISSING and json_equal(seen, value)


def _head(value: Json) -> str:
    """How a value is written as the head of a rule."""
    return value if isinstance(value, str) else value_text(value)


def _only_string(root: Mapping[str, Json]) -> bool:
    """Whether a schema has one string field and no closed one."""
    kinds = list(_field_kinds(root, root, ()))
    return kinds.count("string") == 1 and "closed" not in kinds


def _field_kinds(field: Json, root: Mapping[str, Json], above: tuple[int, ...]) -> Iterator[str]:
    """For each field of a schema `closed`, or its type."""
    target = resolved(field, root)
    if id(target) in above:
        return
    if fields := fields_of(target):
        for inner in fields.values():
            yield from _field_kinds(inner, root, (*above, id(target)))
    elif is_object(items := target.get("items")):
        yield from _field_kinds(items, root, (*above, id(target)))
    else:
        yield "closed" if declared_values(target) is not None else str(target.get("type"))
