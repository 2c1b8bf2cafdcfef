"""What is asked of the door to litellm, in a process of its own: prints one JSON object of what happened.

Only the loopback is ever spoken to. Run by `test_door.py`.
"""

import asyncio
import json
import logging
import os
import socket
import sys
import threading
import time
import warnings
from pathlib import Path

warnings.simplefilter("error")
sys.path[:0] = [str(Path(__file__).parent)]

from loopback import Answer, Loopback, completion, failure  # noqa: E402

from synmod.errors import SynmodError  # noqa: E402
from synmod.lm import (  # noqa: E402
    ENVIRONMENT,
    LanguageModel,
    LMReply,
)

_LOOK_UP = socket.getaddrinfo


def loopback_only(host, *args, **kwargs):
    """Look up no address but the loopback: nothing here may leave this machine."""
    if host not in ("127.0.0.1", "localhost"):
        raise OSError(f"{host!r} was to be reached")
    return _LOOK_UP(host, *args, **kwargs)


socket.getaddrinfo = loopback_only

SECRET = "sk-environment-secret-"
GIVEN = "sk-given-secret-key-1"
ANSWER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
THOUGHT = {"type": "object", "properties": {"thinking": {"type": "string"}, "a": {"type": "integer"}},
           "required": ["thinking", "a"]}  # fmt: skip
THINKING = {"reasoning_field": "thinking"}
OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}, "title": "My Answer!"}

EVERY = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 3,
    "max_tokens": 5,
    "stop": ["a"],
    "seed": 7,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "logit_bias": {"1": 2},
    "logprobs": True,
    "top_logprobs": 2,
    "reasoning_effort": "low",
    "verbosity": "low",
    "parallel_tool_calls": False,
    "modalities": ["text"],
    "service_tier": "auto",
}
CLAUDE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "content": [{"type": "text", "text": "hi"}],
    "usage": {"input_tokens": 3, "output_tokens": 2},
}


def held_by(error):
    """Every local variable of our frames of a traceback, as text."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename != __file__:
            frames.append(repr(trace.tb_frame.f_locals))
        trace = trace.tb_next
    return " ".join(frames)


def told(error):
    """An error as JSON."""
    return {
        "leaks": GIVEN in held_by(error) or SECRET in held_by(error),
        "class": type(error).__name__,
        "text": str(error),
        "status": error.status,
        "attempts": error.attempts,
        "retry_after_s": error.retry_after_s,
        "request_id": error.request_id,
        "provider_message": error.provider_message,
        "reason": getattr(error, "reason", None),
        "transient": error.transient,
        "chained": error.__cause__ is not None or error.__context__ is not None,
    }


async def ask(answers, *, model="openai/some-model", call=None, schema=None, messages="Hi", path="/v1", **given):
    """Ask a server once; give what came back and what it saw."""
    with Loopback(answers) as server:
        base = server.base.removesuffix("/v1") + path
        about = {"api_base": base, "api_key": GIVEN, "attempts": 1} | given
        lm = LanguageModel(model, **about)
        try:
            got = await lm(messages, schema, **(call or {}))
        except SynmodError as error:
            got = error
        seen = [{"path": one.path, "headers": {k.lower(): v for k, v in one.headers.items()}, "body": one.body}
                for one in server.seen]  # fmt: skip
    if isinstance(got, LMReply):
        result = {"text": got.text, "json": got.json, "finish_reason": got.finish_reason, "model": got.model,
                  "request_id": got.request_id, "reasoning": got.reasoning, "cost": got.usage.cost_usd,
                  "usage": [got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.cached_tokens,
                            got.usage.reasoning_tokens], "estimated": got.usage.estimated}  # fmt: skip
    else:
        result = told(got)
    return {"result": result, "seen": seen, "count": len(seen)}


async def answers_to(questions):
    """Ask several at once, by name."""
    return dict(zip(questions, await asyncio.gather(*questions.values()), strict=True))


async def many_keys():
    """Refuse twenty keys at once, each with its own key in the text."""
    keys = iter(range(100_000, 200_000))
    with Loopback([failure(401, "bad key {authorization}")]) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key=lambda: f"rotating-key-{next(keys)}", attempts=1)
        got = await asyncio.gather(*[lm("x") for _ in range(20)], return_exceptions=True)
        return {"result": told(got[0]), "seen": [], "count": len(server.seen),
                "leaked": sum("rotating-key-1" in f"{one} {one.provider_message}" for one in got)}  # fmt: skip


async def statuses():
    """Every status of the table of failures."""
    found = {}
    for status in (
        301,
        302,
        307,
        400,
        401,
        402,
        403,
        404,
        405,
        408,
        409,
        413,
        415,
        418,
        422,
        425,
        429,
        500,
        501,
        502,
        503,
        504,
        529,
    ):
        found[str(status)] = ask([failure(status, f"said {status}")])
    redirect = Answer(302, {}, {"location": "http://127.0.0.1:9/elsewhere"})
    found["redirect"] = ask([redirect])
    found["quota"] = ask([failure(429, "You exceeded your current quota", code="insufficient_quota")])
    found["quota-code"] = ask([failure(429, "no more", code="insufficient_quota")])
    found["quota-minute"] = ask([failure(429, "You exceeded your current quota. Please retry in 3 s.")])
    found["payment-link"] = ask([failure(429, "Rate limit reached. Add a card at https://example.com/billing")])
    found["retry-after"] = ask([failure(429, "slow", retry_after="7", x_request_id="req-1")])
    found["unavailable-retry-after"] = ask([failure(503, "soon", retry_after="3")])
    found["context-code"] = ask([failure(400, "no", code="context_length_exceeded")])
    found["context-text"] = ask([failure(400, "This model's maximum context length is 10 tokens")])
    found["context-413"] = ask([failure(413, "prompt is too long")])
    found["echo"] = ask([failure(401, f"bad key {GIVEN} and {SECRET}openai and token-of-header")],
                              headers={"X-Token": "token-of-header"})  # fmt: skip
    for before in (1_484, 1_492):
        found[f"cut-{before}"] = ask([failure(400, "y" * before + GIVEN)])
        found[f"cut-{before + 500}"] = ask([failure(400, "y" * (before + 500) + GIVEN)])
    found["filter-code"] = ask([failure(400, "no", code="content_filter")])
    found["rotating-echo"] = many_keys()
    found["long"] = ask([failure(400, "x" * 10_000)])
    found["no-v1"] = ask([failure(404, "not found")], path="")
    return await answers_to(found)


async def bodies():
    """Replies, good and bad."""
    return await answers_to(
        {
            "text": ask([completion("hello")]),
            "html": ask([Answer(200, raw=b"<html>hello</html>")]),
            "nothing": ask([Answer(200, raw=b"")]),
            "no-choices": ask([Answer(200, {"id": "x", "object": "chat.completion", "choices": []})]),
            "list": ask([Answer(200, raw=b"[1]")]),
            "cut-body": ask([Answer(200, completion().body, cut=True)]),
            "null": ask([completion(None)]),
            "length": ask([completion("half", finish_reason="length")]),
            "filter": ask([completion("", finish_reason="content_filter")]),
            "refusal": ask([completion(None, refusal="I cannot")]),
            "reasoning": ask([completion("x", reasoning_content="because")]),
            "thought": ask([completion('{"a": 1}', reasoning_content="because")], schema=THOUGHT, call=THINKING),
            "thought-native": ask(
                [completion('{"a": 1}', reasoning_content="because")],
                schema=THOUGHT,
                call=THINKING,
                model="deepseek/deepseek-reasoner",
                adapter="litellm",
            ),
            "no-usage": ask([completion("x" * 30, usage=(0, 0))], messages="y" * 9),
            "fenced": ask([completion('```json\n{"a": 1}\n```')], schema=ANSWER),
            "repaired": ask([completion("prose"), completion('{"a": 1}')], schema=ANSWER, attempts=2),
            "retried": ask(
                [failure(500, retry_after="0"), failure(503, retry_after="0"), completion("third")], attempts=3
            ),
            "lasting": ask([failure(500, retry_after="0")], attempts=3),
        }
    )


async def requests():
    """What is sent."""
    ok = [completion('{"a": 1}')]
    told_already = [
        {"role": "system", "content": "<output_schema>{}</output_schema>"},
        {"role": "user", "content": "x"},
    ]
    rotating = iter(["one-key-1", "two-key-2"]).__next__
    found = {
        "plain": ask(ok, headers={"X-Mine": "yes"}, extra_body={"guided": {"x": 1}}, temperature=0.5),
        "no-key": ask(ok, api_key=None),
        "every": ask(ok, call=EVERY, model="openai/gpt-4o"),
        "strict": ask(ok, schema=ANSWER),
        "open": ask(ok, schema=OPEN),
        "json": ask(ok, schema=ANSWER, structured="json"),
        "prompt": ask(ok, schema=ANSWER, structured="prompt"),
        "call-level": ask(ok, schema=ANSWER, call={"structured": "prompt"}),
        "told": ask(ok, schema=ANSWER, structured="prompt", messages=told_already),
        "refused-field": ask([failure(400, "unknown field response_format")], schema=ANSWER),
        "rotating": ask([failure(500, retry_after="0"), completion("x")], attempts=2, api_key=rotating),
        "newline": ask(ok, api_key=GIVEN + "\n"),
        "two-lines": ask(ok, api_key="one\ntwo"),
        "no-ascii": ask(ok, api_key=lambda: "clé"),
        "native": ask([Answer(200, CLAUDE)], model="anthropic/claude-x", adapter="litellm", api_key=None),
    }
    for model in ("vllm/m", "hosted_vllm/m", "ollama/m", "lm_studio/m", "llamafile/m", "anthropic/claude-x", "groq/m"):
        found[model] = ask([completion("x")], model=model, api_key=None)
    return await answers_to(found)


async def failed(lm):
    """Ask once what fails, and tell how long that took."""
    began = time.monotonic()
    try:
        await lm("x")
    except SynmodError as error:
        return told(error) | {"elapsed_s": time.monotonic() - began}


async def times():
    """Time limits, cancelling, and what is left in the loop."""
    with Loopback([Answer(200, completion().body, delay_s=5)]) as server:
        found = await answers_to(
            {
                "call": failed(LanguageModel("openai/m", api_base=server.base, timeout_s=0.3)),
                "attempt": failed(LanguageModel("openai/m", api_base=server.base, attempt_timeout_s=0.2, attempts=2)),
                "refused": failed(LanguageModel("openai/m", api_base="http://127.0.0.1:9/v1", attempts=2)),
            }
        )
        server.broken.clear()
        task = asyncio.create_task(LanguageModel("openai/m", api_base=server.base)("x"))
        await asyncio.sleep(0.3)
        task.cancel()
        began = time.monotonic()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.to_thread(server.broken.wait, 1)
        found["cancelled"] = {"seconds": time.monotonic() - began, "broken": server.broken.is_set()}
    return found


async def closing():
    """`aclose` ends what litellm left in the loop, and the model still works."""
    found = {}
    with Loopback([completion("x")]) as server:
        lm = LanguageModel("openai/m", api_base=server.base)
        await lm("x")
        found["before"] = len(asyncio.all_tasks())
        await lm.aclose()
        found["after"] = len(asyncio.all_tasks())
        found["again"] = (await lm("x")).text
        await asyncio.gather(*[lm("x") for _ in range(30)])
        found["count"] = len(server.seen)
    found["tokens"] = await LanguageModel("openai/gpt-4o", api_key="x").count_tokens("Hello, how are you?")
    found["estimated"] = await LanguageModel("vllm/m").count_tokens("Hello, how are you?")
    return found


async def before_import():
    """What must not import litellm, or is refused before anything leaves."""
    found = {}
    for model in ("openai/m", "anthropic/m"):
        try:
            await LanguageModel(model)("x")
        except SynmodError as error:
            found[model] = told(error)
    await LanguageModel("embedded/nearest")("x")
    found["imported"] = "litellm" in sys.modules
    return found


async def refused_before_sending():
    """What litellm itself knows cannot work; no address is ever asked."""
    found = {}
    for name, lm in {
        "azure": LanguageModel("azure/m"),
        "unknown": LanguageModel("no_such_provider/m"),
        "ability": LanguageModel("openai/gpt-4o", api_key="x", reasoning_effort="low"),
        "top_k": LanguageModel("openai/gpt-4o", api_key="x", top_k=3),
    }.items():
        try:
            await lm("x")
        except SynmodError as error:
            found[name] = told(error)
    return found


def classes():
    """Exception classes of litellm, and whether each is mapped by its own name."""
    import litellm.exceptions as module

    from synmod.lm import BY_CLASS

    named = {name: one for name, one in vars(module).items() if isinstance(one, type)}
    own = [name for name, one in named.items() if issubclass(one, BaseException) and one.__module__ == module.__name__]
    return {
        "mapped": [name for name in own if name in BY_CLASS],
        "unmapped": [name for name in own if name not in BY_CLASS],
    }


def state():
    """What the import left behind."""
    import litellm

    names = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
    return {
        "handlers": [[type(handler).__name__ for handler in logging.getLogger(name).handlers] for name in names],
        "suppress": litellm.suppress_debug_info,
        "drop_params": litellm.drop_params,
        "callbacks": [litellm.success_callback, litellm.failure_callback, litellm.callbacks],
        "mode": os.environ["LITELLM_MODE"],
        "map": os.environ["LITELLM_LOCAL_MODEL_COST_MAP"],
        "filters": [str(one) for one in warnings.filters if "litellm" in str(one)],
    }


def main():
    """Run everything and print it."""
    for names in ENVIRONMENT.values():
        for name in names:
            os.environ.pop(name, None)
    found = {"before_import": asyncio.run(before_import())}
    for provider, names in ENVIRONMENT.items():
        for name in names:
            os.environ[name] = SECRET + provider
    os.environ |= {
        "OPENAI_CUSTOM_HEADERS": f"X-Environment: {SECRET}header\nCookie: {SECRET}cookie",
        "OPENAI_ORG_ID": f"{SECRET}org",
        "OPENAI_PROJECT_ID": f"{SECRET}project",
        "OPENAI_ADMIN_KEY": f"{SECRET}admin",
        "ANTHROPIC_AUTH_TOKEN": f"{SECRET}auth",
        "HOSTED_VLLM_API_KEY": f"{SECRET}vllm",
        "LM_STUDIO_API_KEY": f"{SECRET}studio",
        "OLLAMA_API_KEY": f"{SECRET}ollama",
    }
    found["statuses"] = asyncio.run(statuses())
    found["bodies"] = asyncio.run(bodies())
    found["requests"] = asyncio.run(requests())
    found["times"] = asyncio.run(times())
    found["closing"] = asyncio.run(closing())
    threads = [threading.Thread(target=lambda: asyncio.run(ask([completion("x")]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "AZURE_")):
            del os.environ[name]
    found["refused"] = asyncio.run(refused_before_sending())
    found["keyless"] = asyncio.run(failed(LanguageModel("openai/m", api_key=lambda: None)))
    found["state"] = state()
    found["classes"] = classes()
    found["every"] = EVERY
    sys.stdout.write("RESULT " + json.dumps(found))


if __name__ == "__main__":
    main()
