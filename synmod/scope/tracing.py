"""Traces: `sm.trace`, and the hook that it installs, which records the calls of a block as a tree in bounded memory.

Cost: some microseconds per call while a trace is open, nothing afterwards. The tree is exported as JSON; the text, like
the page of the view room, is made from that.
"""

import math
import os
import threading
import time
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar, cast, overload

from synmod import data, leaves

from .frame import FRAME, Block, Reward
from .hooks import CallBegin, CallEnd, Hook, LMBegin, LMEnd
from .transcript import transcript
from .usage import NO_USAGE, Usage

T = TypeVar("T")

# -- arguments and results as plain JSON -------------------------------------------------------------------------------

_DEEPEST: Final = 60  # deeper than any data; a deeper value may hold itself
_LONGEST_BITS: Final = 14_000  # of an integer that Python converts to decimal digits


def plain(x: Any, depth: int = 0) -> Any:
    """Return values as JSON: data models by their JSON, symbols by their schema, nests and records member by member.

    Anything else becomes text, including numbers that JSON lacks.
    """
    if x is None or type(x) is bool or type(x) is str:
        return x
    try:
        if isinstance(x, int):
            return int(x) if x.bit_length() < _LONGEST_BITS else hex(x)
        if isinstance(x, str):
            return str.__str__(x)
        if isinstance(x, float):
            return float(x) if math.isfinite(x) else repr(float(x))
        return "..." if depth > _DEEPEST else _compound_json(x, depth + 1)
    except Exception:  # noqa: BLE001  # a hook never breaks a call, and a user's value may raise anything
        return f"<{type(x).__name__}>"


def _compound_json(x: Any, depth: int) -> Any:
    """Return a value that is neither a number nor a text as JSON."""
    if isinstance(x, data.SymbolicDataModel):
        return x.get_schema()
    get_json = getattr(x, "get_json", None)
    if callable(get_json) and not isinstance(x, type):
        return get_json()
    if leaves.is_mapping(x):
        return {str(key): plain(value, depth) for key, value in x.items()}
    if leaves.is_sequence(x):
        return [plain(member, depth) for member in x]
    if isinstance(x, type) or not is_dataclass(x):
        return repr(cast("object", x))
    return {field.name: plain(getattr(x, field.name), depth) for field in fields(x)}


def error_text(error: BaseException | None) -> str | None:
    """Return an exception as text: the object would keep the frames of its traceback alive."""
    return None if error is None else f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")


def message_of(error: BaseException) -> str:
    """Return the text of an exception, its lone surrogates escaped; "" where it cannot be read."""
    try:
        return str(error).encode(errors="backslashreplace").decode()
    except Exception:  # noqa: BLE001  # a record of a failure must not fail
        return ""


# -- nodes -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class LMCallNode:
    """One model call; while it runs, its usage is zero and `elapsed_s` is None.

    Attributes:
        model: The model that was called, `provider/name`.
        phase: `inference`, `reward` or `optimizer`.
        start: When it began, in seconds since the epoch.
        elapsed_s: Wall seconds, None while it runs.
        request, reply: The records of the events, None in a trace without values.
        error: Class and text of the exception, None if it returned.
        usage: Tokens and cost.
        attempts: Requests that were sent.
        cached: Whether the reply came from a cache.
    """

    model: str
    phase: str
    start: float
    request: Any = None
    reply: Any = None
    usage: Usage = NO_USAGE
    attempts: int = 0
    cached: bool = False
    elapsed_s: float | None = None
    error: str | None = None

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.usage.prompt_tokens + self.usage.completion_tokens

    @property
    def cost_usd(self) -> float | None:
        """Cost in US dollars, None where no price is known."""
        return self.usage.cost_usd

    def __repr__(self) -> str:
        return f"<LMCallNode {self.model}, {self.tokens} tokens>"


@dataclass(slots=True, eq=False)
class TreeSize:
    """What the calls of one tree share: how many they are, and whether they were dropped because the trace was full."""

    calls: int = 0
    lm_calls: int = 0
    is_dropped: bool = False


@dataclass(slots=True, eq=False)
class TraceNode:
    """One module call.

    Attributes:
        call_id, parent_id, path, name, phase: As in the events.
        start, end: When it began and ended, in seconds since the epoch, by one clock; no end while it runs.
        elapsed_s: Wall seconds, None while it runs.
        inputs, kwargs, outputs: The values, None in a trace without values.
        error: Class and text of the exception, None if it returned.
        rewards: (path, name, value) of the run, on an entry call.
        children: The calls below, by their start.
        lm_calls: Its own model calls, by their start.
        parent: The node of the calling module, None for an entry call.
        run: The size of its tree, shared with the other calls in it.
    """

    call_id: str
    parent_id: str | None
    path: str
    name: str
    phase: str
    start: float
    run: TreeSize
    parent: "TraceNode | None" = None
    inputs: tuple[Any, ...] | None = None
    kwargs: Mapping[str, Any] | None = None
    outputs: Any = None
    end: float | None = None
    elapsed_s: float | None = None
    error: str | None = None
    rewards: tuple[Reward, ...] = ()
    children: "list[TraceNode]" = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]  # hot: `list[...]()` is slow
    lm_calls: list[LMCallNode] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]  # likewise

    @property
    def usage(self) -> Usage:
        """What the model calls in it and below it have used so far."""
        return sum((call.usage for call in [*self.lm_calls, *self.children]), NO_USAGE)

    def __repr__(self) -> str:
        return f"<TraceNode {self.call_id} {leaves.with_label(self.path, self.name)!r}, {len(self.children)} children>"


# -- JSON and text -----------------------------------------------------------------------------------------------------

_VERSION: Final = 1
_REQUEST: Final = ("messages", "schema", "tools", "params")
_REPLY: Final = ("text", "reasoning", "tool_calls", "finish_reason", "model", "request_id")
_LM_CALL: Final = ("model", "phase", "start", "elapsed_s", "error", "attempts", "cached", "tokens", "cost_usd", "usage")
_VALUES: Final = ("inputs", "kwargs", "outputs")
_CALL: Final = ("call_id", "parent_id", "path", "name", "phase", "start", "elapsed_s", *_VALUES, "error", "rewards")


def _fields(record: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return some fields of a record as JSON."""
    return {name: plain(getattr(record, name, None)) for name in names}


def lm_call_json(call: LMCallNode) -> dict[str, Any]:
    """Return a model call as JSON; request and reply are None where none is kept."""
    request = None if call.request is None else _fields(call.request, _REQUEST)
    reply = None if call.reply is None else _fields(call.reply, _REPLY)
    return {**_fields(call, _LM_CALL), "request": request, "reply": reply}


def _call_json(node: TraceNode) -> dict[str, Any]:
    """Return a call and those below it as JSON; nothing is locked, so calls that begin meanwhile may be left out."""
    children = [_call_json(child) for child in list(node.children)]
    used = [call.usage for call in node.lm_calls] + [Usage(**child["usage"]) for child in children]
    lm_calls = [lm_call_json(call) for call in list(node.lm_calls)]
    usage = plain(sum(used, NO_USAGE))
    return {**_fields(node, _CALL), "usage": usage, "lm_calls": lm_calls, "children": children}


def lines_of(call: dict[str, Any], lead: str = "", below: str = "", *, prompts: bool = False) -> Iterator[str]:
    """Yield a line per call or model call of a trace as JSON, by their start, indented under its caller.

    With `prompts`, the lines of the prompt and the reply come below each model call.
    """
    usage = call["usage"]
    tokens = f"{usage['prompt_tokens'] + usage['completion_tokens']} tokens"
    if usage["cost_usd"]:
        tokens += f", ${usage['cost_usd']:.6f}"
    if "model" in call:
        name = call["model"]
        tokens += ", cached" if call["cached"] else ""
    else:
        name, count = leaves.with_label(call["path"], call["name"]), usage["calls"]
        tokens = f"{count} model call{'s' * (count > 1)}, {tokens}" if count else ""
    error = " ".join((call["error"] or "").split())
    yield lead + "  ".join(filter(None, [name, seconds_text(call["elapsed_s"]), tokens, error]))
    for heading, text in transcript(call) if prompts and "model" in call else ():
        yield f"{below}  {heading}:"
        yield from [f"{below}    {line}".rstrip() for line in text.splitlines()]
    inside = in_order_of_start(call.get("children", ()), call.get("lm_calls", ()))
    for left, call_inside in zip(reversed(range(len(inside))), inside, strict=True):
        lead_inside, below_inside = ("├─ ", "│  ") if left else ("└─ ", "   ")
        yield from lines_of(call_inside, below + lead_inside, below + below_inside, prompts=prompts)


def in_order_of_start(calls: Sequence[dict[str, Any]], lm_calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return calls and model calls together, by their start."""
    return sorted([*calls, *lm_calls], key=lambda call: call["start"])


def seconds_text(elapsed_s: float | None) -> str:
    """Return a duration as text, in milliseconds below one second."""
    if elapsed_s is None:
        return "running"
    if elapsed_s < 1:
        return f"{elapsed_s * 1000:.{1 if elapsed_s >= 0.0001 else 3}f} ms"
    return f"{elapsed_s:.2f} s" if elapsed_s < 100 else f"{elapsed_s:,.0f} s"


# -- recording ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TraceViews:
    """How a higher room shows a trace; `synmod/__init__.py` sets the instance.

    Attributes:
        page: Returns the HTML page of a trace from its JSON.
    """

    page: Callable[[dict[str, Any]], str]
    instance: ClassVar["TraceViews"]


def nearest_open(calls: Mapping[str, T], call_id: str) -> T | None:
    """Return the entry of a call, or the nearest one above: a hook of one module is not notified of all calls."""
    entry, frame = calls.get(call_id), FRAME.get()
    while frame is not None and entry is None:
        entry, frame = calls.get(frame.id), frame.parent
    return entry


_LM_CALLS_PER_CALL: Final = 10
"""How many model calls are kept per module call, on average: more would fill the memory."""


class Tracer(Hook):
    """Records every call that it is notified of; `sm.trace` makes one and installs it.

    Args:
        values: Whether inputs, outputs, requests and replies are kept (by reference: nothing is copied).
        sample: Share of the entry calls to keep, chosen by their ids.
        max_calls: Beyond this many calls, or ten times as many model calls, the oldest entry calls are dropped whole.

    Raises:
        ArgumentError: `sample` is not a share, or `max_calls` not a whole number above zero.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> tracer = sm.hooks_lib.Tracer()
        >>> out = sm.run(sm.Identity(hooks=[tracer]), Query(question="Why?"))
        >>> [root.name for root in tracer.roots]
        ['identity']

    Source: OpenTelemetry span processors.
    """

    def __init__(self, values: bool = True, sample: float = 1.0, max_calls: int = 100_000) -> None:
        self._values = values
        self._sample = float(leaves.check_number("trace: sample", sample, 0, 1))
        self._max_calls = leaves.check_int("trace: max_calls", max_calls)
        self._epoch = time.time() - time.perf_counter()  # one clock for all starts, which never goes back
        self._lock = threading.RLock()  # re-entrant: the collector may close a coroutine in here, which ends a call
        self._running: dict[str, TraceNode] = {}  # also below entry calls that were dropped
        self._lm_running: dict[int, tuple[Any, LMCallNode]] = {}  # by the id of the request, which is kept alive
        self._roots: OrderedDict[str, TraceNode] = OrderedDict()
        self._lm_calls: deque[LMCallNode] = deque()
        self._size = TreeSize()
        self._dropped = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle holds: what is recorded so far, of calls that run no further events."""
        with self._lock:
            return {**vars(self), "_lock": None, "_running": {}, "_lm_running": {}}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    @property
    def roots(self) -> list[TraceNode]:
        """The entry calls, by their start."""
        with self._lock:
            return list(self._roots.values())

    @property
    def lm_calls(self) -> list[LMCallNode]:
        """Model calls outside the recorded module calls, by their start."""
        with self._lock:
            return list(self._lm_calls)

    @property
    def dropped(self) -> int:
        """How many entry calls, and model calls outside of calls, were left out because the trace was full."""
        return self._dropped

    @property
    def usage(self) -> Usage:
        """What all model calls of the trace used."""
        return sum((call.usage for call in [*self.roots, *self.lm_calls]), NO_USAGE)

    def on_call_begin(self, event: CallBegin) -> None:
        """Open a node under that of the calling module."""
        call_id, above = event.call_id or "", event.parent_call_id
        if not self._is_in_sample(call_id):
            return
        with self._lock:
            parent = None if above is None else self._nearest(above)
            run = TreeSize() if parent is None else parent.run
            start = self._epoch + time.perf_counter()  # under the lock, so that calls are added by their start
            node = TraceNode(call_id, above, event.path, event.name, event.phase, start, run, parent)
            if self._values:
                node.inputs, node.kwargs = event.inputs, event.kwargs
            self._running[call_id] = node
            if run.is_dropped:
                return
            if parent is None:
                self._roots[call_id] = node
            else:
                parent.children.append(node)
            run.calls += 1
            self._size.calls += 1
            self._drop_oldest()

    def on_call_end(self, event: CallEnd) -> None:
        """Close the node of the call; the module of an entry call keeps it for display."""
        node = self._running.pop(event.call_id or "", None)
        if node is None:
            return
        if self._values:
            node.outputs = event.outputs
        if event.exception is not None:
            node.error = error_text(event.exception)
        node.rewards = event.rewards
        node.end = self._epoch + time.perf_counter()
        node.elapsed_s = event.elapsed_s
        if event.parent_call_id is None and not node.run.is_dropped:
            frame = FRAME.get()
            if frame is not None and frame.id == event.call_id:
                frame.owner.recorded = node

    def on_lm_begin(self, event: LMBegin) -> None:
        """Open a model call under the node of the module that makes it."""
        call_id = event.call_id
        with self._lock:
            call = LMCallNode(event.model, event.phase, self._epoch + time.perf_counter())
            if self._values:
                call.request = event.request
            node = None if call_id is None else self._nearest(call_id)
            if node.run.is_dropped if node is not None else call_id is not None and not self._is_in_sample(call_id):
                return
            self._lm_running[id(event.request)] = (event.request, call)
            if node is None:
                self._lm_calls.append(call)
                if len(self._lm_calls) > self._max_calls:
                    self._lm_calls.popleft()
                    self._dropped += 1
                return
            node.lm_calls.append(call)
            node.run.lm_calls += 1
            self._size.lm_calls += 1
            self._drop_oldest()

    def on_lm_end(self, event: LMEnd) -> None:
        """Close a model call."""
        _, call = self._lm_running.pop(id(event.request), (None, None))
        if call is None:
            return
        call.usage, call.attempts, call.cached = event.usage, event.attempts, event.cached
        call.error = error_text(event.exception)
        if self._values:
            call.reply = event.reply
        call.elapsed_s = event.elapsed_s

    def _is_in_sample(self, call_id: str) -> bool:
        """Whether a run is kept: decided by its id, so that all calls of a run are treated alike."""
        return self._sample >= 1 or zlib.crc32(call_id.partition("-")[0].encode()) < self._sample * 2**32

    def _nearest(self, call_id: str) -> TraceNode | None:
        """Return the node of a call, or the nearest above it; an entry call may have ended: its reward comes after."""
        return nearest_open(self._running, call_id) or self._roots.get(call_id)

    def _drop_oldest(self) -> None:
        """Drop the oldest entry calls, whole, until the rest is within the limits.

        Their calls that still run stay known, but are not shown; they no longer hold the calls that have ended.
        """
        size = self._size
        while size.calls > self._max_calls or size.lm_calls > self._max_calls * _LM_CALLS_PER_CALL:
            _, oldest = self._roots.popitem(last=False)
            oldest.run.is_dropped = True
            size.calls -= oldest.run.calls
            size.lm_calls -= oldest.run.lm_calls
            self._dropped += 1
            for node in list(self._running.values()) if oldest.elapsed_s is None else ():
                if node.run is oldest.run:
                    node.children, node.lm_calls = [], []

    def to_json(self) -> dict[str, Any]:
        """Return the trace as JSON: `version`, `dropped`, `usage`, `calls` (nested under `children`), `lm_calls`.

        `docs/pages/ideas/tracing.md` describes every field.
        """
        calls = [_call_json(root) for root in self.roots]
        lm_calls = [lm_call_json(call) for call in self.lm_calls]
        usage = plain(sum((Usage(**call["usage"]) for call in [*calls, *lm_calls]), NO_USAGE))
        return leaves.scrub_json(
            {"version": _VERSION, "dropped": self._dropped, "usage": usage, "calls": calls, "lm_calls": lm_calls}
        )

    @overload
    def to_html(self, path: None = None) -> str: ...

    @overload
    def to_html(self, path: str | os.PathLike[str]) -> Path: ...

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | Path:
        """Return the trace as one self-contained page: a bar per call, and everything about each call.

        Args:
            path: The file to write, atomically.

        Returns:
            The path of the file; without one the text of the page.

        Raises:
            ArgumentError: `path` is not a path.
            SaveError: The file cannot be written.

        Source: Chrome's trace viewer, Jaeger; differs: one file, which opens offline.
        """
        page = TraceViews.instance.page(self.to_json())
        return page if path is None else leaves.write_atomic(leaves.path_text(path), page)

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks."""
        return leaves.html_frame(self.to_html())

    def text(self, *, prompts: bool = False) -> str:
        """Return the tree as text, a line per call.

        Args:
            prompts: Whether the turns of the prompt and the reply come below each model call.
        """
        trace = self.to_json()
        lines = [f"({trace['dropped']} older dropped)"] if trace["dropped"] else []
        for call in in_order_of_start(trace["calls"], trace["lm_calls"]):
            lines += lines_of(call, prompts=prompts)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Tracer of {self._size.calls} calls in {len(self.roots)} entry calls>"


class trace(Block):  # noqa: N801  # read as a word: `with sm.trace() as t:`
    """Record the calls of a block as a tree.

    Entering the block returns a `Tracer`: `t.roots` with `children` and `lm_calls`, `t.to_json()`, `t.to_html(path)`,
    `str(t)`, `t.text(prompts=True)`.

    Args:
        values: Whether inputs and outputs are kept.
        sample: Share of the entry calls to keep, chosen by their ids.
        max_calls: Beyond this many calls, or ten times as many model calls, the oldest entry calls are dropped whole;
            `t.dropped` counts them.

    Raises:
        ArgumentError: `sample` is not a share, or `max_calls` not a whole number above zero.

    Example:
        >>> with trace() as t:
        ...     pass
        >>> t.roots, t.to_json()["version"]
        ([], 1)

    Source: OpenTelemetry traces; differs: in memory, no exporter.
    """

    def __init__(self, values: bool = True, sample: float = 1.0, max_calls: int = 100_000) -> None:
        super().__init__()
        self._make = lambda: Tracer(values, sample, max_calls)
        self._make()  # so that wrong arguments raise here, not at the block

    def __enter__(self) -> Tracer:
        tracer = self._make()
        self.enter(hooks=(tracer,))
        return tracer
