"""`embedded/nearest` learns: prompts with more to say answer more of 80 held-out requests.

180 templated requests in three classes, made here; the page's figures are for requests of another author, so the
bounds are wide. Measured on these: nothing 0.25; full rules 1.00, half of them 0.59, wrong ones 0.00; 3, 8, 16 random
examples 0.44, 0.62, 0.78 (with half of the rules 0.67, 0.76, 0.84); best of 20 sets chosen on other requests 0.59,
0.79, 0.86.
"""

import itertools
import json
import random

import pytest

from synmod.data import intern_schema
from synmod.embedded import NearestAdapter
from synmod.leaves.frozen import frozen
from synmod.lm import Layout, LMRequest

TEMPLATES = {
    "billing": [
        "I was charged twice for {thing} last {time}",
        "The invoice for {thing} shows a wrong amount this {time}",
        "Please refund my payment for {thing} from last {time}",
        "My card was declined when paying for {thing} on {time}",
    ],
    "technical": [
        "{thing} crashes when I open it every {time}",
        "The {thing} shows an error since last {time}",
        "I cannot install {thing} on my laptop this {time}",
        "{thing} freezes after the update of {time}",
    ],
    "shipping": [
        "My parcel with {thing} has not arrived since {time}",
        "Where is the delivery of {thing} promised for {time}",
        "The {thing} came in a damaged box on {time}",
        "The courier left {thing} at the wrong address on {time}",
    ],
}
THINGS = (
    "the blue lamp,my headphones,the phone app,a desk chair,the printer,my subscription,the tablet,the game,a kettle,"
    "the camera,the router,my order,the watch,the speaker,the keyboard"
).split(",")
TIMES = "monday,tuesday,friday,week,month,night,sunday,morning".split(",")
RULES = {
    "billing": ["charged", "invoice", "refund", "declined"],
    "technical": ["crashes", "error", "install", "freezes"],
    "shipping": ["parcel", "delivery", "damaged box", "courier"],
}
INPUT = intern_schema({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
OUTPUT = intern_schema({"type": "object", "properties": {"label": {"enum": list(TEMPLATES)}}, "required": ["label"]})


def _requests():
    dice = random.Random(7)
    made = [
        (dice.choice(templates).format(thing=dice.choice(THINGS), time=dice.choice(TIMES)), label)
        for label, templates in TEMPLATES.items()
        for _ in range(60)
    ]
    dice.shuffle(made)
    return made


REQUESTS = _requests()
KNOWN, HELD_OUT = REQUESTS[:100], REQUESTS[100:]


def instructions(rules):
    """Instructions with a line for each rule."""
    return "Route the request.\n" + "\n".join(f"{label}: {', '.join(words)}" for label, words in rules.items())


async def accuracy(told, examples=(), asked=HELD_OUT):
    """The share of requests that a prompt answers rightly."""
    layout, adapter = Layout(OUTPUT), NearestAdapter()
    shown = frozen([{"inputs": {"text": text}, "outputs": {"label": label}} for text, label in examples])
    right = 0
    for text, label in asked:
        turns = tuple(layout.render(told, shown, frozen({"text": text}), INPUT))
        reply = adapter.send(LMRequest("embedded/nearest", turns, OUTPUT))
        right += json.loads(reply.text)["label"] == label
    return right / len(asked)


async def test_rules_lift_and_wrong_rules_lower():
    """Nothing is chance, half of the rules help, all of them do it, wrong ones mislead."""
    half = {label: words[:2] for label, words in RULES.items()}
    wrong = dict(zip(RULES, [*list(RULES.values())[1:], RULES["billing"]], strict=True))
    nothing = await accuracy("Route the request.")
    assert 0.15 < nothing < 0.45
    assert nothing + 0.15 < await accuracy(instructions(half)) < 0.9
    assert await accuracy(instructions(RULES)) == 1
    assert await accuracy(instructions(wrong)) < nothing


async def test_more_examples_answer_more():
    """On average of ten draws 3, 8 and 16 examples lift step by step, and half of the rules lift each further."""
    half = instructions({label: words[:2] for label, words in RULES.items()})
    plain, ruled = [], []
    for count in (3, 8, 16):
        draws = [random.Random(seed).sample(KNOWN, count) for seed in range(10)]
        plain.append(sum([await accuracy("Route.", draw) for draw in draws]) / 10)
        ruled.append(sum([await accuracy(half, draw) for draw in draws]) / 10)
    assert plain == pytest.approx([0.44, 0.62, 0.78], abs=0.05)
    assert all(after > before + 0.1 for before, after in itertools.pairwise(plain))
    assert all(with_rules > without for with_rules, without in zip(ruled, plain, strict=True))


async def test_choosing_examples_pays():
    """The best of 20 sets of 8 on validation requests beats the average set on held-out ones."""
    sets = [random.Random(100 + seed).sample(KNOWN, 8) for seed in range(20)]
    scores = [await accuracy("Route.", chosen, KNOWN[:40]) for chosen in sets]
    best = sets[scores.index(max(scores))]
    assert await accuracy("Route.", best) > sum([await accuracy("Route.", chosen) for chosen in sets]) / 20
