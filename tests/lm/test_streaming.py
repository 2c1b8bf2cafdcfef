"""Streams: pieces of one call and of all calls in a program, held back by a slow reader, gone when closed early."""

import pytest

import synmod as sm
from synmod.lm import LanguageModel, LMChunk
from synmod.testing import FunctionLM, SchemaLM, ScriptedLM

ANY = {}
QUERY = sm.JsonDataModel({"query": "why"}, schema={"type": "object"})


def pieces(*texts):
    """A streamed reply of these pieces."""
    return [LMChunk(text) for text in texts]


async def read(streamed):
    """Read a stream to its end; return the chunks and the stream."""
    async with streamed as stream:
        return [chunk async for chunk in stream], stream


async def call(lm, *args, **kwargs):
    """Call a model and read its stream."""
    return await read(await lm(*args, stream=True, **kwargs))


def ask(*replies, **keywords):
    """A generator of one answer by a script."""
    return sm.Generator({"answer": str}, language_model=ScriptedLM(list(replies)), **keywords)


# -- one call --------------------------------------------------------------------------------------------------------


def test_pieces_come_as_they_arrive_and_the_last_is_done(any_loop):
    """The texts of the adapter one by one, then an empty piece that is done; the reply is whole."""

    async def main():
        chunks, stream = await call(ScriptedLM([[LMChunk("Pa", "I th"), LMChunk("ris", "ink")]]), "Capital of France?")
        assert [(chunk.text, chunk.reasoning, chunk.done) for chunk in chunks] == [
            ("Pa", "I th", False),
            ("ris", "ink", False),
            ("", "", True),
        ]
        assert (stream.reply.text, stream.reply.reasoning, stream.reply.usage.calls) == ("Paris", "I think", 1)
        assert 0 <= stream.reply.first_chunk_s <= stream.reply.elapsed_s

    any_loop(main)


@pytest.mark.parametrize(
    "lm",
    [
        ScriptedLM(["Paris"]),
        LanguageModel("embedded/nearest"),
        SchemaLM(),
        FunctionLM(lambda request: [LMChunk("Paris", done=True)]),
    ],
)
def test_a_reply_that_comes_whole_is_one_piece(any_loop, lm):
    """Doubles, embedded models, and an adapter whose only piece is done: one piece, done, with all of the text."""

    async def main():
        if isinstance(lm, ScriptedLM):
            lm._used.clear()
        chunks, stream = await call(lm, "Capital of France?")
        assert [(chunk.text, chunk.done) for chunk in chunks] == [(stream.reply.text, True)]
        assert stream.reply.text

    any_loop(main)


async def test_a_call_that_is_not_streamed_gets_the_pieces_together():
    """A script of pieces serves both kinds of calls."""
    lm = ScriptedLM([[LMChunk("Pa", "be"), LMChunk("ris", "cause")]])
    reply = await lm("Capital of France?")
    assert (reply.text, reply.reasoning, reply.first_chunk_s) == ("Paris", "because", None)
