"""EmbeddingModel: order, doubles, batches, failures, and the layers that every model call has."""

import asyncio
import json
import math
import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

import synmod as sm
from synmod.lm.options import ENVIRONMENT
from tests.lm.in_module import inside
from tests.lm.loopback import KEY, Answer, Loopback, failure

TEXTS = st.lists(st.text(alphabet="abc é漢!", max_size=12), max_size=30)


class Counting:
    """An adapter that answers by the length of a text, and keeps what it was sent."""

    name, version = "counting", 1

    def __init__(self, *outcomes):
        self.requests, self.outcomes = [], list(outcomes)

    async def send(self, request):
        self.requests.append(request)
        await asyncio.sleep(0)
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        vectors = tuple((float(len(text)), 1.0) for text in request.texts)
        return outcome or sm.EmbeddingReply(vectors, sm.Usage(prompt_tokens=len(request.texts)))


def counting(*outcomes, **given):
    """A model over such an adapter, which does not wait between attempts."""
    em = sm.EmbeddingModel("testing/count", adapter=Counting(*outcomes), **given)
    em.backoff = False
    return em


def embeddings(count, *, shuffled=False, dimensions=2, **usage):
    """An answer with so many vectors; the first number is the index."""
    data = [{"index": at, "embedding": [float(at)] * dimensions, "object": "embedding"} for at in range(count)]
    return Answer(200, {"object": "list", "data": data[::-1] if shuffled else data, "model": "m", "usage": usage})


# -- laws --------------------------------------------------------------------------------------------------------------


@given(TEXTS, st.integers(1, 7))
def test_each_text_has_its_vector_and_is_sent_once(texts, batch_size):
    """Order is kept, equal texts are sent once, no batch is larger than it may be."""
    em = counting(batch_size=batch_size)
    reply = sm.run(em(texts))
    assert reply.vectors == tuple((float(len(text)), 1.0) for text in texts)
    sent = [text for request in em.adapter.requests for text in request.texts]
    assert sorted(sent) == sorted(set(texts))
    assert all(len(request.texts) <= batch_size for request in em.adapter.requests)
    assert reply.usage.prompt_tokens == reply.usage.requests + len(sent) - reply.usage.calls == len(sent)


@given(st.text(max_size=60), st.text(max_size=60))
def test_hashed_vectors_have_length_one_and_a_cosine_in_range(one, other):
    """`embedded/hash`: 256 finite numbers, normalised, zero for a text without words; equal texts are equal."""
    first, second, again = sm.run(sm.EmbeddingModel("embedded/hash")([one, other, one])).vectors
    for vector in (first, second):
        assert len(vector) == 256
        assert math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-9) or not any(vector)
    assert -1 - 1e-9 <= sum(map(lambda a, b: a * b, first, second)) <= 1 + 1e-9
    assert first == again


def test_hashed_vectors_are_near_for_texts_that_share_words():
    """Shared words count, and so do shared parts of words; case, punctuation and repetition do not."""
    texts = ["The red car is fast.", "the red CAR is fast, fast", "red cars", "deep blue sea"]
    same, equal, near, far = sm.run(sm.EmbeddingModel("embedded/hash")(texts)).vectors

    def cosine(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert same == equal
    assert cosine(same, near) > 0.3 > 0.2 > cosine(same, far)


@pytest.mark.slow
def test_another_process_has_the_same_vectors():
    """Python's own hash differs from process to process, ours does not."""
    embed = "sm.run(sm.EmbeddingModel('embedded/hash')(['Über the sea'])).vectors"
    code = f"import json, synmod as sm; print(json.dumps({embed}))"
    outs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = sm.run(sm.EmbeddingModel("embedded/hash")(["Über the sea"])).vectors
    assert [json.loads(out) for out in outs] == [[list(here[0])]]


def test_every_loop_is_served(any_loop):
    """`embedded/hash` runs where asyncio does not."""

    async def main():
        reply = await sm.EmbeddingModel("embedded/hash", batch_size=1)(["a", "b", "a"])
        return reply.vectors[0] == reply.vectors[2] != reply.vectors[1]

    assert any_loop(main)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"model": "hash"}, "provider/name"),
        ({"model": "embedded/hesh"}, "Did you mean 'hash'"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"dimensions": 0}, "dimensions"),
        ({"attempts": 0}, "attempts"),
        ({"adapter": object()}, "adapter"),
        ({"api_base": "ftp://x"}, "api_base"),
    ],
)
def test_wrong_arguments_are_named(keywords, words):
    """A ConfigError when the model is made."""
    with pytest.raises(sm.ConfigError, match=words):
        sm.EmbeddingModel(**{"model": "openai/x"} | keywords)


@pytest.mark.parametrize(
    ("texts", "words"),
    [("one text", r"\[text\]"), (7, "got int"), (["a", None], r"texts\[1\]"), (["\ud800"], r"texts\[0\].*surrogate")],
)
async def test_wrong_texts_are_named(texts, words):
    """Before anything is sent."""
    em = counting()
    with pytest.raises(sm.DataError, match=words):
        await em(texts)
    assert em.adapter.requests == []


async def test_no_texts_need_no_call():
    """Nothing in, nothing out."""
    em = counting()
    reply = await em([])
    assert (reply.vectors, reply.cached, em.adapter.requests, em.cumulated_calls) == ((), False, [], 0)


@pytest.mark.parametrize("vectors", [(), ((1.0,),), ((1.0,), (1.0, 2.0)), ((), ())])
async def test_a_vector_for_each_text_all_of_one_length(vectors):
    """Else a BadReplyError, also from an adapter of the user's."""
    with pytest.raises(sm.BadReplyError, match="wanted one for each of 2 texts"):
        await counting(sm.EmbeddingReply(vectors))(["a", "b"])


async def test_vectors_have_the_dimensions_that_were_asked_for():
    """A server that does not know the parameter is found out, and nothing of it is kept."""
    em = counting(dimensions=3, cache=sm.Cache())
    for _ in range(2):
        with pytest.raises(sm.BadReplyError, match="got 2 vectors of length 2, wanted .* of length 3"):
            await em(["a", "b"])
    assert len(em.adapter.requests) == 2


async def test_another_kind_of_reply_is_a_type_error():
    """A programming error of an adapter passes through."""
    with pytest.raises(TypeError, match="wanted an EmbeddingReply"):
        await counting(sm.LMReply("text"))(["a"])


async def test_building_costs_nobody_a_token():
    """A call on symbols is a BuildError."""

    class Finder(sm.Module):
        async def call(self, inputs):
            await counting()(["a"])
            return inputs

    class Query(sm.DataModel):
        text: str

    with pytest.raises(sm.BuildError, match="testing/count was called while the module is built"):
        await sm.Program(inputs=(query := sm.Input(Query)), outputs=await Finder()(query))


# -- the layers --------------------------------------------------------------------------------------------------------


async def test_transient_failures_are_retried_per_batch():
    """Each batch has its own attempts; the counters see calls and requests."""
    em = counting(sm.UnavailableError("down"), sm.RateLimitError("slow"), batch_size=1, attempts=2)
    reply = await em(["a", "bb"])
    assert reply.vectors == ((1.0, 1.0), (2.0, 1.0))
    assert (em.cumulated_calls, em.cumulated_requests, em.cumulated_failed_calls) == (2, 4, 0)
    assert (reply.usage.calls, reply.usage.requests) == (2, 4)


async def test_the_first_failure_ends_the_call():
    """After all attempts, with the number of requests, the module and no vectors."""
    em = counting(*[sm.UnavailableError("down")] * 3)
    with pytest.raises(sm.UnavailableError, match="testing/count: down") as caught:
        await inside("finder", lambda: em(["a"]))
    assert (caught.value.attempts, caught.value.path) == (3, "finder")


async def test_budgets_usage_and_events_see_each_batch():
    """A batch is a model call: reserved before it is sent, reported at its begin and end."""
    events = []

    class Listener(sm.Hook):
        def on_lm_begin(self, event):
            events.append(("begin", event.request.texts))

        def on_lm_end(self, event):
            events.append(("end", event.reply.vectors))

    em = counting(batch_size=2)
    with sm.hooks(Listener()), sm.track_usage() as usage, sm.budget(calls=2) as account:
        await em(["a", "bb", "ccc"])
    assert (usage.calls, usage.prompt_tokens, account.used.calls) == (2, 3, 2)
    assert sorted(events, key=str) == sorted(
        [("begin", ("a", "bb")), ("begin", ("ccc",)), ("end", ((1.0, 1.0), (2.0, 1.0))), ("end", ((3.0, 1.0),))],
        key=str,
    )
    with sm.budget(calls=1), pytest.raises(sm.BudgetExceeded):
        await em(["a", "bb", "ccc"])


async def test_a_trace_shows_the_texts():
    """As the messages of the request."""
    with sm.trace() as trace:
        await sm.EmbeddingModel("embedded/hash")(["tea"])
    (call,) = trace.to_json()["lm_calls"]
    assert (call["model"], call["request"]["messages"]) == ("embedded/hash", [{"role": "user", "content": "tea"}])


async def test_a_span_is_named_embeddings():
    """As OpenTelemetry calls it."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    exported, provider = memory.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exported))
    with sm.hooks(sm.hooks_lib.OpenTelemetry(provider)):
        await sm.EmbeddingModel("embedded/hash")(["tea"])
    (span,) = exported.get_finished_spans()
    assert (span.name, span.attributes["gen_ai.operation.name"]) == ("embeddings hash", "embeddings")


async def test_a_cost_budget_needs_a_price():
    """As for every model; the embedded one is free."""
    with sm.budget(cost_usd=1) as account:
        with pytest.raises(sm.ConfigError, match="price"):
            await counting()(["a"])
        await sm.EmbeddingModel("embedded/hash")(["a"])
        await counting(price=(1_000_000, 0))(["a"])
    assert account.used.cost_usd == 1


async def test_a_text_in_the_cache_is_not_sent(tmp_path):
    """Entries belong to single texts; a hit costs nothing, and outlives the model."""
    em = counting(cache=tmp_path / "c.db")
    await em(["a", "bb"])
    mixed = await em(["ccc", "a", "bb"])
    assert (mixed.vectors, mixed.cached, mixed.usage.prompt_tokens) == (((3.0, 1.0), (1.0, 1.0), (2.0, 1.0)), False, 1)
    assert [request.texts for request in em.adapter.requests] == [("a", "bb"), ("ccc",)]
    other = counting(cache=tmp_path / "c.db")
    reply = await other(["bb", "ccc"])
    assert (reply.vectors, reply.cached, reply.usage) == (((2.0, 1.0), (3.0, 1.0)), True, sm.Usage())
    assert (other.cumulated_cached_calls, other.cumulated_requests) == (1, 0)
    shorter = counting(cache=em.cache, dimensions=2)
    assert (await shorter(["bb"])).cached is False
    await em.cache.aclose()
    await other.cache.aclose()


class Waiting(Counting):
    """An adapter that answers when the gate opens."""

    def __init__(self):
        super().__init__()
        self.gate = asyncio.Event()

    async def send(self, request):
        reply = await super().send(request)
        await self.gate.wait()
        return reply


async def test_equal_batches_under_way_are_sent_once():
    """Through one cache; one call pays, and if it is cancelled, another one takes over."""
    adapter = Waiting()
    em = sm.EmbeddingModel("testing/count", adapter=adapter, cache=sm.Cache())
    leader, *others = [asyncio.create_task(em(["a", "bb"])) for _ in range(5)]
    await asyncio.sleep(0.01)
    assert len(adapter.requests) == 1
    leader.cancel()
    await asyncio.sleep(0.01)
    assert len(adapter.requests) == 2
    adapter.gate.set()
    replies = await asyncio.gather(*others)
    assert {reply.vectors for reply in replies} == {((1.0, 1.0), (2.0, 1.0))}
    assert sorted((reply.cached, reply.usage.calls) for reply in replies) == [(False, 1), *[(True, 0)] * 3]
    assert em.cumulated_cached_calls == 3


async def test_an_equal_batch_that_has_just_ended_is_not_sent_again():
    """Though this call had looked for it before."""
    looked, ended = asyncio.Event(), asyncio.Event()

    class Loading(Counting):
        async def prepare(self, request):
            if looked.is_set():
                return
            looked.set()
            await ended.wait()

    em = sm.EmbeddingModel("testing/count", adapter=Loading(), cache=sm.Cache())
    late = asyncio.create_task(em(["a", "bb"]))
    await looked.wait()
    assert not (await em(["a", "bb"])).cached
    ended.set()
    reply = await late
    assert (reply.cached, reply.usage.calls, reply.vectors) == (True, 0, ((1.0, 1.0), (2.0, 1.0)))
    assert len(em.adapter.requests) == 1


async def test_an_invalid_reply_is_never_cached():
    """The next call asks again."""
    em = counting(sm.EmbeddingReply(((1.0,), (1.0, 2.0))), cache=sm.Cache())
    with pytest.raises(sm.BadReplyError):
        await em(["a", "b"])
    assert (await em(["a", "b"])).cached is False


async def test_batches_wait_for_room_under_the_limit():
    """No more requests at once than the limit allows."""
    running, most = 0, 0

    class Slow(Counting):
        async def send(self, request):
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                return await super().send(request)
            finally:
                running -= 1

    em = sm.EmbeddingModel("testing/slow", adapter=Slow(), batch_size=1, limit=2)
    reply = await em([str(number) for number in range(20)])
    assert (len(reply.vectors), most) == (20, 2)


# -- against a server --------------------------------------------------------------------------------------------------


@pytest.fixture
def environment(monkeypatch):
    """Every provider has a key in the environment, and no proxy stands between."""
    for names in ENVIRONMENT.values():
        for name in names:
            monkeypatch.setenv(name, f"sk-environment-{name}")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


async def embed(*answers, texts=("a", "b"), **given):
    """Embed texts at a server once; return the reply or the error, and the requests that arrived."""
    async with Loopback(*answers) as server:
        about = {"api_base": server.base, "api_key": KEY, "attempts": 1} | given
        em = sm.EmbeddingModel(about.pop("model", "openai/some-model"), **about)
        try:
            got = await em(texts)
        except sm.SynmodError as error:
            got = error
        await em.aclose()
        return got, server.arrived


ADAPTERS = pytest.mark.parametrize("adapter", ["direct", pytest.param("litellm", marks=pytest.mark.slow)])


@pytest.mark.usefixtures("environment")
@ADAPTERS
async def test_what_is_sent_and_what_comes_back(adapter):
    """Model, texts, dimensions and key arrive; vectors are ordered by their index, tokens are the provider's."""
    answer = embeddings(2, shuffled=True, prompt_tokens=9, total_tokens=9)
    reply, (arrived,) = await embed(answer, dimensions=2, adapter=adapter, headers={"X-Mine": "yes"})
    assert arrived.path == "/v1/embeddings"
    assert arrived.headers["authorization"] == f"Bearer {KEY}"
    assert arrived.headers["x-mine"] == "yes"
    expected = {"model": "some-model", "input": ["a", "b"], "encoding_format": "float", "dimensions": 2}
    assert arrived.body == expected
    assert reply.vectors == ((0.0, 0.0), (1.0, 1.0))
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.cached) == (9, 0, False)


@pytest.mark.usefixtures("environment")
@ADAPTERS
@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "RequestError"),
        (401, "AuthError"),
        (404, "RequestError"),
        (429, "RateLimitError"),
        (503, "UnavailableError"),
    ],
)
async def test_each_status_has_its_class(adapter, status, name):
    """As of completions; no error shows the key, none is chained."""
    error, arrived = await embed(failure(status, f"said {status} of {KEY}"), adapter=adapter)
    assert (type(error).__name__, len(arrived)) == (name, 1)
    assert "said" in str(error)
    assert KEY not in f"{error} {error.provider_message}"
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    "answer",
    [
        embeddings(1),
        embeddings(3),
        embeddings(2, dimensions=0),
        Answer(200, {"data": None}),
        Answer(200, []),
        Answer(200, {"data": [{"index": 0, "embedding": [1, "x"]}, {"index": 1, "embedding": [1, 2]}]}),
        Answer(200, {"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}),
        Answer(200, {"data": [{"index": [0], "embedding": [1]}, {"index": {}, "embedding": [1]}]}),
        Answer(200, {"data": [{"index": 0, "embedding": [10**400]}, {"index": 1, "embedding": [1]}]}),
    ],
)
async def test_an_answer_without_the_vectors_is_a_bad_reply(answer):
    """Too few, too many, empty, no numbers, too large ones, one index twice or not one."""
    error, arrived = await embed(answer)
    assert isinstance(error, sm.BadReplyError)
    assert len(arrived) == 1


@pytest.mark.usefixtures("environment")
async def test_faults_of_the_connection_are_retried():
    """A cut body and a 503 cost two attempts; the third succeeds."""
    good = embeddings(2)
    async with Loopback(Answer(200, good.body, cut=True), failure(503), good) as server:
        em = sm.EmbeddingModel("openai/m", api_base=server.base)
        em.backoff = False
        reply = await em(["a", "b"])
        await em.aclose()
    assert (reply.usage.requests, len(server.arrived), reply.usage.estimated) == (3, 3, True)


@pytest.mark.usefixtures("environment")
async def test_cancelling_closes_the_connections():
    """All batches under way hang up, and count as cancelled."""
    async with Loopback(Answer(200, {}, delay_s=60)) as server:
        em = sm.EmbeddingModel("openai/m", api_base=server.base, batch_size=1)
        task = asyncio.create_task(em(["a", "b", "c"]))
        while len(server.arrived) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.hung_up.wait()
        await em.aclose()
    assert (em.counters.total().cancelled, em.cumulated_calls, em.cumulated_requests) == (3, 0, 3)


@pytest.mark.usefixtures("environment")
async def test_one_deadline_holds_for_all_batches():
    """`timeout_s` covers the whole call."""
    error, _ = await embed(Answer(200, {}, delay_s=60), timeout_s=0.2, batch_size=1)
    assert isinstance(error, sm.ModelTimeout)
    assert "timeout_s=0.2" in str(error)


async def test_a_missing_key_is_known_at_once(monkeypatch):
    """AuthError with the variable, before anything is opened."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(sm.AuthError, match="OPENAI_API_KEY"):
        await sm.EmbeddingModel("openai/text-embedding-3-small")(["a"])


# -- in programs -------------------------------------------------------------------------------------------------------


class Holder(sm.Module):
    """Holds an embedding model."""

    def __init__(self, embedding_model):
        super().__init__()
        self.embedding_model = embedding_model

    async def call(self, inputs):
        return inputs


sm.register(package="test_embedding")(Holder)


def test_it_is_a_node_by_reference():
    """Copies share it; it is found in the graph; it cannot be pickled."""
    em = sm.EmbeddingModel("embedded/hash")
    module = Holder(em)
    assert module.clone().embedding_model is em
    assert [node for _, node in sm.iter_graph(module, sm.EmbeddingModel)] == [em]
    assert "embedded/hash" in str(module.summary())
    with pytest.raises(TypeError, match="a live model holds connections and keys"):
        pickle.dumps(module)


def test_it_is_saved_without_its_key_and_made_again():
    """By name and settings; equal text after a second save."""
    em = sm.EmbeddingModel("openai/e", api_key=KEY, batch_size=9, dimensions=5, timeout_s=None, limit=3, name="house")
    text = sm.dumps(Holder(em))
    assert KEY not in text
    loaded = sm.loads(text)
    again = loaded.embedding_model
    assert type(again) is sm.EmbeddingModel
    assert again.get_config() == em.get_config()
    assert again.limit.numbers() == {"concurrency": 3}
    assert sm.dumps(loaded) == text
    assert sm.graphdef(loaded) == sm.graphdef(Holder(em))
    assert sm.graphdef(loaded) != sm.graphdef(Holder(sm.EmbeddingModel("openai/e", name="house")))


def test_a_file_cannot_give_it_fallbacks():
    """Vectors of another model mean something else."""
    text = sm.dumps([Holder(sm.EmbeddingModel("embedded/hash")), Holder(sm.LanguageModel("embedded/nearest"))])
    for name, fallback in (("embedded/hash", "embedded/nearest"), ("embedded/nearest", "embedded/hash")):
        document = json.loads(text)
        document["language_models"][name]["fallback"] = [fallback]
        with pytest.raises(sm.FormatError, match="is not among the language_models"):
            sm.loads(json.dumps(document))


async def test_one_with_an_endpoint_is_handed_over_at_load():
    """Without it everything works but a call; one language model for all does not stand in for it."""
    text = sm.dumps(Holder(sm.EmbeddingModel("openai/e", api_base="http://localhost:1/v1", name="house")))
    unbound = sm.loads(text, language_models="embedded/nearest")
    assert sm.dumps(unbound) == text
    with pytest.raises(sm.UnboundModelError, match="'house'.*api_base.*EmbeddingModel"):
        await unbound.embedding_model(["a"])
    em = counting()
    assert sm.loads(text, language_models={"house": em}).embedding_model is em
    assert sm.loads(text, language_models={"house": "embedded/hash"}).embedding_model.model == "embedded/hash"
    with pytest.raises(sm.ConfigError, match="wanted EmbeddingModel"):
        sm.loads(text, language_models={"house": sm.LanguageModel("embedded/nearest")})
