"""HybridIndex: rankings fused; and the reranking of Retrieve."""

import pytest

import synmod as sm

TEXTS = {"tea": "Tea is a drink.", "sea": "The sea is deep.", "car": "A red car drinks fuel."}


class Question(sm.DataModel):
    """A question."""

    question: str


class Maybe(sm.DataModel):
    """A score, perhaps."""

    score: float | None


class Fixed(sm.Index):
    """Finds what it is told to."""

    def __init__(self, name, *ids):
        self.name, self.ids, self.asked = name, ids, []

    async def search(self, query, k=5):
        self.asked.append((query, k))
        return [sm.FoundPassage(id=key, text=key, score=1.0) for key in self.ids][:k]


async def test_rankings_are_fused_by_their_ranks():
    """The sum of 1 / (60 + rank), to depth max(50, 5 k); ties in the order of the first ranking."""
    first, second = Fixed("a", "x", "y", "z"), Fixed("b", "z", "y", "w")
    index = sm.HybridIndex(first, second)
    fused = await index.search("q", 3)
    assert [(p.id, p.score) for p in fused] == [
        ("z", pytest.approx(1 / 63 + 1 / 61)),
        ("y", pytest.approx(2 / 62)),
        ("x", pytest.approx(1 / 61)),
    ]
    await index.search("q", 20)
    assert [k for _, k in first.asked] == [50, 100]
    assert index.name == "a+b"


async def test_both_indexes_are_filled_and_searched():
    """Adding and removing reaches each; a filter, too."""
    words, meaning = sm.KeywordIndex(), sm.VectorIndex("embedded/hash")
    index = sm.HybridIndex(words, meaning, name="docs")
    rows = ({"id": key, "text": text, "metadata": {"n": at}} for at, (key, text) in enumerate(TEXTS.items()))
    assert await index.add(rows) == 3
    assert (await index.search("a drink", 1))[0].id == "tea"
    assert {p.id for p in await index.search("a drink", where={"n": {"gt": 0}})} == {"sea", "car"}
    assert await index.remove(["tea"]) == 1
    assert await index.remove(where={"n": 2}) == 1
    assert (len(words), len(meaning), len(index)) == (1, 1, 1)
    assert ((await index.get("sea")).text, await index.get("tea")) == (TEXTS["sea"], None)


async def test_a_saved_program_has_its_name(tmp_path):
    """One live index stands behind it at load."""
    index = sm.HybridIndex(Fixed("a", "x"), Fixed("b", "y"), name="docs")
    path = sm.save(sm.Retrieve(index), tmp_path / "p.json")
    assert (await sm.load(path, indexes={"docs": index})(Question(question="q")))["passages"][0]["id"] == "x"
    assert repr(index).startswith("HybridIndex(") and repr(index).endswith(", name='docs')")
    with pytest.raises(sm.ConfigError, match=r"loaded by its name alone.*'docs': HybridIndex\(\.\.\.\)"):
        await sm.load(path)(Question(question="q"))


def test_wrong_arguments_are_named():
    """Fewer than two, or not an index."""
    for indexes in ((), (Fixed("a"),)):
        with pytest.raises(sm.ConfigError, match="wanted two or more"):
            sm.HybridIndex(*indexes)
    with pytest.raises(sm.ConfigError, match="HybridIndex must be a KeywordIndex"):
        sm.HybridIndex(Fixed("a"), "b")
    with pytest.raises(sm.ConfigError, match="rerank must be a module"):
        sm.Retrieve(Fixed("a"), rerank=len)


class Length(sm.Module):
    """Scores a passage by its length."""

    async def call(self, inputs: sm.QueryPassage):
        return sm.JsonDataModel(
            {"score": len(inputs["passage"]["text"])}, {"properties": {"score": {"type": "number"}}, "type": "object"}
        )


async def test_a_module_reranks_the_first_passages():
    """It is called for each of the first 3 k, each in the trace; the best k by its score are left."""
    index = Fixed("a", *("x" * n for n in range(1, 9)))
    block = sm.Retrieve(index, 2, rerank=Length())
    with sm.trace() as trace:
        passages = (await block(Question(question="q")))["passages"]
    assert [(p["id"], p["score"]) for p in passages] == [("xxxxxx", 6.0), ("xxxxx", 5.0)]
    assert [child.path for child in trace.roots[0].children].count("rerank") == 6


async def test_a_module_without_a_score_is_named():
    """When the program is composed, and when it is called."""
    index = Fixed("a", "x")
    with pytest.raises(sm.SchemaError, match="no `score`; it has answer"):
        await sm.Retrieve(index, rerank=sm.Generator({"answer": str}, language_model="embedded/nearest"))(
            sm.Input(Question)
        )
    none = sm.Lambda(lambda pair: Maybe(score=None), output=Maybe)
    block = sm.Retrieve(index, rerank=none)
    with pytest.raises(sm.SchemaError, match="no number `score`"):
        await block(Question(question="q"))


async def test_a_filter_is_part_of_the_block():
    """And of its saved file."""
    index = sm.KeywordIndex()
    await index.add([{"id": k, "text": "tea", "metadata": {"lang": k}} for k in ("en", "de")])
    block = sm.Retrieve(index, where={"lang": "de"})
    for each in (block, sm.loads(sm.dumps(block), indexes=index)):
        assert [p["id"] for p in (await each(Question(question="tea")))["passages"]] == ["de"]
