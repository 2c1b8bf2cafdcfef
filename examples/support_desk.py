"""A help desk learns its work from tickets: it sorts each one, drafts a reply, and hands urgent ones to a person.

    python examples/support_desk.py [--model provider/name] [--proposer provider/name] [--save out/desk.json]

One model call sorts a ticket by category and urgency. The category decides which team drafts the reply; of three drafts
the desk sends the one that uses most of the customer's words.

Nobody writes down how to sort. The program begins without a rule and without an example. It learns both from 80 sorted
tickets in three languages, within a budget: `BootstrapFewShot` chooses examples, `Gepa` lets a second model write
rules. 80 other tickets show what that is worth. Then the program shows the calls behind one ticket, on the terminal and
as a page for the browser, saves itself, and answers all held-out tickets again in a fresh process.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args

import synmod as sm

DATA = Path(__file__).parent / "data"
OUT = Path("out", "desk.json")
Team = Literal["billing", "shipping", "technical", "account", "feedback"]
BUDGET = 1000  # runs of the program per optimizer


class Ticket(sm.DataModel):
    """What a customer wrote."""

    text: str


class Sorted(sm.DataModel):
    """What a ticket is about, and how soon somebody must look at it."""

    category: Team
    urgency: Literal["low", "normal", "high"]


class Draft(sm.DataModel):
    """What a team would answer, in the customer's language."""

    answer: str


class Escalation(sm.DataModel):
    """A ticket that a person takes over."""

    team: str


class Reply(Sorted):
    """What the desk answers."""

    answer: str
    handed_to: str | None = None


@sm.register(package="support_desk")
class Escalate(sm.Module):
    """Hands urgent tickets to a team; returns None for all others."""

    def __init__(self, team: str = "duty officer", **kwargs):
        super().__init__(**kwargs)
        self.team = team

    async def call(self, inputs: Sorted) -> Escalation | None:
        return Escalation(team=self.team) if inputs["urgency"] == "high" else None


@sm.register(package="support_desk")
class WriteReply(sm.Module):
    """Assembles the reply."""

    async def call(self, found: Sorted, draft: Draft, escalation: Escalation | None = None) -> Reply:
        team = None if escalation is None else escalation["team"]
        answer = draft["answer"] if team is None else f"Thank you, this cannot wait: our {team} is on it now."
        return Reply(category=found["category"], urgency=found["urgency"], answer=answer, handed_to=team)


@sm.register(package="support_desk")
def suits(inputs, outputs):
    """Return the share of the customer's words that a draft uses."""
    asked, answered = (set(re.findall(r"\w{4,}", text.lower())) for text in (inputs["text"], outputs["answer"]))
    return len(asked & answered) / max(1, len(asked))


def read(name):
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def teams():
    """Return what drafts the replies of each team: it is shown those that people wrote, and is not trained."""
    written = {row["ticket"]: row["reply"] for row in read("replies.jsonl")}
    examples = {team: [] for team in get_args(Team)}
    for row in read("tickets.jsonl"):
        if row["id"] in written:
            inputs = {name: row[name] for name in ("text", "category", "urgency")}
            examples[row["category"]].append({"inputs": inputs, "outputs": {"answer": written[row["id"]]}})
    return {
        team: sm.Generator(Draft, examples=examples[team], temperature=0.15, trainable=False) for team in get_args(Team)
    }  # the temperature varies the drafts


@sm.compose
async def desk(ticket: Ticket):
    """A help desk."""
    found = await sm.Generator(Sorted, name="sort")(ticket)
    drafting = sm.Route(sm.Identity(), teams(), key="category")  # calls one team of five
    draft = await sm.BestOf(drafting, 3, reward=suits, name="draft")(ticket + found)  # three drafts at once
    escalation = await Escalate(name="escalate")(found)  # at the same time; None for most tickets
    return await WriteReply(name="reply")(found, draft, escalation)


async def read_tickets(split):
    """Return the tickets of one split, with what is right for each."""
    tickets = await sm.load_examples(DATA / "tickets.jsonl", ["category", "urgency"], program=desk, id="id")
    return [ticket for ticket in tickets if ticket.extra["split"] == split]


async def measure(label, tickets):
    """Print how often the desk is right as it is now, and return its evaluation."""
    evaluation = await desk.evaluate(tickets)
    rows = [(result.outputs or {}, result.target) for result in evaluation.results]
    print(f"  {label:<24}", end="")
    for field in ("category", "urgency"):
        right = sum(outputs.get(field) == target[field] for outputs, target in rows)
        print(f"  {field} {right / len(rows):.2f} ({right} of {len(rows)})", end="")
    print(flush=True)
    return evaluation


async def train(optimizer, tickets):
    """Train the desk with one optimizer; print what that took, and what it changed."""
    desk.compile(sm.rewards.ExactMatch(reduce="mean"), optimizer)
    history = await desk.fit(tickets, budget=BUDGET)
    spent, tried = history.spent, len(history.candidates)
    print(f"\n{type(optimizer).__name__}: {tried} candidates, {spent.rollouts} of {BUDGET} rollouts,", end=" ")
    print(f"{spent.lm_calls:,} model calls, {spent.tokens:,} tokens, ${spent.cost_usd:.2f}, {spent.seconds:.1f} s")
    print("\n".join(line[:117] for line in history.diff().splitlines()))


async def show_one(ticket, page):
    """Show the calls behind one ticket, with the tokens of each: as a tree, and as a page."""
    with sm.trace() as trace:
        reply = await desk(ticket.inputs)
    trace.to_html(page)
    print(f"\n{ticket.inputs['text']}\n  -> {reply.prettify_json()}\n\n{trace}\n\nas a page: {page}")


async def answer_file(path, model):
    """Answer all held-out tickets with a saved desk, as JSON; the fresh process runs this."""
    sm.set_default_language_model(model)
    replies = await sm.load(path).predict(await read_tickets("heldout"))
    print(json.dumps([reply.get_json() for reply in replies]))


async def main(model, proposer, path):
    """Run everything, in order."""
    sm.set_default_language_model(model)
    tickets, heldout = await read_tickets("train"), await read_tickets("heldout")
    desk.compile(sm.rewards.ExactMatch(reduce="mean"))
    print(f"{len(tickets)} tickets to learn from; of {len(heldout)} others are right:")
    before = await measure("as it comes", heldout)
    await train(sm.optimizers.BootstrapFewShot(max_examples=24), tickets)
    await measure("with examples", heldout)
    await train(sm.optimizers.Gepa(language_model=proposer), tickets)
    after = await measure("with examples and rules", heldout)
    print(f"  both fields, after against before: {after.compare(before)}")

    path.parent.mkdir(parents=True, exist_ok=True)
    urgent = (row for row, result in zip(heldout, after.results, strict=True) if result.outputs["handed_to"])
    await show_one(next(urgent, heldout[0]), path.with_name(f"{path.stem}_trace.html"))
    desk.save(path)
    here = [result.outputs.get_json() for result in after.results]
    command = [sys.executable, __file__, "--model", model, "--load", str(path)]
    there = json.loads(subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout)
    print(f"saved {path.stat().st_size:,} bytes to {path}; a fresh process gives", end=" ")
    print("equal answers" if here == there else "DIFFERENT answers", f"({len(there)} of {len(heldout)})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="embedded/nearest", help="provider/name; the default does not need a key")
    parser.add_argument("--proposer", default="embedded/rules", help="the model that writes rules; likewise")
    parser.add_argument("--save", type=Path, default=OUT, help=f"where the program and a trace go (default: {OUT})")
    parser.add_argument("--plot", type=Path, help="draw the program to this file instead, as SVG")
    parser.add_argument("--load", type=Path, help="answer with a saved program instead, as JSON")
    arguments = parser.parse_args()
    if arguments.plot:
        desk.plot(arguments.plot, format="svg")
    elif arguments.load:
        sm.run(answer_file, arguments.load, arguments.model)
    else:
        sm.run(main, arguments.model, arguments.proposer, arguments.save)
