"""A help desk learns its work from tickets: it sorts each one, drafts a reply, and hands urgent ones to a person.

    python examples/support_desk.py [--model provider/name] [--proposer provider/name]

One model call sorts a ticket by category and urgency. The category decides which team drafts the reply; of three drafts
the desk sends the one that uses most of the customer's words. It begins without a rule and without an example of how to
sort, and learns both from 80 sorted tickets in three languages, within a budget: `BootstrapFewShot` chooses examples,
`Gepa` lets a second model write rules. 80 other tickets measure the gain.
"""

import argparse
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Literal, get_args

import synmod as sm

DATA, OUT = Path(__file__).parent / "data", Path("out")
BUDGET = 1000  # runs of the program per optimizer
COLUMNS = 80  # of the output
Team = Literal["billing", "shipping", "technical", "account", "feedback"]


class Ticket(sm.DataModel):
    text: str


class Sorted(sm.DataModel):
    """What a ticket is about, and how soon somebody must look at it."""

    category: Team
    urgency: Literal["low", "normal", "high"]


class Draft(sm.DataModel):
    """What a team would answer, in the customer's language."""

    answer: str


class Reply(Sorted, Draft):
    """What the desk answers, and who has to look at it at once."""

    handed_to: Literal["duty officer"] | None = None


@sm.register(package="support_desk")
def suits(inputs, outputs):
    """Return the share of the customer's words that a draft uses."""
    asked, answered = (set(re.findall(r"\w{4,}", text.lower())) for text in (inputs["text"], outputs["answer"]))
    return len(asked & answered) / max(1, len(asked))


@sm.register(package="support_desk")
def reply(found, draft) -> Reply:
    """Send the draft; a ticket that cannot wait goes to a person."""
    if found["urgency"] != "high":
        return Reply(**found, **draft)
    return Reply(**found, answer="Thank you, this cannot wait: we are on it now.", handed_to="duty officer")


def team(name):
    """Return the Generator that drafts a team's replies: its examples were written by people, and are not trained."""
    written = map(json.loads, (DATA / "replies.jsonl").read_text(encoding="utf-8").splitlines())
    examples = [row for row in written if row["inputs"]["category"] == name]
    return sm.Generator(Draft, examples=examples, temperature=0.15, trainable=False, name=name)  # so that drafts differ


@sm.compose
async def desk(ticket: Ticket):
    """A help desk."""
    found = await sm.Generator(Sorted, name="sort")(ticket)
    drafting = sm.Route(sm.Identity(), {name: team(name) for name in get_args(Team)}, key="category")
    draft = await sm.BestOf(drafting, 3, reward=suits, name="draft")(ticket + found)  # three drafts at once
    return await sm.Lambda(reply, name="reply")(found, draft)


async def read_tickets(split):
    """Return the tickets of one split, each with the right answer."""
    tickets = await sm.load_examples(DATA / "tickets.jsonl", ["category", "urgency"], program=desk, id="id")
    return [ticket for ticket in tickets if ticket.extra["split"] == split]


async def measure(label, tickets):
    """Print how often the desk is right as it is now, and return its evaluation."""
    results = (evaluation := await desk.evaluate(tickets)).results
    right = {name: sum(r.outputs[name] == r.target[name] for r in results) for name in ("category", "urgency")}
    print(f"{label:<28}", *(f"{name} {n / len(results):.2f} ({n} of {len(results)})" for name, n in right.items()))
    return evaluation


async def train(optimizer, tickets):
    """Train the desk with one optimizer; print what it used and what it changed."""
    desk.compile(sm.rewards.ExactMatch(reduce="mean"), optimizer)
    history = await desk.fit(tickets, budget=BUDGET)
    spent = history.spent
    print(f"\n{type(optimizer).__name__}: {spent.rollouts} of {BUDGET} rollouts, {spent.lm_calls:,} model calls,")
    print(f"{spent.tokens:,} tokens, ${spent.cost_usd:.2f}, {spent.seconds:.1f} s. It changed:")
    print("\n".join(line[:COLUMNS] for line in history.diff().splitlines()))


async def main(model, proposer, path):
    """Learn, show the calls behind one ticket, save, and compare with a fresh process."""
    sm.set_default_language_model(model)
    tickets, heldout = await read_tickets("train"), await read_tickets("heldout")
    desk.compile(sm.rewards.ExactMatch(reduce="mean"))
    if model.startswith("embedded/"):
        print("This model compares words and reads nothing.")
        print("For one that reads, pass --model and a key.\n")
    print(f"{len(tickets)} tickets to learn from. Right answers on {len(heldout)} others:")
    before = await measure("untrained", heldout)
    await train(sm.optimizers.BootstrapFewShot(max_examples=24), tickets)
    await measure("\nwith these examples", heldout)
    await train(sm.optimizers.Gepa(language_model=proposer), tickets)
    after = await measure("\nwith these rules, too", heldout)
    change = after.compare(before)
    print(f"now better on {change.won} tickets, worse on {change.lost};", end=" ")
    print(f"score {change.difference:+.2f}\n({change.low:+.2f} to {change.high:+.2f} with a confidence of 95 %)")

    urgent = next(result.inputs for result in after.results if result.outputs["handed_to"])
    with sm.trace() as trace:
        answer = await desk(urgent)
    trace.to_html(path.with_name("desk_trace.html"))
    print(f"\n{textwrap.fill(urgent['text'], COLUMNS)}\n{answer.prettify_json()}\n\n{trace}")
    print("the same as a page: out/desk_trace.html")
    here = [result.outputs.get_json() for result in after.results]
    fresh = [sys.executable, __file__, "--model", model, "--load", str(desk.save(path))]
    there = json.loads(subprocess.run(fresh, check=True, capture_output=True, encoding="utf-8").stdout)
    print(f"saved: {path}; a fresh process gives", "equal" if here == there else "DIFFERENT", f"answers ({len(there)})")


async def answer_tickets(model, path):
    """Answer the held-out tickets with a saved desk, as JSON; the fresh process runs this."""
    sm.set_default_language_model(model)
    print(json.dumps([answer.get_json() for answer in await sm.load(path).predict(await read_tickets("heldout"))]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="embedded/nearest", help="provider/name; the default does not need a key")
    parser.add_argument("--proposer", default="embedded/rules", help="the model that writes rules; likewise")
    parser.add_argument("--load", type=Path, help="answer with a saved program instead, as JSON")
    options = parser.parse_args()
    if options.load:
        sm.run(answer_tickets, options.model, options.load)
    else:
        OUT.mkdir(exist_ok=True)
        sm.run(main, options.model, options.proposer, OUT / "desk.json")
