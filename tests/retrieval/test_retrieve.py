"""Retrieve: its query and output; its index is shared by copies, named in files, and handed over at load."""

import json
import pickle

import pytest

import synmod as sm


class Question(sm.DataModel):
    """A question."""

    question: str
    count: int = 1


class Two(sm.DataModel):
    """Two texts."""

    question: str
    source: str


@pytest.fixture
def index():
    """Three passages in memory."""
    index = sm.KeywordIndex(name="docs")
    texts = {"tea": "Tea is a drink.", "sea": "The sea is deep.", "car": "A red car."}
    sm.run(index.add([sm.Passage(id=key, text=text) for key, text in texts.items()]))
    return index


async def test_it_gives_passages_with_scores(index):
    """In the order of the index, at most k."""
    found = await sm.Retrieve(index, 1)(Question(question="How deep is the sea?"))
    (passage,) = found["passages"]
    assert (passage["id"], passage["text"], passage["metadata"]) == ("sea", "The sea is deep.", {})
    assert passage["score"] > 0
    assert found.to(sm.Passages).passages[0].id == "sea"


async def test_with_the_inputs_it_feeds_a_generator(index):
    """A pipeline in two lines; the answer sees question and passages."""
    lm = sm.LanguageModel("embedded/nearest")
    pipeline = sm.Sequential([Question, sm.Retrieve(index, 2, return_inputs=True), sm.Generator({"answer": str})])
    with sm.default_language_model(lm), sm.trace() as trace:
        assert await pipeline(Question(question="Is tea a drink?"))
    text = str(trace.to_json())
    assert "Is tea a drink?" in text
    assert "Tea is a drink." in text


async def test_the_query_is_the_only_text_or_the_field_that_is_named(index):
    """Else a SchemaError with the texts there are, also on symbols."""
    two = Two(question="sea", source="web")
    assert (await sm.Retrieve(index, 1, field="question")(two))["passages"][0]["id"] == "sea"
    with pytest.raises(sm.SchemaError, match="no field=.*question, source"):
        await sm.Retrieve(index)(two)
    with pytest.raises(sm.SchemaError, match="Did you mean 'question'"):
        await sm.Retrieve(index, field="qestion")(sm.Input(Two))
    with pytest.raises(sm.SchemaError, match="no text 'count'"):
        await sm.Retrieve(index, field="count")(Question(question="sea"))


def test_wrong_arguments_are_named(index):
    """A ConfigError each."""
    with pytest.raises(sm.ConfigError, match="must be a KeywordIndex"):
        sm.Retrieve("docs.db")
    for k in (0, True, 2.5):
        with pytest.raises(sm.ConfigError, match="k must be"):
            sm.Retrieve(index, k)


async def test_copies_share_the_index(index):
    """A clone holds the very object; a pickle refuses, as for live models."""
    block = sm.Retrieve(index)
    assert block.clone().index is index
    graphdef, state = sm.split(block)
    assert sm.merge(graphdef, state).index is index
    assert [node for _, node in sm.iter_graph(block, sm.Index)] == [index]
    with pytest.raises(TypeError, match="cannot pickle KeywordIndex at 'index'"):
        pickle.dumps(block)


async def test_a_file_holds_the_name_alone(index, tmp_path):
    """No passage, no path; a load without the index works but for a search, which names the line to write."""
    stored = sm.KeywordIndex(tmp_path / "secret-place.db", name="docs")
    text = sm.dumps(sm.Retrieve(stored, 2))
    assert "secret-place" not in text
    loaded = sm.loads(text)
    assert (type(loaded.index), loaded.index.name, loaded.k, sm.dumps(loaded)) == (sm.KeywordIndex, "docs", 2, text)
    with pytest.raises(sm.ConfigError, match=r"load\(..., indexes=\{'docs': KeywordIndex\(\.\.\.\)\}\)"):
        await loaded(Question(question="sea"))
    loaded.index = index
    assert (await loaded(Question(question="sea")))["passages"][0]["id"] == "sea"


async def test_an_index_is_handed_over_at_load(index, tmp_path):
    """By name, or one for all; of another kind, too."""
    path = sm.save(sm.Sequential([Question, sm.Retrieve(index)]), tmp_path / "p.json")
    other = sm.VectorIndex("embedded/hash")
    for indexes, expected in (({"docs": index}, index), (index, index), ({"docs": other}, other)):
        loaded = sm.load(path, indexes=indexes)
        assert [node for _, node in sm.iter_graph(loaded, sm.Index)] == [expected]
    assert (await sm.load(path, indexes=index)(Question(question="sea")))["passages"][0]["id"] == "sea"
    with pytest.raises(sm.LoadError, match="no index 'dics' in this file; it has 'docs'. Did you mean 'docs'"):
        sm.load(path, indexes={"dics": index})
    with pytest.raises(sm.ArgumentError, match="is not an Index"):
        sm.load(path, indexes={"docs": "docs.db"})


def test_two_indexes_of_one_name_are_not_mixed_up(index):
    """A mapping cannot tell them apart."""
    text = sm.dumps([sm.Retrieve(index), sm.Retrieve(sm.KeywordIndex(name="docs"))])
    with pytest.raises(sm.LoadError, match="two indexes are named 'docs'"):
        sm.loads(text, indexes={"docs": index})
    assert len(sm.loads(text)) == 2


@pytest.mark.parametrize("metadata", [{}, {"name": 7}, {"name": "x", "path": "/etc/passwd"}, None, []])
def test_a_hostile_file_opens_nothing(index, metadata):
    """Only a name may stand in a record."""
    document = json.loads(sm.dumps(sm.Retrieve(index)))
    record = next(node for node in document["graph"]["nodes"] if node["type"] == "synmod>KeywordIndex")
    record["metadata"] = metadata
    with pytest.raises(sm.FormatError):
        sm.loads(json.dumps(document))
