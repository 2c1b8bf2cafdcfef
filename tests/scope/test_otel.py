"""`sm.hooks_lib.OpenTelemetry`: spans of module calls and model calls, by the conventions for generative AI."""

import asyncio
import json
import sys
from collections import Counter

import pytest

import synmod as sm
from synmod.lm import LMReply
from synmod.scope import Usage


class Query(sm.DataModel):
    question: str


class Answer(sm.DataModel):
    answer: str


class Provider:
    """Answers, or fails where the question says so."""

    name, version = "own", 1

    async def send(self, request):
        await asyncio.sleep(0)
        if "fail" in str(request.messages):
            raise ValueError("no answer")
        usage = Usage(1, 1, 12, 7, cached_tokens=3, cost_usd=0.5)
        return LMReply('{"answer": "so"}', usage=usage, request_id="r1", finish_reason="stop")


class Twice(sm.Module):
    """Asks twice at once."""

    def __init__(self):
        super().__init__()
        lm = sm.LanguageModel("mistral/large", adapter=Provider(), attempts=1)
        self.left = sm.Generator(Answer, language_model=lm, temperature=0.5)
        self.right = sm.Generator(Answer, language_model=lm)

    async def call(self, inputs: Query) -> Answer:
        left, _ = await asyncio.gather(self.left(inputs), self.right(inputs))
        return left


@pytest.fixture
def spans():
    """A provider that keeps spans in memory, and what reads them."""
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed: pip install 'synmod-lm[test]'")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter.get_finished_spans


async def test_calls_are_spans_nested_as_they_are(spans):
    """The entry call below the span of the application, modules below it, model calls as clients below those."""
    provider, finished = spans
    with sm.hooks(sm.hooks_lib.OpenTelemetry(provider)):
        with provider.get_tracer("application").start_as_current_span("request"):
            await asyncio.gather(*(Twice()(Query(question="Why?")) for _ in range(5)))
    by_id = {span.context.span_id: span for span in finished()}
    assert len(by_id) == 1 + 5 * 5

    def above(span):
        return None if span.parent is None else by_id[span.parent.span_id].name

    assert Counter((span.name, above(span)) for span in by_id.values()) == {
        ("request", None): 1,
        ("invoke_workflow twice", "request"): 5,
        ("generator", "invoke_workflow twice"): 10,
        ("chat large", "generator"): 10,
    }
    assert len({span.context.trace_id for span in by_id.values()}) == 1


async def test_a_model_call_has_the_attributes_of_the_conventions(spans):
    """Provider by its name there, model, parameters, tokens; no word of what was said."""
    provider, finished = spans
    with sm.hooks(sm.hooks_lib.OpenTelemetry(provider)):
        await Twice().left(Query(question="Why?"))
    chat, workflow = finished()
    assert (chat.name, chat.kind.name, workflow.kind.name) == ("chat large", "CLIENT", "INTERNAL")
    about = dict(chat.attributes)
    expected = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "mistral_ai", "gen_ai.request.model": "large",
        "gen_ai.request.temperature": 0.5, "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 3, "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.id": "r1", "gen_ai.response.model": "large", "synmod.cost_usd": 0.5, "synmod.attempts": 1,
    }  # fmt: skip
    assert expected.items() <= about.items()
    assert "Why?" not in chat.to_json() + workflow.to_json()
    assert workflow.attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert workflow.attributes["gen_ai.workflow.name"] == "generator"
    assert workflow.attributes["gen_ai.usage.input_tokens"] == 12


async def test_content_is_written_on_request(spans):
    """Turns in parts, instructions apart."""
    provider, finished = spans
    with sm.hooks(sm.hooks_lib.OpenTelemetry(provider, content=True)):
        await Twice().left(Query(question="Why?"))
    about = finished()[0].attributes
    (said,) = json.loads(about["gen_ai.input.messages"])
    assert said["role"] == "user"
    assert "Why?" in said["parts"][0]["content"]
    assert json.loads(about["gen_ai.system_instructions"])[0]["type"] == "text"
    assert json.loads(about["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": '{"answer": "so"}'}], "finish_reason": "stop"}
    ]


async def test_a_failure_is_told_by_its_class_and_text_and_every_span_ends(spans):
    """Without a traceback; cancelled calls end too."""
    provider, finished = spans
    with sm.hooks(sm.hooks_lib.OpenTelemetry(provider)), pytest.raises(ValueError, match="no answer"):
        await Twice().left(Query(question="fail"))
    for span in finished():
        assert span.status.status_code.name == "ERROR"
        assert span.attributes["error.type"] == "ValueError"
        assert "no answer" in span.status.description
        assert not span.events


async def test_the_hook_of_one_module_puts_model_calls_below_its_span(spans):
    """However deep they are: it is not told of the calls between."""
    provider, finished = spans
    sequential = sm.Sequential([sm.Sequential([Twice()])], hooks=[sm.hooks_lib.OpenTelemetry(provider)])
    await sequential(Query(question="Why?"))
    first, second, workflow = finished()
    assert workflow.parent is None
    assert first.parent.span_id == second.parent.span_id == workflow.context.span_id


async def test_a_cancelled_call_ends_its_spans(spans):
    """All of them, by the class of the cancellation."""
    provider, finished = spans
    with sm.hooks(sm.hooks_lib.OpenTelemetry(provider)):
        task = asyncio.ensure_future(Twice()(Query(question="Why?")))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.01)
    assert {span.attributes["error.type"] for span in finished()} == {"CancelledError"}


async def test_spans_of_the_application_stand_below_the_call_that_makes_them(spans):
    """In a module, in the tool of an agent, and in what sends a request; concurrent calls do not mix."""
    provider, finished = spans
    own = provider.get_tracer("application").start_as_current_span

    class Client(Provider):
        async def send(self, request):
            with own("http request"):
                return await super().send(request)

    class Looking(Twice):
        async def call(self, inputs: Query) -> Answer:
            with own("database query"):
                await asyncio.sleep(0)
            return await super().call(inputs)

    module = Looking()
    module.left = sm.Generator(Answer, language_model=sm.LanguageModel("mistral/large", adapter=Client()))
    with sm.hooks(sm.hooks_lib.OpenTelemetry(provider)), own("request"):
        from opentelemetry import trace

        before = trace.get_current_span()
        await asyncio.gather(*(module(Query(question="Why?")) for _ in range(5)))
        await module(Query(question="Why?"))
        assert trace.get_current_span() is before
    by_id = {span.context.span_id: span for span in finished()}
    above = Counter((span.name, by_id[span.parent.span_id].name) for span in by_id.values() if span.parent)
    assert above["database query", "invoke_workflow looking"] == 6
    assert above["http request", "chat large"] == 6
    assert len({span.context.trace_id for span in by_id.values()}) == 1


def test_without_the_package_the_hook_says_what_to_install(monkeypatch):
    """Told when it is made."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(sm.errors.ConfigError, match=r"pip install 'synmod-lm\[otel\]'"):
        sm.hooks_lib.OpenTelemetry()
