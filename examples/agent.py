"""A shop's desk: a person decides on refunds, a kill loses nothing, and nothing is paid or refunded twice.

    python examples/agent.py [--model provider/name] [--ask "Please refund order 18!"] [--run out/desk]

Three plain functions over a small SQLite database become tools of an agent, which answers all customers at once. A
refund waits for a person (`approve="ask"`), and is never repeated by itself (`once=True`). The desk stands in a durable
block: what a model or a tool has returned is in the folder, so the same lines go on where they were.

This process is the person. It starts the desk in processes of their own: the first ends with open questions; the second
has the answers, and kills itself right after the first refund; the third goes on to the end, in a fresh interpreter. A
fourth shows that all of it is found. In a terminal the questions are yours to answer.

The default model only matches words, which is enough to see how it works; `--model` takes a real one.
"""

import argparse
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Literal

import synmod as sm

PRODUCTS = {"mug": (9.5, 40), "kettle": (45.0, 3), "plate": (12.0, 0)}
ORDERS = {17: ("mug", "on its way"), 18: ("kettle", "delivered"), 19: ("plate", "delivered")}
FOLDER = Path("out", "desk")
QUESTIONS = (
    "What is the status of order 17?",
    "How many pieces of the kettle are in stock?",
    "Please refund order 18, the kettle is too loud.",
    "Please refund order 19, the plates are too small.",
    "What is the status of order 99?",
)
DECISIONS = {18: True, 19: "We need a photo of the plates first."}  # of the person, where nobody sits at a terminal


class Question(sm.DataModel):
    """What a customer asks."""

    question: str


class Answer(sm.DataModel):
    """What the desk answers."""

    answer: str


# -- the shop ----------------------------------------------------------------------------------------------------------


def rows(folder, query, *values):
    """Run a statement, and return its rows; each call has a connection of its own, since tools run in threads."""
    with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
        return connection.execute(query, values).fetchall()


def fill_shop(folder):
    """Create the database from scratch."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows(folder, "CREATE TABLE products (name TEXT PRIMARY KEY, price REAL, pieces INTEGER)")
    rows(folder, "CREATE TABLE orders (number INTEGER PRIMARY KEY, product TEXT, status TEXT)")
    rows(folder, "CREATE TABLE refunds (number INTEGER, price REAL)")
    for name, (price, pieces) in PRODUCTS.items():
        rows(folder, "INSERT INTO products VALUES (?, ?, ?)", name, price, pieces)
    for number, (product, status) in ORDERS.items():
        rows(folder, "INSERT INTO orders VALUES (?, ?, ?)", number, product, status)


def find(folder, order):
    """Return product, status and price of an order."""
    query = "SELECT product, status, price FROM orders JOIN products ON product = name WHERE number = ?"
    found = rows(folder, query, order)
    if not found:
        raise sm.ToolError(f"There is no order {order}; ask the customer for the number.")
    return found[0]


def order_status(order: int, folder: sm.Injected[Path]) -> str:
    """Return the status of an order, which has this number."""
    product, status, _ = find(folder, order)
    return f"Order {order} ({product}) is {status}."


def stock(product: Literal["mug", "kettle", "plate"], folder: sm.Injected[Path]) -> str:
    """Return how many pieces of a product are in stock, and its price."""
    ((price, pieces),) = rows(folder, "SELECT price, pieces FROM products WHERE name = ?", product)
    return f"{pieces} pieces in stock, {price:.2f} euros each."


def refund(order: int, folder: sm.Injected[Path]) -> str:
    """Refund the order of this number: give the customer the money back."""
    product, _, price = find(folder, order)
    rows(folder, "INSERT INTO refunds VALUES (?, ?)", order, price)
    return f"{price:.2f} euros are refunded for order {order} ({product})."


# -- the desk, in a process of its own ---------------------------------------------------------------------------------


def desk():
    """Return a module that answers a list of questions, all at once."""
    agent = sm.Agent(
        [order_status, stock, sm.Tool(refund, approve="ask", once=True)],
        Answer,
        instructions="Help the customers of a shop. Look up what you need; never promise what no tool has done.",
        max_steps=4,
        name="agent",
    )
    return sm.Map(agent)


class DieAfterRefund(sm.Hook):
    """Ends this process at once after a refund, as a power cut would."""

    def on_call_end(self, event):
        """Die."""
        if event.name == "refund" and event.exception is None:
            os.kill(os.getpid(), signal.SIGKILL)


async def serve(folder, model, questions, dies):
    """Answer all questions; the same lines in each process."""
    sm.set_default_language_model(model)
    with sm.inject(folder), sm.hooks(DieAfterRefund() if dies else sm.Hook()), sm.track_usage() as usage:
        try:
            async with sm.durable(folder):
                answers = await desk()([Question(question=question) for question in questions])
        except sm.Paused as pause:
            print(f"  paid for {usage.calls} model calls, and waits for {len(pause.questions)} answers")
            return
    print(f"  paid for {usage.calls} model calls, and is done")
    for question, answer in zip(questions, answers, strict=True):
        print(f"    {question}\n      {answer['answer']}")


# -- the person --------------------------------------------------------------------------------------------------------


def decide(question):
    """Return the answer of a person: yes, no, or why not."""
    call = question.value
    if not sys.stdin.isatty():
        return DECISIONS.get(call["arguments"]["order"], True)
    reply = input(f"  {call['name']} {call['arguments']}? yes, no, or why not: ")
    return {"yes": True, "no": False}.get(reply, reply)


def main(arguments):
    """Start the desk until it is done, and answer what it asks in between."""
    folder, run = arguments.run, sm.Run(arguments.run)
    fill_shop(folder)
    for number, dies in enumerate((False, True, False, False), start=1):
        print(f"start {number}", flush=True)
        command = [sys.executable, __file__, *sys.argv[1:], "--serve", *(["--die"] if dies else [])]
        status = subprocess.run(command, check=False).returncode
        if status:
            print(f"  ended with status {status}; {len(run.calls)} calls are in the folder")
        for question in run.waiting:
            answer = decide(question)
            print(f"  {question.text} {question.value['arguments']} -> {answer}")
            run.answer(question.id, answer, by="the person")
    print(f"refunds: {rows(folder, 'SELECT * FROM refunds')}; model calls paid for in all: {run.usage.calls}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="embedded/nearest", help="provider/name; the default does not need a key")
    parser.add_argument("--ask", action="append", help="a question of your own; may be repeated")
    parser.add_argument("--run", type=Path, default=FOLDER, help=f"the folder of the desk (default: {FOLDER})")
    parser.add_argument("--serve", action="store_true", help="be the desk, not the person")
    parser.add_argument("--die", action="store_true", help="end at once after a refund")
    given = parser.parse_args()
    if given.serve:
        sm.run(serve, given.run, given.model, given.ask or QUESTIONS, given.die)
    else:
        main(given)
