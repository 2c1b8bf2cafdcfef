"""One run of a program on one example: its outputs, calls and feedback, and whose fault a failure is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast

from synmod import errors, scope, tree
from synmod.leaves import Json, empty_object, is_object, thaw
from synmod.lm import LMReply, chat_body, places_of_examples
from synmod.module import Module
from synmod.scope import NO_USAGE, BoundReward, CallEnd, Feedback, Usage

from .rows import Example, as_json

R = TypeVar("R", bound="ExampleResult")
Fault: TypeAlias = Literal["program", "reward", "void", "fatal"]
"""Whose fault a failure is: of the program, the reward, neither (outage, question), or unrelated to the example."""

_NO_BLOCK: Final[nullcontext[None]] = nullcontext()
_TRANSIENT: Final = (errors.RateLimitError, errors.UnavailableError, errors.ModelTimeout, errors.Paused)
_FATAL: Final = (errors.AuthError, errors.ConfigError, errors.BuildError, errors.UnboundModelError)


@dataclass(frozen=True, slots=True)
class ExampleError:
    """Why one example failed, without what holds memory.

    Attributes:
        type: Name of the exception's class.
        message: Its text.
        path: The module in which it was raised; "" for the program itself, or outside of it.
        notes: Its notes.
        line: The line of a reward or metric that raised it, with its file and number; "" for the program.
    """

    type: str
    message: str
    path: str
    notes: tuple[str, ...]
    line: str = ""

    @classmethod
    def of(cls, error: BaseException, path: str, line: str = "") -> Self:
        """Return the record of an exception."""
        return cls(type(error).__name__, scope.message_of(error), path, tuple(errors.notes_of(error)), line)

    def __str__(self) -> str:
        return f"{self.type}: {self.message}{self.line and f' ({self.line})'}"


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """One run of the program on one example.

    Attributes:
        id: The example's id.
        inputs: The example's inputs.
        target: The expected output.
        outputs: The outputs; None if the run failed.
        score: The score of the reward, or `failure_score` if the run failed; None for no score.
        feedback: The feedback of the reward.
        error: Why it failed; None if it did not.
        usage: The usage of the model calls of run and reward.
        elapsed_s: Seconds.
        call_id: Id of the entry call; None if no call began.
        sample: Number of the run among those of the example.
        lm_calls: The model calls of the program, with `keep_calls`; see `Evaluation.to_chat`.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> evaluation = sm.run(sm.evaluate(sm.Identity(), [Query(question="Why?")]))
        >>> evaluation.results[0].outputs["question"]
        'Why?'

    Source: DSPy's evaluation results; differs: keeps call id, usage and sample.
    """

    id: str
    inputs: Any
    target: Any
    outputs: Any
    score: float | None
    feedback: Feedback | None
    error: ExampleError | None
    usage: Usage
    elapsed_s: float
    call_id: str | None
    sample: int
    lm_calls: tuple[Mapping[str, Json], ...] = field(default=(), repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON.

        Raises:
            DataError: Inputs, target or outputs are not JSON.
        """
        return thaw(self.record())

    def record(self) -> dict[str, Any]:
        """Return the result by name of its fields, without model calls; data models as they are."""
        return {name: as_plain(getattr(self, name)) for name in ExampleResult.__slots__ if name != "lm_calls"}


def as_plain(nest: Any) -> Any:
    """Return a nest with lists in place of tuples, which are not JSON, and dicts in place of records of ours."""
    if isinstance(nest, (Feedback, ExampleResult)):
        return as_plain(nest.record())
    if isinstance(nest, (ExampleError, Usage)):
        nest = asdict(nest)
    if is_object(nest):
        return {key: as_plain(value) for key, value in nest.items()}
    if isinstance(nest, (list, tuple)):
        return [as_plain(value) for value in cast("list[Any]", nest)]
    return nest


class CallRecord(NamedTuple):
    """One module call of a run.

    Attributes:
        call_id: Its number in the run, as text: callers first, calls of one path in the order of their beginnings.
        parent_id: That of the nearest recorded call around it; None without one.
        path: The module, below the entry module.
        inputs: Its inputs, as JSON.
        outputs: Its outputs, as JSON; None if it failed.
        error: Why it failed; None if it did not.

    Example:
        >>> CallRecord("0", None, "writer", {"text": "a"}, {"text": "b"}).to_json()["path"]
        'writer'

    Source: OpenTelemetry spans; differs: ids are places in the run, so that equal runs have equal records.
    """

    call_id: str
    parent_id: str | None
    path: str
    inputs: Json
    outputs: Json
    error: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the record as plain JSON."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Rollout(ExampleResult):
    """One run of the program on one example under one candidate.

    Its `id`, `inputs`, `target`, `outputs`, `score`, `feedback`, `error`, `usage`, `elapsed_s`, `call_id` and `sample`
    are those of `ExampleResult`.

    Attributes:
        candidate: Fingerprint of the State that was run.
        void: Whether an outage ended it: it has no score, and counts nowhere.
        metrics: The values of the metrics that are functions, by name; None if one of them or the reward failed.
        calls: The calls of the modules that own a trained Variable.

    Example:
        >>> rollout = Rollout("1", None, None, None, 0.5, None, None, Usage(), 0.1, None, 0, candidate="c")
        >>> rollout.score, rollout.void
        (0.5, False)

    Source: GEPA's trajectories; differs: calls carry ids and paths, an outage is not a score.
    """

    candidate: str = ""
    void: bool = False
    metrics: Mapping[str, float] | None = field(default_factory=empty_object, repr=False)
    calls: tuple[CallRecord, ...] = field(default=(), repr=False)


_NO_REWARDS: Final[Mapping[str, float]] = {}


class CallRecorder(scope.Hook, scope.Block):
    """The block of one run: counts its model calls and, while it is open, records its module calls and their rewards.

    It is one block for all of these, since it is entered for every row.

    Args:
        keeps_calls: Whether the module calls are kept, to be read as records.

    Attributes:
        usage: The usage of the model calls.
        rewards: The rewards that modules gave, by path of the module, or by `path/name`.
        frame: The frame of the entry call; None before its end.
        is_open: Whether module calls are recorded; those of a reward are not.
        build_failures: The failures of builds.
    """

    def __init__(self, *, keeps_calls: bool = False) -> None:
        super().__init__()
        self.usage = scope.UsageMeter()
        self.rewards: Mapping[str, float] = _NO_REWARDS
        self.frame: scope.CallFrame | None = None
        self.is_open = True
        self._keeps_calls = keeps_calls
        self._ended: list[CallEnd] = []  # all calls, or those that failed
        self.build_failures: tuple[BaseException, ...] = ()

    def __enter__(self) -> Self:
        self.enter(phase="inference", hooks=(self,), usages=self.usage)
        return self

    def on_call_end(self, event: CallEnd) -> None:
        if not self.is_open:
            return
        if event.parent_call_id is None:
            self.frame = scope.current_call()
        if event.rewards:
            self.rewards = {f"{path}/{name or ''}".strip("/"): value for path, name, value in event.rewards}
        if self._keeps_calls or event.exception is not None:
            self._ended.append(event)

    def on_build_end(self, event: scope.BuildEnd) -> None:
        if self.is_open and event.exception is not None:
            self.build_failures += (event.exception,)

    def path_of(self, failure: BaseException) -> str:
        """Return the path of the innermost call that a failure ended; "" for no call."""
        return next((event.path for event in self._ended if event.exception is failure), "")

    def calls(self, paths: frozenset[str] | None = None) -> tuple[CallRecord, ...]:
        """Return the calls of the modules at these paths, or all calls; callers first.

        Siblings are ordered by path, then by beginning, so that the order does not depend on which branch was faster.
        """
        below: dict[str | None, list[CallEnd]] = {}
        for event in self._ended:
            below.setdefault(event.parent_call_id, []).append(event)
        records: list[CallRecord] = []
        pending: list[tuple[CallEnd, str | None]] = [(event, None) for event in self._ended[-1:]]
        while pending:
            event, parent = pending.pop()
            if paths is None or event.path in paths:
                number = str(len(records))
                error = None if event.exception is None else str(ExampleError.of(event.exception, event.path))
                inputs = event.inputs[0] if len(event.inputs) == 1 else list(event.inputs)
                records.append(CallRecord(number, parent, event.path, as_json(inputs), as_json(event.outputs), error))
                parent = number
            children = sorted(below.get(event.call_id, ()), key=_path_and_beginning, reverse=True)
            pending.extend([(child, parent) for child in children])
        return tuple(records)


class ChatRecorder(CallRecorder):
    """Keeps the model calls of the program, too: prompt and answer as turns of chat completions."""

    def __init__(self, *, keeps_calls: bool = False) -> None:
        super().__init__(keeps_calls=keeps_calls)
        self.lm_calls: list[Mapping[str, Json]] = []

    def on_lm_end(self, event: scope.LMEnd) -> None:
        request, reply = event.request, event.reply
        if not (self.is_open and event.phase == "inference" and isinstance(reply, LMReply)):
            return
        body = chat_body(request)
        answer: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.tool_calls:
            answer["tool_calls"] = [call.get_json() for call in reply.tool_calls]
        line = {"messages": [*body["messages"], answer], "examples": places_of_examples(request.messages)}
        self.lm_calls.append(thaw(line | ({"tools": body["tools"]} if "tools" in body else {})))


def _path_and_beginning(event: CallEnd) -> tuple[str, int]:
    """Return the path of a call, and its number among the calls of its run, by their beginnings."""
    return event.path, int(str(event.call_id).rpartition("-")[2])


@dataclass(slots=True)
class RunOutcome:
    """The outcome of one run.

    Attributes:
        inputs: The inputs of the program.
        outputs: Its outputs.
        feedback: The feedback of the reward.
        failure: The exception that ended it; None for an outcome read from a journal.
        error: The record of that exception.
        fault: Whose fault it is.
        usage: The usage of its model calls.
        elapsed_s: Seconds.
        call_id: The id of the entry call.
        frame: The frame of the entry call; None for an outcome read from a journal.
        calls: The calls of the modules that are recorded.
        all_calls: The calls of all modules, for a reward that takes them.
        lm_calls: The model calls of the program, if they are kept.
        values: The values of the metrics that are functions, by name.
        context: Number of the context where it ran.
        overlay: The values that it ran under, and those that it wrote; None where it ran on the program as it is.
    """

    inputs: Any = None
    outputs: Any = None
    feedback: Feedback | None = None
    failure: Exception | None = None
    error: ExampleError | None = None
    fault: Fault | None = None
    usage: Usage = NO_USAGE
    elapsed_s: float = 0.0
    call_id: str | None = None
    frame: scope.CallFrame | None = None
    calls: tuple[CallRecord, ...] = ()
    all_calls: tuple[CallRecord, ...] = ()
    lm_calls: Sequence[Mapping[str, Json]] = ()
    values: Mapping[str, float] = field(default_factory=empty_object)
    context: int = 0
    overlay: tree.using | None = None

    def record(self) -> dict[str, Any]:
        """Return the record for a journal, whose key has the row."""
        feedback = {} if self.feedback is None else self.feedback.record()
        optional = {
            "feedback": {name: of for name, of in feedback.items() if of != {}},
            "error": as_plain(self.error),
            "fault": self.fault,
            "calls": [call.to_json() for call in self.calls],
            "lm_calls": list(self.lm_calls),
            "values": dict(self.values),
        }
        needed = {"outputs": self.outputs, "usage": self.usage, "elapsed_s": self.elapsed_s, "call_id": self.call_id}
        return {**needed, **{name: value for name, value in optional.items() if value}}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self | None:
        """Return the outcome of a record, without fields of later releases; None for another record."""
        values = _pick(record, cls.__slots__)
        try:
            math.fsum([values["elapsed_s"], *values.get("values", {}).values()])  # these are numbers
            if "feedback" in values:
                values["feedback"] = Feedback(**_pick(values["feedback"], Feedback.__slots__))
            if "error" in values:
                error = ExampleError(**_pick(values["error"], ExampleError.__slots__))
                values["error"] = replace(error, notes=tuple(error.notes))
            if "calls" in values:
                values["calls"] = tuple(CallRecord(**_pick(call, CallRecord._fields)) for call in values["calls"])
            return cls(**values)
        except (AttributeError, LookupError, TypeError, ValueError):
            return None

    def final_feedback(self, reward: BoundReward | None) -> Feedback | None:
        """Return the feedback of the reward, or of a failure: the lowest score, if it is the program's fault."""
        if self.error is None:
            return self.feedback
        lowest = reward.lowest if reward is not None and self.fault in ("program", "fatal") else None
        return Feedback(lowest, critique=str(self.error))

    def state_after(self, before: tree.State) -> tree.State:
        """Return a State with the values that the run wrote at its paths."""
        changes = {} if self.overlay is None else dict(self.overlay.changes)
        return before | tree.State.of_leaves({path: leaf for path, leaf in changes.items() if path in before})

    def result(self, kind: type[R], example: Example, feedback: Feedback | None, sample: int = 0, **more: Any) -> R:
        """Return it as the result of a row.

        Args:
            kind: The class.
            example: The row.
            feedback: The feedback of the reward, or of a failure; has the score.
            sample: Number of the draw.
            **more: Further fields.
        """
        row = cast("str", example.id), example.inputs, example.target, self.outputs
        score = None if feedback is None else feedback.score
        costs = self.usage, self.elapsed_s, self.call_id
        return kind(*row, score, feedback, self.error, *costs, sample, tuple(self.lm_calls), **more)


def _pick(json: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the entries of an object that have some names."""
    return {name: json[name] for name in names if name in json}


class RunRow(Protocol):
    """Runs rows of one program as `Runner.run_here` does, under the values and models in force where it is called."""

    async def __call__(self, example: Example, *, sample: int = 0) -> RunOutcome: ...


class Executor(Protocol):
    """A place for rows other than this process, such as `sm.DaskExecutor`."""

    def connect(
        self, program: Module, *, reward: Module | None, metrics: Sequence[Any], paths: frozenset[str]
    ) -> AbstractAsyncContextManager[RunRow]:
        """Return a block in which rows of a program run there.

        Args:
            program: The program.
            reward: Judges each row.
            metrics: Functions that measure each row.
            paths: The modules whose calls are recorded.
        """
        ...


def reward_arguments(outcome: RunOutcome, example: Example) -> dict[str, Any]:
    """Return the arguments that a reward may take, by name; `usage` and `elapsed_s` are of the program alone."""
    return {
        "inputs": outcome.inputs,
        "outputs": outcome.outputs,
        "target": example.target,
        "example_id": example.id,
        "extra": example.extra,
        "usage": outcome.usage,
        "elapsed_s": outcome.elapsed_s,
        "calls": outcome.all_calls,
    }


def fault_of(error: Exception, recorder: CallRecorder) -> Fault:
    """Return whose fault a failure is."""
    in_program = recorder.is_open
    if isinstance(error, _FATAL) or (isinstance(error, errors.SchemaError) and error in recorder.build_failures):
        return "fatal"
    if isinstance(error, _TRANSIENT) or (isinstance(error, errors.ModelError) and not in_program):
        return "void"
    return "program" if in_program else "reward"
