"""Reading replies: valid calls of the tools on offer, or a value of the schema.

The name in a tool call is only looked up among the tools of its own request; an unknown name is a fault.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from synmod.data import Schema, ToolCall, declare, parse_frozen, problems, run_validators, schema_of_class
from synmod.errors import ConfigError, DataError, RequestError, SchemaError, SchemaTooComplex, UnavailableError
from synmod.leaves import FrozenDict, Json, did_you_mean, frozen, frozen_dict, frozen_list, is_object, unique_name

from .records import LMReply, LMRequest, Message, message
from .words import fields_of, json_text

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_CHOICES: Final = ("auto", "none", "required")
_NO_PARAMETERS: Final[Json] = {"type": "object", "properties": {}, "additionalProperties": False}
_READ_OF_CALLS: Final = frozenset({"arguments", "function", "id", "index", "name", "type"})
_FORM: Final = '{"name": "search", "description": "...", "parameters": {"type": "object", ...}}'


def native_tool(name: str, **options: Json) -> FrozenDict:
    """Return a tool that runs at the provider, such as a search of the web, for `tools`, also of an Agent.

    What it did is in the message of the reply, and goes back to the provider in a conversation; what it cited is in
    `reply.citations`; its price is part of the usage. It needs `adapter="responses"`, or a model of Anthropic.

    Args:
        name: The name of the provider: `web_search`, `code_interpreter`, `web_fetch`, ...
        **options: What the provider takes beside it, such as `max_uses=3`.

    Raises:
        ConfigError: The name is not a str.
        DataError: An option is not JSON.

    Example:
        >>> native_tool("web_search", max_uses=3)["options"]
        {'max_uses': 3}

    Source: the server tools of Anthropic, the built-in tools of OpenAI; pydantic-ai's builtin tools.
    """
    if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
        raise ConfigError(f"native_tool: the name is {name!r:.100}, wanted one of the provider, such as 'web_search'.")
    return frozen_dict({"type": "native", "name": name, "options": frozen(options)})


def is_native_tool(tool: Any) -> bool:
    """Whether a tool runs at the provider."""
    return is_object(tool) and tool.get("type") == "native"


def function_schema(tool: Any, where: str) -> FrozenDict:
    """Return a tool in the shape of chat completions, its parameters checked.

    Args:
        tool: A function schema, bare or inside `{"type": "function", "function": ...}`; or an object whose
            `function_schema` is one, such as a `Tool`.
        where: The receiver, for the message.

    Raises:
        ConfigError: It is not a function schema, or its name is not 1 to 64 letters, digits, `_` and `-`.
        SchemaError: Its parameters cannot be used.
    """
    schema: Any = getattr(tool, "function_schema", tool)
    if type(schema) is FrozenDict and type(schema.get("function", {}).get("parameters")) is Schema:
        return schema  # already checked
    function: Any = schema.get("function", schema) if is_object(schema) else None
    if not is_object(function) or not isinstance(function.get("name"), str):
        raise ConfigError(f"{where}: tools: got {tool!r:.200}, wanted a Tool, as of sm.Tool(fn), or {_FORM}.")
    if not _NAME.fullmatch(function["name"]):
        got = f"got the name {function['name']!r:.100}"
        raise ConfigError(f"{where}: tools: {got}, wanted 1 to 64 letters, digits, '_' and '-'.")
    parameters = declare(function.get("parameters") or _NO_PARAMETERS)
    checked = {name: frozen(value) for name, value in function.items() if value is not None}
    return frozen_dict({"type": "function", "function": frozen_dict({**checked, "parameters": parameters})})


def function_schemas(tools: Any, where: str) -> tuple[Json, ...] | None:
    """Return the tools of a call as function schemas, without native ones; None for no tools.

    Raises:
        ConfigError: They are not a list, one is not a function schema, or two have the same name.
        SchemaError: The parameters of one cannot be used.
    """
    if tools is None:
        return None
    if isinstance(tools, str | bytes | dict) or not hasattr(tools, "__iter__"):
        raise ConfigError(f"{where}: tools: got {tools!r:.100}, wanted a list of tools.")
    checked = tuple([function_schema(tool, where) for tool in tools if not is_native_tool(tool)])
    names = [tool["function"]["name"] for tool in checked]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"{where}: tools: two of them have the name {twice[0]!r}.")
    return checked or None


def normalize_tool_choice(choice: Any, tools: Sequence[Json], where: str) -> Json:
    """Return a tool choice in the shape of chat completions: a word, or one tool by name.

    Raises:
        ConfigError: It is neither `auto`, `none`, `required` nor the name of one of the tools ('Did you mean').
    """
    name = choice.get("function", choice).get("name") if is_object(choice) else choice
    if choice is None or (name in _CHOICES and not is_object(choice)):
        return choice
    names = [tool["function"]["name"] for tool in tools]
    if name not in names:
        choices = (*_CHOICES, *names)
        expected, hint = ", ".join(map(repr, choices)), did_you_mean(name, choices)
        raise ConfigError(f"{where}: tool_choice: got {choice!r:.100}, wanted one of {expected}.{hint}")
    return frozen_dict({"type": "function", "function": frozen_dict({"name": name})})


# -- a schema as a tool ------------------------------------------------------------------------------------------------


def schema_name(schema: Mapping[str, Json]) -> str:
    """Return a name for a schema that every provider accepts."""
    return _NOT_IN_A_NAME.sub("_", str(schema.get("title") or "reply")).strip("_")[:64] or "reply"


def answer_name(request: LMRequest) -> str | None:
    """Return the name of the tool that carries the schema of the reply, None without one; no tool on offer has it."""
    if (schema := request.schema) is None:
        return None
    names = {tool["function"]["name"] for tool in request.tools or ()}
    name = schema_name(schema)
    return unique_name(name[:60], names) if name in names else name


def tool_fields(request: LMRequest, *, answer: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """Return the fields of a request's body about tools.

    Args:
        request: The request.
        answer: Further fields of the tool that carries the schema of the reply; None if no tool carries it. The model
            must call that tool or, if others are on offer, any of them.
    """
    tools, choice = request.tools or (), request.tool_choice
    name = answer_name(request)
    if answer is not None and name is not None and choice in (None, "auto", "none"):
        own: Json = {"name": name, "description": "Give the final answer.", "parameters": request.schema, **answer}
        tools = (*(tools if choice != "none" else ()), {"type": "function", "function": own})
        choice = "required"
    if is_object(choice) and len(tools) == 1:
        choice = "required"  # equal, and known to more servers than a choice by name
    return {"tools": list(tools), **({} if choice is None else {"tool_choice": choice})} if tools else {}


# -- calls -------------------------------------------------------------------------------------------------------------


def with_calls(reply: LMReply, request: LMRequest) -> LMReply:
    """Return a reply with its tool calls as `ToolCall`s; that of the tool that carries the schema is its text."""
    items: tuple[Any, ...] = reply.tool_calls  # an adapter may leave them unparsed
    calls = _with_ids([item if isinstance(item, ToolCall) else _call_of(item) for item in items])
    own = answer_name(request)
    answers = [call for call in calls if call.name == own]
    if not answers:
        return replace(reply, tool_calls=tuple(calls))
    effects = tuple([call for call in calls if call.name != own])  # these win: the model asked for their effects
    text = answers[0].function.arguments
    if effects:
        text = "" if reply.text == text else reply.text  # a stream has shown the answer, if it came first
    return replace(reply, text=text, tool_calls=effects)


def _with_ids(calls: list[ToolCall]) -> list[ToolCall]:
    """Return tool calls with an id each that no other one has."""
    originals, numbers = {call.id for call in calls}, Counter[str]()
    ids: set[str] = set()
    for place, call in enumerate(calls):
        call_id = base = call.id or f"call_{place}"
        while call_id in ids or (call_id != call.id and call_id in originals):
            numbers[base] += 1
            call_id = f"{base}_{numbers[base]}"
        ids.add(call_id)
        if call_id != call.id:
            calls[place] = call.model_copy(update={"id": call_id})
    return calls


def _call_of(item: Any) -> ToolCall:
    """Return a tool call as a provider sent it; a missing id or name is empty, so that no tool matches."""
    item = item if is_object(item) else {}
    function = item.get("function")
    function = function if is_object(function) else item  # some servers leave the wrapper out
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json_text({} if arguments is None else arguments)
    read = {"id": item.get("id"), "name": function.get("name")}
    call_id, name = (value if isinstance(value, str) else "" for value in read.values())
    own = {} if function is item else {key: value for key, value in function.items() if _holds_something(value)}
    fields = {key: value for key, value in item.items() if key not in _READ_OF_CALLS and _holds_something(value)}
    own |= {"name": name, "arguments": "{}" if text.strip() in ("", "null") else _whole_escapes(text)}
    return ToolCall.model_validate({**fields, "id": call_id, "type": "function", "function": own})


def faults_of_calls(
    calls: Sequence[ToolCall], tools: Sequence[Json] | None, tool_choice: Json = None
) -> tuple[tuple[str, str], ...]:
    """Return the faults of tool calls, as (pointer, text); none if each can be run.

    Args:
        calls: The calls.
        tools: The function schemas of the tools on offer.
        tool_choice: The choice of one of them, where it must be called.
    """
    functions = [tool["function"] for tool in tools or ()]
    choice = tool_choice["function"]["name"] if is_object(tool_choice) else None
    parameters: dict[str, Schema] = {function["name"]: function["parameters"] for function in functions}
    if not parameters:
        return (("", "the model called a tool, and the call offered none"),)
    faults: list[tuple[str, str]] = []
    for index, call in enumerate(calls):
        where = f"/tool_calls/{index}/arguments"
        if call.name not in parameters:
            hint = did_you_mean(call.name, parameters)
            faults.append((f"/tool_calls/{index}/name", f"no tool is called {call.name!r:.100}.{hint}"))
            continue
        if choice not in (None, call.name):  # some servers ignore a choice by name
            faults.append((f"/tool_calls/{index}/name", f"the tool {choice!r} must be called, not {call.name!r}"))
        try:
            wrong = problems(parameters[call.name], parse_frozen(call.function.arguments))
        except (DataError, SchemaTooComplex) as error:
            faults.append((where, str(error)))
        else:
            faults += [(f"{where}{fault.pointer}", f"wanted {fault.wanted}, got {fault.got}") for fault in wrong]
    return tuple(faults[:_MOST_ERRORS])


_READ: Final = frozenset({"role", "content", "function_call", "refusal", "tool_calls"})


def turn_with_reasoning(answer: Mapping[str, Json], text: str) -> Message | None:
    """Return the assistant turn with what the provider wrote beside the known keys, unread; None if that is nothing.

    Raises:
        DataError: It is not JSON, or nests too deep.
    """
    own = {name: frozen(value) for name, value in answer.items() if name not in _READ and _holds_something(value)}
    return message("assistant", text, **own) if own else None


def _holds_something(json: Json) -> bool:
    """Whether there is more in a value than null and empty arrays and objects."""
    return any(map(_holds_something, json.values())) if is_object(json) else json is not None and json != []


def turn_of(reply: LMReply) -> Message:
    """Return the assistant turn of a reply, with what the provider wants back."""
    fields: dict[str, Any] = {"role": "assistant", "content": reply.text, **(reply.message or {})}
    if reply.tool_calls:
        fields |= {"content": reply.text or None, "tool_calls": frozen_list(map(frozen, reply.tool_calls))}
    return message(**fields)


def quote(reply: LMReply) -> str:
    """Return a reply as text, with the tools that it calls, for a repair turn and an error."""
    calls = [json_text({"name": call.name, "arguments": call.function.arguments}) for call in reply.tool_calls]
    return "\n".join([*filter(None, [reply.text]), *calls])


# -- ends --------------------------------------------------------------------------------------------------------------


_WHOLE: Final = (
    "stop stopsequence stoptoken endturn eos eostoken endoftext toolcall toolcalls tooluse functioncall complete "
    "completed finish finished done end normal"
)
_CUT: Final = (
    "length maxtokens maxlength maxoutputtokens maxcompletiontokens maxtokensreached modellength tokenlimit "
    "contextlength contextlengthexceeded contextwindowexceeded modelcontextwindowexceeded contextlimit truncated "
    "incomplete errorlimit"
)
_FILTERED: Final = (
    "contentfilter contentfiltered safety sensitive recitation blocklist blocked spii prohibitedcontent imagesafety "
    "imageprohibitedcontent imagerecitation guardrail guardrails guardrailintervened errortoxic moderation "
    "contentpolicy contentpolicyviolation policyviolation modelarmor refusal refused"
)
_MEANING: Final = {
    **dict.fromkeys(("", "null", *_WHOLE.split()), "stop"),
    **dict.fromkeys(_CUT.split(), "length"),
    **dict.fromkeys(_FILTERED.split(), "content_filter"),
}
"""Why a reply ended, by the letters of the provider's word; with any other word it is not a reply."""


def end_of(finish_reason: Json) -> str | None:
    """Return why a reply ended: `stop`, `length` or `content_filter`; None if the provider's word is another."""
    if finish_reason == "stop":  # nearly always
        return finish_reason
    word = finish_reason.partition(":")[0] if isinstance(finish_reason, str) else ""  # Gemini adds details
    return _MEANING.get(re.sub("[^a-z]", "", word.casefold().removeprefix("finish_reason_")))


def check_ending(reply: LMReply) -> LMReply:
    """Return a reply with one word for every kind of cut, `length`, and of filter, `content_filter`.

    Raises:
        RequestError: The provider paused a long turn of its own tools, which would be as long when it is sent again.
        UnavailableError: It broke off, or ended for a reason that is not known, which is never taken for success.
    """
    meaning = end_of(reply.finish_reason)
    if reply.finish_reason == "pause_turn":
        remedy = "let them do less at once, as by native_tool(..., max_uses=3), or ask for less in one call"
        text = f"the provider paused the turn of its native tools (pause_turn), which is not continued here; {remedy}."
        raise RequestError(text, status=200, request_id=reply.request_id)
    if meaning is None:
        text = f"the reply broke off: its finish_reason is {reply.finish_reason!r:.100}"
        raise UnavailableError(text, status=200, request_id=reply.request_id)
    return reply if meaning == "stop" else replace(reply, finish_reason=meaning)


# -- values ------------------------------------------------------------------------------------------------------------


_MOST_ERRORS: Final = 5
_MOST_PLACES: Final = 100
_BLOCK: Final = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_OPENING: Final = re.compile(r"<(?:think|thinking|reasoning)>")
_CLOSING: Final = re.compile(r"</(?:think|thinking|reasoning)>")
_FENCE: Final = re.compile(r"```[ \t]*+[\w+-]*+[ \t]*+\r?\n(.*)```", re.DOTALL)
_CONTAINER: Final = re.compile(  # [0, 1) is an interval
    r"""\{\s*+["}]
    | \[\s*+(?:
        [\[\]{"]
        | (?:-?[0-9][0-9.eE+-]*+|true|false|null|NaN|-?Infinity)\s*+(?:[,\]]|\Z)(?![^\[\](){}"]*+\))
    )
    | [\[{]""",
    re.VERBOSE,
)
_ESCAPES: Final = re.compile(  # whole ones first, so that only halves are in the group
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
_BRACKET: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)  # brackets inside strings do not count


class Read(NamedTuple):
    """The result of reading a reply: a valid value; or a reason for a `BadReplyError`, and (pointer, text) pairs."""

    json: Json
    reason: str = ""
    errors: tuple[tuple[str, str], ...] = ()


def read(reply: LMReply, request: LMRequest, sent: LMRequest) -> Read:
    """Read the reply to a request: calls of its tools, a value of its schema, or text.

    Args:
        reply: The reply.
        request: The request.
        sent: The request as it was sent, perhaps without its reasoning field.
    """
    if reply.finish_reason == "content_filter":
        return Read(None, "refused")
    if reply.tool_calls:
        faults = faults_of_calls(reply.tool_calls, request.tools, request.tool_choice)
        reason = "length" if reply.finish_reason == "length" else "tool"
        return Read(None, reason if faults else "", faults)
    if request.tool_choice == "required" or is_object(request.tool_choice):
        return Read(None, "tool", (("", "no tool is called, and one must be"),))
    if request.schema is None:
        reason = "length" if reply.finish_reason == "length" else "empty"
        return Read(None) if reply.text.strip() or reply.media else Read(None, reason, (("", "the reply is empty"),))
    if reply.text.count("{") + reply.text.count("[") > _MOST_PARTS:
        return Read(None, "schema", (("", f"the reply has more than {_MOST_PARTS:,} objects and arrays"),))
    reasoning = None
    if (field := request.reasoning_field) is not None and (reply.reasoning or sent.schema is not request.schema):
        reasoning = {field: reply.reasoning or ""}  # "" if it was not requested, so that no output lacks it
    is_cut = reply.finish_reason == "length"
    read = read_reply(reply.text, request.schema, reasoning, partial(faults_of_class, request), inside=not is_cut)
    if is_cut and (read.reason or not isinstance(read.json, dict | list)):
        return Read(None, "length")
    return read


_MOST_PARTS: Final = 100_000  # a value of more stops the process at each full collection of garbage, in any thread
_LARGE: Final = 2**16
_MANY: Final = 50


def is_large(reply: LMReply, request: LMRequest) -> bool:
    """Whether it takes long to read a reply: a long value or arguments, or many calls."""
    calls: tuple[Any, ...] = reply.tool_calls
    if len(calls) > _MANY or (request.schema is not None and len(reply.text) > _LARGE):
        return True
    return bool(calls) and sum(len(str(call)) for call in calls) > _LARGE


def read_whole(reply: LMReply, request: LMRequest, sent: LMRequest) -> tuple[LMReply, Message | None, Read]:
    """Return a reply with its tool calls, its turn if it is valid, and what is read from it; as for `read`."""
    if reply.tool_calls:
        reply = with_calls(reply, request)
    result = read(reply, request, sent)
    return reply, None if result.reason else turn_of(reply), result


def read_reply(
    text: str,
    schema: Schema,
    reasoning: Mapping[str, str] | None = None,
    faults_of: Callable[[Json], tuple[tuple[str, str], ...]] = lambda _: (),
    *,
    inside: bool = True,
) -> Read:
    """Read a value of `schema` from `text`.

    Args:
        text: The reply.
        schema: The schema of the value.
        reasoning: Added to the front of an object that lacks its field.
        faults_of: Returns further faults of a value that is valid for the schema.
        inside: Whether a value inside other text counts.
    """

    def validate(json: Json) -> Read:
        if reasoning and is_object(json):
            json = frozen_dict({**reasoning, **json})  # a field of its own wins
        try:
            wrong = problems(schema, json, limit=_MOST_ERRORS)
        except SchemaTooComplex as error:  # because of the reply, not of the schema
            return Read(None, "schema", (("", str(error)),))
        faults = tuple((fault.pointer, f"wanted {fault.wanted}, got {fault.got}") for fault in wrong) or faults_of(json)
        return Read(None, "schema", faults) if faults else Read(json)

    bare = fault = ""
    text = _whole_escapes(text)
    for bare in dict.fromkeys((text, bare_text(text))):
        try:
            return validate(parse_frozen(bare))
        except DataError as error:
            fault = str(error)
    if not bare:
        return Read(None, "empty", (("", "the reply is empty"),))
    first: Read | None = None
    for json in _containers_in(bare) if inside else ():
        read = validate(json)
        if not read.reason:
            return read
        first = first or read
    return first or Read(None, "not_json", (("", fault),))


def faults_of_class(request: LMRequest, json: Json) -> tuple[tuple[str, str], ...]:
    """Return the faults that the data model of a request finds in a value; it need not have the reasoning field."""
    model, field = request.data_model, request.reasoning_field
    if model is None or not is_object(json):
        return ()
    if field in json and field not in fields_of(schema_of_class(model)):
        json = {name: value for name, value in json.items() if name != field}
    try:
        run_validators(model, frozen_dict(json), "the reply")
    except SchemaError as error:
        return tuple((fault.pointer, f"{fault.wanted}, got {fault.got}") for fault in error.errors[:_MOST_ERRORS])
    return ()


def _whole_escapes(text: str) -> str:
    """Return JSON text in which the escape of half a character is a replacement character."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPES.sub(lambda escape: "\\ufffd" if escape[1] else escape[0], text)


def bare_text(text: str) -> str:
    """Return the text without outer white space, byte order mark, leading reasoning block and code fence."""
    text = text.strip().removeprefix("\ufeff").strip()
    reasoning = _BLOCK.match(text)
    if reasoning is None and (closing := _CLOSING.search(text)) and not _OPENING.search(text, 0, closing.start()):
        reasoning = closing  # some chat templates open the block in the prompt, so that the reply only closes it
    text = text if reasoning is None else text[reasoning.end() :].strip()
    fence = _FENCE.fullmatch(text) if text.endswith("```") else None
    return text if fence is None else fence[1].strip()


def _containers_in(text: str) -> Iterator[Json]:
    """Yield the JSON objects and arrays in prose, in order; at most 100 places are tried.

    A container inside another is never yielded, even if the outer one is invalid or incomplete.
    """
    at = 0
    for _ in range(_MOST_PLACES):
        start = _CONTAINER.search(text, at)
        if start is None:
            return
        at = start.start() + 1
        if len(start[0]) == 1:  # a bracket of the prose
            continue
        end = _end_of_container(text, start.start())
        if end is None:
            return
        at = end
        try:
            yield parse_frozen(text[start.start() : end])  # strict: no NaN, no key twice
        except DataError:
            continue


def _end_of_container(text: str, start: int) -> int | None:
    """Return the end of the container that opens at `start`; None if the text ends before."""
    depth = 0
    for match in _BRACKET.finditer(text, start):
        depth += (match[0] in "[{") - (match[0] in "]}")
        if not depth:
            return match.end()
    return None
