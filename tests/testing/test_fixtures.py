"""The fixture `no_network`: only doubles and embedded models send."""

import asyncio

import pytest

import synmod as sm
from synmod.lm import LMReply
from synmod.testing import ChaosLM, RecordReplayLM, ScriptedLM

pytest_plugins = ["synmod.testing.fixtures"]


class Question(sm.DataModel):
    """A question."""

    text: str


class Own:
    """An adapter of a user's own."""

    name, version = "own", 1
    sent = 0

    async def send(self, request):
        Own.sent += 1
        return LMReply("sent")


@pytest.mark.parametrize(
    "lm",
    [
        sm.LanguageModel("openai/gpt-4o-mini", api_key="sk-0123456789"),
        sm.LanguageModel("openai/x", api_base="http://127.0.0.1:9/v1"),
        sm.LanguageModel("anthropic/x", api_key="sk-0123456789"),
        sm.LanguageModel("house/x", adapter=Own()),
        ChaosLM(sm.LanguageModel("house/x", adapter=Own())),
    ],
    ids=["direct", "base", "litellm", "own", "behind a double"],
)
async def test_no_provider_is_reached(no_network, lm):
    """No adapter is called, also not through a double; the error names model and module."""
    ask = sm.Generator({"answer": str}, name="ask", language_model=lm)
    with pytest.raises(AssertionError, match=rf"no_network: {lm.model} was called in 'ask'"):
        await ask(Question(text="?"))
    assert Own.sent == 0


async def test_doubles_and_embedded_models_answer(no_network, tmp_path):
    """Their own adapters, in the process."""
    assert (await ScriptedLM(["a"])("?")).text == "a"
    assert (await RecordReplayLM(tmp_path / "c.jsonl", ScriptedLM(["b"]))("?")).text == "b"
    assert (await sm.LanguageModel("embedded/nearest")("?")).text
    with sm.use_language_models(ScriptedLM(["c"])):
        assert (await sm.LanguageModel("openai/gpt-4o-mini")("?")).text == "c"


async def test_texts_are_not_embedded_either(no_network):
    """`embedded/hash` answers, a provider is not asked."""
    assert (await sm.EmbeddingModel("embedded/hash")(["a"])).vectors
    with pytest.raises(AssertionError, match="no_network: openai/text-embedding-3-small"):
        await sm.EmbeddingModel("openai/text-embedding-3-small", api_key="sk-0123456789")(["a"])


async def test_other_threads_are_held_too(no_network):
    """The fixture holds for the process, not for a task."""
    lm = sm.LanguageModel("house/x", adapter=Own())
    with pytest.raises(AssertionError, match="outside a module"):
        await asyncio.to_thread(lambda: asyncio.run(lm("?")))


async def test_after_the_test_all_is_as_before():
    """Without the fixture an adapter is called."""
    assert (await sm.LanguageModel("house/x", adapter=Own())("?")).text == "sent"
    Own.sent = 0
