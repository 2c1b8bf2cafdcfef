"""Indexes: what is found, what is kept, and what hostile texts, crowds, crashes and other processes do to it."""

import asyncio
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm

TEA, SEA = {"id": "tea", "text": "Tea is a drink."}, {"id": "sea", "text": "The sea is déép.", "metadata": {"page": 3}}
WORDS = st.lists(st.sampled_from("red blue car sea tea deep drink of".split()), max_size=5).map(" ".join)


def keywords(*_):
    return sm.KeywordIndex(*_)


def vectors(*_):
    return sm.VectorIndex("embedded/hash", *_)


both = pytest.mark.parametrize("make", [keywords, vectors])


def ids(found):
    return [each.id for each in found]


# -- laws --------------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.lists(WORDS, min_size=1, max_size=12), WORDS, st.integers(1, 5))
def test_exact_search_is_brute_force(texts, query, k):
    """The best cosines of all passages, in range; of equal ones the one added first."""

    async def main():
        index = vectors()
        await index.add([{"id": str(at), "text": text} for at, text in enumerate(texts)])
        *known, asked = (await index.embedding_model([*texts, query])).vectors
        return await index.search(query, k), known, asked

    found, known, asked = sm.run(main)
    exact = [math.fsum(a * b for a, b in zip(vector, asked, strict=True)) for vector in known]
    best = sorted(exact, reverse=True)[:k]
    assert [each.score for each in found] == pytest.approx(best, abs=1e-9)
    assert all(-1 <= each.score <= 1 for each in found)
    assert all(math.isclose(each.score, exact[int(each.id)], abs_tol=1e-9) for each in found)
    equal = [int(each.id) for each in found if each.score == found[0].score]
    assert equal == sorted(equal)


@both
@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("abc"), WORDS), max_size=8))
def test_an_index_holds_the_last_text_of_each_id(make, added):
    """Adding twice is adding once; the count is that of what changed."""

    async def main():
        index = make()
        last = {}
        for key, text in added:
            changed = await index.add([{"id": key, "text": text}])
            assert changed == (last.get(key) != text)
            last[key] = text
        assert len(index) == len(last)
        assert await index.add([{"id": key, "text": text} for key, text in last.items()]) == 0
        assert await index.remove([*last, "no"]) == len(last)
        assert len(index) == 0
        return await index.search("red blue car sea tea deep drink of", 9)

    assert sm.run(main) == []


@given(st.text(max_size=40))
def test_no_text_is_a_syntax(query):
    """Whatever a query holds, it is words."""

    async def main():
        index = keywords()
        await index.add([TEA, SEA])
        return await index.search(query)

    assert {*ids(sm.run(main))} <= {"tea", "sea"}


@pytest.mark.parametrize(
    "query",
    ['"', "AND", "NOT tea", "NEAR(", "text:", "*", "a*", "-x", "^x", "{", "tea)", "''; DROP TABLE passage", "\0",
     "x" * 9_999, " ".join(map(str, range(3_000)))],
)  # fmt: skip
async def test_hostile_queries_find_or_do_not(query):
    """No error, and nothing is lost."""
    index = keywords()
    await index.add([TEA, SEA])
    await index.search(query)
    assert len(index) == 2


# -- what is found -----------------------------------------------------------------------------------------------------


async def test_words_are_found_whatever_their_form():
    """Case, accents and endings do not count; rare words weigh more; signs of Chinese and Japanese are words."""
    index = keywords()
    await index.add(
        [TEA, SEA, {"id": "jp", "text": "東京の海は深い"}, {"id": "cars", "text": "Cars in the SEA, in the sea"}]
    )
    assert ids(await index.search("deep")) == ["sea"]
    assert ids(await index.search("car drinking")) in (["tea", "cars"], ["cars", "tea"])
    assert ids(await index.search("海")) == ["jp"]
    assert set(ids(await index.search("sea"))) == {"cars", "sea"}
    await index.add([{"id": "cv", "text": "A r\u00e9sum\u00e9 from \u0130stanbul"}])
    for query in ("resume", "R\u00c9SUM\u00c9", "re\u0301sume\u0301", "istanbul", "\u0130stanbul"):
        assert ids(await index.search(query)) == ["cv"]
    await index.add([{"id": "street", "text": "Die Stra\u00dfe nach \u0391\u03b8\u03ae\u03bd\u03b1, \ud55c\uad6d"}])
    for query in ("STRASSE", "strasse", "\u0391\u0398\u0397\u039d\u0391", "\ud55c\uad6d"):
        assert ids(await index.search(query)) == ["street"]
    scores = [each.score for each in await index.search("the sea is deep")]
    assert scores == sorted(scores, reverse=True)
    assert (await index.search("deep"))[0].metadata == {"page": 3}


@both
async def test_a_change_is_found_and_the_old_text_is_not(make):
    """An id has one text."""
    index = make()
    await index.add([TEA])
    await index.add([TEA | {"text": "Coffee wakes you."}])
    assert (await index.search("coffee"))[0].text == "Coffee wakes you."
    if make is keywords:
        assert await index.search("drink") == []
    assert len(index) == 1


async def test_what_is_there_is_not_embedded_again():
    """Only new texts cost; a failure keeps what was committed, and the same call goes on."""
    seen = []

    class Adapter:
        name, version = "a", 1
        fails = False

        async def send(self, request):
            seen.extend(request.texts)
            if self.fails and "text 1500" in request.texts:
                raise sm.AuthError("no")
            return sm.EmbeddingReply(tuple((1.0, float(len(text))) for text in request.texts))

    adapter = Adapter()
    index = sm.VectorIndex(sm.EmbeddingModel("testing/x", adapter=adapter))
    passages = [sm.Passage(id=str(at), text=f"text {at}") for at in range(2_000)]
    adapter.fails = True
    with pytest.raises(sm.AuthError):
        await index.add(passages)
    assert len(index) == 1_024
    adapter.fails = False
    seen.clear()
    assert await index.add(passages) == 2_000 - 1_024
    assert set(seen) == {f"text {at}" for at in range(1_024, 2_000)}


async def test_an_index_belongs_to_the_model_that_filled_it(tmp_path):
    """Vectors of two models are not comparable: a ConfigError, for adding and for searching."""
    index = vectors(tmp_path / "v.db")
    await index.add([TEA])

    class Adapter:
        name, version = "a", 1

        async def send(self, request):
            return sm.EmbeddingReply(tuple((1.0, 2.0) for _ in request.texts))

    other = sm.VectorIndex(sm.EmbeddingModel("testing/x", adapter=Adapter()), tmp_path / "v.db")
    for call in (other.search("x"), other.add([SEA])):
        with pytest.raises(sm.ConfigError, match="'embedded/hash' with 256 numbers, and this is 'testing/x' with 2"):
            await call
    assert len(other) == 1
    await index.aclose()
    await other.aclose()


async def test_the_model_gets_to_know_which_side_a_text_is_on(tmp_path):
    """A prefix before each query and each passage; found passages have none."""
    seen = []

    class Adapter:
        name, version = "a", 1

        async def send(self, request):
            seen.extend(request.texts)
            return sm.EmbeddingReply(tuple((1.0, float(len(text))) for text in request.texts))

    def index(**prefixes):
        return sm.VectorIndex(sm.EmbeddingModel("testing/x", adapter=Adapter()), tmp_path / "v.db", **prefixes)

    e5 = index(query_prefix="query: ", passage_prefix="passage: ")
    await e5.add([TEA])
    (found,) = await e5.search("drink")
    assert (found.text, seen) == (TEA["text"], [f"passage: {TEA['text']}", "query: drink"])
    assert await e5.add([TEA]) == 0
    assert len(await index(passage_prefix="passage: ").search("drink")) == 1
    for other in (index(), index(passage_prefix="document: ")):
        with pytest.raises(sm.ConfigError, match="passage_prefix='passage: '"):
            await other.search("drink")
    await e5.aclose()
    with pytest.raises(sm.ConfigError, match="query_prefix must be a text, got 5"):
        index(query_prefix=5)


async def test_a_text_without_words_has_no_direction():
    """Its cosine is 0 with everything, and it fits beside others."""
    index = vectors()
    await index.add([{"id": "empty", "text": "!"}, TEA])
    assert [(each.id, each.score) for each in await index.search("tea")][1] == ("empty", 0.0)
    assert {each.score for each in await index.search("?")} == {0.0}


# -- mistakes ----------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("passages", "words"),
    [
        ("text", "must be a list of them, got 'text'"),
        ([TEA, "text"], r"passages\[1\]"),
        ([{"id": "x"}], r"passages\[0\].*text"),
        ([{"id": "x", "text": "\ud800"}], r"passages\[0\]"),
        ([{"id": "x", "text": "", "metadata": {"a": object()}}], r"passages\[0\]"),
        (TEA, "must be a list of them, got {"),
    ],
)
async def test_what_is_not_a_passage_is_named(make, passages, words):
    """A DataError with the index; nothing is added."""
    index = make()
    with pytest.raises(sm.DataError, match=words):
        await index.add(passages)
    assert len(index) == 0


@both
async def test_wrong_arguments_are_named(make):
    """Query, k, path, name, ids."""
    index = make()
    with pytest.raises(sm.ArgumentError, match="query must be a text, got"):
        await index.search(7)
    for k in (0, 1.5, True):
        with pytest.raises(sm.ArgumentError, match="k must be"):
            await index.search("x", k)
    with pytest.raises(sm.DataError, match="ids must be a list of them, got"):
        await index.remove("tea")
    with pytest.raises(sm.ConfigError, match="path must be .*, got 7"):
        make(7)
    with pytest.raises(sm.ConfigError, match="name must be a text, got ''"):
        sm.KeywordIndex(name="")
    with pytest.raises(sm.ConfigError, match="embedding_model"):
        sm.VectorIndex(7)


async def test_a_file_of_another_kind_is_left_alone(tmp_path):
    """A DataError that names path and reason; not a byte is changed."""
    index = keywords(tmp_path / "k.db")
    await index.add([TEA])
    await index.aclose()
    (tmp_path / "text.db").write_text("This is not a database, but a text that is long enough. " * 20)
    before = (tmp_path / "text.db").read_bytes()
    for path, words in (("k.db", "not a file of a VectorIndex"), ("text.db", "not a database")):
        with pytest.raises(sm.DataError, match=words) as caught:
            await vectors(tmp_path / path).search("x")
        assert path in str(caught.value)
    assert (tmp_path / "text.db").read_bytes() == before


# -- files, crowds, crashes --------------------------------------------------------------------------------------------


@both
async def test_what_was_added_is_there_for_the_next(make, tmp_path):
    """Folders are made; the name is that of the file."""
    index = make(tmp_path / "a" / "docs.db")
    await index.add([TEA, SEA])
    await index.aclose()
    again = make(tmp_path / "a" / "docs.db")
    assert (again.name, len(again), ids(await again.search("tea", 1))) == ("docs", 2, ["tea"])
    await again.aclose()


@both
async def test_adds_and_searches_at_once(make, tmp_path):
    """A crowd on one file through two objects: nothing is lost, every search sees whole passages."""
    one, two = make(tmp_path / "docs.db"), make(tmp_path / "docs.db")

    async def work(number):
        index = (one, two)[number % 2]
        await index.add([{"id": f"{number}-{at}", "text": f"tea {number} {at}"} for at in range(5)])
        assert all(each.text.startswith("tea") for each in await index.search("tea", 3))

    await asyncio.gather(*map(work, range(30)))
    assert len(one) == len(two) == 150
    await one.aclose()
    await two.aclose()


def test_every_loop_is_served(any_loop):
    """asyncio and trio."""

    async def main():
        index = vectors()
        await index.add([TEA, SEA])
        return ids(await index.search("deep sea", 1))

    assert any_loop(main) == ["sea"]


@both
async def test_a_cancelled_add_leaves_all_or_nothing(make):
    """However far it had come, and the index goes on."""
    for turns in range(12):
        index = make()
        task = asyncio.create_task(index.add([TEA, SEA]))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert len(index) in (0, 2)
        assert await index.add([TEA, SEA]) in (0, 2)
        assert len(index) == 2


KILLED = """
import os, signal, sys, synmod as sm
index = sm.KeywordIndex(sys.argv[1])
for number in range(1_000_000):
    sm.run(index.add([{"id": str(number), "text": f"tea {number}"}]))
    print(number, flush=True)
"""


@pytest.mark.slow
def test_acknowledged_passages_survive_a_kill(tmp_path):
    """`kill -9` in the middle: every add that returned is there, and can be found by another process."""
    path = tmp_path / "docs.db"
    process = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if int(line) >= 20:
            os.kill(process.pid, signal.SIGKILL)
            break
    rest = process.stdout.read().split()
    process.stdout.close()
    process.wait()
    last = int(rest[-1]) if rest and rest[-1].isdigit() else 20
    index = keywords(path)
    assert len(index) in (last + 1, last + 2)
    assert ids(sm.run(index.search(f"tea {last}", 1))) == [str(last)]
    index.close()


@pytest.mark.slow
def test_another_process_reads_while_this_one_has_the_file_open(tmp_path):
    """And sees what was committed."""
    index = keywords(tmp_path / "docs.db")
    sm.run(index.add([TEA, SEA]))
    code = "import sys, synmod as sm; i = sm.KeywordIndex(sys.argv[1])"
    code += "; print([f.id for f in sm.run(i.search('deep'))]); i.close()"
    out = subprocess.run([sys.executable, "-c", code, index.path], capture_output=True, text=True, check=True).stdout
    assert json.loads(out.replace("'", '"')) == ["sea"]
    sm.run(index.add([{"id": "x", "text": "deep"}]))
    assert len(index) == 3
    index.close()


DAMAGE = {
    "deep": ("metadata", "[" * 100_000),
    "no object": ("metadata", "5"),
    "none": ("metadata", None),
    "bytes": ("text", b"\xff\x00"),
    "no text": ("text", None),
    "no id": ("id", None),
    "vector": ("vector", b"abc"),
}


@pytest.mark.parametrize(("column", "value"), DAMAGE.values(), ids=DAMAGE.keys())
async def test_a_damaged_passage_is_named_with_its_file(column, value, tmp_path):
    """A search that meets it is a DataError with the path; nothing raw comes out, and passages can still be added."""
    index = sm.VectorIndex("embedded/hash", tmp_path / "index.db")
    await index.add([{"id": "1", "text": "tea"}])
    await index.aclose()
    connection = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
    connection.execute(f"UPDATE passage SET {column} = ?", (value,))
    connection.close()
    with pytest.raises(sm.DataError, match=r"index\.db"):
        await index.search("tea", k=1)
    assert await index.add([{"id": "2", "text": "sea"}]) == 1
    await index.aclose()
