"""Vectors from a real server."""

import pytest

import synmod as sm
from synmod.errors import ContextWindowError, RequestError

pytestmark = pytest.mark.real


@pytest.fixture
def vectors(embedder):
    """An embedding model of the server."""
    return sm.EmbeddingModel("openai/smollm2", api_base=embedder.base, batch_size=2)


async def test_vectors_come_in_order_and_equal_texts_are_sent_once(vectors, embedder):
    """In batches, counted as the server counts."""
    reply = await vectors(["a cat", "a dog", "a cat", "rain in the mountains"])
    alone = await vectors(["a dog"])
    assert [len(vector) for vector in reply.vectors] == [576] * 4
    assert (reply.vectors[0] == reply.vectors[2], reply.usage.requests) == (True, 2)
    assert reply.vectors[1] == pytest.approx(alone.vectors[0], abs=1e-3)
    assert (alone.usage.prompt_tokens, alone.usage.estimated) == (2, False)


async def test_an_index_finds_passages_by_vectors_of_the_server(vectors):
    """The nearest passage comes first."""
    index = sm.VectorIndex(vectors)
    texts = ["The invoice was charged twice.", "The parcel is late.", "The app crashes at login."]
    await index.add([{"id": text[:9], "text": text} for text in texts])
    (best,) = await index.search("The parcel is very late.", k=1)
    assert best["text"] == "The parcel is late."


async def test_a_server_without_embeddings_is_asked_once(server):
    """Its refusal is no outage; the error quotes what it lacks."""
    with pytest.raises(RequestError, match="--embeddings") as raised:
        await sm.EmbeddingModel("openai/smollm2", api_base=server.base)(["a cat"])
    assert raised.value.attempts == 1


async def test_a_text_that_is_too_long_is_sent_once(vectors):
    """llama.cpp answers 500 to it, like a server that fails."""
    with pytest.raises(ContextWindowError, match="too large") as raised:
        await vectors(["a cat " * 400])
    assert raised.value.attempts == 1
