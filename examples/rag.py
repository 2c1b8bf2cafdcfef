"""Questions about a folder: answered from passages, streamed, every quotation checked, and the retrieval measured.

    python examples/rag.py [--folder docs/pages] [--model provider/name] [--embed provider/name] [--ask "Why?"]

The pages of synmod's documentation, or of the folder, are cut into passages and go into two indexes in `out/`, one by
words and one by meaning; a second run adds only what has changed. Both are searched at once and their rankings fused, a
model answers from the passages, and the answer appears in the terminal as it is written. A model may invent things, so
it must quote, and the program keeps only the quotes that appear word for word in the passage that they name.

Beforehand it measures retrieval: for how many of 40 questions, whose pages are known, one of the first five passages is
on such a page, by words, by meaning, and by both.

Without `--model`, a small model in this file answers by quoting the sentence that shares the most words with the
question: it shows how to write a provider, and that everything streams.
"""

import argparse
import json
import re
from pathlib import Path

import synmod as sm

PAGES = Path(__file__).parents[1] / "docs" / "pages"
KNOWN = Path(__file__).parent / "data" / "doc_questions.jsonl"
OUT = Path("out")
QUESTIONS = ("Which characters of a query are syntax?", "What does a killed run lose?", "Who sings at the opera?")
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
def check_quotes(inputs) -> Checked:
    """Keep the quotes whose words appear in the passage that they name."""
    texts = {each["id"]: plain(each["text"]) for each in inputs["passages"]}
    quotes = inputs["quotes"]
    kept = [each for each in quotes if plain(each["words"]) and plain(each["words"]) in texts.get(each["passage"], "")]
    return Checked(answer=inputs["answer"], quotes=kept, invented=len(quotes) - len(kept))


def plain(text):
    """Return a text with case and white space normalized."""
    return " ".join(text.casefold().split())


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
            if "|" not in sentence  # a table
        ]
        shared, passage, sentence = max(sentences, key=lambda found: found[0], default=(0, "", ""))
        if not shared:
            return sm.LMReply('{"answer": "The pages do not say.", "quotes": []}')
        quotes = [{"passage": passage, "words": sentence}]
        return sm.LMReply(json.dumps({"answer": f"The pages say: {plain(sentence)}", "quotes": quotes}))

    async def stream(self, request):
        """Yield the reply word by word, then as a whole."""
        reply = await self.send(request)
        for piece in re.findall(r"\S+\s*", reply.text):
            yield sm.LMChunk(piece)
        yield reply


def words_of(text):
    """Return the longer words of a text, except the most common ones."""
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3} - COMMON


def assistant(index, language_model):
    """Return the program: search, answer, check."""
    return sm.Sequential(
        [
            Question,
            sm.Retrieve(index, 5, return_inputs=True),
            sm.Generator(
                Answer, instructions=INSTRUCTIONS, language_model=language_model, return_inputs=True, name="answer"
            ),
            sm.Lambda(check_quotes),
        ]
    )


async def hit_rate(index, k=5):
    """Return the share of the known questions for which one of the first passages is on a page that answers them."""
    rows = [json.loads(line) for line in KNOWN.read_text(encoding="utf-8").splitlines()]
    hits = 0
    for row in rows:
        hits += any(passage.metadata["file"] in row["pages"] for passage in await index.search(row["question"], k))
    return hits / len(rows)


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
        print(f"  ({s.result['invented']} quotes are not in the pages, and were left out)")


async def main(options):
    """Fill the indexes, measure them, and answer the questions."""
    OUT.mkdir(exist_ok=True)
    by_words, by_meaning = sm.KeywordIndex(OUT / "words.db"), sm.VectorIndex(options.embed, OUT / "meaning.db")
    both = sm.HybridIndex(by_words, by_meaning, name="pages")
    passages = sm.passages(options.folder, overlap=0)
    added = await both.add(passages)
    print(f"{len(by_words)} passages, {added} of them new")
    if options.folder == PAGES:
        for name, index in (("words", by_words), ("meaning", by_meaning), ("both", both)):
            print(f"hit rate at 5, by {name}: {await hit_rate(index):.0%}")
    model = options.model or sm.LanguageModel("own/quoting", adapter=Quoting(), price=(0, 0))
    program = assistant(both, model)
    for question in [options.ask] if options.ask else QUESTIONS:
        await ask(program, question)
    await by_words.aclose()
    await by_meaning.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=PAGES)
    parser.add_argument("--model")
    parser.add_argument("--embed", default="embedded/hash")
    parser.add_argument("--ask")
    sm.run(main, parser.parse_args())
