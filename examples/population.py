"""A hundred candidates on one live program: made by editing States, evaluated at once; the best one is kept.

    python examples/population.py [--model provider/name] [--candidates 100] [--seed 7]

Three generators sort a ticket by category, urgency and language. A candidate is a State: other rule lines for each of
them, drawn from the words of the train tickets, or a mix of two candidates. All candidates are evaluated at once, each
under an overlay of the one program, which does not change. Then the best is applied, and its changes are printed.
"""

import argparse
import asyncio
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Literal, get_args

import synmod as sm

TICKETS = Path(__file__).parent / "data" / "tickets.jsonl"


class Ticket(sm.DataModel):
    """What a customer wrote."""

    text: str


class Category(sm.DataModel):
    """What a ticket is about."""

    category: Literal["billing", "shipping", "technical", "account", "feedback"]


class Urgency(sm.DataModel):
    """How soon somebody must look at it."""

    urgency: Literal["low", "normal", "high"]


class Language(sm.DataModel):
    """What it is written in."""

    language: Literal["en", "de", "es"]


MODELS = (Category, Urgency, Language)
FIELDS = {name: get_args(field.annotation) for model in MODELS for name, field in model.model_fields.items()}


@sm.compose
async def sorter(ticket: Ticket):
    """Sorts a ticket three ways."""
    category = await sm.Generator(Category, name="category")(ticket)
    urgency = await sm.Generator(Urgency, name="urgency")(ticket)
    return category + urgency + await sm.Generator(Language, name="language")(ticket)


def read_tickets(split):
    """Return the rows of one split, in order."""
    rows = [json.loads(line) for line in TICKETS.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["split"] == split]


def telling_words(rows, field, label):
    """Return words that are more frequent in tickets of a label than in others, the most typical first."""
    here, elsewhere = Counter(), Counter()
    for row in rows:
        (here if row[field] == label else elsewhere).update(set(re.findall(r"\w{3,}", row["text"].lower())))
    return sorted(here, key=lambda word: (elsewhere[word] - 2 * here[word], word))[:40]


def edited(state, words, draw):
    """Return a candidate: the live State with rule lines of random words for each generator."""
    lines = {
        f"{field}/instructions": "\n".join(
            [state[f"{field}/instructions"].value]
            + [f"{label}: {', '.join(draw.sample(words[field, label], 12))}" for label in labels]
        )
        for field, labels in FIELDS.items()
    }
    return state.replace(lines)


def make_candidates(state, rows, count, draw):
    """Return candidates: three of four by editing the live State, the rest by mixing two of those."""
    words = {(field, label): telling_words(rows, field, label) for field in FIELDS for label in FIELDS[field]}
    candidates = [edited(state, words, draw) for _ in range(count - count // 4)]
    for _ in range(count // 4):
        mother, father = draw.sample(candidates, 2)
        candidates.append(mother | father.filter(sm.PathContains(draw.choice(list(FIELDS)))))
    return candidates


async def accuracy(rows):
    """Return the share of correct fields on some rows, with the values that the program has here."""
    answers = await asyncio.gather(*(sorter(Ticket(text=row["text"])) for row in rows))
    pairs = [(answer[field], row[field]) for answer, row in zip(answers, rows, strict=True) for field in FIELDS]
    return sum(got == wanted for got, wanted in pairs) / len(pairs)


async def score(candidate, rows):
    """Return the accuracy of one candidate; only the tasks started inside see its values."""
    with sm.using(sorter, candidate):
        return await accuracy(rows)


async def main(model, count, seed):
    """Run everything, in order."""
    sm.set_default_language_model(model)
    train, heldout = read_tickets("train"), read_tickets("heldout")[::4]
    before = sm.state(sorter)
    print(f"held out, untrained:     {await accuracy(heldout):.2f}")

    candidates = make_candidates(before, train[::2], count, random.Random(seed))
    scores = await asyncio.gather(*(score(candidate, train[1::6]) for candidate in candidates))
    untouched = sm.state(sorter) == before and all(v.version == 0 for v in sorter.variables)
    print(f"{count} candidates: worst {min(scores):.2f}, best {max(scores):.2f}; live program untouched: {untouched}")

    best = candidates[scores.index(max(scores))]
    sm.update(sorter, best)
    print(f"held out, with the best: {await accuracy(heldout):.2f}\n")
    for path, (_, new) in before.diff(sm.state(sorter)).items():
        print(f"{path}:\n{new and new.value}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="embedded/nearest", help="provider/name; the default does not need a key")
    parser.add_argument("--candidates", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=7, help="seed of the random words (default: 7)")
    arguments = parser.parse_args()
    sm.run(main, arguments.model, arguments.candidates, arguments.seed)
