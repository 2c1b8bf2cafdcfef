"""Questions about a folder of notes: answered from passages, streamed, and every quotation checked.

    python examples/rag.py [--folder examples/data/notes] [--model provider/name] [--ask "How warm is the pond?"]

The texts of the folder go into two indexes in `out/`, one by words and one by meaning; a second run adds only what has
changed. For each question both are searched at once, a model answers from the passages found, and the answer appears in
the terminal as it is written. A model may invent things, so it must quote, and the program keeps only the quotes that
appear word for word in the passage that they name.

Without `--model`, a small model in this file answers by quoting the sentence that shares the most words with the
question: it shows how to write a provider, and that everything streams.
"""

import argparse
import json
import re
from pathlib import Path

import synmod as sm

NOTES = Path(__file__).parent / "data" / "notes"
OUT = Path("out")
QUESTIONS = (
    "How clear is the water of the pond?",
    "Where do small fish stand at low water?",
    "Who sings at the opera?",
)
COMMON = {"does", "from", "have", "that", "them", "they", "this", "what", "when", "where", "which", "with"}
INSTRUCTIONS = """
Answer the question from the passages alone, in one or two sentences. Quote what your answer rests on: the id of the
passage, and its words exactly as they stand there. If no passage answers the question, say so and quote nothing.
"""


class Question(sm.DataModel):
    """What somebody wants to know."""

    question: str


class Quote(sm.DataModel):
    """What an answer rests on."""

    passage: str = sm.Field(description="the id of the passage")
    words: str = sm.Field(description="words of it, exactly as they stand there")


class Answer(sm.DataModel):
    """An answer with what it rests on."""

    answer: str
    quotes: list[Quote]


class Checked(sm.DataModel):
    """An answer with its correct quotes, and the number of invented ones."""

    answer: str
    quotes: list[Quote]
    invented: int


@sm.register(package="rag")
def join_found(inputs) -> sm.Passages:
    """Return what both indexes found, each passage once."""
    found = {each["id"]: each for each in [*inputs["passages"], *inputs["passages_1"]]}
    return sm.Passages(passages=[*found.values()])


@sm.register(package="rag")
def check_quotes(inputs) -> Checked:
    """Keep the quotes whose words appear in the passage that they name."""
    texts = {each["id"]: plain(each["text"]) for each in inputs["passages"]}
    quotes = inputs["quotes"]
    kept = [each for each in quotes if plain(each["words"]) and plain(each["words"]) in texts.get(each["passage"], "")]
    return Checked(answer=inputs["answer"], quotes=kept, invented=len(quotes) - len(kept))


def plain(text):
    """Return a text with case and white space normalized."""
    return " ".join(text.casefold().split())


def passages_of(folder):
    """Return the paragraphs of the texts in a folder."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".md", ".txt"):
            name = path.relative_to(folder).as_posix()
            for number, text in enumerate(re.split(r"\n\s*\n", path.read_text(encoding="utf-8")), 1):
                if text.strip():
                    yield sm.Passage(id=f"{name}#{number}", text=text.strip(), metadata={"file": name})


class Quoting:
    """A provider in the process: it answers with the sentence that shares the most words with the question."""

    name, version = "quoting", 1

    async def send(self, request):
        """Return the whole reply."""
        inputs = json.loads(request.messages[-1].content)
        asked = words_of(inputs["question"])
        sentences = [
            (len(asked & words_of(sentence)), each["id"], sentence)
            for each in inputs["passages"]
            for sentence in re.split(r"(?<=[.!?])\s+", each["text"])
        ]
        shared, passage, sentence = max(sentences, key=lambda found: found[0], default=(0, "", ""))
        if not shared:
            return sm.LMReply('{"answer": "The notes do not say.", "quotes": []}')
        quotes = [{"passage": passage, "words": sentence}]
        return sm.LMReply(json.dumps({"answer": f"The notes say: {plain(sentence)}", "quotes": quotes}))

    async def stream(self, request):
        """Yield the reply word by word, then as a whole."""
        reply = await self.send(request)
        for piece in re.findall(r"\S+\s*", reply.text):
            yield sm.LMChunk(piece)
        yield reply


def words_of(text):
    """Return the longer words of a text, except the most common ones."""
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3} - COMMON


def assistant(by_words, by_meaning, language_model):
    """Return the program: search twice at once, join, answer, check."""
    search = sm.Parallel(sm.Retrieve(by_words, 3), sm.Retrieve(by_meaning, 3), merge="concat", name="search")
    answer = sm.Generator(Answer, instructions=INSTRUCTIONS, language_model=language_model, name="answer")

    @sm.compose
    async def answering(asked: Question):
        """Answer a question from the notes."""
        found = await sm.Lambda(join_found)(await search(asked))
        answered = await answer(asked + found)
        return await sm.Lambda(check_quotes)(found + answered)

    return answering


async def ask(program, question):
    """Print the answer to a question while it is written, then its quotes."""
    print(f"\n{question}\n  ", end="")
    shown = ""
    async with sm.stream(program, Question(question=question)) as s:
        async for chunk in s:
            text = (chunk.partial or {}).get("answer") or ""
            print(text[len(shown) :], end="", flush=True)
            shown = text if len(text) > len(shown) else shown
    print()
    for quote in s.result["quotes"]:
        print(f"  [{quote['passage']}] {' '.join(quote['words'].split())}")
    if s.result["invented"]:
        print(f"  ({s.result['invented']} quotes are not in the notes, and were left out)")


async def main(options):
    """Fill the indexes, and answer the questions."""
    OUT.mkdir(exist_ok=True)
    by_words, by_meaning = sm.KeywordIndex(OUT / "words.db"), sm.VectorIndex("embedded/hash", OUT / "meaning.db")
    passages = list(passages_of(options.folder))
    added = await by_words.add(passages)
    await by_meaning.add(passages)
    print(f"{len(by_words)} passages, {added} of them new")
    model = options.model or sm.LanguageModel("own/quoting", adapter=Quoting(), price=(0, 0))
    program = assistant(by_words, by_meaning, model)
    for question in [options.ask] if options.ask else QUESTIONS:
        await ask(program, question)
    await by_words.aclose()
    await by_meaning.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=NOTES)
    parser.add_argument("--model")
    parser.add_argument("--ask")
    sm.run(main, parser.parse_args())
