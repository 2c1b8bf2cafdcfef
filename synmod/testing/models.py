"""Language models without a provider, for tests: they answer by a function, a script, or an instance of the schema.

Only the adapter is replaced: reading, repair, retries, counters and events are those of every `LanguageModel`.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from difflib import unified_diff
from itertools import islice
from typing import Any, Final, cast

from synmod import data, errors, saving, scope, tree
from synmod.leaves import aio, frozen_dict, frozen_list, is_array, parse_path, path_str
from synmod.lm import LanguageModel, LMChunk, LMReply, LMRequest, estimate_usage

from .instances import instance_of

_OF_CONNECTION: Final = "adapter api_base api_key cache defaults extra_body fallback headers"


class DoubleAdapter:
    """An adapter that answers by a function of the request."""

    runs_native_tools = True

    __slots__ = ("answer", "latency_s", "name", "requests", "version")

    def __init__(self, name: str, answer: Callable[[LMRequest], Any | Awaitable[Any]], latency_s: float) -> None:
        self.name = name
        self.version = 1
        self.answer = answer
        self.latency_s = latency_s
        self.requests: list[LMRequest] = []

    def send(self, request: LMRequest) -> Awaitable[LMReply] | LMReply:
        """Answer one request, without a wait if nothing is async."""
        self.requests.append(request)
        if self.latency_s:
            return self._later(self._item(request), request)
        item = self.answer(request)
        return self._later(item, request) if hasattr(item, "__await__") else reply_of(item, request)

    async def stream(self, request: LMRequest) -> AsyncGenerator[LMChunk | LMReply]:
        """Answer one request with the pieces of a list of `LMChunk`, else with the reply as a whole."""
        self.requests.append(request)
        item = await self._item(request)
        for piece in item if _is_stream(item) else [item]:
            yield piece if isinstance(piece, LMChunk) else reply_of(piece, request)

    async def _item(self, request: LMRequest) -> Any:
        """Return the item for a request, after the latency."""
        if self.latency_s:
            await aio.sleep(self.latency_s)
        item: Any = self.answer(request)
        return await item if hasattr(item, "__await__") else item

    async def _later(self, item: Awaitable[Any], request: LMRequest) -> LMReply:
        """Return the reply for an item to come."""
        return reply_of(await item, request)


class Double(LanguageModel):
    """A LanguageModel with only the adapter replaced: reading, repair, retries, counters and events are real."""

    __slots__ = ()

    def __init__(self, answer: Callable[[LMRequest], Any], kind: str, latency_s: float, lm: dict[str, Any]) -> None:
        model, backoff = lm.pop("model", f"testing/{kind}"), lm.pop("backoff", False)
        super().__init__(model, adapter=DoubleAdapter(model.partition("/")[2], answer, latency_s), **lm)
        self.backoff = backoff

    @property
    def requests(self) -> list[LMRequest]:
        """The requests that reached the adapter, in order."""
        assert isinstance(self.adapter, DoubleAdapter)
        return self.adapter.requests


class Standing(Double):
    """A double in front of another model, whose settings and secrets it takes over.

    `forward` sends a request directly to the adapter of the other model, so the layers of a call run only once.
    """

    __slots__ = ("_behind",)

    def __init__(self, answer: Callable[[LMRequest], Any], behind: LanguageModel, lm: dict[str, Any]) -> None:
        settings = behind.settings
        own = {name: getattr(settings, name) for name in settings.model_fields_set - {*_OF_CONNECTION.split()}}
        super().__init__(answer, "", 0.0, {"backoff": behind.backoff, **own, **settings.defaults, **lm})
        self._behind = behind
        self.secrets = behind.secrets

    async def forward(self, request: LMRequest) -> LMReply:
        """Send one request by the adapter of the other model."""
        adapter = self._behind.adapter
        if (check := getattr(adapter, "check", None)) is not None:
            check(request)
        if (prepare := getattr(adapter, "prepare", None)) is not None:
            await prepare(request)
        reply = adapter.send(request)
        return reply if isinstance(reply, LMReply) else await reply


def _is_stream(item: Any) -> bool:
    """Whether an item is a list of pieces."""
    return is_array(item) and bool(item) and isinstance(item[0], LMChunk)


def _join_chunks(pieces: list[Any], request: LMRequest) -> LMReply:
    """Return the reply that pieces form, for a call that is not streamed."""
    chunks = [piece for piece in pieces if isinstance(piece, LMChunk)]
    text, reasoning = ("".join(getattr(chunk, name) for chunk in chunks) for name in ("text", "reasoning"))
    calls = tuple(call for chunk in chunks for call in chunk.tool_calls)
    reply = reply_of(next((piece for piece in pieces if piece not in chunks), text), request)
    return replace(reply, text=text, reasoning=reasoning or reply.reasoning, tool_calls=calls or reply.tool_calls)


def reply_of(item: Any, request: LMRequest) -> LMReply:
    """Return the reply for an item: a text or reply as it is, a value as its JSON text; raise an exception."""
    if isinstance(item, LMReply):
        return item
    if isinstance(item, BaseException):
        raise item
    if _is_stream(item):
        return _join_chunks(item, request)
    items: list[Any] = item if is_array(item) else [item]
    calls = tuple([call for call in items if isinstance(call, data.ToolCall)])
    if calls and len(calls) < len(items):
        raise errors.ConfigError(f"{item!r:.200} holds ToolCalls and other things; a reply is either.")
    text = "" if calls else item if isinstance(item, str) else data.dump_json(item)
    usage = estimate_usage(request, len(text) + sum(len(call.function.arguments) for call in calls))
    return LMReply(text, tool_calls=calls, finish_reason="tool_calls" if calls else "stop", usage=usage)


class FunctionLM(Double):
    """A model that answers with the result of a function.

    Args:
        fn: Receives the `LMRequest`, plain or async; returns a str (the text), JSON or a data model (as JSON text), a
            `ToolCall` or a list of them, an `LMReply`, an exception, which is raised, or a list of `LMChunk`, which is
            streamed (an exception in it is raised there).
        latency_s: Seconds that each request takes.
        **lm: Keywords of `LanguageModel`: `model`, too, and `backoff=True` to wait between attempts as a real one does.

    Raises:
        ConfigError: A keyword is unknown ('Did you mean').

    Example:
        >>> lm = FunctionLM(lambda request: {"echo": request.messages[-1]["content"]})
        >>> sm.run(lm("Hi", {"type": "object"}))["echo"]
        'Hi'

    Source: pydantic-ai's FunctionModel.
    """

    __slots__ = ()

    def __init__(self, fn: Callable[[LMRequest], Any | Awaitable[Any]], *, latency_s: float = 0.0, **lm: Any) -> None:
        super().__init__(fn, "function", latency_s, lm)


class ScriptedLM(Double):
    """A model that answers with the replies of a list, one per request.

    Args:
        replies: A list in the order of the requests; or a mapping of module paths or globs (`*` within one step,
            `**` any number of steps) to such lists, which does not depend on the order of concurrent calls. A reply
            is a str (the text), JSON or a data model (as JSON text), a `ToolCall` or a list of them, an `LMReply`, an
            exception, which is raised, or a list of `LMChunk`, which is streamed (an exception in it is raised there).
        cycle: Whether to begin again at the end of a list.
        latency_s: Seconds that each request takes.
        **lm: Keywords of `LanguageModel`: `model`, too, and `backoff=True` to wait between attempts as a real one does.

    Raises:
        ConfigError: `replies` is neither a list nor such a mapping; a keyword is unknown ('Did you mean').
        AssertionError: Raised by a call if no reply is left; with path, number and the last message.

    Example:
        >>> lm = ScriptedLM(["Paris"])
        >>> sm.run(lm("Capital of France?")).text
        'Paris'
        >>> lm.assert_done()

    Source: pydantic-ai's TestModel, DSPy's DummyLM.
    """

    __slots__ = ("_cycle", "_lock", "_replies", "_used")

    def __init__(
        self,
        replies: Iterable[Any] | Mapping[str, Iterable[Any]],
        *,
        cycle: bool = False,
        latency_s: float = 0.0,
        **lm: Any,
    ) -> None:
        super().__init__(self._next, "scripted", latency_s, lm)
        by_path = cast("Mapping[str, Any]", replies) if isinstance(replies, Mapping) else {"": replies}
        for path, items in by_path.items():
            if hasattr(items, "keys") or isinstance(items, str | bytes) or not hasattr(items, "__iter__"):
                where = f"replies[{path!r}]" if by_path is replies else "replies"
                raise errors.ConfigError(f"ScriptedLM: {where}: got {type(items).__name__}, wanted a list of replies.")
        self._cycle = cycle
        self._lock = threading.Lock()
        self._replies = {"**" if by_path is not replies else path: list(items) for path, items in by_path.items()}
        self._used: Counter[str] = Counter()

    def assert_done(self) -> None:
        """Check that every reply was used.

        Raises:
            AssertionError: Replies are left; names how many, and for which path.
        """
        counted = {path: (len(items) - self._used[path], len(items)) for path, items in self._replies.items()}
        left = [f"{unused} of {all_of} for {path!r}" for path, (unused, all_of) in counted.items() if unused > 0]
        if left:
            raise AssertionError(f"ScriptedLM: replies were not used: {', '.join(left)}.")

    def _next(self, request: LMRequest) -> Any:
        """Return the next reply for the calling module: by its path, else by the first glob that matches."""
        frame = scope.current_call()
        places = ("",) if frame is None else (frame.path, frame.name) if not frame.path else (frame.path,)
        fitting = [g for g in self._replies if g == "**" or any(tree.Path(g)(parse_path(at), None) for at in places)]
        path = next((path for path in (*places, *fitting) if path in self._replies), None)
        last = f"the last message is {request.messages[-1]['content']!r:.300}"
        if path is None:
            paths = ", ".join(map(repr, self._replies))
            raise AssertionError(f"ScriptedLM: no replies for the path {places[0]!r}, only for {paths}; {last}.")
        with self._lock:
            items, number = self._replies[path], self._used[path]
            if number < len(items) or (self._cycle and items):
                self._used[path] += 1
                return items[number % len(items)]
        raise AssertionError(f"ScriptedLM: no reply left for request {number + 1} of the path {places[0]!r}; {last}.")


class SchemaLM(Double):
    """A model that answers with a valid instance of the schema, or some text without a schema.

    Args:
        seed: A different seed gives different answers.
        tool_calls: Number of initial turns that call each tool on offer once, with valid arguments.
        latency_s: Seconds that each request takes.
        **lm: Keywords of `LanguageModel`: `model`, too, and `backoff=True` to wait between attempts as a real one does.

    Raises:
        ConfigError: A keyword is unknown ('Did you mean').
        AssertionError: Raised by a call if no valid instance was found.

    Example:
        >>> sm.run(SchemaLM()("Hi", {"type": "object", "required": ["n"], "properties": {"n": {"const": 1}}})).json
        {'n': 1}

    Source: pydantic-ai's TestModel, hypothesis-jsonschema.
    """

    __slots__ = ("_seed", "_tool_calls")

    def __init__(self, seed: int = 0, *, tool_calls: int = 0, latency_s: float = 0.0, **lm: Any) -> None:
        super().__init__(self._instance, "schema", latency_s, lm)
        self._seed, self._tool_calls = seed, tool_calls

    def _instance(self, request: LMRequest) -> str | list[data.ToolCall]:
        """Return the answer to a request, determined by seed and request."""
        purpose = _digest(request)
        turn = sum("tool_calls" in message for message in request.messages)
        if request.tools and request.tool_choice != "none" and turn < self._tool_calls:
            functions = [tool["function"] for tool in request.tools]
            return [
                data.ToolCall(f"call_{turn}_{at}", name, instance_of(parameters, self._seed, f"{purpose} {name}"))
                for at, (name, parameters) in enumerate((tool["name"], tool["parameters"]) for tool in functions)
            ]
        if request.schema is None:
            return f"An answer from SchemaLM ({purpose[:8]})."
        return data.dump_json(instance_of(request.schema, self._seed, purpose))


def _digest(request: LMRequest) -> str:
    """Return a digest of a request."""
    tools = None if request.tools is None else frozen_list(request.tools)
    content = [frozen_list(request.messages), request.schema, tools, frozen_dict(dict(request.params)), request.sample]
    return hashlib.sha256(data.dump_json(frozen_list(content)).encode()).hexdigest()


# -- saves -------------------------------------------------------------------------------------------------------------


def assert_saves(module: Any, **load: Any) -> Any:
    """Save, load and save again, and compare text, graph and state.

    Args:
        module: A module, another registered node, or a list or dict of them.
        **load: Keywords of `sm.loads`, such as `custom_objects`.

    Returns:
        The loaded module.

    Raises:
        AssertionError: Names the first difference.
        SaveError, LoadError: It cannot be saved, or cannot be loaded again.

    Example:
        >>> import synmod as sm
        >>> assert_saves(sm.Sequential([]))
        Sequential(members=[])

    Source: Sonnet's catalogue laws.
    """
    first = saving.dumps(module)
    again = saving.loads(first, **load)
    second = saving.dumps(again)
    if first != second:
        lines = unified_diff(first.splitlines(), second.splitlines(), "saved", "saved again", n=5, lineterm="")
        raise AssertionError("\n".join(["The text is another one after a load:", *islice(lines, 24)]))
    (graph, values), (graph_again, values_again) = tree.split(module), tree.split(again)
    if graph != graph_again and graph.to_json() != graph_again.to_json():  # a handle that no file holds is never equal
        apart = graph.diff(graph_again)
        where = path_str(apart[0]) if apart else ""
        raise AssertionError(f"The graph is another one after a load, first at {where!r}.")
    if values != values_again:
        path = next(iter(values.diff(values_again)), ())
        raise AssertionError(f"The state is another one after a load, first at {path_str(path)!r}.")
    return again
