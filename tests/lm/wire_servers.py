"""Servers of three wires on the loopback: each refuses what the real one refuses, and sends a script in its form.

A script is a reply in neutral words: `text`, `thinking`, `calls` as (id, name, arguments), `usage`, `end`.
"""

import json
from dataclasses import dataclass
from itertools import count, pairwise

from synmod.lm import LanguageModel
from synmod.wires import is_in_grammar
from tests.lm.loopback import KEY, Answer, Loopback


@dataclass
class Script:
    """What a model replies."""

    text: str = ""
    thinking: str = ""
    calls: tuple = ()
    end: str = "stop"
    read: int = 0
    written: int = 0
    reasoned: int = 0
    error: tuple | None = None  # status, code, message

    @property
    def prompt(self):
        return 100 + self.read + self.written


def pieces(text, size=3):
    """A text in pieces."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def compact(json_value):
    """JSON without spaces, as models write it."""
    return json.dumps(json_value, separators=(",", ":"))


def require(holds, what):
    """Refuse a request."""
    if not holds:
        raise ValueError(what)


class Wire(Loopback):
    """A server that checks each request, and answers with the next script, whole or as a stream."""

    path = ""
    settings: dict = {}

    def __init__(self, *scripts):
        super().__init__()
        self.scripts = list(scripts)
        self.tokens = count()
        self.signed = []  # what was handed out and must come back unchanged

    def model(self, **given):
        return LanguageModel(api_base=self.base, api_key=KEY, attempts=1, **{**self.settings, **given})

    async def handle(self, request):
        body = json.loads(await request.read())
        try:
            require(request.path == f"/v1{self.path}", f"no such path {request.path}")
            self.check(body, request.headers)
        except ValueError as error:
            self.answers = [Answer(400, self.failure("invalid_request_error", str(error)))]
            return await super().handle(request)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        if script.error is not None:
            status, code, text = script.error
            self.answers = [Answer(status, self.failure(code, text))]
        elif body.get("stream"):
            whole = b"".join(self.events(script))
            self.answers = [Answer(packets=tuple(whole[at : at + 17] for at in range(0, len(whole), 17)))]
        else:
            self.answers = [Answer(200, self.reply(script))]
        return await super().handle(request)

    def sign(self, thinking):
        """A signature that the next request must bring back."""
        signature = f"SIG{next(self.tokens)}-{thinking}"
        self.signed.append(signature)
        return signature


def event(record, name=None):
    """One event of a stream."""
    start = f"event: {name}\n" if name else ""
    return f"{start}data: {json.dumps(record)}\n\n".encode()


# -- chat completions --------------------------------------------------------------------------------------------------


class Chat(Wire):
    """Chat completions, as OpenAI has them; its reasoning is a field that comes back."""

    path = "/chat/completions"
    settings = {"model": "openai/m"}

    def failure(self, code, text):
        return {"error": {"message": text, "type": code, "code": code}}

    def check(self, body, headers):
        require(headers.get("authorization") == f"Bearer {KEY}", "wrong key")
        known = "model messages tools tool_choice response_format temperature max_tokens stream stream_options stop"
        require(body.keys() <= set(known.split()), f"unknown fields {body.keys()}")
        open_calls = set()
        for turn in body["messages"]:
            if turn["role"] == "tool":
                require(turn["tool_call_id"] in open_calls, "a result without a call")
                open_calls.discard(turn["tool_call_id"])
                continue
            require(not open_calls, f"calls without a result: {open_calls}")
            open_calls = {call["id"] for call in turn.get("tool_calls", ())}
            if signature := turn.get("reasoning_signature"):
                require(signature in self.signed, "the reasoning was changed")

    def message(self, script):
        calls = [
            {"id": key, "type": "function", "function": {"name": name, "arguments": compact(arguments)}}
            for key, name, arguments in script.calls
        ]
        own = {"reasoning_content": script.thinking, "reasoning_signature": self.sign(script.thinking)}
        return (
            {"role": "assistant", "content": script.text or None}
            | ({"tool_calls": calls} if calls else {})
            | (own if script.thinking else {})
        )

    def usage(self, script):
        return {
            "prompt_tokens": script.prompt, "completion_tokens": 7, "total_tokens": script.prompt + 7,
            "prompt_tokens_details": {"cached_tokens": script.read, "cache_write_tokens": script.written},
            "completion_tokens_details": {"reasoning_tokens": script.reasoned},
        }  # fmt: skip

    def finish(self, script):
        return "tool_calls" if script.calls else script.end

    def reply(self, script):
        choice = {"index": 0, "message": self.message(script), "finish_reason": self.finish(script)}
        return {"id": "r1", "object": "chat.completion", "choices": [choice], "usage": self.usage(script)}

    def events(self, script):
        def chunk(delta, **more):
            return event({"id": "r1", "choices": [{"index": 0, "delta": delta, "finish_reason": None, **more}]})

        message = self.message(script)
        yield chunk({"role": "assistant", "content": ""})
        for piece in pieces(script.thinking):
            yield chunk({"reasoning_content": piece})
        if script.thinking:
            yield chunk({"reasoning_signature": message["reasoning_signature"]})
        for piece in pieces(script.text):
            yield chunk({"content": piece})
        for index, call in enumerate(message.get("tool_calls", ())):
            yield chunk({"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]})
            for piece in pieces(call["function"]["arguments"]):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, finish_reason=self.finish(script))
        yield event({"id": "r1", "choices": [], "usage": self.usage(script)})
        yield b"data: [DONE]\n\n"


# -- messages ----------------------------------------------------------------------------------------------------------


class Messages(Wire):
    """Anthropic's messages API."""

    path = "/messages"
    settings = {"model": "anthropic/m"}

    def failure(self, code, text):
        return {"type": "error", "error": {"type": code, "message": text}, "request_id": "req_1"}

    def check(self, body, headers):
        require(headers.get("x-api-key") == KEY, "wrong key")
        require("authorization" not in headers, "a key twice")
        require(headers.get("anthropic-version") == "2023-06-01", "no version")
        known = "model max_tokens messages system tools tool_choice temperature top_p stop_sequences stream thinking "
        require(body.keys() <= {*known.split(), "output_config"}, f"unknown fields {body.keys()}")
        require(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
        messages = body["messages"]
        require(messages[0]["role"] == "user", "the first message must be of the user")
        require(all(a["role"] != b["role"] for a, b in pairwise(messages)), "roles must alternate")
        require(sum(json.dumps(part).count("cache_control") for part in body.values()) <= 4, "too many marks")
        for at, turn in enumerate(messages):
            before = messages[at - 1]["content"] if at else []
            self.check_turn(turn, [block["id"] for block in before if block["type"] == "tool_use"])
        require(messages[-1]["role"] == "user", "the last message must be of the user")
        form = body.get("output_config", {}).get("format")
        require(form is None or (set(form) == {"type", "schema"} and is_in_grammar(form["schema"])), "wrong format")
        require(all(set(tool) <= {"name", "description", "input_schema"} for tool in body.get("tools", ())), "tools")
        if body.get("thinking", {}).get("type") in ("adaptive", "enabled"):
            require(body.get("tool_choice", {}).get("type") not in ("any", "tool"), "no forced tool with thinking")
            require("temperature" not in body, "no temperature with thinking")

    def check_turn(self, turn, calls):
        results = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
        require(results == calls, f"each tool_use needs its tool_result: {calls}, {results}")
        for block in turn["content"]:
            require(block["type"] != "text" or block["text"].strip(), "text content blocks must be non-empty")
            if block["type"] == "thinking":
                require(block["signature"] in self.signed, "the signature is wrong")
                require(block["signature"].partition("-")[2] == block["thinking"], "the thinking was changed")

    def content(self, script):
        own = {"type": "thinking", "thinking": script.thinking}
        blocks = [{**own, "signature": self.sign(script.thinking)}] if script.thinking else []
        blocks += [{"type": "text", "text": script.text}] if script.text else []
        calls = [
            {"type": "tool_use", "id": key, "name": name, "input": arguments} for key, name, arguments in script.calls
        ]
        return [*blocks, *calls]

    def usage(self, script):
        return {
            "input_tokens": 100, "cache_read_input_tokens": script.read, "cache_creation_input_tokens": script.written,
            "output_tokens": 7, "output_tokens_details": {"thinking_tokens": script.reasoned},
        }  # fmt: skip

    def finish(self, script):
        words = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
        return "tool_use" if script.calls else words[script.end]

    def reply(self, script):
        about = {"id": "r1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
        content = {"content": self.content(script), "usage": self.usage(script)}
        return {**about, **content, "stop_reason": self.finish(script)}

    def events(self, script):
        def named(kind, **record):
            return event({"type": kind, **record}, kind)

        usage = self.usage(script)
        started = {
            "id": "r1",
            "type": "message",
            "role": "assistant",
            "content": [],
            "usage": {**usage, "output_tokens": 1},
        }
        yield named("message_start", message=started)
        yield named("ping")
        for index, block in enumerate(self.content(script)):
            kind, empty = block["type"], {"text": "", "thinking": "", "input": {}, "signature": ""}
            yield named(
                "content_block_start", index=index, content_block=block | {k: empty[k] for k in block if k in empty}
            )
            key = {"text": "text", "thinking": "thinking", "tool_use": "partial_json"}[kind]
            text = compact(block["input"]) if kind == "tool_use" else block[key]
            delta = "input_json_delta" if kind == "tool_use" else f"{kind}_delta"
            for piece in pieces(text):
                yield named("content_block_delta", index=index, delta={"type": delta, key: piece})
            if kind == "thinking":
                signature = {"type": "signature_delta", "signature": block["signature"]}
                yield named("content_block_delta", index=index, delta=signature)
            yield named("content_block_stop", index=index)
        ending = {"stop_reason": self.finish(script), "stop_sequence": None}
        counts = {name: usage[name] for name in ("output_tokens", "output_tokens_details")}
        yield named("message_delta", delta=ending, usage=counts)
        yield named("message_stop")


# -- responses ---------------------------------------------------------------------------------------------------------


class Responses(Wire):
    """OpenAI's responses API."""

    path = "/responses"
    settings = {"model": "openai/m", "adapter": "responses"}

    def failure(self, code, text):
        return {"error": {"message": text, "type": code, "param": None, "code": code}}

    def check(self, body, headers):
        require(headers.get("authorization") == f"Bearer {KEY}", "wrong key")
        known = "model input store include tools tool_choice text temperature max_output_tokens stream reasoning"
        require(body.keys() <= set(known.split()), f"unknown fields {body.keys()}")
        require(body["store"] is False, "this account stores nothing")
        calls = set()
        for item in body["input"]:
            kind = item.get("type", "message")
            if kind == "reasoning":
                require("reasoning.encrypted_content" in body.get("include", ()), "no include")
                require(item["encrypted_content"] in self.signed, "the reasoning was changed")
            elif kind == "function_call":
                calls.add(item["call_id"])
            elif kind == "function_call_output":
                require(item["call_id"] in calls, "an output without a call")
                calls.discard(item["call_id"])
            else:
                kinds = {"output_text"} if item["role"] == "assistant" else {"input_text", "input_image", "input_file"}
                require({part["type"] for part in item["content"]} <= kinds, "wrong parts")
        require(not calls, "a call without an output")
        for tool in body.get("tools", ()):
            require(tool["type"] == "function" and {"name", "parameters", "strict"} <= set(tool), "wrong tool")
        form = body.get("text", {}).get("format", {"type": "text"})
        require(form["type"] != "json_schema" or {"name", "schema"} <= set(form), "wrong format")

    def output(self, script):
        items = []
        if script.thinking:
            summary = [{"type": "summary_text", "text": script.thinking}]
            own = {"type": "reasoning", "id": "rs_1", "summary": summary}
            items.append({**own, "encrypted_content": self.sign(script.thinking)})
        if script.text:
            part = {"type": "output_text", "text": script.text, "annotations": []}
            items.append(
                {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
            )
        for key, name, arguments in script.calls:
            own = {"type": "function_call", "id": f"fc_{key}", "call_id": key, "name": name}
            items.append({**own, "arguments": compact(arguments), "status": "completed"})
        return items

    def reply(self, script):
        cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(script.end)
        return {
            "id": "r1", "object": "response", "status": "incomplete" if cut else "completed", "error": None,
            "incomplete_details": {"reason": cut} if cut else None, "output": self.output(script),
            "usage": {
                "input_tokens": script.prompt, "output_tokens": 7, "total_tokens": script.prompt + 7,
                "input_tokens_details": {"cached_tokens": script.read, "cache_write_tokens": script.written},
                "output_tokens_details": {"reasoning_tokens": script.reasoned},
            },
        }  # fmt: skip

    def events(self, script):
        def named(kind, **record):
            return event({"type": kind, **record}, kind)

        response = self.reply(script)
        yield named("response.created", response={**response, "status": "in_progress", "output": []})
        for index, item in enumerate(response["output"]):
            at = {"output_index": index, "item_id": item["id"]}
            kind, key, text = {
                "reasoning": ("reasoning_summary_text", "summary", script.thinking),
                "message": ("output_text", "content", script.text),
                "function_call": ("function_call_arguments", "arguments", item.get("arguments")),
            }[item["type"]]
            yield named(
                "response.output_item.added", output_index=index, item={**item, key: "" if key == "arguments" else []}
            )
            for piece in pieces(text):
                yield named(f"response.{kind}.delta", **at, delta=piece)
            yield named(f"response.{kind}.done", **at, text=text)
            yield named("response.output_item.done", output_index=index, item=item)
        yield named(f"response.{response['status']}", response=response)


WIRES = {"chat completions": Chat, "messages": Messages, "responses": Responses}
