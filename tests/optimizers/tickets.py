"""A small classification on `embedded/nearest`: tickets with a word or two that tell their class."""

from random import Random
from typing import Literal

import synmod as sm
from synmod.train import Batch, Trainer

TELLING = {
    "billing": ["invoice", "refund", "card", "bill"],
    "shipping": ["parcel", "courier", "address", "box"],
    "technical": ["crash", "error", "login", "bug"],
}


class Ticket(sm.DataModel):
    """What a customer writes."""

    text: str


class Label(sm.DataModel):
    """Whose it is."""

    label: Literal["billing", "shipping", "technical"]


def rows(count, seed=0):
    """Return inputs and targets."""
    draw = Random(seed)
    labels = [draw.choice(list(TELLING)) for _ in range(count)]
    texts = [f"My {draw.choice(TELLING[label])} is {draw.choice(['odd', 'gone', 'red', 'new'])}" for label in labels]
    return [{"text": text} for text in texts], [{"label": label} for label in labels]


def batches(count, size, seed=0):
    """Return rows in batches."""
    inputs, targets = rows(count, seed)
    return [Batch(inputs[at : at + size], targets[at : at + size]) for at in range(0, count, size)]


def trainer(**options):
    """Return a trainer of a program that begins with nothing but its schema."""
    program = sm.Sequential([sm.Input(Ticket), sm.Generator(Label, language_model="embedded/nearest")])
    return Trainer(program, reward="exact_match", label_names=["label"], **options)


async def accuracy(program, seed=9):
    """Return the share of new rows that are right."""
    inputs, targets = rows(60, seed)
    examples = [sm.Example(None, x, y) for x, y in zip(inputs, targets, strict=True)]
    return (await sm.evaluate(program, examples, reward="exact_match", progress=False)).score
