"""An analyst that writes code: questions about sales, answered from CSV and a SQLite table.

    python examples/analyst.py [--model provider/name] [--ask "Which item earned the most?"]

The sales are a long text, which the prompt never holds: it is a variable of the code that the model writes. The prices
are in a SQLite file, which the code reads by SELECT. The code runs in a sandbox and ends with the answer.

Without `--model` the model is a script with the code for one question; its first piece makes a mistake, which it reads
and corrects.
"""

import argparse
import random
import sqlite3
from pathlib import Path

import synmod as sm
from synmod.testing import ScriptedLM

OUT = Path("out")
QUESTION = "Which item earned the most, and how much?"
PIECES = [
    "rows = [line.split(',') for line in sales.splitlines()]\nprint(len(rows), rows[:2])\nprint(await prices())",
    "print(await prices('SELECT item, price FROM price'))",
    """
price = {item: cost for item, cost in (await prices('SELECT item, price FROM price'))['rows']}
earned = {}
for day, item, count in rows[1:]:
    earned[item] = earned.get(item, 0) + int(count) * price[item]
best = max(earned, key=lambda item: earned[item])
await answer(item=best, earned=round(earned[best], 2))
""",
]


class Task(sm.DataModel):
    """A question about sales."""

    question: str
    sales: str = sm.Field(description="CSV: day, item, count")


class Finding(sm.DataModel):
    """What the sales say."""

    item: str
    earned: float


def sample_sales(rows=5_000):
    """Return sales as CSV, the same each time."""
    chance, items = random.Random(7), ("tea", "cake", "juice")
    lines = [f"2026-{1 + at * 12 // rows:02d},{chance.choice(items)},{chance.randint(1, 9)}" for at in range(rows)]
    return "\n".join(["day,item,count", *lines])


def sample_prices(path):
    """Write the prices into a SQLite file, and return it."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE price (item TEXT, price REAL)")
    connection.executemany("INSERT INTO price VALUES (?, ?)", [("tea", 2.5), ("cake", 4.0), ("juice", 3.0)])
    connection.commit()
    connection.close()
    return path


def analyst(table, language_model):
    """Return the agent."""
    return sm.CodeAct([table], Finding, inputs_as="variables", budget={"calls": 10}, language_model=language_model)


async def main(options):
    """Answer a question, and show what was sent."""
    OUT.mkdir(exist_ok=True)
    table = sm.Table(sample_prices(OUT / "prices.db"), tables=["price"])
    model = options.model or ScriptedLM([{"code": piece} for piece in PIECES])
    agent, sales = analyst(table, model), sample_sales()
    with sm.trace() as trace:
        finding = await agent(Task(question=options.ask or QUESTION, sales=sales))
    sent = max(len(str(call.request.messages)) for call in trace.roots[0].lm_calls)
    print(f"{finding['item']} earned {finding['earned']:,.2f}")
    print(f"The sales have {len(sales):,} characters, the longest prompt {sent:,}.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model")
    parser.add_argument("--ask")
    sm.run(main, parser.parse_args())
