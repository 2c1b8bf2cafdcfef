"""Field notes become data: a model reads all documents at once; the findings are checked, merged by topic and saved.

    python examples/research_notes.py [--model provider/name] [--folder notes] [--out notes.jsonl]

A warden wrote sixteen notes on a small river and filed them by hand in four folders. The program receives only the
texts. For each it decides on a topic and extracts a finding (how worrying, the reading of the gauge, the sentence that
supports it). A sentence that is not in the note is marked, since a model may invent one. Then the findings are grouped
by topic, and each topic gets a headline. A note that fails is a row with its error and does not affect the others.

The rule lines were written for these notes: topics that agree with the folders show that the program works, not how
well a model reads unknown texts.
"""

import argparse
import json
from pathlib import Path
from typing import Any, Literal

import synmod as sm

NOTES = Path(__file__).parent / "data" / "notes"
TOPICS = {
    "water": "weir, current, drain, pond, stream, foam, sewage, oxygen, temperature, fish",
    "birds": "birds, nest, eggs, young, geese, heron, lapwing, flock, feathers",
    "plants": "plants, flower, leaves, roots, seeds, trees, bark, alders, reed, meadow",
    "people": "visitors, children, volunteers, dogs, path, sign, school, teachers, owners",
}
CONCERN_RULES = """
Say how worrying the note is, copy the reading of the gauge, and quote the sentence that says most.
act: at once, must, today, tonight, now
watch: again, next week, next month, every week, compare, watched, if
none: nothing, good, happy, as in, clear, sound, thanked, right, all
"""


class Document(sm.DataModel):
    """A note as it was written."""

    title: str
    text: str


class Shelf(sm.DataModel):
    """The documents to read."""

    documents: list[Document]


class Finding(sm.DataModel):
    """What a note says."""

    concern: Literal["none", "watch", "act"]
    gauge_cm: int = sm.Field(ge=0, le=400, description="the reading of the gauge, in centimetres")
    quote: str = sm.Field(description="the sentence that says most, copied word by word")


class Note(Finding):
    """A finding, with its document and its topic."""

    title: str
    topic: str
    quote_is_there: bool


class Topic(sm.DataModel):
    """What all notes on one topic say."""

    topic: str
    notes: int
    most_worrying: Literal["none", "watch", "act"]
    quotes: list[str]


class Topics(sm.DataModel):
    """The notes, merged."""

    topics: list[Topic]


class Headline(sm.DataModel):
    """One line for the notice board."""

    headline: str = sm.Field(description="one sentence that sums up the quotes")


@sm.register(package="research_notes")
class Check(sm.Module):
    """Assembles a note, and checks that its quote is in the document."""

    async def call(self, document: Document, found) -> Note:
        quote = " ".join(found["quote"].split())
        return Note(
            title=document["title"],
            topic=found["choice"],
            concern=found["concern"],
            gauge_cm=found["gauge_cm"],
            quote=quote,
            quote_is_there=quote in " ".join(document["text"].split()),
        )


@sm.register(package="research_notes")
class Group(sm.Module):
    """Merges the notes by topic, without those that failed."""

    async def call(self, inputs) -> Topics:
        notes = [item["value"] for item in inputs["documents"] if item["value"] is not None]
        return Topics(topics=[self.merged(topic, notes) for topic in TOPICS if any(n["topic"] == topic for n in notes)])

    def merged(self, topic, notes):
        """Return one topic, with the most worrying quotes first."""
        order = ("act", "watch", "none")
        notes = [note for note in notes if note["topic"] == topic]
        notes.sort(key=lambda note: order.index(note["concern"]))
        quotes = [note["quote"] for note in notes if note["quote_is_there"]]
        return Topic(topic=topic, notes=len(notes), most_worrying=notes[0]["concern"], quotes=quotes)


@sm.compose
async def read(document: Document):
    """Reads one document."""
    text = sm.ops.in_mask(document, "text")  # the title is left out
    topic = await sm.Decision(TOPICS, name="topic")(text)
    finding = await sm.Generator(Finding, instructions=CONCERN_RULES, name="finding")(text)  # at the same time
    return await Check(name="check")(document, topic + finding)


@sm.compose
async def research(shelf: Shelf):
    """Reads a shelf and merges the findings."""
    notes = await sm.Map(read, "documents", concurrency=8, on_error="collect", name="notes")(shelf)
    topics = await Group(name="group")(notes)
    return notes, await sm.Map(sm.Generator(Headline, return_inputs=True), "topics", name="headlines")(topics)


def read_folder(folder):
    """Return the documents of a folder and their paths in it, in order of the paths."""
    paths = sorted(folder.rglob("*.txt"))
    texts = [path.read_text(encoding="utf-8").partition("\n\n") for path in paths]
    documents = [Document(title=title.strip(), text=" ".join(text.split())) for title, _, text in texts]
    return documents, [path.relative_to(folder).as_posix() for path in paths]


def save(path, files, notes):
    """Write a JSON line for each document, with its file, and its note or its error."""
    with path.open("w", encoding="utf-8") as file:
        for name, item in zip(files, notes, strict=True):
            row = {"file": name, **(item["value"] or {}), "error": item["error"]}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


async def main(model, folder, out):
    """Run everything, in order."""
    sm.set_default_language_model(model)
    documents, files = read_folder(folder)
    if not documents:
        raise SystemExit(f"{folder}: no .txt files found")
    with sm.track_usage() as usage:
        outputs: Any = await research(Shelf(documents=documents))
    notes, topics = outputs
    items = notes.get_json()["documents"]
    save(out, files, items)

    print(f"{len(documents)} documents, {usage.calls} model calls, {usage.requests} requests")
    for topic in topics["topics"]:
        print(f"\n{topic['topic']}: {topic['notes']} notes, the most worrying: {topic['most_worrying']}")
        print(f"  {topic['headline']}")
    read = [(item["value"], file) for item, file in zip(items, files, strict=True) if item["value"]]
    filed = sum(value["topic"] == file.partition("/")[0] for value, file in read)
    there = sum(value["quote_is_there"] for value, _ in read)
    print(f"\nread: {len(read)}; filed as by hand: {filed}; quotes found in the note: {there}")
    print(f"saved: {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="embedded/nearest", help="provider/name; the default does not need a key")
    parser.add_argument("--folder", type=Path, default=NOTES, help="folder of notes (default: those of the repository)")
    parser.add_argument("--out", type=Path, default="research_notes.jsonl", help="file for the rows")
    arguments = parser.parse_args()
    sm.run(main, arguments.model, arguments.folder, arguments.out)
