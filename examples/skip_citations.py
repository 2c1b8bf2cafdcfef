"""Citations: a document bypasses three models that never see it and reaches the module that cites it.

    python examples/skip_citations.py [--model provider/name] [--plot citations.svg]

Answers questions about a small library twice: with the document as part of every data model, and with a skip connection
from the module that finds it to the module that cites it. Prints the tokens of both versions, the documents cited, and
the values dropped when no module cites them.
"""

import argparse
import re

import synmod as sm
from synmod.skip import pop, skip_layout, skippable, stash

LIBRARY = {
    "Lighthouses": (
        "A lighthouse marks a dangerous coast. The lamp of Eddystone burned candles until 1810. Fresnel lenses came in "
        "1823, and one lamp could then be seen at thirty kilometres. Keepers lived in the tower for weeks, since no "
        "boat could land in winter. The last keeper of a British light left North Foreland in 1998."
    ),
    "Honey bees": (
        "A bee colony keeps its brood at thirty-five degrees. Foragers tell each other of flowers by dancing on the "
        "comb. A jar of honey takes two million visits to flowers. In winter the bees cluster and shiver to keep "
        "warm. A queen may lay two thousand eggs on a day in May."
    ),
    "Sourdough": (
        "Sourdough rises by wild yeast and bacteria that live in a starter. A starter is fed with flour and water "
        "every day. The bacteria make lactic acid, which gives the taste and keeps mould away. Bakers of San Francisco "
        "kept one starter since 1849. A long cold rest makes the crust blister."
    ),
}
QUESTIONS = (
    "How far could a lamp with Fresnel lenses be seen?",
    "How do bees tell each other of flowers?",
    "What gives sourdough its taste?",
)


class Question(sm.DataModel):
    """A question."""

    question: str


class Document(sm.DataModel):
    """A page of the library."""

    title: str
    text: str


class Draft(sm.DataModel):
    """A first answer."""

    answer: str = sm.Field(description="one sentence")


class Review(sm.DataModel):
    """What is wrong with it."""

    critique: str = sm.Field(description="a few words")


class Final(sm.DataModel):
    """What is sent."""

    reply: str = sm.Field(description="the answer, polite")


class Cited(sm.DataModel):
    """An answer with its source."""

    reply: str
    source: str
    quote: str


def words(text):
    """Return the longer words of a text."""
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}


def find(question):
    """Return the page that shares the most words with a question."""
    title = max(LIBRARY, key=lambda title: len(words(question) & words(f"{title} {LIBRARY[title]}")))
    return Document(title=title, text=LIBRARY[title])


def cite(question, final, document):
    """Return the answer with the sentence of the document that is closest to the question."""
    sentences = re.split(r"(?<=\.) ", document["text"])
    quote = max(sentences, key=lambda sentence: len(words(question) & words(sentence)))
    return Cited(reply=final, source=document["title"], quote=quote)


@sm.register(package="skip_citations")
@skippable(stash={"doc": Document, "asked": Question})
class Retrieve(sm.Module):
    """Finds a page and stashes it for a later module."""

    async def call(self, inputs: Question) -> Question:
        stash("doc", find(inputs["question"]))
        stash("asked", inputs)
        return inputs


@sm.register(package="skip_citations")
@skippable(pop={"doc": Document, "asked": Question})
class Cite(sm.Module):
    """Pops the page and cites it."""

    async def call(self, inputs: Final) -> Cited:
        return cite(pop("asked")["question"], inputs["reply"], pop("doc"))


class RetrieveInline(sm.Module):
    """Does the same without a skip: from here on the page is part of the data."""

    output_spec = Question + Document

    async def call(self, inputs: Question):
        return inputs + find(inputs["question"])


class CiteInline(sm.Module):
    """Cites the page that is part of its input."""

    async def call(self, inputs) -> Cited:
        return cite(inputs["question"], inputs["reply"], inputs)


def writers(**options):
    """Return three models: one drafts, one reviews, one finishes."""
    return [
        sm.Generator(Draft, name="draft", **options),
        sm.Generator(Review, name="review", **options),
        sm.Generator(Final, name="finish", **options),
    ]


async def past_the_models():
    """Return the program with the skip; its wiring is verified here, before a token is spent."""
    skipping = sm.Sequential([Retrieve(), *writers(), Cite()], name="skipping")
    await sm.build(skipping, Question)
    return skipping


async def bill(program, label):
    """Answer every question, and print how many tokens the models read."""
    with sm.track_usage() as usage:
        answers = [await program(Question(question=question)) for question in QUESTIONS]
    print(f"{label:<28} {usage.calls} model calls, {usage.prompt_tokens:,} prompt tokens")
    return answers, usage.prompt_tokens


class Leftovers(sm.Hook):
    """Prints the values that no module popped."""

    def on_skip_dropped(self, event):
        print(f"dropped at the end: {', '.join(event.names)}, stashed by {', '.join(event.producer_paths)}")


async def main(model):
    """Run everything, in order."""
    sm.set_default_language_model(model)
    threaded = sm.Sequential([RetrieveInline(), *writers(return_inputs=True), CiteInline()], name="threaded")
    skipping = await past_the_models()
    _, before = await bill(threaded, "threaded through the models")
    answers, after = await bill(skipping, "past the models, as a skip")
    print(f"saved {before - after:,} prompt tokens, {1 - after / before:.0%} of them\n")

    for (_, name), (producer, consumer) in skip_layout(skipping).items():
        print(f"{name!r} goes from {producer!r} straight to {consumer!r}")
    for question, answer in zip(QUESTIONS, answers, strict=True):
        print(f"\n{question}\n  {answer['source']}: {answer['quote']}")

    loaded = sm.loads(sm.dumps(skipping))
    again = await loaded(Question(question=QUESTIONS[0]))
    print(f"\nsaved and loaded: {'equal' if again == answers[0] else 'DIFFERENT'} answers")
    with sm.hooks(Leftovers()):
        await Retrieve()(Question(question=QUESTIONS[0]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="embedded/nearest", help="provider/name; the default does not need a key")
    parser.add_argument("--plot", help="draw the program with the skip to this file instead, as SVG")
    arguments = parser.parse_args()
    if arguments.plot:
        sm.run(past_the_models).plot(arguments.plot)
    else:
        sm.run(main, arguments.model)
