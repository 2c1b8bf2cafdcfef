"""Instances: random values that satisfy a schema, the same for the same seed.

A draw resolves references and alternatives in each part and follows the keywords that data models write. The whole
value is then validated and, if invalid, drawn again with fewer optional parts.
"""

import math
import re
import string
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from synmod import data, embedded, leaves

_TRIES: Final = 60
_DEEPEST: Final = 6  # no optional parts at this depth or below
_BOTTOM: Final = 40  # reached only by a schema with infinite values
_USUAL_SPAN: Final = 100
_WORDS: Final = ("amber", "birch", "cedar", "delta", "ember", "flint", "grove", "harbour", "iris", "juniper", "kelp")


def instance_of(schema: data.Schema, seed: int, purpose: str) -> leaves.Json:
    """Return a value that satisfies a schema.

    Args:
        schema: A schema of the kind that data models write.
        seed: Seed of the draws.
        purpose: Purpose of the draw; a different text gives a different value.

    Returns:
        A valid value, the same for the same arguments on every platform.

    Raises:
        AssertionError: No draw was valid: the schema contradicts itself, or a valid value is too unlikely.

    Example:
        >>> from synmod.data import declare
        >>> instance_of(declare({"enum": [3]}, root="any"), 0, "doc")
        3

    Source: hypothesis-jsonschema; differs: draw and check, no search.
    """
    fault = ""
    for step in range(_TRIES):
        draw = _Draw(schema, leaves.rng(seed, step, purpose), likes=0.6 * max(0.0, 1.0 - step / 20))
        json = draw.value(schema, 0)
        faults = data.problems(schema, leaves.frozen(json), limit=1)
        if not faults:
            return json
        fault = f"{faults[0].pointer or '(root)'}: wanted {faults[0].wanted}, got {faults[0].got}"
    raise AssertionError(f"SchemaLM: no valid instance found in {_TRIES} draws; the last one fails at {fault}.")


class _Draw:
    """One draw.

    Args:
        root: The whole schema, in which references are resolved.
        random: The source of randomness.
        likes: Probability of an optional part.
    """

    def __init__(self, root: data.Schema, random: Random, likes: float) -> None:
        self.root = root
        self.random = random
        self.likes = likes

    def value(self, schema: leaves.Json, depth: int) -> leaves.Json:
        """Draw a value for a part of the schema."""
        if depth > _BOTTOM:
            return None
        part = self._in_place(schema, depth)
        if "const" in part:
            return part["const"]
        if "enum" in part:
            return self.random.choice(part["enum"]) if part["enum"] else None
        kind = self._kind(part, depth)
        if kind == "object":
            return self._object(part, depth)
        if kind == "array":
            return self._array(part, depth)
        if kind == "string":
            return _text(part, self.random)
        if kind == "boolean":
            return self.random.random() < 0.5
        return None if kind == "null" else _number(part, self.random, whole=kind == "integer")

    def _likes_more(self, depth: int) -> bool:
        """Draw whether to include an optional part; never at great depth."""
        return depth < _DEEPEST and self.random.random() < self.likes

    def _in_place(self, schema: leaves.Json, depth: int) -> dict[str, leaves.Json]:
        """Merge references and a random alternative into the part itself."""
        part = _merge_schemas(schema, {})
        for _ in range(2 * _BOTTOM):
            word = next((word for word in ("$ref", "allOf", "anyOf", "oneOf") if word in part), None)
            if word is None:
                break
            inner = part.pop(word)
            if word == "$ref":
                part = _merge_schemas(data.target_of(self.root, inner), part)
            elif word == "allOf":
                for piece in inner:
                    part = _merge_schemas(part, piece)
            else:
                plainest = [min(inner, key=self._weight)]
                part = _merge_schemas(part, self.random.choice(inner if depth < _DEEPEST else plainest))
        return part

    def _weight(self, part: leaves.Json) -> int:
        """Return how complex an alternative is: null and constants least, nested alternatives most."""
        while leaves.is_object(part) and "$ref" in part:
            part = data.target_of(self.root, part["$ref"])
        if not leaves.is_object(part) or part.get("type") == "null" or "const" in part or "enum" in part:
            return 0
        if part.get("type") in ("object", "array") or "properties" in part:
            return 3 if part.get("required") or part.get("minItems") else 2
        return 4 if not {"anyOf", "oneOf", "allOf"}.isdisjoint(part) else 1

    def _kind(self, part: Mapping[str, leaves.Json], depth: int) -> str:
        """Return the type to draw."""
        kinds = part.get("type")
        if isinstance(kinds, str):
            return kinds
        if kinds is None:
            return "object" if "properties" in part else self.random.choice(("string", "integer", "boolean", "null"))
        plain = [kind for kind in kinds if kind not in ("object", "array")]
        return self.random.choice((plain if depth >= _DEEPEST else None) or kinds)

    def _object(self, part: Mapping[str, leaves.Json], depth: int) -> dict[str, leaves.Json]:
        """Draw an object: required fields, some optional ones, and as many more as needed."""
        declared: Mapping[str, leaves.Json] = part.get("properties", {})
        required = list(part.get("required", ()))
        names = [name for name in declared if name in required or self._likes_more(depth)]
        names += [name for name in required if name not in declared]
        least, most = part.get("minProperties", 0), part.get("maxProperties", math.inf)
        names += [name for name in declared if name not in names][: max(0, least - len(names))]
        values = {name: self.value(declared.get(name, True), depth + 1) for name in names}
        patterns = list(part.get("patternProperties", {}).items())
        rest = part.get("additionalProperties", not patterns)
        is_mapping = not declared and (patterns or rest is not False)
        for _ in range(_TRIES):
            if len(values) >= least and not (is_mapping and len(values) < most and self._likes_more(depth)):
                break
            pattern, schema = self.random.choice(patterns) if patterns else ("", rest)
            key = {"type": "string", "pattern": pattern} if pattern else part.get("propertyNames", {"type": "string"})
            name = str(self.value(_merge_schemas(key, {"type": "string"}), depth + 1))
            values.setdefault(name, self.value(schema, depth + 1))
        return values

    def _array(self, part: Mapping[str, leaves.Json], depth: int) -> list[leaves.Json]:
        """Draw an array: the prefix items, then as many more as needed."""
        placed: list[leaves.Json] = list(part.get("prefixItems", ()))
        rest = part.get("items", True)
        least = part.get("minItems", 0)
        count = max(least, len(placed) if depth < _DEEPEST else 0)
        while count < least + 3 and self._likes_more(depth):
            count += 1
        most = min(part.get("maxItems", math.inf), len(placed) if rest is False else math.inf)
        values: list[leaves.Json] = []
        for _ in range(_TRIES):
            if len(values) >= min(count, most):
                break
            item = self.value(placed[len(values)] if len(values) < len(placed) else rest, depth + 1)
            if not part.get("uniqueItems") or item not in values:
                values.append(item)
        return values


_JOINS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "properties": lambda left, right: (
        left | {name: _merge_schemas(left[name], part) if name in left else part for name, part in right.items()}
    ),
    "required": lambda left, right: [*left, *(name for name in right if name not in left)],
    "enum": lambda left, right: [value for value in left if value in right],
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}


def _merge_schemas(first: leaves.Json, second: leaves.Json) -> dict[str, leaves.Json]:
    """Merge two schemas for one value; the second wins where keywords cannot be merged."""
    left = dict(first) if leaves.is_object(first) else {}
    right = dict(second) if leaves.is_object(second) else {}
    joined = {key: _JOINS[key](left[key], value) for key, value in right.items() if key in left and key in _JOINS}
    return {**left, **right, **joined}


# -- numbers and texts -----------------------------------------------------------------------------------------------


def _number(part: Mapping[str, leaves.Json], random: Random, *, whole: bool) -> float:
    """Draw a number within its bounds, a multiple of `multipleOf` if given."""
    lows = [part[name] for name in ("minimum", "exclusiveMinimum") if name in part]
    highs = [part[name] for name in ("maximum", "exclusiveMaximum") if name in part]
    high = min(highs, default=math.inf)
    low = max(lows, default=0 if high >= 0 else high - _USUAL_SPAN)
    number = low + random.random() * (min(high - low, _USUAL_SPAN))
    value = number if whole else round(number * 4) / 4
    return embedded.within(value, {**part, "type": "integer" if whole else "number"})


def _text(part: Mapping[str, leaves.Json], random: Random) -> str:
    """Draw a text of the right length, by its pattern or format if it has one."""
    least, most = int(part.get("minLength", 0)), part.get("maxLength", math.inf)
    if "pattern" in part:
        text = text_for(part["pattern"], random)
        return text + (text[-1:] or "a") * (least - len(text))
    usual = embedded.FORMATS.get(str(part.get("format")), "")
    if usual and least <= len(usual) <= most:
        return usual
    text = " ".join(random.choice(_WORDS) for _ in range(1 + int(random.random() * 3)))
    return text.ljust(least, "a")[: int(min(most, max(least, 60)))]


_PARSER, _COMPILER = vars(re)["_parser"], vars(re)["_compiler"]
"""Python's parser and compiler of regular expressions, which the type stubs leave out."""


def text_for(pattern: str, random: Random) -> str:
    """Draw a text in which a regular expression is found; any text if Python cannot parse the expression."""
    try:
        tree = _PARSER.parse(pattern)
    except re.error:
        return random.choice(_WORDS)
    return _spell(tree, random)


def _spell(tree: Any, random: Random) -> str:
    """Draw a text for a parsed expression, part by part."""
    text = ""
    for code, argument in tree:
        name = str(code)
        if name == "LITERAL":
            text += chr(argument)
        elif name == "BRANCH":
            text += _spell(random.choice(argument[1]), random)
        elif name == "SUBPATTERN":
            text += _spell(argument[-1], random)
        elif name == "ATOMIC_GROUP":
            text += _spell(argument, random)
        elif name.endswith("_REPEAT"):
            least, most, inner = argument
            times = least + int(random.random() * (min(int(most), least + 3) - least + 1))
            text += "".join(_spell(inner, random) for _ in range(times))
        elif name in ("IN", "ANY", "NOT_LITERAL"):
            items: Any = argument if name == "IN" else ()
            ranges = [chr(edge) for kind, edges in items if str(kind) == "RANGE" for edge in edges]
            literals = [chr(sign) for kind, sign in items if str(kind) == "LITERAL"]
            allowed = _COMPILER.compile(_PARSER.SubPattern(tree.state, [(code, argument)]))
            signs = [sign for sign in (*_PRINTABLE, *ranges, *literals) if allowed.match(sign)]
            text += random.choice(signs or ["a"])
    return text


_PRINTABLE: Final = string.ascii_letters + string.digits + "_-. ,;:!?@#/+*()"
