"""Tools in text, for a server that drops those of a request: the chat template of its model has no place for them.

The system turn lists the tools, and the answer as one more; the schema of the reply allows one call of one of them; and
the turns of earlier calls and their results are text.
"""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Final

from synmod.data import intern_schema, is_foreign, map_references, parse_json, portable
from synmod.errors import DataError, ModelError
from synmod.leaves import Json, aio, is_object, unique_name

from .records import LMChunk, LMReply, LMRequest, Message, Received, message, with_system_text
from .replies import read_reply
from .words import json_text, value_text

_LARGE: Final = 2**16  # characters that are read in a worker thread
_DEFINITIONS: Final = "#/$defs/"
_TEXT: Final[Json] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
"""The parameters of the answer to a request without a schema."""

_EXACT: Final[Json] = {"required": ["name", "arguments"], "additionalProperties": False}
_ANY_OBJECT: Final = intern_schema({"type": "object"})
_CALL: Final = intern_schema(
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name", "arguments"]}
)


def may_call(request: Any) -> bool:
    """Whether the model may call a tool."""
    return bool(getattr(request, "tools", None)) and request.tool_choice != "none"  # a batch of texts has none


def level_of(request: Any) -> str | None:
    """Return how a request wants its schema; None for the best way, as `calls` means where no tool may be called."""
    return None if request.structured == "calls" and not may_call(request) else request.structured


def with_tools_in_text(request: LMRequest) -> LMRequest:
    """Return a request with its tools and its answer in the system turn and in the schema of the reply."""
    functions = _functions(request)
    lines = [json_text({name: function[name] for name in _SHOWN if name in function}) for function in functions]
    catalogue = "\n".join(line.replace("<", "\\u003c") for line in lines)
    form = value_text({"name": "...", "arguments": {}})
    text = f"These functions can be called:\n{catalogue}\nReply with one call as JSON, {form}, and nothing else."
    return replace(
        request,
        messages=with_system_text(tuple(_turns(request.messages)), text),
        schema=_schema_of_calls(functions),
        tools=None,
        tool_choice=None,
        structured=None,
    )


_SHOWN: Final = ("name", "description", "parameters")


async def call_in_text(send: Callable[[LMRequest], Received], request: LMRequest) -> Received:
    """Send a request with its tools in text.

    Yield what is received, the reply with its call as a call; what is streamed of its JSON is left out.
    """
    async with aclosing(send(with_tools_in_text(request))) as items:
        async for item in items:
            if isinstance(item, LMReply):
                work = partial(_with_call, item, request)
                yield await aio.to_thread(work, abandon=True) if len(item.text) > _LARGE else work()
            elif isinstance(item, ModelError):
                yield item
            elif item.reasoning:
                yield LMChunk("", item.reasoning)


def _functions(request: LMRequest) -> list[Any]:
    """Return the functions to offer: those that may be called, and the answer."""
    functions: list[Any] = [tool["function"] for tool in request.tools or ()]
    if is_object(choice := request.tool_choice):
        return [function for function in functions if function["name"] == choice["function"]["name"]]
    if choice != "required":
        answer = {"description": "Give the final answer.", "parameters": request.schema or _TEXT}
        functions.append({"name": _answer_name(request), **answer})
    calls = [call["function"] for turn in request.messages for call in turn.get("tool_calls") or ()]
    if len(calls) > 1 and calls[-1] == calls[-2]:  # a small model would repeat itself until its steps are used up
        functions = [function for function in functions if function["name"] != calls[-1]["name"]] or functions
    return functions


def _answer_name(request: LMRequest) -> str:
    """Return the name of the function that gives the answer."""
    return unique_name("final_answer", {tool["function"]["name"] for tool in request.tools or ()})


def _schema_of_calls(functions: list[Any]) -> Any:
    """Return the schema of one call of one of some functions."""
    arms: list[Json] = []
    definitions: dict[str, Json] = {}
    for place, function in enumerate(functions):
        to = f"{_DEFINITIONS}{place}_"
        parameters: Any = function["parameters"]
        moved: Any = map_references(
            _ANY_OBJECT if is_foreign(parameters) else portable(parameters),
            lambda reference, to=to: to + reference.removeprefix(_DEFINITIONS),
        )
        definitions |= {f"{place}_{name}": part for name, part in moved.get("$defs", {}).items()}
        arguments = {name: part for name, part in moved.items() if name != "$defs"}
        properties = {"name": {"const": function["name"]}, "arguments": arguments}
        arms.append({"type": "object", "properties": properties, **_EXACT})
    return intern_schema({"title": "call", "anyOf": arms, **({"$defs": definitions} if definitions else {})})


def _turns(messages: tuple[Message, ...]) -> list[Message]:
    """Return turns with calls and their results as text; results that follow one another are one turn."""
    turns: list[Message] = []
    names: dict[str, str] = {}
    follows_result = False
    for turn in messages:
        is_result = turn["role"] == "tool"
        if is_result:
            content: Json = turn["content"]
            text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
            text = f"The result of {names.get(turn['tool_call_id'], 'the call')}: {_on_one_line(text)}"
            if follows_result:
                text = f"{turns.pop()['content']}\n{text}"
            turns.append(message("user", text))
        elif calls := turn.get("tool_calls"):
            names |= {call["id"]: call["function"]["name"] for call in calls}
            lines = [_line(**call["function"]) for call in calls]
            turns.append(message("assistant", "\n".join([*filter(None, [turn["content"]]), *lines])))
        else:
            turns.append(turn)
        follows_result = is_result
    return turns


def _on_one_line(text: str) -> str:
    """Return a result as JSON on one line, so that nothing in it can pass for another turn, result or part."""
    try:
        return value_text(parse_json(text))
    except DataError:
        return value_text(text)


def _line(name: str, arguments: str, **_: Json) -> str:
    """Return a call as the model writes it; the arguments are the text of JSON."""
    return f'{{"name":{json_text(name)},"arguments":{arguments}}}'


def _with_call(reply: LMReply, request: LMRequest) -> LMReply:
    """Return a reply with the call in its text; if that is the answer, with the answer as its text."""
    call: Any = read_reply(reply.text, _CALL, inside=reply.finish_reason != "length").json
    if not is_object(call):
        return reply
    if call["name"] != _answer_name(request):
        calls: Any = ({"function": call},)
        return replace(reply, text="", tool_calls=calls)
    answer: Any = call["arguments"]
    if request.schema is None and is_object(answer) and isinstance(answer.get("text"), str):
        answer = answer["text"]
    return replace(reply, text=answer if isinstance(answer, str) else json_text(answer))
