"""Calls over HTTP: what goes in, what comes out, and each failure as its status."""

import asyncio
import json

import pytest

import synmod as sm
from synmod.leaves import remember_secrets
from synmod.testing import ScriptedLM
from tests.serving.client import Client, Question, Waiting, answering, echo, get, post, until


@sm.register(package="serving_tests")
class Pair(sm.DataModel):
    """Two numbers."""

    left: int
    right: int = 2


async def test_a_call_returns_its_outputs_and_its_usage():
    """JSON in, JSON out; a request id and the usage stand in the headers."""
    app = sm.serve(answering(lambda text: json.dumps({"answer": text})))
    x = await post(app, "/call", {"text": "ünï"}, headers={"x-request-id": "mine-1"})
    assert (x.status, x.json) == (200, {"answer": "ünï"})
    assert x.answer_headers["x-request-id"] == "mine-1"
    assert x.usage["calls"] == 1
    assert x.usage["prompt_tokens"] > 0


@pytest.mark.parametrize("sent", ["", "a b", "x" * 129, "a\x00b", "ä"])
async def test_a_bad_request_id_is_replaced(sent):
    """Only 1 to 128 plain characters are taken over."""
    x = await post(sm.serve(echo()), "/call", {"text": "x"}, headers={"x-request-id": sent})
    assert len(x.answer_headers["x-request-id"]) == 32


async def test_several_programs_have_names():
    """The first one answers without a name; an unknown name is a 404 with the nearest one."""
    app = sm.serve({"desk": echo(), "other": answering(lambda _: '{"answer": "1"}')})
    assert (await post(app, "/call", {"text": "x"})).json == {"text": "x"}
    assert (await post(app, "/call/other", {"text": "x"})).json == {"answer": "1"}
    x = await post(app, "/call/dask", {"text": "x"})
    assert x.status == 404
    assert "Did you mean 'desk'" in x.json["detail"]


async def test_several_inputs_are_an_object():
    """A program with several Inputs takes them by name; defaults may be left out."""
    left, right = sm.Input(Question, name="left"), sm.Input(Pair, name="right")
    app = sm.serve(sm.Program(inputs=[left, right], outputs=[left, right], name="both"))
    body = {"left": {"text": "x"}, "right": {"left": 1}}
    x = await post(app, "/call", body)
    assert x.status == 200
    assert x.json[0] == {"text": "x"}
    x = await post(app, "/call", {"left": {"text": "x"}})
    assert x.status == 422
    x = await post(app, "/call", {**body, "right": {"left": "one"}})
    assert [fault["pointer"] for fault in x.json["errors"]] == ["/right/left"]


async def test_a_program_that_declares_nothing_takes_any_object():
    """Its inputs become data without a schema."""
    x = await post(sm.serve(sm.Identity()), "/call", {"a": [1, None]})
    assert x.json == {"a": [1, None]}
    assert (await post(sm.serve(sm.Identity()), "/call", [1])).status == 422


async def test_none_is_null():
    """A program whose output is missing returns null."""
    nothing = sm.Sequential([sm.Input(Question), sm.Lambda(lambda inputs: None)])
    x = await post(sm.serve(nothing), "/call", {"text": "x"})
    assert (x.status, x.content) == (200, b"null")


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (400, b"", {}),
        (400, b"{", {}),
        (400, b'{"text": NaN}', {}),
        (400, b'{"text": "\\ud800"}', {}),
        (400, b'{"text": "a", "text": "b"}', {}),
        (400, b"\xff\xfe", {}),
        (400, b"[" * 4_000, {}),
        (413, b'{"text": "' + b"a" * 5_000 + b'"}', {}),
        (413, b"{}", {"content-length": "9" * 30}),
        (415, b'{"text": "x"}', {"content-type": "text/plain"}),
        (415, b'{"text": "x"}', {"content-type": None}),
        (422, b"[]", {}),
        (422, b'"x"', {}),
        (422, b'{"text": 1}', {}),
        (422, b'{"text": "x", "more": 1}', {}),
    ],
)
async def test_what_is_not_a_call_gets_its_status(status, body, headers):
    """Hostile and mistaken bodies; the answer is a problem of RFC 9457."""
    x = await post(sm.serve(echo(), max_body=4_096), "/call", body, headers=headers)
    assert x.status == status
    assert x.answer_headers["content-type"] == "application/problem+json"
    assert x.json["status"] == status
    assert x.json["request_id"] == x.answer_headers["x-request-id"]


async def test_a_misfit_names_pointer_wanted_and_got():
    """The client learns what to change."""
    x = await post(sm.serve(echo()), "/call", {"text": 1})
    assert x.json["errors"] == [{"pointer": "/text", "wanted": "string", "got": "1"}]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/call", 405), ("PUT", "/stream", 405), ("GET", "/x", 404)]
)
async def test_paths_and_methods(method, path, status):
    """An unknown path is a 404, another method a 405 that names the right ones."""
    x = await Client(method, path).ask(sm.serve(echo()))
    assert x.status == status
    assert ("allow" in x.answer_headers) == (status == 405)


def failing(error):
    """A program whose model, or whose code, raises."""
    if isinstance(error, sm.ModelError):
        return answering(lambda _: error, attempts=1)

    def fail(inputs: Question) -> Question:
        raise error

    return sm.Sequential([sm.Input(Question), sm.Lambda(fail)], name="failing")


SECRET = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError(SECRET), 500),
        (sm.SchemaError(SECRET), 500),
        (KeyError(SECRET), 500),
        (sm.GuardError("Guard: the inputs are blocked"), 422),
        (sm.AuthError(SECRET, provider_message=SECRET), 502),
        (sm.RateLimitError(SECRET), 502),
        (sm.ModelTimeout(SECRET), 502),
    ],
)
async def test_a_failure_of_the_program_is_never_a_200(error, status, caplog):
    """Its text goes to the log with the request id, not to the client."""
    x = await post(sm.serve(failing(error)), "/call", {"text": "x"})
    assert x.status == status
    assert SECRET not in x.content.decode()
    assert "Traceback" not in x.content.decode()
    if status >= 500:
        assert x.answer_headers["x-request-id"] in caplog.text


@pytest.mark.parametrize("level", ["ERROR", "DEBUG"])
async def test_a_key_in_the_line_that_failed_is_not_in_the_log(caplog, level):
    """The log shows the line of the user's module, the whole traceback at DEBUG, with `***` for a key in use."""
    caplog.set_level(level, "synmod.serving")
    remember_secrets(["sk-of-the-line-77"])

    def fail(inputs: Question) -> Question:
        raise ValueError("no luck" if "sk-of-the-line-77" else "")

    await post(sm.serve(sm.Sequential([sm.Input(Question), sm.Lambda(fail)])), "/call", {"text": "x"})
    assert 'if "***" else' in caplog.text
    assert ("Traceback" in caplog.text) == (level == "DEBUG")
    assert "sk-of-the-line" not in caplog.text


async def test_outputs_that_json_lacks_are_a_500(caplog):
    """The log names the place and what to write instead."""

    def fail(inputs: Question) -> Pair:
        return {"left": float("nan"), "right": 1}

    x = await post(sm.serve(sm.Sequential([sm.Input(Question), sm.Lambda(fail)])), "/call", {"text": "x"})
    assert (x.status, x.answer_headers["content-type"]) == (500, "application/problem+json")
    assert "/left: nan (type float) is not JSON: write None or a string." in caplog.text


async def test_the_budget_of_a_request_is_a_422_and_a_programs_own_is_a_500():
    """Each request has its own budget."""
    app = sm.serve(answering(lambda _: '{"answer": "1"}'), budget={"calls": 1})
    assert [(await post(app, "/call", {"text": "x"})).status for _ in range(3)] == [200] * 3
    app = sm.serve(answering(lambda _: '{"answer": "1"}'), budget={"calls": 0})
    assert (await post(app, "/call", {"text": "x"})).status == 422
    assert (await post(sm.serve(failing(sm.BudgetExceeded("own"))), "/call", {"text": "x"})).status == 500


async def test_a_call_runs_in_the_context_of_its_request():
    """Middleware around the application may open blocks."""
    app = sm.serve(answering(lambda _: '{"answer": "real"}'))

    async def with_double(scope, receive, send):
        with sm.use_language_models(ScriptedLM(['{"answer": "double"}'])):
            await app(scope, receive, send)

    assert (await post(with_double, "/call", {"text": "x"})).json == {"answer": "double"}


async def test_the_deadline_is_a_504():
    """It covers the program, the queue and a body that does not arrive."""
    program = Waiting()
    app = sm.serve(program, timeout_s=0.01, concurrency=1)
    assert (await post(app, "/call", {"text": "x"})).status == 504
    assert program.counts["cancelled"] == 1

    async def slow_body():
        yield b'{"te'
        await program.gate.wait()

    assert (await post(app, "/call", parts=slow_body())).status == 504
    assert program.counts["begun"] == 1


async def test_it_can_be_mounted():
    """The path is read below the place where it is mounted."""
    app = sm.serve(echo())
    assert (await post(app, "/call", {"text": "x"}, root_path="/ai")).json == {"text": "x"}


async def test_the_description_and_the_numbers():
    """OpenAPI from the schemas; Prometheus counts requests, seconds, tokens and cost."""
    app = sm.serve(answering(lambda _: '{"answer": "1"}', price=(1.0, 1.0)), title="Desk")
    await post(app, "/call", {"text": "x"})
    await post(app, "/call", {"text": 1})
    about = (await get(app, "/openapi.json")).json
    assert about["info"]["title"] == "Desk"
    assert about["components"]["schemas"]["desk.inputs"]["properties"]["text"]["type"] == "string"
    assert about["components"]["schemas"]["desk.outputs"]["properties"]["answer"]["type"] == "string"
    numbers = (await get(app, "/metrics")).content.decode()
    assert 'synmod_requests_total{program="desk",route="/call",status="200"} 1\n' in numbers
    assert 'synmod_requests_total{program="desk",route="/call",status="422"} 1\n' in numbers
    assert "synmod_request_seconds_count 3\n" in numbers
    assert 'synmod_tokens_total{kind="prompt"} 0\n' not in numbers
    assert "synmod_cost_usd_total 0\n" not in numbers
    assert "synmod_in_flight 0\n" in numbers


async def test_health_readiness_and_going_down():
    """A server that goes down refuses new calls, and cancels the rest when it is told to."""
    program = Waiting()
    app = sm.serve(program)
    client = Client("POST", "/call", {"text": "x"})
    task = asyncio.create_task(client.ask(app))
    await until(lambda: program.counts["begun"])
    assert [(await get(app, path)).status for path in ("/health", "/ready")] == [200, 200]
    app.begin_to_stop()
    assert [(await get(app, path)).status for path in ("/health", "/ready")] == [200, 503]
    assert (await post(app, "/call", {"text": "x"})).status == 503
    app.cancel_rest()
    await task
    assert client.status == 503
    assert program.counts == {"begun": 1, "cancelled": 1, "done": 0}
    assert not app.in_flight


async def test_a_server_is_not_ready_without_the_connections_of_its_models():
    """A file holds none of a local model; a stand-in of the request's context is one."""
    model = sm.LanguageModel("openai/house", api_base="http://127.0.0.1:9/v1")
    saved = sm.dumps(sm.Sequential([sm.Input(Question), sm.Generator({"answer": str}, language_model=model)]))
    app = sm.serve({"desk": sm.loads(saved)})
    x = await get(app, "/ready")
    assert (x.status, "'desk'" in x.json["detail"]) == (503, True)
    with sm.use_language_models(ScriptedLM([])):
        assert (await get(app, "/ready")).status == 200
    assert (await get(sm.serve(sm.loads(saved, language_models=model)), "/ready")).status == 200


async def test_hooks_receive_every_call():
    """The hooks of `serve` are installed around each call; a request's span is the parent of the program's."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = sm.serve(echo(), hooks=[sm.hooks_lib.OpenTelemetry(provider)])
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await post(app, "/call", {"text": "x"}, headers={"traceparent": parent})
    spans = {span.name: span for span in exporter.get_finished_spans()}
    request, workflow = spans["POST /call"], spans["invoke_workflow echo"]
    assert f"{request.context.trace_id:032x}" == parent.split("-")[1]
    assert f"{request.parent.span_id:016x}" == parent.split("-")[2]
    assert workflow.parent.span_id == request.context.span_id


@pytest.mark.parametrize(
    ("program", "options", "match"),
    [
        ({}, {}, "got no program"),
        ({"a b": echo()}, {}, "a b"),
        ("desk.json", {}, "wanted a program"),
        (echo(), {"hosts": "shop.example"}, "write a list"),
        (echo(), {"token": ""}, "not empty"),
        (echo(), {"token": True}, "False for none"),
        (echo(), {"concurrency": 0}, "concurrency"),
        (echo(), {"hooks": ["x"]}, "sm.Hook"),
        (echo(), {"budget": {"cals": 1}}, "Did you mean 'calls'"),
        (echo(), {"port": 1}, "unknown keyword 'port'"),
    ],
)
def test_mistakes_are_found_when_the_application_is_made(program, options, match):
    """Each is an ArgumentError that names the fix."""
    with pytest.raises(sm.ArgumentError, match=match):
        sm.serve(program, **options)
