"""A function that training writes: Gepa rewrites the code of a program until its validation rows are right.

    python examples/trained_code.py [--model provider/name]

The task is to read the total of an invoice from a line of text, a function with a known optimum. The first version
fails on most lines. The proposer is told what is wrong, with the traceback, and writes the next version; what is better
on the validation rows is kept. The program file then holds the code, as it holds instructions.

Without `--model` the proposer is a script with two versions, the second of which is right.
"""

import argparse
import json
import random
from pathlib import Path

import synmod as sm
from synmod.testing import FunctionLM

OUT = Path("out")
FIRST = """
def f(inputs):
    amount = inputs["line"].split()[-1].replace(",", "")
    return {"cents": int(float(amount) * 100)}
"""
VERSIONS = [
    """
def f(inputs):
    amount = [word for word in inputs["line"].split() if word[-1].isdigit()][0].replace(",", "")
    return {"cents": round(float(amount) * 100)}
""",
    """
import re

def f(inputs):
    number = re.findall("[0-9][0-9,]*[.]?[0-9]*", inputs["line"])[-1].replace(",", "")
    whole, _, rest = number.partition(".")
    return {"cents": int(whole) * 100 + int((rest + "00")[:2])}
""",
]


class Line(sm.DataModel):
    """A line of an invoice."""

    line: str


class Total(sm.DataModel):
    """The total in cents."""

    cents: int


def sample_rows(number=30):
    """Return lines with their totals, the same each time."""
    chance, rows = random.Random(3), []
    for _ in range(number):
        cents = chance.randrange(100, 1_000_000)
        amount = f"{cents // 100:,}.{cents % 100:02d}"
        words = chance.choice(["Total {}", "Total: {} EUR", "To pay: ${}", "Sum {} euros"])
        rows.append((Line(line=words.format(amount)), Total(cents=cents)))
    return rows


def scripted_proposer():
    """Return a model that writes the versions in turn."""
    versions = [json.dumps({"reason": "It failed.", "value": version.strip()}) for version in VERSIONS]

    def reply(_):
        return versions.pop(0) if len(versions) > 1 else versions[0]

    return FunctionLM(reply)


async def main(options):
    """Train the code, and save the program."""
    OUT.mkdir(exist_ok=True)
    program = sm.Sequential([Line, sm.Code(FIRST, Total, seconds=1, name="read")])
    train, test = sample_rows()[:20], sample_rows()[20:]
    proposer = options.model or scripted_proposer()
    optimizer = sm.optimizers.Gepa(language_model=proposer, patience=3)
    program.compile(reward=sm.rewards.ExactMatch(), optimizer=optimizer)
    before = await sm.evaluate(program, test, reward=sm.rewards.ExactMatch())
    await program.fit(train, validation_data=test, epochs=4)
    after = await sm.evaluate(program, test, reward=sm.rewards.ExactMatch())
    print(f"score before {before.score:.2f}, after {after.score:.2f}")
    saved = sm.load(sm.save(program, OUT / "reader.json"))
    (source,) = sm.variables(saved).values()
    print(source.value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model")
    sm.run(main, parser.parse_args())
