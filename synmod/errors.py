"""Every exception of synmod, in one tree.

    SynmodError
    ├── SchemaError [ValueError]            a value that violates its schema; a bad schema
    │   └── SchemaTooComplex                a schema over the limits of complexity
    ├── DataError [ValueError]              not JSON; an operand that is not allowed
    │   ├── FieldError [KeyError, AttributeError]
    │   └── SymbolicValueError              the value of a symbol was read
    ├── ArgumentError [TypeError]           wrong kind or combination of arguments
    ├── ConfigError [TypeError]             an invalid declaration or constructor argument
    ├── CallError [ValueError]              a call that cannot be made as written
    │   ├── NoCallError [NotImplementedError]
    │   ├── GuardError                      a `Guard` blocked its inputs
    │   └── AgentLimitError                 an `Agent` reached its limits without an answer
    ├── ToolError [RuntimeError]            a tool that cannot be run as called
    ├── Paused [RuntimeError]               a call that waits for the answer of a person
    ├── BuildError [RuntimeError]           a module that cannot be built
    │   └── SealedError [ValueError]        a structure that was changed after the build
    ├── NotBuiltError [ValueError]          an operation that needs a built module
    ├── BadNameError [ValueError]           a name that is not an identifier
    ├── GraphError [ValueError]             a program that cannot be walked, wired or changed
    ├── StateError [ValueError]             a State that does not fit a program
    │   └── StateSchemaError [SchemaError]  values of a State that violate their schemas
    ├── DeadlineExceeded [TimeoutError]     the deadline of `sm.deadline` has passed
    ├── BudgetExceeded [RuntimeError]       the budget of `sm.budget` is spent
    ├── EvaluationError [RuntimeError]      an evaluation that was stopped
    ├── TrainerError [ValueError]           a training that cannot be made as set up
    ├── LifecycleError [RuntimeError]       a method of a Trainer that was called too early
    ├── RunError [RuntimeError]             a run that cannot be started here
    │   └── JournalError [OSError]          what a run has paid for cannot be kept
    ├── SkipError [RuntimeError]            a value that cannot be stashed or popped
    │   └── SkipNameError [ValueError]      a namespace that the module does not declare
    ├── SkipVerifyError [TypeError]         stashes and pops of a program that do not match
    ├── RegistryError [ValueError]          a name or object that cannot be registered
    ├── SaveError [TypeError]               a program that cannot be saved
    ├── LoadError [ValueError]              a file that cannot be loaded
    │   └── FormatError                     a file that is not in synmod's format
    └── ModelError [RuntimeError]           a call of a language model failed
        ├── AuthError                       no key, or a key that is refused
        ├── RequestError [ValueError]       a request that the provider refuses
        ├── RateLimitError                  too many requests
        ├── UnavailableError                the provider cannot be reached or is broken
        ├── ModelTimeout [TimeoutError]     no reply in time
        ├── ContextWindowError              the prompt is too long for the model
        ├── BadReplyError                   a reply that is not what was asked for
        ├── UnboundModelError               a loaded model that has not been supplied yet
        └── CassetteError [LookupError]     a test cassette without the reply

Each derives from `SynmodError` and also from the builtin in brackets, which callers expect.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from linecache import getline
from types import TracebackType
from typing import Any, NamedTuple

__all__ = [
    "AgentLimitError", "ArgumentError", "AuthError", "BadNameError", "BadReplyError", "BudgetExceeded", "BuildError",
    "CallError", "CassetteError", "CodeError", "ConfigError", "ContextWindowError", "DataError", "DeadlineExceeded",
    "EvaluationError", "FieldError", "FormatError", "GraphError", "GuardError", "JournalError", "LifecycleError",
    "LoadError", "ModelError", "ModelTimeout", "NoCallError", "NotBuiltError", "Paused", "Problem", "RateLimitError",
    "RegistryError", "RequestError", "RunError", "SaveError", "SaveProblem", "SchemaError", "SchemaTooComplex",
    "SealedError", "SkipError", "SkipNameError", "SkipProblem", "SkipVerifyError", "StateError", "StateSchemaError",
    "SymbolicValueError", "SynmodError", "SynmodWarning", "ToolError", "TrainerError", "UnavailableError",
    "UnboundModelError",
]  # fmt: skip


class SynmodError(Exception):
    """The root of all errors that synmod raises."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickles and copies are made of: distributed changes how those of builtin errors are made."""
        return type(self), self.args, self.__dict__


class SynmodWarning(UserWarning):
    """The one category of synmod's warnings."""


class Problem(NamedTuple):
    """One fault of a value.

    Attributes:
        pointer: Its place, as a JSON Pointer.
        wanted: The values that are valid there.
        got: The actual value, cut to 200 characters.
    """

    pointer: str
    wanted: str
    got: str


class SaveProblem(NamedTuple):
    """One thing that cannot be saved.

    Attributes:
        path: Its place.
        what: A description of it.
        remedy: The change that makes it saveable.
    """

    path: str
    what: str
    remedy: str


class SkipProblem(NamedTuple):
    """One fault of the skip connections of a program.

    Attributes:
        kind: `both`, `restashed`, `repopped`, `unstashed`, `unpopped`, `schema` or `cycle`.
        path: Path of the module where it was found.
        namespace: The Namespace, None for the default one.
        name: The name of the value.
        other_path: Path of the other module involved, or None.
        message: The fault in words.
    """

    kind: str
    path: str
    namespace: Any
    name: str
    other_path: str | None
    message: str


class SchemaError(SynmodError, ValueError):
    """A value does not satisfy its schema, or a schema cannot be used.

    Attributes:
        errors: The faults, at most ten, in document order; empty where the schema itself is at fault.
    """

    def __init__(self, message: str, errors: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.errors: tuple[Problem, ...] = tuple(errors)


class SchemaTooComplex(SchemaError):
    """A schema is over the limits of complexity: its size, its nesting, or the subschemas checked against one value."""


class DataError(SynmodError, ValueError):
    """Something is not JSON, or an operand is not allowed in its place."""


class FieldError(DataError, KeyError, AttributeError):
    """A data model has no such field."""

    def __str__(self) -> str:
        """Return the message as written: KeyError would quote it."""
        return str(self.args[0]) if self.args else ""


class SymbolicValueError(DataError):
    """The value of a symbol was read, but a symbol has only a schema."""


class ArgumentError(SynmodError, TypeError):
    """Arguments of the wrong kind, or in an invalid combination."""


class ConfigError(SynmodError, TypeError):
    """An invalid class, constructor argument or setting."""


class CallError(SynmodError, ValueError):
    """A call that cannot be made, or whose result is not data."""


class NoCallError(CallError, NotImplementedError):
    """The class of the called module defines no `call`."""


class GuardError(CallError):
    """A `Guard` blocked its inputs; the message gives the reason."""


class AgentLimitError(CallError, RuntimeError):
    """An `Agent` has no answer after `max_steps` calls of its model or `max_tool_calls` of tools, or spent its budget.

    Attributes:
        messages: The turns so far, in the format of chat completions.
    """

    def __init__(self, message: str, messages: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.messages: tuple[Any, ...] = tuple(messages)


class ToolError(SynmodError, RuntimeError):
    """A tool cannot be run as called; an `Agent` reports the error to its model. Tools may raise it themselves.

    Attributes:
        report: Whether an Agent reports it, whatever its `on_tool_error`; None to let that decide. False for a run with
            `once=True` that may have run, True for one that a person refused.
        text: The report that an Agent made of it, for a failure that was found in a journal; else None.
    """

    report: bool | None = None
    text: str | None = None


class Paused(SynmodError, RuntimeError):
    """A call cannot go on without the answers of a person, which `sm.answers` or `sm.Run.answer` gives.

    Blocks do not take it for a failure: branches that run at once end first, and it has the questions of all of them.

    Attributes:
        questions: The open questions, each a `Question`.
        messages: The conversation so far of the outermost `Agent` that it ended; empty without one.
    """

    messages: tuple[Any, ...] = ()

    def __init__(self, message: str, questions: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.questions: tuple[Any, ...] = tuple(questions)


class CodeError(CallError, RuntimeError):
    """The code of a `Code` module failed, was stopped, or returned something that is not its output.

    Attributes:
        traceback: The traceback of the code, or the reason.
    """

    def __init__(self, message: str, traceback: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback


class BuildError(SynmodError, RuntimeError):
    """A module cannot be built."""


class SealedError(BuildError, ValueError):
    """The structure of a module was changed after it was built."""


class NotBuiltError(SynmodError, ValueError):
    """The operation needs a module that is built."""


class BadNameError(SynmodError, ValueError):
    """A name of a module, Variable or namespace that is not a valid identifier."""


class GraphError(SynmodError, ValueError):
    """A program that cannot be walked, wired or changed as requested."""


class StateError(SynmodError, ValueError):
    """A State that does not fit the program it is meant for."""


class StateSchemaError(StateError, SchemaError):
    """Values of a State that do not satisfy the schemas of their Variables."""


class DeadlineExceeded(SynmodError, TimeoutError):
    """The deadline of an enclosing `sm.deadline` has passed.

    Attributes:
        partial: The finished part of an evaluation inside the block; None elsewhere.
    """

    partial: Any = None


class BudgetExceeded(SynmodError, RuntimeError):
    """The budget of an enclosing `sm.budget` is spent.

    Attributes:
        partial: The finished part of an evaluation inside the block; None elsewhere.
        account: The budget that had no room, as its `with` block returned it.
        messages: The turns so far of an `Agent` inside the block, in the format of chat completions.
    """

    partial: Any = None
    account: Any = None
    messages: tuple[Any, ...] = ()


class EvaluationError(SynmodError, RuntimeError):
    """An evaluation that was stopped: too many failures, or one that its example did not cause.

    Attributes:
        partial: The Evaluation so far; nothing that finished is lost.
        errors: The results of the runs that failed.
    """

    def __init__(self, message: str, *, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial
        self.errors: tuple[Any, ...] = getattr(partial, "errors", ())


class TrainerError(SynmodError, ValueError):
    """A training that cannot be made as set up: an unknown reward, nothing to optimise, too small a budget."""


class LifecycleError(SynmodError, RuntimeError):
    """A method of a Trainer was called too early, such as `fit` before `compile`."""


class RunError(SynmodError, RuntimeError):
    """A run cannot be started here.

    Attributes:
        differences: (name, old, new) of each difference from the run that the folder holds.
    """

    differences: tuple[tuple[str, Any, Any], ...] = ()


class JournalError(RunError, OSError):
    """What a run has paid for cannot be kept: its folder cannot be locked, read or written, or was removed under it.

    What finished before is kept; the cause is what the operating system or SQLite raised.
    """


class SkipError(SynmodError, RuntimeError):
    """A value could not be stashed or popped, or a module did not do what it declares."""


class SkipNameError(SkipError, ValueError):
    """A name was put into a Namespace that the module does not declare."""


class SkipVerifyError(SynmodError, TypeError):
    """The stashes and pops of a program do not match.

    Attributes:
        problems: Every fault, in execution order.
    """

    def __init__(self, message: str, problems: Iterable[SkipProblem] = ()) -> None:
        super().__init__(message)
        self.problems: list[SkipProblem] = list(problems)


class RegistryError(SynmodError, ValueError):
    """A name or an object that cannot be registered."""


class SaveError(SynmodError, TypeError):
    """Something cannot be saved; nothing was written.

    Attributes:
        problems: Every offender with its path, what it is and the remedy.
    """

    def __init__(self, message: str, problems: Iterable[SaveProblem] = ()) -> None:
        super().__init__(message)
        self.problems: tuple[SaveProblem, ...] = tuple(problems)


class LoadError(SynmodError, ValueError):
    """A file, text or JSON cannot be loaded; nothing of it was kept.

    Attributes:
        where: JSON Pointer of the fault in the document.
        file: Name of the file, or None for a text.
    """

    def __init__(self, message: str, *, where: str = "", file: str | None = None) -> None:
        super().__init__(message)
        self.where = where
        self.file = file


class FormatError(LoadError):
    """A file is not in the format that synmod writes."""


class ModelError(SynmodError, RuntimeError):
    """A call of a language model failed.

    Attributes:
        model: The model string.
        status: HTTP status, or None where there was none.
        attempts: Requests that were sent.
        elapsed_s: Seconds from the call to the failure.
        path: Path of the calling module, "" outside a module call.
        phase: Phase of the call.
        request_id: The provider's id for the request, or None.
        retry_after_s: Seconds the provider asked to wait, or None.
        transient: Whether the same request may succeed later.
        provider_message: The answer of the provider, without secrets, at most 2 kB.
        sent: Whether a request was sent; an adapter passes `sent=False` for a failure found before sending.
        ending: Lines that the call appends to the message: the module, the requests sent.
        streamed: Whether pieces of a reply had been delivered, so that no retry or fallback may replace it.
        starting: Whether the server may be about to start: it loads its model, or nothing listens at its address yet.
        recorded: Whether an earlier run of the same line had it, in a batch job: it counts as no attempt of this one.
    """

    transient: bool = False
    starting: bool = False
    recorded: bool = False
    ending: str = ""
    streamed: bool = False

    def __init__(
        self,
        message: str = "",
        *,
        model: str = "",
        status: int | None = None,
        attempts: int = 0,
        elapsed_s: float = 0.0,
        path: str = "",
        phase: str = "inference",
        request_id: str | None = None,
        retry_after_s: float | None = None,
        provider_message: str = "",
        sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.model = model
        self.status = status
        self.attempts = attempts
        self.elapsed_s = elapsed_s
        self.path = path
        self.phase = phase
        self.request_id = request_id
        self.retry_after_s = retry_after_s
        self.provider_message = provider_message
        self.sent = sent

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.model}: {text}{self.ending}" if self.ending else text


class AuthError(ModelError):
    """No key, a key that the provider refuses, or an account without quota."""


class RequestError(ModelError, ValueError):
    """The provider, or a check before sending, refuses the request; sending it again cannot help."""


class RateLimitError(ModelError):
    """The provider got too many requests."""

    transient = True


class UnavailableError(ModelError):
    """The provider cannot be reached, answers that it is broken or without a reply, or breaks its reply off."""

    transient = True


class ModelTimeout(ModelError, TimeoutError):
    """No reply in the time that was given."""

    transient = True


class ContextWindowError(ModelError):
    """The prompt is longer than the model can read."""


class BadReplyError(ModelError):
    """The reply is not what was asked for.

    Attributes:
        text: The raw text of the reply.
        errors: (pointer, message) of each schema fault.
        reason: `not_json`, `schema`, `length`, `refused`, `empty` or `tool`.
    """

    def __init__(
        self,
        message: str = "",
        *,
        text: str = "",
        errors: Sequence[tuple[str, str]] = (),
        reason: str = "schema",
        **details: Any,
    ) -> None:
        super().__init__(message, **details)
        self.text = text
        self.errors = tuple(errors)
        self.reason = reason


class UnboundModelError(ModelError):
    """A model of a loaded program that has not been supplied yet: files do not store connections."""


class CassetteError(ModelError, LookupError):
    """A cassette has no reply for a request, or the file is not a cassette."""


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception, even if its class forbids setting attributes (a frozen dataclass)."""
    error.__dict__.setdefault("__notes__", []).append(note)


def notes_of(error: BaseException) -> list[str]:
    """Return the notes of an exception."""
    return list(map(str, error.__dict__.get("__notes__", ())))


_STANDARD = os.path.dirname(os.__file__)
_FOLDERS = tuple(
    path + os.sep
    for path in (os.path.dirname(__file__), os.path.join(_STANDARD, "asyncio"), os.path.join(_STANDARD, "concurrent"))
)


def shorten_traceback(error: BaseException) -> None:
    """Leave out of the traceback of an error of ours the frames of synmod and asyncio, except for the last one.

    Such an error teaches by its text; the lines of the user that led to it should not be lost among ours.
    """
    if isinstance(error, SynmodError):
        _keep_frames(error, keeps_last=True)


def show_own_line(error: Exception) -> str:
    """Leave our frames out of the traceback of what a function of the user raised; return its line, with its place.

    Returns:
        Such as `rewards.py:12, in right: return y_pred["team"]`; "" where no line of the user raised.
    """
    own = [*_entries(error, of_user=True)]
    if not own:
        return ""
    _keep_frames(error, keeps_last=False)
    written = [frame_entry for frame_entry in own if not _is_installed(frame_entry.tb_frame.f_code.co_filename)] or own
    frame, line = written[-1].tb_frame, written[-1].tb_lineno
    code, text = frame.f_code, getline(frame.f_code.co_filename, line, frame.f_globals).strip()
    return f"{code.co_filename}:{line}, in {code.co_name}{text and f': {text:.200}'}"


def _is_installed(file: str) -> bool:
    """Whether a file is of a package or of Python itself."""
    return file.startswith(_STANDARD) or "site-packages" in file


def _entries(error: BaseException, *, of_user: bool = False) -> Iterator[TracebackType]:
    """Yield the entries of a traceback, or those of lines that are neither ours nor asyncio's."""
    entry = error.__traceback__
    while entry is not None:
        if not (of_user and entry.tb_frame.f_code.co_filename.startswith(_FOLDERS)):
            yield entry
        entry = entry.tb_next


def _keep_frames(error: BaseException, *, keeps_last: bool) -> None:
    """Leave out the frames of synmod and asyncio, but for the last one of all where it is kept."""
    own, last = [*_entries(error, of_user=True)], [*_entries(error)][-1:]
    rest: TracebackType | None = None
    for entry in reversed([*own, *last] if keeps_last and own[-1:] != last else own):
        rest = TracebackType(rest, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = rest
