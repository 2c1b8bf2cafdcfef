"""Models in the process: `embedded/nearest` answers from its prompt alone, `embedded/rules` writes rules for it.

Rule lines in the instructions (`label: word, phrase`) and the examples nearest to the input determine the answer, so
that programs get better or worse with their prompts. First steps, tests, docs and benchmarks run on it. Both models
give the same answers in every process.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import Any, Final

from synmod.data import ToolCall, intern_schema, is_valid, parse_json
from synmod.errors import ConfigError, DataError, SchemaError
from synmod.leaves import Json, did_you_mean, frozen, is_array, is_object, json_equal
from synmod.scope import Usage

from .chat_layout import instructions_in
from .prompt import REPAIR_OPENING
from .records import LMReply, LMRequest
from .words import alternatives, fields_of, json_text, resolved

_RULE: Final = re.compile(
    r"""\s* (?:[-*•]\s*)?
        (?P<head> "[^"]*" | '[^']*' | `[^`]*` | “[^”]*” | [^:=]+? )
        \s* (?: : | => | -> | → | = ) \s*
        (?P<listed> \S.*)""",
    re.VERBOSE,
)
_QUOTES: Final = "*\"'`‘’“”"
_NOT_IN_LABELS: Final = frozenset("`()[]{}<>?!")
_WORD: Final = re.compile(r"\w+")
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_NUMBER: Final = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_NEAR: Final = 0.1  # the least similarity at which a tool is called
_NEAREST: Final = 3  # examples that decide together
_HIT: Final = 0.5  # the weight of a rule hit
_LONGEST_LABEL: Final = 5  # words; a longer head is a sentence, not a label
_FEW_WORDS: Final = 12
_NEW_WORDS: Final = (6, 3, 12, 1)  # per rule line; the next number is used if the value by the previous one was tried
_DEEPEST: Final = 40  # a type that requires itself has no finite value; its reply fails validation
_MOST: Final = 1e300  # a larger int is not a float
_MISSING: Final = object()
_NO_FIELDS: Final[Mapping[str, Json]] = {}


def embedded_adapter(name: str) -> NearestAdapter | RulesAdapter:
    """Return the adapter of the model `embedded/<name>`.

    Raises:
        ConfigError: There is no such model in the process ('Did you mean').
    """
    adapters = {"nearest": NearestAdapter, "rules": RulesAdapter}
    if name not in adapters:
        hint = did_you_mean(name, adapters)
        raise ConfigError(f"embedded/{name}: the embedded models are embedded/nearest and embedded/rules.{hint}")
    return adapters[name]()


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
    version = 2

    def send(self, request: LMRequest) -> LMReply:
        """Answer a request from its own text, without waiting or failing."""
        prompt = _Prompt(request)
        called = _nearest_tool(request, prompt)
        if called is None:
            return _reply(prompt.texts, prompt.answer())
        arguments = _Prompt(replace(request, schema=called["parameters"])).arguments()
        call = ToolCall(f"call_{len(request.messages)}", called["name"], json_text(arguments))
        return replace(_reply(prompt.texts, call.function.arguments), text="", tool_calls=(call,))


class RulesAdapter:
    """The adapter of `embedded/rules`, which writes better instructions for a program on `embedded/nearest`.

    It reads the inputs of a `synmod.train.Proposer`. For each expected value of a closed field it writes one rule line,
    after the other lines of the current instructions: the words of the existing rule, unless the records contradict
    them, and words that occur with this value and with no other.

    Example:
        >>> from synmod.lm import LMRequest
        >>> records = [
        ...     {"inputs": {"text": "It came late"}, "outputs": {"mood": "good"}, "expected": {"mood": "bad"}},
        ...     {"inputs": {"text": "It was lovely"}, "outputs": {"mood": "good"}, "expected": {"mood": "good"}},
        ... ]
        >>> question = json_text({"current": "Be brief.", "records": records, "tried": []})
        >>> turns = ({"role": "user", "content": f"<inputs>{question}</inputs>"},)
        >>> parse_json(RulesAdapter().send(LMRequest("embedded/rules", turns)).text)["value"].splitlines()
        ['Be brief.', 'bad: came, late', 'good: lovely, was']

    Source: one-rule classifiers; differs: rules are text.
    """

    name = "embedded"
    version = 2

    def send(self, request: LMRequest) -> LMReply:
        """Return `reason` and `value`.

        Raises:
            ConfigError: The prompt is not that of a proposer.
        """
        texts = [text for _, text in _turns_of(request)]
        fields = (_input(text)[1] for text in reversed(texts))
        asked: Mapping[str, Any] = next((json for json in fields if "current" in json), _NO_FIELDS)
        records, tried = asked.get("records"), asked.get("tried")
        if not is_array(records) or not all(map(is_object, records)):
            raise ConfigError("embedded/rules only answers a synmod.train.Proposer; ask embedded/nearest.")
        value = asked["current"]
        if isinstance(value, str):
            choices = [_with_rules(value, records, most) for most in _NEW_WORDS]
            value = next((choice for choice in choices if choice not in (value, *(tried or ()))), value)
        return _reply(texts, json_text({"reason": "These words occur with one value alone.", "value": value}))


def _reply(prompt: Sequence[str], text: str) -> LMReply:
    """Return the reply to a prompt, with its usage."""
    tokens = sum(_tokens(line) for turn in prompt for line in turn.split("\n")), _tokens(text)
    return LMReply(text, usage=Usage(prompt_tokens=tokens[0], completion_tokens=tokens[1], cost_usd=0.0))


def _nearest_tool(request: LMRequest, prompt: _Prompt) -> Mapping[str, Any] | None:
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


def _with_rules(instructions: str, records: Sequence[Mapping[str, Any]], most: int) -> str:
    """Return instructions with a rule line for each expected value of the records, of at most `most` new words."""
    given = [outputs for record in records if is_object(outputs := record.get("outputs"))]
    seen: dict[str, dict[str, Counter[str]]] = {}  # counts of words, by field and value
    for record in records:
        text = set(_WORD.findall(_leaf_text(record.get("inputs")).lower()))
        expected = record.get("expected", record.get("target"))
        for field, value in expected.items() if is_object(expected) else ():
            label = _label(value)
            if label and (not given or any(field in outputs for outputs in given)):  # else another module's
                seen.setdefault(field, {}).setdefault(label, Counter()).update(text)
    known, lines = _rules(instructions), list[str]()
    for by_label in seen.values():
        for label, counts in by_label.items():
            others = {word for other, words in by_label.items() if other != label for word in words}
            before = [phrase.strip() for phrase in known.get(label.casefold(), (label, ()))[1]]
            telling = sorted(counts.keys() - others - {*before}, key=lambda word: (-counts[word], -len(word), word))
            if listed := [*(phrase for phrase in before if phrase not in others), *telling[:most]]:
                lines.append(f"{label}: {', '.join(listed)}")
    replaced = {label.casefold() for by_label in seen.values() for label in by_label}
    kept = "\n".join(line for line in instructions.split("\n") if _head(line) not in replaced).rstrip()
    return "\n".join([kept, *lines] if kept else lines)


def _label(value: Json) -> str:
    """Return a value of a closed field as the label of a rule line; "" if it cannot be one."""
    text = value if isinstance(value, str) else json_text(value) if isinstance(value, bool) else ""
    is_head = len(text.split()) <= _LONGEST_LABEL and _NOT_IN_LABELS.isdisjoint(text)
    return text if is_head and _head(f"{text}: word") == text.casefold() else ""


def _head(line: str) -> str:
    """Return the case-folded label of a rule line; "" for any other line."""
    return next(iter(_rules(line)), "")


class _Index:
    """Examples, with the weighted counts of words and n-grams by which a question is compared with them."""

    def __init__(self, examples: Sequence[tuple[str, Json]]) -> None:
        self.outputs = [output for _, output in examples]
        counted = [_features(question) for question, _ in examples]
        self._places: dict[str, list[tuple[int, int]]] = {}
        for place, counts in enumerate(counted):
            for feature, count in counts.items():
                self._places.setdefault(feature, []).append((place, count))
        above = len(examples) + 1
        self._unseen = float(above * above)
        # Rare features weigh more. Squares of quotients are equal on every platform, logarithms are not.
        self._weights = {feature: (above / (len(held) + 1)) ** 2 for feature, held in self._places.items()}
        self._norms = [self._norm(counts) for counts in counted]

    def similarities(self, question: str) -> list[float]:
        """Return the cosine similarity of the question and each example."""
        counts = _features(question)
        products = [0.0] * len(self._norms)
        for feature, count in counts.items():
            if held := self._places.get(feature):
                weight = count * self._weights[feature]
                for place, other in held:
                    products[place] += weight * other
        norm = self._norm(counts)
        return [product and product / math.sqrt(norm * own) for product, own in zip(products, self._norms, strict=True)]

    def _norm(self, counts: Mapping[str, int]) -> float:
        """Return the squared norm of weighted counts."""
        return math.fsum(count * count * self._weights.get(each, self._unseen) for each, count in counts.items())


class _Prompt:
    """A parsed prompt, and the answer to it."""

    def __init__(self, request: LMRequest) -> None:
        turns = _turns_of(request)
        self.texts = [text for _, text in turns]
        self._schema = request.schema
        self._root: Mapping[str, Json] = self._schema or {}
        self._tools = {tool["function"]["name"] for tool in request.tools or ()}  # their rules are not those of a field
        users = [at for at, (role, _) in enumerate(turns) if role == "user"]
        last = next((at for at in reversed(users) if _blocks(self.texts[at], "inputs")), users[-1] if users else None)
        question, self._input = ("", dict[str, Json]()) if last is None else _input(self.texts[last])
        results = [_leaf_text(_parsed(text)) or text for role, text in turns[last or 0 :] if role == "tool"]
        self._question = "\n".join([*results[-1:], question])  # the result of a tool comes first
        self._words = _in_words(self._question)
        system = "\n".join(text for role, text in turns if role in ("system", "developer"))
        tagged = (block for text in self.texts for block in _blocks(text, "instructions"))
        self._rules = _rules(next(tagged, instructions_in(system)))
        self._seed = request.params.get("seed") or 0
        self._heat = max(0.0, request.params.get("temperature") or 0)
        self._noise_key = f"{request.sample}\n" + "\n".join(self.texts) if self._heat else ""
        pairs = [pair for pair in pairwise(turns[:last]) if [role for role, _ in pair] == ["user", "assistant"]]
        index = _index(
            tuple(line for text in self.texts for block in _blocks(text, "examples") for line in block.split("\n")),
            tuple((asked, answer) for (_, asked), (_, answer) in pairs if answer),
            self._schema is not None,
        )
        self._outputs: list[Any] = index.outputs
        self._near = [near + self._noise(f"example {at}") for at, near in enumerate(index.similarities(self._question))]
        self._order = sorted(range(len(self._near)), key=lambda place: -self._near[place])

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
        texts = [f"{each['name'].replace('_', ' ')}. {each.get('description', '')}" for each in functions]
        near = _Index([(text, None) for text in texts]).similarities(self._question)
        rules = [self._rules.get(each["name"].casefold(), ("", ()))[1] for each in functions]
        return [at + _HIT * sum(map(self._words.__contains__, rule)) for at, rule in zip(near, rules, strict=True)]

    def arguments(self) -> Json:
        """Return arguments for the tool whose parameters are the schema.

        An argument is the input field of its name, else a declared value named in the input, else as in a reply.
        """
        arguments: dict[str, Json] = self.value(self._root, "", [])
        for name, field in fields_of(self._root).items():
            values = _declared_values(resolved(field, self._root)) or ()
            named = [value for value in values if isinstance(value, str) and _in_words(value) in self._words]
            if name in self._input and self._fits(self._input[name], field):
                arguments[name] = self._input[name]
            elif named:
                arguments[name] = named[0]
        return arguments

    def value(self, schema: Json, path: str, seen: list[Any], depth: int = 0) -> Json:
        """Return the answer for the field at `path`; `seen` holds its value in each example."""
        part = resolved(schema, self._root)
        if depth <= _DEEPEST and (arms := self._arms(part)):
            nearest = next(self._by_nearness(seen), _MISSING)
            fitting = [arm for arm in arms if nearest is not _MISSING and self._fits(nearest, arm)]
            useful = fitting or [arm for arm in arms if arm.get("type") != "null"] or arms
            return self.value(useful[0], path, seen, depth + 1)
        if values := self._closed(part, seen):
            return self._ranked(values, path, seen)[0]
        kind = part.get("type", "object" if "properties" in part else None)
        if kind == "object" and fields_of(part):
            return self._object(part, path, seen, depth)
        if kind in ("integer", "number"):
            return self._number(part, path, seen)
        nearest = next((one for one in self._by_nearness(seen) if self._fits(one, part)), _MISSING)
        if nearest is not _MISSING:
            return nearest
        if kind == "array":
            return self._array(part, path, seen, depth)
        return {} if kind == "object" else self._string(part)

    def _object(self, part: Mapping[str, Json], path: str, seen: list[Any], depth: int) -> Json:
        """Answer field by field; include an optional field only if the nearest example has it."""
        nearest = next((tuple(one) for one in self._by_nearness(seen) if is_object(one)), tuple[str, ...]())
        wanted = () if depth > _DEEPEST else (*part.get("required", ()), *nearest)
        objects = [one if is_object(one) else {} for one in seen]
        return {
            name: self.value(field, f"{path}/{name}", [one.get(name, _MISSING) for one in objects], depth + 1)
            for name, field in fields_of(part).items()
            if name in wanted
        }

    def _array(self, part: Mapping[str, Json], path: str, seen: list[Any], depth: int) -> Json:
        """Answer with the fewest items allowed, distinct if required."""
        fewest = 0 if depth > _DEEPEST else part.get("minItems", 0)
        items, inside = resolved(part.get("items", {}), self._root), [_MISSING] * len(seen)
        if part.get("uniqueItems") and (values := self._closed(items, inside)):
            return self._ranked(values, path, inside)[:fewest]
        return [self.value(items, f"{path}/*", inside, depth + 1) for _ in range(fewest)]

    def _string(self, part: Mapping[str, Json]) -> str:
        """Answer with the first words of the input, else with a default or example of the schema."""
        text = self._first_words()[: part.get("maxLength")]
        offered = [text, part.get("default"), *(part.get("examples") or ())]
        return next((one for one in offered if isinstance(one, str) and self._fits(one, part)), text)

    def _number(self, part: Mapping[str, Json], path: str, seen: list[Any]) -> float:
        """Answer with the mean of the three nearest, else a number in the input, else a draw, all within bounds."""
        pairs = [(self._near[place], seen[place]) for place in self._order[:_NEAREST]]
        near = [(weight, one) for weight, one in pairs if type(one) in (int, float) and abs(one) < _MOST]
        low, high = part.get("minimum", part.get("exclusiveMinimum")), part.get("maximum", part.get("exclusiveMaximum"))
        if near:
            weights = [weight for weight, _ in near] if any(weight for weight, _ in near) else [1.0] * len(near)
            value = sum(weight * number for weight, (_, number) in zip(weights, near, strict=True)) / sum(weights)
        elif written := _NUMBER.search(self._question):
            value = float(written[0])
        elif low is not None and high is not None:
            value = min(low + (high - low) * self._draw(self._noise_key, path, self._question), high)
        else:
            value = 0
        return within(value, part)

    def _arms(self, part: Mapping[str, Json]) -> list[Mapping[str, Json]]:
        """Return the alternatives of a schema: the arms of a union, or one schema per type in a list of types."""
        kinds = part.get("type")
        of_types: list[Mapping[str, Json]] = [{**part, "type": kind} for kind in kinds] if is_array(kinds) else []
        return [resolved(arm, self._root) for arm in alternatives(part)] or of_types

    def _closed(self, part: Mapping[str, Json], seen: list[Any]) -> list[Json] | None:
        """Return the possible values of a closed field; None for an open one."""
        declared = _declared_values(part)
        if declared is not None or part.get("type") != "string":
            return declared
        if texts := [one for one in seen if isinstance(one, str)]:
            distinct: list[Json] = list(dict.fromkeys(texts))
            return [one for one in distinct if self._fits(one, part)] if len(distinct) < len(texts) else None
        if self._outputs:
            return None
        fields = [resolved(field, self._root) for field in fields_of(self._root).values()]
        strings = [field for field in fields if field.get("type") == "string"]
        if len(strings) != 1 or any(_declared_values(field) for field in fields):
            return None
        heads = [label for label, _ in self._rules.values() if label not in self._tools]
        short = [label for label in heads if len(label.split()) <= _LONGEST_LABEL]
        return [label for label in short if _NOT_IN_LABELS.isdisjoint(label) and self._fits(label, part)]

    def _ranked(self, values: list[Json], path: str, seen: list[Any]) -> list[Json]:
        """Return the values by descending score; ties in the order of declaration."""
        return sorted(values, key=lambda value: self._score(value, path, seen), reverse=True)

    def _score(self, value: Json, path: str, seen: list[Any]) -> tuple[float, float]:
        """Return the score of a value, by near examples and hits of its rule; and a draw that breaks ties at 0."""
        head = value if isinstance(value, str) else json_text(value)
        _, phrases = self._rules.get(head.casefold(), (head, ()))
        nearest = [place for place in self._order[:_NEAREST] if seen[place] is not _MISSING]
        score = math.fsum(self._near[place] for place in nearest if json_equal(seen[place], value))
        score += _HIT * sum(phrase in self._words for phrase in phrases)
        return score + self._noise(f"{path} {head}"), 0 if score else self._draw(f"{path} {self._question} {head}")

    def _by_nearness(self, seen: list[Any]) -> Iterator[Any]:
        """Yield the values of the examples, the nearest first."""
        return (seen[place] for place in self._order if seen[place] is not _MISSING)

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
        return self._heat * self._draw(self._noise_key, purpose) if self._heat else 0.0


def _turns_of(request: LMRequest) -> list[tuple[str, str]]:
    """Return role and text of the turns, without repair turns and the replies that they correct."""
    turns: list[tuple[str, str]] = []
    for turn in request.messages:
        content: Json = turn.get("content")
        text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or ())
        if turn["role"] != "user" or not text.startswith(REPAIR_OPENING):
            turns.append((turn["role"], text))
        elif turns and turns[-1][0] == "assistant":
            turns.pop()
    return turns


@lru_cache(maxsize=64)
def _index(lines: tuple[str, ...], pairs: tuple[tuple[str, str], ...], structured: bool) -> _Index:
    """Parse and index the lines of `<examples>` and earlier answers; cached, since prompts repeat."""
    parsed = [one for one in map(_parsed, lines) if is_object(one) and {"inputs", "outputs"} <= one.keys()]
    answered = [(_input(asked)[0], _parsed(answer) if structured else answer) for asked, answer in pairs]
    return _Index([
        *((_leaf_text(one["inputs"]), one["outputs"]) for one in parsed),
        *((asked, answer) for asked, answer in answered if answer is not None),
    ])  # fmt: skip


def _declared_values(part: Mapping[str, Json]) -> list[Json] | None:
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


def _blocks(text: str, tag: str) -> list[str]:
    """Return the texts between the tags of a name, in order."""
    return [part.partition(f"</{tag}>")[0] for part in text.split(f"<{tag}>")[1:] if f"</{tag}>" in part]


def _input(text: str) -> tuple[str, Mapping[str, Json]]:
    """Return the input of a turn (its last `<inputs>`, else all of it): its text, and its fields if it is an object."""
    inputs = (_blocks(text, "inputs") or [text])[-1]
    json = _parsed(inputs)
    return (_leaf_text(json), json) if is_object(json) else (inputs, {})


def _parsed(text: str) -> Json:
    """Return the JSON value of a text; None if it is not JSON."""
    try:
        return parse_json(text)
    except DataError:
        return None


def _leaf_text(json: Json) -> str:
    """Return the strings and numbers of a JSON value, in order, one per line."""
    if is_object(json) or is_array(json):
        return "\n".join(filter(None, map(_leaf_text, json.values() if is_object(json) else json)))
    return "" if json is None or isinstance(json, bool) else str(json)


def _in_words(text: str) -> str:
    """Return the words of a text between spaces, so that a substring search finds whole phrases only."""
    return f" {' '.join(_WORD.findall(text.lower()))} "


@lru_cache(maxsize=2048)
def _tokens(text: str) -> int:
    """Count words and signs; cached, since the lines of prompts repeat."""
    return len(_TOKEN.findall(text))


def _features(text: str) -> Counter[str]:
    """Count the features of a text: words, and the 3- and 4-grams of each word with a space at both ends."""
    return Counter(feature for word in _WORD.findall(text.lower()) for feature in _word_features(word))


@lru_cache(maxsize=8192)
def _word_features(word: str) -> tuple[str, ...]:
    """Return a word and its n-grams; cached, since the texts of a program share words."""
    padded = f" {word} "
    return (word, *(padded[at : at + n] for n in (3, 4) for at in range(len(padded) - n + 1)))


@lru_cache(maxsize=128)
def _rules(instructions: str) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return (label, words and phrases) by case-folded label; lines with the same label form one rule."""
    rules: dict[str, tuple[str, tuple[str, ...]]] = {}
    for found in filter(None, map(_RULE.fullmatch, map(str.rstrip, instructions.split("\n")))):
        label = found["head"].strip().strip(_QUOTES).strip()
        listed = [_in_words(item) for item in re.split("[,;]", found["listed"]) if _WORD.search(item)]
        if label and listed:
            first, before = rules.get(label.casefold(), (label, ()))
            rules[label.casefold()] = first, tuple(dict.fromkeys((*before, *listed)))
    return rules
