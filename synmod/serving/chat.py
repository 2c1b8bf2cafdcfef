"""Programs as models of OpenAI's chat completions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod import lm
from synmod.data import dump_json
from synmod.leaves import is_array, is_object

from .endpoints import ServedProgram, outputs_json
from .exchange import Exchange
from .refusals import Refusal

if TYPE_CHECKING:
    from .app import Application


async def list_models(app: Application, exchange: Exchange, _name: str | None) -> None:
    """Answer with the programs that take a conversation."""
    names = [name for name, endpoint in app.programs.items() if endpoint.chat_field is not None]
    models = [{"id": name, "object": "model", "created": 0, "owned_by": "synmod"} for name in names]
    await exchange.answer(200, {"object": "list", "data": models})


async def answer_chat(app: Application, exchange: Exchange, _name: str | None) -> None:
    """Answer a chat completion, in one body or streamed."""
    app.check_room()
    body = await exchange.read_json(app.max_body)
    if not is_object(body):
        raise Refusal(400, "The body is not an object.")
    endpoint = app.find(exchange, body.get("model"))
    inputs = _read_conversation(endpoint, body)
    reply = _Reply(exchange, endpoint, await find_text_field(endpoint) if body.get("stream") else None)
    if not body.get("stream"):
        outputs = await exchange.run_attended(lambda: app.call(exchange, endpoint, inputs))
        await exchange.answer(200, reply.whole(content_of(outputs)))
        return

    async def stream() -> None:
        async with app.place(exchange), lm.stream(endpoint.call, inputs) as source:
            async for chunk in exchange.read_patiently(source):
                if text := reply.next_text(chunk):
                    await exchange.send_event("", reply.piece({"content": text}))
        if rest := reply.rest(content_of(source.result)):
            await exchange.send_event("", reply.piece({"content": rest}))

    await exchange.run_attended(stream)
    await exchange.send_event("", reply.piece({}, finish_reason="stop"))
    options = body.get("stream_options")
    if is_object(options) and options.get("include_usage"):
        await exchange.send_event("", {**reply.head("chat.completion.chunk"), "choices": [], "usage": reply.usage()})
    await exchange.send_raw_event(b"data: [DONE]\n\n")
    await exchange.end_events()


def _read_conversation(endpoint: ServedProgram, body: Mapping[str, Any]) -> Any:
    """Return the inputs of a program from the body of a request.

    Raises:
        Refusal: It asks for what a program does not do, or its conversation does not fit.
    """
    response_format: Any = body.get("response_format") or {"type": "text"}
    refused = {name: body.get(name) for name in ("tools", "functions")}
    refused["n"] = body.get("n") not in (None, 1)
    refused["response_format"] = not is_object(response_format) or response_format.get("type") != "text"
    if names := [name for name, value in refused.items() if value]:
        raise Refusal(400, f"A program decides this itself: leave out {', '.join(names)}.")
    if endpoint.chat_field is None:
        raise Refusal(400, f"The program {endpoint.name!r} takes no conversation; POST its inputs to /call.")
    messages = body.get("messages")
    if not (is_array(messages) and messages and all(map(is_object, messages))):
        raise Refusal(400, "messages must be a list of turns that is not empty.")
    text: Any = messages
    if endpoint.chat_field:
        turns = [turn for turn in messages if turn.get("role") == "user"]
        if not turns:
            raise Refusal(400, "messages has no turn of the user.")
        text = turns[-1].get("content")
        if is_array(text):
            parts: list[Any] = [part.get("text") if is_object(part) else None for part in text]
            if not all(isinstance(part, str) for part in parts):
                raise Refusal(400, f"The program {endpoint.name!r} takes text alone: leave out images and other parts.")
            text = "".join(parts)
    return endpoint.take_inputs({endpoint.chat_field or "messages": text})


def content_of(outputs: Any) -> str:
    """Return what a program returned as the content of a reply: its only text, or all of it as JSON."""
    json = outputs_json(outputs)
    if is_object(json):
        texts = [json["content"]] if json.get("role") == "assistant" else [*json.values()] if len(json) == 1 else []
        if texts and isinstance(texts[0], str):
            return texts[0]
        if is_array(messages := json.get("messages")) and messages and is_object(messages[-1]):
            return content_of(messages[-1])
    return json if isinstance(json, str) else dump_json(json)


async def find_text_field(endpoint: ServedProgram) -> str | None:
    """Return the field of the outputs that is the content; "" for that of a turn, None if it is not one text."""
    fields = (await endpoint.output_schema()).get("properties", {})
    if {"role", "content"} <= fields.keys():
        return ""
    name = next(iter(fields), None)
    return name if len(fields) == 1 and fields[name].get("type") == "string" else None


class _Reply:
    """The reply to one request: its records, and how much of its text was sent.

    Args:
        exchange: The request and its answer.
        endpoint: The program that answers.
        field: As `find_text_field` returns it.
    """

    def __init__(self, exchange: Exchange, endpoint: ServedProgram, field: str | None = None) -> None:
        self._exchange, self._model, self._created = exchange, endpoint.name, int(time.time())
        self._field = field
        self._final = {path for path, is_final in endpoint.answering.items() if is_final}
        self._sent = ""
        self._call: str | None = None  # the call whose text is passed on

    def head(self, kind: str) -> dict[str, Any]:
        """Return the members that every record has."""
        about = {"id": f"chatcmpl-{self._exchange.request_id}", "object": kind}
        return {**about, "created": self._created, "model": self._model}

    def usage(self) -> dict[str, int]:
        """Return the usage of the call."""
        usage = self._exchange.usage
        prompt, completion = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def whole(self, content: str) -> dict[str, Any]:
        """Return the body of a reply that is not streamed."""
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self.head("chat.completion"), "choices": [choice], "usage": self.usage()}

    def piece(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        """Return a record of a streamed reply."""
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish_reason, "logprobs": None}
        return {**self.head("chat.completion.chunk"), "choices": [choice]}

    def next_text(self, chunk: lm.LMChunk) -> str:
        """Return what a piece adds to the content; "" where its call need not be the answer."""
        if self._field is None or chunk.path not in self._final or self._call not in (None, chunk.call_id):
            return ""
        text: Any = self._sent + chunk.text
        if self._field:
            text = chunk.partial.get(self._field) if is_object(chunk.partial) else None
        if not isinstance(text, str) or not text.startswith(self._sent):
            return ""
        self._call, new, self._sent = chunk.call_id, text[len(self._sent) :], text
        return new

    def rest(self, content: str) -> str:
        """Return the content that was not sent yet.

        Raises:
            Refusal: The text sent so far is not its beginning.
        """
        if not content.startswith(self._sent):
            raise Refusal(500, "The program changed its answer after a part of it was sent.")
        return content[len(self._sent) :]
