"""`embedded/nearest`: each sentence of its page as one small prompt."""

import datetime as dt
import json
import subprocess
import sys
import uuid

import pytest

import synmod as sm
from synmod.embedded import NearestAdapter
from synmod.errors import ConfigError
from synmod.leaves.frozen import frozen
from synmod.lm import LMRequest


class Note(sm.DataModel):
    """A text."""

    text: str


LABEL = {"type": "object", "properties": {"label": {"enum": ["ham", "spam"]}}, "required": ["label"]}


def schema_of(**fields):
    """An object schema that requires all its fields."""
    return {"type": "object", "properties": fields, "required": list(fields)}


async def ask(schema, inputs, instructions="", examples=(), before=(), after=(), sample=0, **params):
    """Ask in the default layout, and read the reply."""
    lines = "\n".join(json.dumps({"inputs": i, "outputs": o}) for i, o in examples)
    turns = (
        {"role": "system", "content": f"<instructions>{instructions}</instructions>"},
        *before,
        {"role": "user", "content": f"<examples>\n{lines}\n</examples>\n<inputs>{json.dumps(inputs)}</inputs>"},
        *after,
    )
    reply = await send(schema, turns, sample=sample, **params)
    return reply.text if schema is None else json.loads(reply.text)


async def send(schema, turns, sample=0, **params):
    """Send turns to a new adapter."""
    request = LMRequest(
        "embedded/nearest", tuple(map(frozen, turns)), frozen(schema), params=frozen(params), sample=sample
    )
    return NearestAdapter().send(request)


async def test_the_nearest_examples_decide_a_closed_field():
    """The value of similar examples is taken."""
    examples = [({"text": "win money now"}, {"label": "spam"}), ({"text": "lunch with Ada"}, {"label": "ham"})]
    assert await ask(LABEL, {"text": "money money"}, examples=examples) == {"label": "spam"}
    assert await ask(LABEL, {"text": "lunch at noon"}, examples=examples) == {"label": "ham"}


async def test_three_near_examples_count_together():
    """Two fairly near ones outweigh one that is nearer, and the fourth has no say."""
    examples = [
        ({"text": "red apple pie"}, {"label": "ham"}),
        ({"text": "red apple cake"}, {"label": "ham"}),
        ({"text": "red apple tart here"}, {"label": "spam"}),
        ({"text": "stone"}, {"label": "spam"}),
    ]
    assert await ask(LABEL, {"text": "red apple"}, examples=examples) == {"label": "ham"}


@pytest.mark.parametrize(
    "line",
    [
        "spam: money, win a prize; lottery",
        "spam = lottery",
        "spam -> lottery",
        '- "spam": "lottery"',
        "   spam: LOTTERY.",
        "SPAM: lottery",
        "Choose well.\n  - spam: prizes, the lottery\nBe quick.",
    ],
)
async def test_rule_lines_decide(line):
    """A label with its words, in any of the usual ways to write one."""
    assert await ask(LABEL, {"text": "You won, the LOTTERY calls"}, line + "\nham: lunch") == {"label": "spam"}


async def test_a_listed_word_must_stand_whole():
    """`win` is no hit in `window`, and a phrase needs all its words in a row."""
    rules = "spam: win, free money\nham: window, money"
    assert await ask(LABEL, {"text": "my window, free of money"}, rules) == {"label": "ham"}


async def test_more_hits_win_and_ties_go_by_declaration():
    """Each hit is half a point; with equal scores the value declared first is taken."""
    assert await ask(LABEL, {"text": "a b c"}, "ham: a\nspam: b, c") == {"label": "spam"}
    assert await ask(LABEL, {"text": "a b c"}, "spam: b\nham: a") == {"label": "ham"}


async def test_examples_and_rules_add_up():
    """A hit outweighs an example that is not half as near."""
    examples = [({"text": "see you at the lake tomorrow evening"}, {"label": "ham"})]
    assert await ask(LABEL, {"text": "the prize"}, "spam: prize", examples) == {"label": "spam"}


async def test_without_evidence_a_hash_chooses():
    """The same question gets the same answer; different ones different answers; a seed changes them."""
    answers = [(await ask(LABEL, {"text": f"question {n}"}))["label"] for n in range(40)]
    assert answers == [(await ask(LABEL, {"text": f"question {n}"}))["label"] for n in range(40)]
    assert 8 < answers.count("ham") < 32
    assert answers != [(await ask(LABEL, {"text": f"question {n}"}, seed=1))["label"] for n in range(40)]


async def test_closed_fields_of_every_kind():
    """Booleans, constants, numbers in an enum: rule heads match their JSON text."""
    schema = schema_of(urgent={"type": "boolean"}, kind={"const": "mail"}, stars={"enum": [1, 2, 5]})
    told = await ask(schema, {"text": "help asap, it is broken"}, "true: asap\nfalse: whenever\n1: broken\n5: great")
    assert told == {"urgent": True, "kind": "mail", "stars": 1}


async def test_a_string_whose_examples_repeat_is_closed():
    """Free text that takes few values is a label, and a rule head that is none of them is no rule."""
    examples = [({"text": t}, {"label": v}) for t, v in [("red car", "car"), ("blue car", "car"), ("red bus", "bus")]]
    schema = schema_of(label={"type": "string"})
    assert await ask(schema, {"text": "green bus"}, examples=examples) == {"label": "bus"}
    assert await ask(schema, {"text": "green"}, "tram: green\nBUS: green", examples) == {"label": "bus"}


async def test_the_only_string_field_takes_the_heads_of_the_rules():
    """With rules and no examples the labels are those of the rules, as they are written."""
    schema = schema_of(label={"type": "string"}, score={"type": "integer"})
    assert (await ask(schema, {"text": "refund my card"}, "Billing: refund\nShipping: parcel"))["label"] == "Billing"
    told = "Give the field `label` (such as: refund)."
    assert (await ask(schema, {"text": "refund my card"}, told))["label"] == "refund my card"
    other = schema_of(label={"type": "string"}, why={"type": "string"})
    assert (await ask(other, {"text": "refund my card"}, "Billing: refund"))["label"] == "refund my card"


async def test_numbers_are_the_weighted_mean_of_the_three_nearest():
    """Whole numbers are rounded, bounds are kept."""
    examples = [
        ({"t": "a cat"}, {"n": 10}),
        ({"t": "a cat"}, {"n": 11}),
        ({"t": "a cat"}, {"n": 14}),
        ({"t": "x"}, {"n": 99}),
    ]
    assert await ask(schema_of(n={"type": "integer"}), {"t": "a cat"}, examples=examples) == {"n": 12}
    got = await ask(schema_of(n={"type": "number"}), {"t": "a cat"}, examples=examples)
    assert got["n"] == pytest.approx(35 / 3)
    assert await ask(schema_of(n={"type": "integer", "maximum": 7}), {"t": "a cat"}, examples=examples) == {"n": 7}


@pytest.mark.parametrize(
    ("field", "text", "number"),
    [
        ({"type": "integer"}, "costs 12.6 or 3", 13),
        ({"type": "number"}, "minus -2.5", -2.5),
        ({"type": "integer", "minimum": 3}, "none", 3),
        ({"type": "integer", "exclusiveMaximum": 0}, "none", -1),
        ({"type": "integer", "multipleOf": 5}, "7 or so", 5),
        ({"type": "number", "exclusiveMinimum": 2, "maximum": 2.5}, "1", 2.25),
        ({"type": "number", "exclusiveMinimum": 0}, "none", 1),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "3", 0.5),
        ({"type": "number", "minimum": 0.1, "multipleOf": 0.25}, "none", 0.25),
    ],
)
async def test_numbers_without_examples_come_from_the_input(field, text, number):
    """The first number of the input, else 0, moved into the bounds."""
    assert await ask(schema_of(n=field), {"t": text}) == {"n": number}


async def test_numbers_without_any_evidence_are_hashed_within_bounds():
    """Between two bounds every number comes, the same for the same question."""
    schema = schema_of(n={"type": "integer", "minimum": 1, "maximum": 5})
    got = [(await ask(schema, {"t": "x" * n}))["n"] for n in range(1, 60)]
    assert set(got) == {1, 2, 3, 4, 5}
    assert got == [(await ask(schema, {"t": "x" * n}))["n"] for n in range(1, 60)]
    wide = schema_of(n={"type": "integer", "minimum": -1e308, "maximum": 1e308})
    assert -1e308 <= (await ask(wide, {"t": "x"}))["n"] <= 1e308


async def test_strings_are_those_of_the_nearest_example():
    """A free text is taken over whole."""
    examples = [({"q": "capital of France"}, {"a": "Paris"}), ({"q": "capital of Peru"}, {"a": "Lima"})]
    schema = schema_of(a={"type": "string"})
    assert await ask(schema, {"q": "the capital of Peru?"}, examples=examples) == {"a": "Lima"}


async def test_strings_without_examples_are_the_sentence_most_spoken_of():
    """Of the input that sentence which shares most with the rest; of a single one twelve words."""
    schema = schema_of(a={"type": "string"})
    inputs = {
        "q": "Who wrote the novel Emma?",
        "text": "Rain fell. The novel Emma was written by Jane Austen. It ended.",
    }
    assert "Emma" in (await ask(schema, inputs))["a"]
    long = " ".join(map(str, range(100, 130)))
    assert (await ask(schema, {"q": long}))["a"] == " ".join(long.split()[:12])
    assert (await ask(schema_of(a={"type": "string", "maxLength": 9}), {"q": long}))["a"] == long[:9]


async def test_what_cannot_be_met_takes_what_the_schema_offers():
    """A pattern is met by `default` or `examples`, or not at all."""
    pattern = {"type": "string", "pattern": "^[A-Z]{3}$"}
    assert await ask(schema_of(a={**pattern, "default": "ABC"}), {"q": "x"}) == {"a": "ABC"}
    assert await ask(schema_of(a={**pattern, "examples": ["abc", "XYZ"]}), {"q": "x"}) == {"a": "XYZ"}
    assert await ask(schema_of(a=pattern), {"q": "x"}) == {"a": "x"}


def test_a_class_with_dates_and_tuples_is_answered():
    """Without an example: a text in each format, and each place of a tuple by its own type."""

    class Visit(sm.DataModel):
        at: dt.datetime
        day: dt.date
        stay: dt.timedelta
        key: uuid.UUID
        place: tuple[int, str, bool]

    visit = sm.run(sm.Generator(Visit, language_model="embedded/nearest"), Note(text="Room 7, please."))
    assert (visit["day"], visit["place"][:2]) == ("2024-05-17", [7, "Room 7, please."])


async def test_arrays_are_those_of_the_nearest_else_as_short_as_allowed():
    """Without examples the fewest items, distinct where they must be."""
    tags = {"type": "array", "items": {"enum": ["a", "b", "c"]}}
    examples = [({"q": "sun"}, {"tags": ["a", "c"]}), ({"q": "moon"}, {"tags": ["b"]})]
    assert await ask(schema_of(tags=tags), {"q": "the sun"}, examples=examples) == {"tags": ["a", "c"]}
    assert await ask(schema_of(tags=tags), {"q": "sun"}) == {"tags": []}
    two = {**tags, "minItems": 2, "uniqueItems": True}
    assert await ask(schema_of(tags=two), {"q": "sun"}, "c: sun\na: moon, sun") == {"tags": ["a", "c"]}


async def test_objects_go_field_by_field():
    """Nested fields are answered like top-level ones; optional ones only if the nearest example has them."""
    inner = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}, "required": ["x"]}
    examples = [({"q": "sun"}, {"o": {"x": 1, "y": "hot"}}), ({"q": "moon"}, {"o": {"x": 3}})]
    assert await ask(schema_of(o=inner), {"q": "sun sun"}, examples=examples) == {"o": {"x": 1, "y": "hot"}}
    assert await ask(schema_of(o=inner), {"q": "moon moon"}, examples=examples) == {"o": {"x": 3}}
    assert await ask(schema_of(o=inner), {"q": "7 suns"}) == {"o": {"x": 7}}


async def test_references_and_alternatives_are_followed():
    """Of an `anyOf` the arm that the nearest's value fits, else the first that is not null."""
    schema = schema_of(a={"anyOf": [{"type": "null"}, {"$ref": "#/$defs/N"}]}) | {"$defs": {"N": {"type": "integer"}}}
    examples = [({"q": "sun"}, {"a": None}), ({"q": "moon"}, {"a": 4})]
    assert await ask(schema, {"q": "sun"}, examples=examples) == {"a": None}
    assert await ask(schema, {"q": "moon"}, examples=examples) == {"a": 4}
    assert await ask(schema, {"q": "5 moons"}) == {"a": 5}


async def test_text_replies():
    """Without a schema the nearest example's text is the reply, else a sentence of the input."""
    examples = [({"q": "hi"}, {"role": "assistant", "content": "Hello!"}), ({"q": "bye"}, "Goodbye!")]
    assert await ask(None, {"q": "hi there"}, examples=examples) == "Hello!"
    assert await ask(None, {"q": "bye bye"}, examples=examples) == "Goodbye!"
    assert await ask(None, {"q": "just this"}) == "just this"


async def test_plain_conversations_are_read():
    """Without tags the system text instructs, earlier pairs are examples, the last user turn is the input."""
    turns = [
        {"role": "system", "content": "Sort the mail."},
        {"role": "user", "content": "win money"},
        {"role": "assistant", "content": '{"label": "spam"}'},
        {"role": "user", "content": [{"type": "text", "text": "lunch with Ada"}]},
        {"role": "assistant", "content": '{"label": "ham"}'},
        {"role": "user", "content": "money"},
    ]
    assert (await send(LABEL, turns)).text == '{"label":"spam"}'


async def test_a_repair_turn_and_the_reply_before_it_are_not_read():
    """Asked to mend a reply, it answers the question again."""
    plain = [{"role": "user", "content": "the money"}]
    repair = [
        {"role": "assistant", "content": '{"label": "nonsense"}'},
        {"role": "user", "content": "<repair>\nYour reply is not valid.\n</repair>"},
    ]
    for params in ({}, {"temperature": 1}):
        assert (await send(LABEL, plain + repair, **params)).text == (await send(LABEL, plain, **params)).text


async def test_noise_needs_a_temperature_and_repeats():
    """Samples differ only above temperature 0, and each can be drawn again."""
    examples = [({"text": "win money now"}, {"label": "spam"}), ({"text": "win a lunch"}, {"label": "ham"})]

    async def samples(**params):
        asked = [await ask(LABEL, {"text": "a lunch now"}, examples=examples, sample=n, **params) for n in range(20)]
        return [reply["label"] for reply in asked]

    assert set(await samples()) == {"ham"}
    assert set(await samples(temperature=0)) == {"ham"}
    warm = await samples(temperature=1)
    assert set(warm) == {"ham", "spam"}
    assert warm == await samples(temperature=1)
    assert warm != await samples(temperature=1, seed=5)
    assert (await samples(temperature=0.1)).count("ham") >= warm.count("ham")


async def test_best_of_n_reaches_other_texts():
    """Noise also moves which example is nearest, so free texts differ."""
    examples = [({"q": f"{word} sea"}, {"a": word}) for word in ("red", "blue", "calm")]
    got = {
        (await ask(schema_of(a={"type": "string"}), {"q": "sea"}, examples=examples, sample=n, temperature=1))["a"]
        for n in range(20)
    }
    assert len(got) > 1


async def test_usage_counts_words_and_signs():
    """Tokens are words and signs; the cost is nothing."""
    reply = await send(None, [{"role": "system", "content": "Be brief, please."}, {"role": "user", "content": "Hi!"}])
    assert reply.usage.prompt_tokens == 7
    assert reply.usage.completion_tokens == 2
    assert reply.usage.cost_usd == 0


async def test_broken_lines_and_inputs_never_fail():
    """It answers whatever it is sent."""
    content = '<examples>\n{broken\n[1]\n{"inputs": 1}\n</examples><inputs>{not json</inputs><examples>'
    turns = [{"role": "user", "content": content}]
    assert (await send(schema_of(a={"type": "string"}), turns)).text == '{"a":"{not json"}'
    assert (await send({}, [{"role": "assistant", "content": "x"}])).text == '""'


def test_answers_are_equal_in_every_process():
    """Neither the hash seed of Python nor anything else of a process moves an answer."""
    code = (
        "from synmod.embedded import NearestAdapter; from synmod.lm import LMRequest\n"
        "schema = {'type': 'object', 'required': ['a', 'n'], 'properties': {'a': {'enum': ['x', 'y', 'z']},"
        " 'n': {'type': 'number', 'minimum': 0, 'maximum': 1}}}\n"
        "turns = ({'role': 'user', 'content': '<inputs>{\"q\":\"what is it\"}</inputs>'},)\n"
        "for sample in range(3):\n"
        "    request = LMRequest('embedded/nearest', turns, schema, params={'temperature': sample}, sample=sample)\n"
        "    print(NearestAdapter().send(request).text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "1"}
    )
    assert done.stdout == (
        '{"a":"z","n":0.3693539900110989}\n{"a":"z","n":0.6616195313568763}\n{"a":"x","n":0.9363541865208855}\n'
    )


async def test_a_column_keeps_apart_what_stands_in_different_places():
    """What is kept for a set of examples is kept by place: fields of one name in two objects stay two."""
    examples = [({"q": "a"}, {"x": {"n": "p"}, "y": {"n": "r"}}), ({"q": "b"}, {"x": {"n": "p"}, "y": {"n": "s"}})]
    inner = schema_of(n={"type": "string"})
    for _ in range(2):
        told = await ask(schema_of(x=inner, y=inner), {"q": "b"}, examples=examples)
        assert told == {"x": {"n": "p"}, "y": {"n": "s"}}


def test_unknown_names_are_refused():
    """The name of an embedded model is checked when it is asked for."""
    with pytest.raises(ConfigError, match="Did you mean 'nearest'"):
        sm.LanguageModel("embedded/nearst")
