"""The model `embedded/nearest`, which answers from its prompt alone.

Rule lines in the instructions (`label: word, phrase`) and the examples nearest to the input determine the answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import Any, Final

from synmod.data import ToolCall, intern_schema, is_valid
from synmod.errors import SchemaError
from synmod.leaves import Json, frozen, is_array, is_object, json_equal
from synmod.lm import LMReply, LMRequest, alternatives, fields_of, instructions_in, json_text, resolve_ref

from . import prompts
from .similarity import ExampleIndex

_NUMBER: Final = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_NEAR: Final = 0.1  # the least similarity at which a tool is called
_NEAREST: Final = 3  # examples that decide together
_HIT: Final = 0.5  # the weight of a rule hit
_FEW_WORDS: Final = 12
_DEEPEST: Final = 40  # a type that requires itself has no finite value; its reply fails validation
_MOST: Final = 1e300  # a larger int is not a float
_MISSING: Final = object()
_NO_RULE: Final = prompts.Rule("", ())
FORMATS: Final[Mapping[str, str]] = {
    "date": "2024-05-17",
    "date-time": "2024-05-17T10:30:00Z",
    "duration": "PT5M",
    "email": "amber@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "time": "10:30:00Z",
    "uri": "https://example.com/a",
    "uuid": "6fa459ea-ee8a-4ca4-894e-db77e160355e",
}
"""Format of a text -> a text in this format."""


class NearestAdapter:
    """The adapter of `embedded/nearest`.

    A closed field gets the value that the three nearest examples and the rule lines `label: word, phrase` favour;
    a number is the mean of the nearest, a string or list that of the nearest example. A temperature above 0 adds noise
    drawn from seed, sample and prompt. Of the tools on offer it calls the one whose name, description and rule are
    nearest to the input; after the result, which then precedes the input, it answers.

    Example:
        >>> from synmod.lm import LMRequest
        >>> schema = {"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"]}
        >>> turns = ({"role": "system", "content": "bad: late, broken"}, {"role": "user", "content": "It came late."})
        >>> NearestAdapter().send(LMRequest("embedded/nearest", turns, schema)).text
        '{"mood":"bad"}'

    Source: nearest-neighbour classification, tf-idf; differs: no logarithm, which platforms round differently.
    """

    name = "embedded"
    version = 3

    def send(self, request: LMRequest) -> LMReply:
        """Answer a request from its own text, without waiting or failing."""
        prompt = _Answerer(request)
        function = _choose_tool(request, prompt)
        if function is None:
            return prompts.reply_to(prompt.texts, prompt.answer())
        arguments = _Answerer(replace(request, schema=function["parameters"])).arguments()
        call = ToolCall(f"call_{len(request.messages)}", function["name"], json_text(arguments))
        return replace(prompts.reply_to(prompt.texts, call.function.arguments), text="", tool_calls=(call,))


def _choose_tool(request: LMRequest, prompt: _Answerer) -> Mapping[str, Any] | None:
    """Return the function schema of the tool to call; None if no tool is near, or the last turn is a tool result."""
    choice = request.tool_choice
    if not request.tools or choice == "none":
        return None
    functions: list[Mapping[str, Any]] = [tool["function"] for tool in request.tools]
    if is_object(choice):
        return next(function for function in functions if function["name"] == choice["function"]["name"])
    if request.messages[-1]["role"] == "tool" and choice != "required":
        return None
    scores = prompt.scores_of(functions)
    best = max(range(len(scores)), key=scores.__getitem__)
    return functions[best] if scores[best] >= _NEAR or choice == "required" else None


def _place_of_question(turns: Sequence[tuple[str, str]], *, look_for_tags: bool) -> int | None:
    """Return the index of the user turn that has inputs in their tags, the last if several have, else of the last."""
    users = (at for at in reversed(range(len(turns))) if turns[at][0] == "user")
    last = next(users, None)
    if last is None or not look_for_tags:
        return last
    return next((at for at in (last, *users) if prompts.blocks_of(turns[at][1], "inputs")), last)


class _Answerer:
    """A parsed prompt, and the answer to it."""

    def __init__(self, request: LMRequest) -> None:
        turns = prompts.read_turns(request)
        self.texts = [text for _, text in turns]
        self._schema = request.schema
        self._root: Mapping[str, Json] = self._schema or {}
        self._tools = {tool["function"]["name"] for tool in request.tools or ()}  # their rules are not those of a field
        tagged = [text for text in self.texts if "</" in text]
        last = _place_of_question(turns, look_for_tags=bool(tagged))
        question, self._input = ("", dict[str, Json]()) if last is None else prompts.read_input(self.texts[last])
        results = [
            prompts.leaf_text(prompts.json_or_none(text)) or text for role, text in turns[last or 0 :] if role == "tool"
        ]
        self._question = "\n".join([*results[-1:], question])  # the result of a tool comes first
        self._words = prompts.pad_words(self._question)
        system = "\n".join([text for role, text in turns if role in ("system", "developer")])
        instructions = (block for text in tagged for block in prompts.blocks_of(text, "instructions"))
        self._rules = prompts.read_rules(next(instructions, instructions_in(system)))
        self._seed = request.params.get("seed") or 0
        self._temperature = max(0.0, request.params.get("temperature") or 0)
        self._noise_key = f"{request.sample}\n" + "\n".join(self.texts) if self._temperature else ""
        index = _index(
            tuple(
                line for text in tagged for block in prompts.blocks_of(text, "examples") for line in block.split("\n")
            ),
            tuple(turns[:last]),
            self._schema is not None,
        )
        self._outputs: list[Any] = index.outputs
        self._near = index.similarities(self._question)
        if self._temperature:
            self._near = [near + self._noise(f"example {at}") for at, near in enumerate(self._near)]
        self._order = sorted(range(len(self._near)), key=self._near.__getitem__, reverse=True)

    def answer(self) -> str:
        """Return the reply: JSON of the schema; without a schema the nearest example's output, else the first words."""
        if self._schema is not None:
            return json_text(self.value(self._schema, "", self._outputs))
        if not self._order:
            return self._first_words()
        output = self._outputs[self._order[0]]
        content = output.get("content", output) if is_object(output) else output
        return content if isinstance(content, str) else json_text(content)

    def scores_of(self, functions: Sequence[Mapping[str, Any]]) -> list[float]:
        """Return the similarity of the input to the name and description of each tool, plus the hits of its rule."""
        texts = [f"{tool['name'].replace('_', ' ')}. {tool.get('description', '')}" for tool in functions]
        near = ExampleIndex([(text, None) for text in texts]).similarities(self._question)
        rules = [self._rules.get(tool["name"].casefold(), _NO_RULE).phrases for tool in functions]
        return [at + _HIT * sum(map(self._words.__contains__, rule)) for at, rule in zip(near, rules, strict=True)]

    def arguments(self) -> Json:
        """Return arguments for the tool whose parameters are the schema.

        An argument is the input field of its name, else a declared value named in the input, else as in a reply.
        """
        arguments: dict[str, Json] = self.value(self._root, "", [])
        for name, field in fields_of(self._root).items():
            values = _values_in(resolve_ref(field, self._root)) or ()
            mentions = [value for value in values if isinstance(value, str) and prompts.pad_words(value) in self._words]
            if name in self._input and self._fits(self._input[name], field):
                arguments[name] = self._input[name]
            elif mentions:
                arguments[name] = mentions[0]
        return arguments

    def value(self, schema: Json, path: str, outputs: list[Any], depth: int = 0) -> Json:
        """Return the answer for the field at `path`; `outputs` holds its value in each example."""
        part = resolve_ref(schema, self._root)
        if depth <= _DEEPEST and (arms := self._arms(part)):
            nearest = next(self._by_nearness(outputs), _MISSING)
            fitting = [arm for arm in arms if nearest is not _MISSING and self._fits(nearest, arm)]
            useful = fitting or [arm for arm in arms if arm.get("type") != "null"] or arms
            return self.value(useful[0], path, outputs, depth + 1)
        if values := self._possible_values(part, outputs):
            return self._rank(values, path, outputs)[0]
        kind = part.get("type", "object" if "properties" in part else None)
        if kind == "object" and fields_of(part):
            return self._object(part, path, outputs, depth)
        if kind in ("integer", "number"):
            return self._number(part, path, outputs)
        nearest = next((output for output in self._by_nearness(outputs) if self._fits(output, part)), _MISSING)
        if nearest is not _MISSING:
            return nearest
        if kind == "array":
            return self._array(part, path, outputs, depth)
        return {} if kind == "object" else self._string(part)

    def _object(self, part: Mapping[str, Json], path: str, outputs: list[Any], depth: int) -> Json:
        """Answer field by field; include an optional field only if the nearest example has it."""
        objects = [output if is_object(output) else {} for output in outputs]
        nearest = next((tuple(output) for output in self._by_nearness(outputs) if is_object(output)), tuple[str, ...]())
        names = () if depth > _DEEPEST else (*part.get("required", ()), *nearest)
        return {
            name: self.value(field, f"{path}/{name}", [output.get(name, _MISSING) for output in objects], depth + 1)
            for name, field in fields_of(part).items()
            if name in names
        }

    def _array(self, part: Mapping[str, Json], path: str, outputs: list[Any], depth: int) -> Json:
        """Answer with the fewest items allowed, distinct if required."""
        fewest, placed = 0 if depth > _DEEPEST else part.get("minItems", 0), part.get("prefixItems", ())
        items, inside = resolve_ref(part.get("items", {}), self._root), [_MISSING] * len(outputs)
        if part.get("uniqueItems") and (values := self._possible_values(items, inside)):
            return self._rank(values, path, inside)[:fewest]
        kinds = [*placed, *[items] * (fewest - len(placed))][:fewest]
        return [self.value(kind, f"{path}/*", inside, depth + 1) for kind in kinds]

    def _string(self, part: Mapping[str, Json]) -> str:
        """Answer with the first words of the input, or a text in the format; else a default or example."""
        text = FORMATS.get(str(part.get("format"))) or self._first_words()[: part.get("maxLength")]
        choices = [text, part.get("default"), *(part.get("examples") or ())]
        return next((choice for choice in choices if isinstance(choice, str) and self._fits(choice, part)), text)

    def _number(self, part: Mapping[str, Json], path: str, outputs: list[Any]) -> float:
        """Answer with the mean of the three nearest, else a number in the input, else a draw, all within bounds."""
        pairs = [(self._near[place], outputs[place]) for place in self._order[:_NEAREST]]
        near = [(weight, number) for weight, number in pairs if type(number) in (int, float) and abs(number) < _MOST]
        low, high = part.get("minimum", part.get("exclusiveMinimum")), part.get("maximum", part.get("exclusiveMaximum"))
        if near:
            weights = [weight for weight, _ in near] if any(weight for weight, _ in near) else [1.0] * len(near)
            value = sum(weight * number for weight, (_, number) in zip(weights, near, strict=True)) / sum(weights)
        elif match := _NUMBER.search(self._question):
            value = float(match[0])
        elif low is not None and high is not None:
            value = min(low + (high - low) * self._draw(self._noise_key, path, self._question), high)
        else:
            value = 0
        return within(value, part)

    def _arms(self, part: Mapping[str, Json]) -> list[Mapping[str, Json]]:
        """Return the alternatives of a schema: the arms of a union, or one schema per type in a list of types."""
        kinds = part.get("type")
        of_types: list[Mapping[str, Json]] = [{**part, "type": kind} for kind in kinds] if is_array(kinds) else []
        return [resolve_ref(arm, self._root) for arm in alternatives(part)] or of_types

    def _possible_values(self, part: Mapping[str, Json], outputs: list[Any]) -> list[Json] | None:
        """Return the possible values of a closed field; None for an open one."""
        values = _values_in(part)
        if values is not None or part.get("type") != "string":
            return values
        if texts := [output for output in outputs if isinstance(output, str)]:
            distinct: list[Json] = list(dict.fromkeys(texts))
            return [text for text in distinct if self._fits(text, part)] if len(distinct) < len(texts) else None
        if self._outputs:
            return None
        fields = [resolve_ref(field, self._root) for field in fields_of(self._root).values()]
        strings = [field for field in fields if field.get("type") == "string"]
        if len(strings) != 1 or any(_values_in(field) for field in fields):
            return None
        labels = [rule.label for rule in self._rules.values() if rule.label not in self._tools]
        return [label for label in labels if prompts.can_be_label(label) and self._fits(label, part)]

    def _rank(self, values: list[Json], path: str, outputs: list[Any]) -> list[Json]:
        """Return the values by descending score; ties in the order of declaration."""
        return sorted(values, key=lambda value: self._score(value, path, outputs), reverse=True)

    def _score(self, value: Json, path: str, outputs: list[Any]) -> tuple[float, float]:
        """Return the score of a value, by near examples and hits of its rule; and a draw that breaks ties at 0."""
        head = value if isinstance(value, str) else json_text(value)
        phrases = self._rules.get(head.casefold(), _NO_RULE).phrases
        nearest = [place for place in self._order[:_NEAREST] if outputs[place] is not _MISSING]
        score = math.fsum(self._near[place] for place in nearest if json_equal(outputs[place], value))
        score += _HIT * sum(phrase in self._words for phrase in phrases)
        return score + self._noise(f"{path} {head}"), 0 if score else self._draw(f"{path} {self._question} {head}")

    def _by_nearness(self, outputs: list[Any]) -> Iterator[Any]:
        """Yield the values of the examples, the nearest first."""
        return (outputs[place] for place in self._order if outputs[place] is not _MISSING)

    def _fits(self, value: Json, part: Mapping[str, Json]) -> bool:
        """Whether a value is valid for a part of the schema."""
        definitions = {"$defs": self._root["$defs"]} if "$defs" in self._root else {}
        try:
            return is_valid(intern_schema({**definitions, **part}), frozen(value))
        except SchemaError:  # too complex to decide here; the whole reply is validated later
            return True

    def _first_words(self) -> str:
        """Return the first sentence of the input, at most twelve words of it."""
        return " ".join(_SENTENCE_END.split(self._question.strip())[0].split()[:_FEW_WORDS])

    def _draw(self, *key: object) -> float:
        """Return a number from 0 to 1 that depends on the seed and the key alone."""
        return Random("\n".join(map(str, (self._seed, *key)))).random()  # noqa: S311  (nothing secret)

    def _noise(self, purpose: str) -> float:
        """Return the noise of the temperature: at 1 up to the weight of two rule hits."""
        return self._temperature * self._draw(self._noise_key, purpose) if self._temperature else 0.0


@lru_cache(maxsize=64)
def _index(lines: tuple[str, ...], turns: tuple[tuple[str, str], ...], structured: bool) -> ExampleIndex:
    """Parse and index the lines of `<examples>` and earlier answers; cached, since prompts repeat."""
    pairs = [
        (prompts.read_input(question)[0], prompts.json_or_none(answer) if structured else answer)
        for (asker, question), (answerer, answer) in pairwise(turns)
        if answer and asker == "user" and answerer == "assistant"
    ]
    examples = [
        json for json in map(prompts.json_or_none, lines) if is_object(json) and {"inputs", "outputs"} <= json.keys()
    ]
    texts = [(prompts.leaf_text(example["inputs"]), example["outputs"]) for example in examples]
    return ExampleIndex([*texts, *((question, answer) for question, answer in pairs if answer is not None)])


def _values_in(part: Mapping[str, Json]) -> list[Json] | None:
    """Return the values that a schema lists; None if it lists none."""
    if is_array(values := part.get("enum")):
        return values
    if "const" in part:
        return [part["const"]]
    return {"boolean": [True, False], "null": [None]}.get(str(part.get("type")))


def within(value: float, part: Mapping[str, Json]) -> float:
    """Return the allowed number nearest to a value; for an exclusive bound, one at a distance of at most 1."""
    names = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
    step = part.get("multipleOf", 1 if part.get("type") == "integer" else None)
    if step is not None:
        unit = Fraction(str(step))  # from its text, so that 0.1 is exactly a tenth
        if part.get("type") == "integer":
            unit = Fraction(unit.numerator)  # the smallest whole multiple of a fraction in lowest terms
        low, above, high, below = ([Fraction(str(part[name])) / unit] if name in part else [] for name in names)
        lows = [*map(math.ceil, low), *(math.floor(end) + 1 for end in above)]
        highs = [*map(math.floor, high), *(math.ceil(end) - 1 for end in below)]
        product = min([max([round(Fraction(str(value)) / unit), *lows]), *highs]) * unit
        return int(product) if part.get("type") == "integer" else float(product)
    low, above, high, below = ([part[name]] if name in part else [] for name in names)
    lows, highs = [*low, *above], [*high, *below]
    gap = min(1.0, (min(highs) - max(lows)) / 2) if lows and highs else 1.0
    lows = [*low, *(end + gap for end in above if value <= end)]
    highs = [*high, *(end - gap for end in below if value >= end)]
    return float(min([max([value, *lows]), *highs]))
