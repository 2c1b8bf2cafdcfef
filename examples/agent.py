"""A shop assistant: a model that looks things up in a database, and refunds only what it is allowed to.

    python examples/agent.py [--model provider/name] [--ask "Where is order 17?"] [--save out/assistant.json]

Three plain functions over a small SQLite database become tools: their schemas are read from their signatures. The agent
calls them until it has an answer. Whatever the model writes, only these three can run, and only with valid arguments;
`approve` checks a refund before it runs, and the model receives the reason for a refusal. Each answer is printed with
the calls behind it. At the end the agent is saved, loaded, and asked again.

The default model only matches words, which is enough to see how it works; `--model` takes a real one.
"""

import argparse
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal

import synmod as sm

PRODUCTS = {"mug": (9.5, 40), "kettle": (45.0, 3), "plate": (12.0, 0)}
ORDERS = {17: ("mug", "on its way"), 18: ("kettle", "delivered"), 19: ("plate", "delivered")}
MOST_REFUNDED = 20.0  # euros that the agent may give back by itself
OUT, DATABASE = Path("out", "assistant.json"), Path("out", "shop.db")
QUESTIONS = (
    "What is the status of order 17?",
    "How many pieces of the kettle are in stock?",
    "Please refund order 19, the plates are too small.",
    "Please refund order 18, the kettle is too loud.",
    "Please refund order 17, it takes too long.",
    "What is the status of order 99?",
    "Tell me a joke!",
)


class Question(sm.DataModel):
    """What a customer asks."""

    question: str


class Answer(sm.DataModel):
    """What the assistant answers."""

    answer: str


def rows(query, *values):
    """Run a statement, and return its rows; each call has a connection of its own, since tools run in threads."""
    with closing(sqlite3.connect(DATABASE)) as connection, connection:
        return connection.execute(query, values).fetchall()


def fill_shop():
    """Create the database from scratch."""
    DATABASE.parent.mkdir(parents=True, exist_ok=True)
    DATABASE.unlink(missing_ok=True)
    rows("CREATE TABLE products (name TEXT PRIMARY KEY, price REAL, pieces INTEGER)")
    rows("CREATE TABLE orders (number INTEGER PRIMARY KEY, product TEXT, status TEXT)")
    for name, (price, pieces) in PRODUCTS.items():
        rows("INSERT INTO products VALUES (?, ?, ?)", name, price, pieces)
    for number, (product, status) in ORDERS.items():
        rows("INSERT INTO orders VALUES (?, ?, ?)", number, product, status)


def find(order):
    """Return product, status and price of an order."""
    found = rows("SELECT product, status, price FROM orders JOIN products ON product = name WHERE number = ?", order)
    if not found:
        raise sm.ToolError(f"There is no order {order}; ask the customer for the number.")
    return found[0]


@sm.register(package="shop")
def order_status(order: int) -> str:
    """Return the status of an order.

    Args:
        order: Its number.
    """
    product, status, _ = find(order)
    return f"Order {order} ({product}) is {status}."


@sm.register(package="shop")
def stock(product: Literal["mug", "kettle", "plate"]) -> str:
    """Return how many pieces of a product are in stock, and its price."""
    ((price, pieces),) = rows("SELECT price, pieces FROM products WHERE name = ?", product)
    return f"{pieces} pieces in stock, {price:.2f} euros each."


@sm.register(package="shop")
def refund(order: int) -> str:
    """Refund an order: give the customer the money back.

    Args:
        order: Its number.
    """
    product, status, price = find(order)
    if status != "delivered":
        raise sm.ToolError(f"Order {order} is {status}: only what was delivered is refunded.")
    rows("UPDATE orders SET status = 'refunded' WHERE number = ?", order)
    return f"{price:.2f} euros are refunded for order {order} ({product})."


@sm.register(package="shop")
def may_refund(name, arguments):
    """Allow small refunds; a shop would ask a person about the others."""
    *_, price = find(arguments["order"])
    return name == "refund" and price <= MOST_REFUNDED


def assistant():
    """Return the agent."""
    return sm.Agent(
        [order_status, stock, sm.Tool(refund, timeout_s=10, approve=may_refund)],
        Answer,
        instructions="Help the customers of a shop. Look up what you need; never promise what no tool has done.",
        max_steps=4,
        budget={"tokens": 20_000},
        name="assistant",
    )


async def show(agent, question):
    """Print an answer and the calls behind it."""
    with sm.trace() as trace:
        try:
            answer = (await agent(Question(question=question)))["answer"]
        except sm.AgentLimitError as error:
            answer = f"(no answer: {error})"
    print(f"\n{question}\n  {answer}")
    for call in trace.roots[0].children:
        arguments = [each.get_json() for each in call.inputs or ()]
        result = call.error if call.outputs is None else call.outputs["result"]
        print(f"    {call.path}{arguments[0]} -> {result}")
    return answer


async def main(model, questions, path):
    """Ask everything, then ask the saved agent again."""
    sm.set_default_language_model(model)
    fill_shop()
    agent = assistant()
    for question in questions:
        await show(agent, question)
    print(f"\norders now: {dict(rows('SELECT number, status FROM orders'))}")

    path.parent.mkdir(parents=True, exist_ok=True)
    sm.save(agent, path)
    again = sm.load(path)
    print(f"\nsaved {path.stat().st_size:,} bytes to {path}; loaded again, with {', '.join(again.tools)}:")
    await show(again, questions[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="embedded/nearest", help="provider/name; the default does not need a key")
    parser.add_argument("--ask", action="append", help="a question of your own; may be repeated")
    parser.add_argument("--save", type=Path, default=OUT, help=f"where to save the agent (default: {OUT})")
    arguments = parser.parse_args()
    sm.run(main, arguments.model, arguments.ask or QUESTIONS, arguments.save)
