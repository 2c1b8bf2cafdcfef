"""A help desk learns its work from tickets: it sorts each one, drafts a reply, and hands urgent ones to a person.

    python examples/support_desk.py [--model provider/name] [--proposer provider/name] [--api-base address]

One model call sorts a ticket by category and urgency. The category decides which team drafts the reply; of three drafts
the desk sends the one that uses most of the customer's words. It begins without a rule and without an example of how to
sort, and learns both from 80 sorted tickets in three languages, within a budget: `BootstrapFewShot` chooses examples,
`Gepa` lets a second model write rules. 80 other tickets measure the gain.

Each optimizer has a budget of 1000 runs of the program, of four model calls each. A server of one's own (`--api-base`)
may answer one call per second: there it is 50 runs, with 12 tickets to learn from and 12 to measure with, 550 calls at
most; `--budget` and `--tickets` change that. Replies are kept in out/replies.db: what was answered is not sent again.
"""

import argparse
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

import synmod as sm

DATA, OUT = Path(__file__).parent / "data", Path("out")
BUDGET, TICKETS = 1000, 80  # runs of the program per optimizer; tickets to learn from, and as many others
SMALL_BUDGET, FEW_TICKETS = 50, 12  # of a server of one's own
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

    answer: str = Field(max_length=200)  # a small model may not find an end


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


def language_model(name, api_base):
    """Return a model; a server of one's own gets four calls at a time, and its replies are kept."""
    if api_base is None:
        return name
    cache = OUT / "replies.db"
    return sm.LanguageModel(name, api_base=api_base, cache=cache, limit=4, timeout_s=600, temperature=0, max_tokens=200)


async def read_tickets(split, most=TICKETS):
    """Return so many tickets of one split, spread over its categories, each with the right answer."""
    tickets = await sm.load_examples(DATA / "tickets.jsonl", ["category", "urgency"], program=desk, id="id")
    tickets = [ticket for ticket in tickets if ticket.extra["split"] == split]
    return tickets[:: max(1, len(tickets) // most)][:most]


async def measure(label, tickets):
    """Print how often the desk is right as it is now, and return its evaluation."""
    results = (evaluation := await desk.evaluate(tickets, max_errors=0)).results
    right = {name: sum(r.outputs[name] == r.target[name] for r in results) for name in ("category", "urgency")}
    print(f"{label:<28}", *(f"{name} {n / len(results):.2f} ({n} of {len(results)})" for name, n in right.items()))
    return evaluation


async def train(optimizer, tickets, budget):
    """Train the desk with one optimizer; print what it used and what it changed."""
    desk.compile(sm.rewards.ExactMatch(reduce="mean"), optimizer)
    history = await desk.fit(tickets, budget=budget)
    spent = history.spent
    print(f"\n{type(optimizer).__name__}: {spent.rollouts} of {budget} rollouts, {spent.lm_calls:,} model calls,")
    print(f"{spent.tokens:,} tokens, ${spent.cost_usd or 0:.2f}, {spent.seconds:.1f} s. It changed:")
    print("\n".join(line[:COLUMNS] for line in history.diff().splitlines()) or "nothing")


async def main(options, path):
    """Learn, show the calls behind one ticket, save, and compare with a fresh process."""
    sm.set_default_language_model(language_model(options.model, options.api_base))
    tickets, heldout = [await read_tickets(split, options.tickets) for split in ("train", "heldout")]
    desk.compile(sm.rewards.ExactMatch(reduce="mean"))
    if options.model.startswith("embedded/"):
        print("This model compares words and reads nothing.")
        print("For one that reads, pass --model and a key.\n")
    print(f"{len(tickets)} tickets to learn from. Right answers on {len(heldout)} others:")
    before = await measure("untrained", heldout)
    await train(sm.optimizers.BootstrapFewShot(max_examples=24), tickets, options.budget)
    await measure("\nwith these examples", heldout)
    await train(sm.optimizers.Gepa(language_model=options.proposer), tickets, options.budget)
    after = await measure("\nwith these rules, too", heldout)
    change = after.compare(before)
    print(f"now better on {change.won} tickets, worse on {change.lost};", end=" ")
    print(f"score {change.difference:+.2f}\n({change.low:+.2f} to {change.high:+.2f} with a confidence of 95 %)")

    urgent = min(after.results, key=lambda result: result.outputs["handed_to"] is None).inputs  # the first, if any
    with sm.trace() as trace:
        answer = await desk(urgent)
    trace.to_html(path.with_name("desk_trace.html"))
    print(f"\n{textwrap.fill(urgent['text'], COLUMNS)}")
    print(*(textwrap.fill(line, COLUMNS) for line in answer.prettify_json().splitlines()), sep="\n")
    print(f"\n{trace}")
    print("the same as a page: out/desk_trace.html")
    here = [result.outputs.get_json() for result in after.results]
    model = ["--model", options.model, *(["--api-base", options.api_base] if options.api_base else [])]
    fresh = [sys.executable, __file__, *model, "--tickets", str(len(heldout)), "--load", str(desk.save(path))]
    there = json.loads(subprocess.run(fresh, check=True, capture_output=True, encoding="utf-8").stdout)
    print(f"saved: {path}; a fresh process gives", "equal" if here == there else "DIFFERENT", f"answers ({len(there)})")
    print("next, from a shell, with --import examples.support_desk:")
    print("  synmod run", path, """'{"text": "..."}'""", "--model", options.model)
    print("  synmod serve", path, "--model", options.model)


async def answer_tickets(options):
    """Answer the held-out tickets with a saved desk, as JSON; the fresh process runs this."""
    sm.set_default_language_model(language_model(options.model, options.api_base))
    answers = await sm.load(options.load).predict(await read_tickets("heldout", options.tickets))
    print(json.dumps([answer.get_json() for answer in answers]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="embedded/nearest", help="provider/name; the default does not need a key")
    parser.add_argument("--proposer", default="embedded/rules", help="the model that writes rules; likewise")
    parser.add_argument("--api-base", help="the address of a server of your own, such as http://127.0.0.1:8080/v1")
    parser.add_argument("--budget", type=int, help=f"runs per optimizer: {BUDGET}, or {SMALL_BUDGET} of your server")
    parser.add_argument("--tickets", type=int, help=f"to learn from, and to measure with: {TICKETS}, or {FEW_TICKETS}")
    parser.add_argument("--load", type=Path, help="answer with a saved program instead, as JSON")
    options = parser.parse_args()
    options.budget = options.budget or (SMALL_BUDGET if options.api_base else BUDGET)
    options.tickets = options.tickets or (FEW_TICKETS if options.api_base else TICKETS)
    OUT.mkdir(exist_ok=True)
    sm.run(answer_tickets(options) if options.load else main(options, OUT / "desk.json"))
