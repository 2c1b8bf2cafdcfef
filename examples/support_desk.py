"""A help desk: every ticket gets a category, a matter, an urgency, and a reply; urgent tickets are handed over.

    python examples/support_desk.py [--model provider/name] [--save out/desk.json] [--plot desk.svg]

The category decides which team handles the ticket: each of three teams needs another detail, two need only the ticket.
Of three drafts of a reply the desk sends the one that its team has signed and that uses most of the customer's words.

Reads hand-written tickets in three languages, runs the held-out ones at once, and prints how often category and urgency
are right in three states of the same program: as it comes, with rule lines in its instructions, and with rule lines and
examples; then the quality of one draft and of the best of three. It shows the calls behind one ticket, on the terminal
and as a page for the browser, saves the program, and loads it in a fresh process.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal

import synmod as sm

TICKETS = Path(__file__).parent / "data" / "tickets.jsonl"
REPLIES = Path(__file__).parent / "data" / "replies.jsonl"
OUT = Path("out", "desk.json")
CATEGORIES = {
    "billing": "payments, invoices, refunds",
    "shipping": "orders on their way",
    "technical": "something does not work",
    "account": "login, users, personal data",
    "feedback": "praise, blame, wishes",
}


class Ticket(sm.DataModel):
    """What a customer wrote."""

    text: str


class Assigned(Ticket):
    """A ticket, and the team that has it."""

    choice: str


class Urgency(sm.DataModel):
    """How soon somebody must look at it."""

    urgency: Literal["low", "normal", "high"] = sm.Field(description="high: harm is done while nobody answers")


class Money(sm.DataModel):
    """What the billing team must know."""

    matter: Literal["refund", "invoice", "price"]


class Parcel(sm.DataModel):
    """What the shipping team must know."""

    matter: Literal["late", "damaged", "address"]


class Fault(sm.DataModel):
    """What the technical team must know."""

    matter: Literal["crash", "files", "display"]


class Known(sm.DataModel):
    """No question: the ticket is enough."""

    matter: str


class Draft(sm.DataModel):
    """What a team would answer."""

    answer: str = sm.Field(description="in the customer's language; ends with a dash and the name of the team")


class Escalation(sm.DataModel):
    """A ticket that a person takes over."""

    team: str
    reason: str


class Reply(sm.DataModel):
    """What the desk answers."""

    category: str
    matter: str
    urgency: str
    answer: str
    handed_to: str | None = None


@sm.register(package="support_desk")
class Escalate(sm.Module):
    """Hands urgent tickets to a team; returns None for all others."""

    def __init__(self, team: str = "duty officer", **kwargs):
        super().__init__(**kwargs)
        self.team = team

    async def build(self, inputs):
        """Make the level that counts as urgent a Variable, so that it can be trained and saved."""
        levels = inputs.get_schema()["properties"]["urgency"]["enum"]
        self.level = self.add_variable(levels[-1], schema={"enum": levels}, name="level")

    async def call(self, inputs: Urgency) -> Escalation | None:
        if inputs["urgency"] != self.level.value:
            return None
        return Escalation(team=self.team, reason=f"urgency is {inputs['urgency']}")


@sm.register(package="support_desk")
class WriteReply(sm.Module):
    """Assembles the reply from the fields known of the ticket."""

    async def call(self, known, draft: Draft, escalation: Escalation | None = None) -> Reply:
        category, matter, urgency = known["choice"], known["matter"], known["urgency"]
        if escalation is None:
            answer, team = draft["answer"], None
        else:
            team = escalation["team"]
            answer = f"Thank you, this cannot wait: our {team} is on it now."
        return Reply(category=category, matter=matter, urgency=urgency, answer=answer, handed_to=team)


def is_signed(answer, team):
    """Whether a reply is signed by that team."""
    return answer.endswith(f"— {team}")


@sm.register(package="support_desk")
def suits(inputs, outputs):
    """Return how good a draft is without a target: signed by its team, and using the customer's words."""
    asked, answered = (set(re.findall(r"\w{4,}", text.lower())) for text in (inputs["text"], outputs["answer"]))
    return is_signed(outputs["answer"], inputs["choice"]) + len(asked & answered) / max(1, len(asked))


MATTER_RULES = {
    "billing": """
        refund: twice, back, refund, wrong, too much, abgebucht, cobrado, devuelvan
        invoice: invoice, bill, company name, vat, rechnung, factura
        price: price, discount, plan, cheaper, fee, tarif, gutschein, suscripción""",
    "shipping": """
        late: where, late, still, not arrived, tracking, supposed, wann, llegado
        damaged: crushed, broken, wet, open, missing, beschädigt, mojado
        address: address, moved, neighbours, redirected, pick up, adresse, recoger""",
    "technical": """
        crash: crash, crashes, closes, freeze, error, timeouts, stürzt, borra
        files: upload, file, export, save, sync, print, drucken, guardar
        display: page, button, white, theme, font, search, schrift, blanco, página""",
}


def teams():
    """Return the branch of each team, with the description that the decision needs."""
    asking = {
        category: sm.Generator(model, instructions=f"What is the matter?\n{MATTER_RULES[category]}")
        for category, model in (("billing", Money), ("shipping", Parcel), ("technical", Fault))
    }
    knowing = {category: sm.Constant(Known(matter="see ticket")) for category in ("account", "feedback")}
    return {category: (CATEGORIES[category], team) for category, team in (asking | knowing).items()}


def read_tickets(split):
    """Return the rows of one split, in order."""
    rows = [json.loads(line) for line in TICKETS.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["split"] == split]


def drafting():
    """Return the module that drafts a reply from replies to train rows as examples; temperature varies the drafts."""
    tickets = {row["id"]: row["text"] for row in read_tickets("train")}
    rows = [json.loads(line) for line in REPLIES.read_text(encoding="utf-8").splitlines()]
    examples = [{"inputs": {"text": tickets[row["ticket"]]}, "outputs": {"answer": row["reply"]}} for row in rows]
    return sm.Sequential([sm.InMask("text"), sm.Generator(Draft, examples=examples, temperature=0.15)])


@sm.compose
async def desk(ticket: Ticket):
    """A help desk."""
    ask = sm.Branch(teams(), return_decision=True, name="category")
    category, matter = await ask(ticket)  # calls one team of five
    urgency = await sm.Generator(Urgency, name="urgency")(ticket)  # runs at the same time: both need only the ticket
    draft = await sm.BestOf(drafting(), 3, reward=suits, name="draft")(ticket + category)  # three drafts at once
    escalation = await Escalate(name="escalate")(urgency)  # None for most tickets
    return await WriteReply(name="reply")(category + matter + urgency, draft, escalation)


CATEGORY_RULES = """
billing: charged, charge, invoice, invoices, payment, payments, refund, refunded, bill, billed, paid, pay, price, fee
billing: vat, tax, discount, code, credit card, bank, plan costs, subscription, monthly, cheaper, took, money, purchase
billing: rechnung, rechnungen, abgebucht, zurücküberweisen, tarif, steuer, gutschein, euro, euros
billing: cobrado, pagos, pago, tarjeta, devuelvan, suscripción, factura
shipping: parcel, order, orders, delivery, deliver, delivered, courier, driver, tracking, shipped, depot, box, crushed
shipping: arrived, lost, moved, adress, address is, redirected, supposed to come, chairs, neighbours
shipping: paket, zoll, versand, lieferung, angekommen, pedido, repartidor, paquete, recoger, tienda
technical: app, error, update, closes, crash, crashes, upload, file, export, button, firefox, chrome, print, printing
technical: api, timeouts, sync, calendar, notifications, phone, freeze, computer, search, page, settings, theme
technical: stürzt, version, drucken, tabelle, schrift, página, sistema, blanco, guardar, borra, not work, worked
account: account, accounts, password, login, log in, logged in, sign-in, locked, unlock, reset, team, colleague, users
account: email address, invite, admin, rights, delete my, merge, konto, passwort, e-mail-adresse, profil, gehackt
account: sperren
account: cuenta, contraseña, entrar, perfil, idioma
feedback: thank you, wonderful, wish, would be great, beautiful, liked, love, suggestion, friendly, stars, honestly
feedback: slower, survey, mad, let us, widget, why is there no, lob, geholfen, fände, gut, enttäuscht, früher
feedback: encanta, estaría bien, elegir
"""
URGENCY_RULES = """
high: today, tomorrow, this morning, right now, hour, hospital, shop is down, losing, block it, backup, hacked, empty
high: sofort, heute, gehackt, medikamentenkühlbox, minus, ya, clientes
normal: wrong, charged, error, broken, missing, not, twice, still, cannot, never, nothing, closes, lost, expired, delete
normal: nicht, falsch, stürzt, fehlt, obwohl, enttäuscht, vergessen, no, blanco, mojado, dos veces
low: could, can i, can two, what, is there, is it possible, how can, do you also, please add, shortcut, suggestion, wish
low: would be great, wonderful, beautiful, friendly, stars, why is there no, where do i, next time, cheaper
low: können sie, wie lange, wie ändere, gibt es, lob, fände, puedo, se puede, quiero, encanta, estaría
"""


async def answer_all(program, rows, label):
    """Run the program on all rows at once; the results are in the order of the rows."""
    answers = []
    async with sm.map_concurrently(program, [Ticket(text=row["text"]) for row in rows]) as results:
        async for reply in results:
            answers.append(reply.to(Reply))
            print(f"\r{label}: {len(answers)} of {len(rows)} tickets", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return answers


def accuracy(rows, answers, field):
    """Return the share and counts of right answers, as text."""
    right = sum(row[field] == getattr(reply, field) for row, reply in zip(rows, answers, strict=True))
    return f"{right / len(rows):.2f} ({right} of {len(rows)})"


def states(program):
    """Return three states of the program's Variables, by name; rules and examples come from train rows only."""
    train = read_tickets("train")
    chosen = train[::2]  # every second row: 40 of 80
    category, urgency = program.get_module("category/decision"), program.get_module("urgency")
    bare = {
        "category/decision/instructions": category.instructions.value,
        "urgency/instructions": urgency.instructions.value,
    }
    rules = {
        "category/decision/instructions": bare["category/decision/instructions"] + CATEGORY_RULES,
        "urgency/instructions": bare["urgency/instructions"] + URGENCY_RULES,
    }
    examples = {
        "category/decision/examples": [
            {"inputs": {"text": row["text"]}, "outputs": {"choice": row["category"]}} for row in chosen
        ],
        "urgency/examples": [
            {"inputs": {"text": row["text"]}, "outputs": {"urgency": row["urgency"]}} for row in chosen
        ],
    }
    return {"bare": bare, "rules": rules, f"rules and {len(chosen)} examples": rules | examples}


async def compare(program, rows):
    """Answer all rows in each state; an overlay applies the state, and the program itself does not change."""
    print(f"{len(rows)} held-out tickets")
    for label, state in states(program).items():
        with sm.using(program, state):
            answers = await answer_all(program, rows, label)
        category, urgency = accuracy(rows, answers, "category"), accuracy(rows, answers, "urgency")
        print(f"  {label:<24} category {category}   urgency {urgency}")


async def compare_drafts(program, rows, replies):
    """Print how often a draft is by the right team: of all three per ticket, and of the one chosen."""

    def is_right(target, outputs):
        return is_signed(outputs["answer"], target)

    best = program.get_module("draft")
    data = [
        (Assigned(text=row["text"], choice=reply.category), row["category"])
        for row, reply in zip(rows, replies, strict=True)
    ]
    any_of_them = await sm.evaluate(best.module, data, reward=is_right, samples=best.n)
    chosen = await sm.evaluate(best, data, reward=is_right)
    print(f"  drafts by the right team: {any_of_them.score:.2f} of all, {chosen.score:.2f} of the best of {best.n}")


async def show_one(program, row, page):
    """Print the calls behind one ticket, with the tokens of each, and draw them on a page."""
    with sm.trace() as trace:
        reply = await program(Ticket(text=row["text"]))
    trace.to_html(page)
    print(f"\n{row['text']}\n  -> {reply.prettify_json()}\n\n{trace}\n\nas a page: {page}")


async def answer_file(path, model):
    """Load a saved desk and print its replies as JSON lines; the fresh process runs this."""
    sm.set_default_language_model(model)
    program = sm.load(path)
    for reply in await answer_all(program, read_tickets("heldout"), "loaded"):
        print(reply.model_dump_json())


async def main(model, path):
    """Run everything, in order."""
    sm.set_default_language_model(model)
    heldout = read_tickets("heldout")
    await compare(desk, heldout)
    *_, best = states(desk).values()
    sm.update(desk, best)
    replies = await answer_all(desk, heldout, "best")
    await compare_drafts(desk, heldout, replies)
    handed_over = (row for row, reply in zip(heldout, replies, strict=True) if reply.handed_to)
    path.parent.mkdir(parents=True, exist_ok=True)
    await show_one(desk, next(handed_over, heldout[0]), path.with_name(f"{path.stem}_trace.html"))

    desk.save(path)
    here = [reply.model_dump_json() for reply in replies]
    command = [sys.executable, __file__, "--model", model, "--load", str(path)]
    there = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout.splitlines()
    print(f"saved {path.stat().st_size:,} bytes to {path}; a fresh process gives", end=" ")
    print("equal answers" if here == there else "DIFFERENT answers", f"({len(there)} of {len(heldout)})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="embedded/nearest", help="provider/name; the default does not need a key")
    parser.add_argument("--save", type=Path, default=OUT, help=f"where the program and a trace go (default: {OUT})")
    parser.add_argument("--plot", type=Path, help="draw the program to this file instead, as SVG")
    parser.add_argument("--load", type=Path, help="answer with a saved program instead, as JSON lines")
    arguments = parser.parse_args()
    if arguments.plot:
        desk.plot(arguments.plot, format="svg")
    elif arguments.load:
        sm.run(answer_file, arguments.load, arguments.model)
    else:
        sm.run(main, arguments.model, arguments.save)
