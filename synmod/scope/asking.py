"""Questions to people: `ask` returns the answer, or pauses the call until there is one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Self, TypeVar, cast

from pydantic import BaseModel, create_model
from pydantic.errors import PydanticUserError

from synmod import data, errors
from synmod.cache import key_of
from synmod.leaves import Json, aio, check_type, frozen, reset, thaw, wall_time

from .frame import SameBlock, ambient, current_call, place_name

T = TypeVar("T")
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a person.

    Attributes:
        id: Names it in `sm.answers` and `sm.Run.answer`; the same whenever the same lines run again.
        text: The question.
        value: The subject of the question, as JSON.
        schema: JSON schema of the answer.
        path: Path of the module that asks.
        words: A digest of what is asked, equal for equal questions.

    Example:
        >>> Question("1", "Refund?", 30, {"type": "boolean"}, "desk").to_json()["text"]
        'Refund?'

    Source: LangGraph's interrupts; differs: the id depends on what is asked, not on the order.
    """

    id: str
    text: str
    value: Json
    schema: Json
    path: str
    words: str = field(default="", repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the question as plain JSON."""
        names = ("id", "text", "value", "schema", "path")
        return {name: thaw(getattr(self, name)) for name in names}


class answers(SameBlock):  # noqa: N801  # read as a word: `with sm.answers({...}):`
    """Give answers to questions for a block; a durable run keeps those that it needs.

    Args:
        values: The answers by the id of the question. Unknown ids are ignored.

    Raises:
        ArgumentError: It is not a mapping.
        DataError: An answer is not JSON.

    Example:
        >>> import synmod as sm
        >>> async def approve():
        ...     return await sm.ask("Refund 30 EUR?")
        >>> try:
        ...     sm.run(approve)
        ... except sm.Paused as paused:
        ...     question = paused.questions[0]
        >>> with sm.answers({question.id: True}):
        ...     sm.run(approve)
        True

    Source: LangGraph's `Command(resume=)`; differs: answers have names, so that several may be open.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(answers=self)
        check_type("answers: its argument", values, Mapping, "a mapping: {question.id: answer}")
        self.values: dict[str, Json] = {name: frozen(value) for name, value in values.items()}
        self.counts: dict[Any, int] = {}


# -- where questions are numbered --------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Numbering:
    """Code whose equal questions are numbered apart from those of other code: a durable block, one run of a tool.

    Attributes:
        around: The place around it.
        numbers: Returns what tells it from equal places: which run of a tool it is. For the run of a tool by an Agent a
            pair, whose second is which of the equal calls of one reply it is.
        agent: Path of the Agent that runs the tool, None elsewhere.
        reports: For the run of a Tool by an Agent: returns the text that the model gets for an error, None if the error
            is raised.
        counts: How many equal questions were answered here.
    """

    around: Numbering | None
    numbers: Callable[[], Any]
    agent: str | None = None
    reports: Callable[[BaseException], str | None] | None = None
    counts: dict[Any, int] = field(default_factory=dict[Any, int])
    _tokens: list[Token[Numbering | None]] = field(default_factory=list[Any])

    def trail(self) -> tuple[list[Json], str | None]:
        """Return the numbers of this place and those around it, and the path of the outermost Agent."""
        numbers, agent = ([], None) if self.around is None else self.around.trail()
        own = self.numbers() if self.agent is None else self.numbers()[0]
        return [*numbers, own], self.agent if agent is None else agent

    def __enter__(self) -> Self:
        self._tokens.append(NUMBERING.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        reset(NUMBERING, self._tokens.pop())


NUMBERING: Final[ContextVar[Numbering | None]] = ContextVar("synmod_numbering", default=None)
"""The innermost place where questions are numbered."""


# -- asking ------------------------------------------------------------------------------------------------------------


async def ask(question: str, value: Any = None, answer: Any = bool) -> Any:
    """Return the answer of a person to a question, or pause the call until there is one.

    The answer comes from an enclosing `sm.answers`, or was given to the run by `sm.Run.answer`. Without one the call
    ends by `Paused`; when there is an answer, the same lines are run again, and find it here.

    Args:
        question: The question, as the person reads it.
        value: The subject of the question: JSON or a data model. It tells equal questions apart.
        answer: The type of the answer: a type, such as `bool` or `Literal["a", "b"]`, a data model or a JSON schema.

    Returns:
        The answer, of the type; for a data model or a schema of an object a `JsonDataModel`.

    Raises:
        Paused: The question has no answer yet; has the question.
        SchemaError: The answer does not satisfy the type, or the type has no schema.
        SymbolicValueError: The call runs on symbols.
        DataError: `value` is not JSON.

    Example:
        >>> import synmod as sm
        >>> try:
        ...     sm.run(ask, "Which colour?", answer=str)
        ... except sm.Paused as paused:
        ...     print(paused.questions[0].text)
        Which colour?

    Source: LangGraph's `interrupt`; differs: typed, validated, and equal in every process.
    """
    if data.is_symbolic(value):
        raise _on_symbols(question)
    schema, read = _form(answer)
    return read(await answer_to(question, value, schema))


async def answer_to(text: str, value: Any, schema: Json, call: int = 0) -> Json:
    """Return the answer to a question as JSON that satisfies a schema; arguments and errors as for `ask`.

    Args:
        text: The question.
        value: The subject of the question.
        schema: JSON schema of the answer.
        call: Which of several equal calls it is about.
    """
    frame, record, place = current_call(), ambient(), NUMBERING.get()
    if frame is not None and frame.symbolic:
        raise _on_symbols(text)
    await aio.checkpoint()
    path, value = "" if frame is None else frame.path, frozen(value)
    numbers, agent = ([], None) if place is None else place.trail()
    words = key_of([path.removeprefix(agent or "").lstrip("/"), text, value, call])
    blocks: tuple[answers, ...] = record.answers
    if place is None:  # equal questions are numbered in their entry call
        counts, key = blocks[0].counts if blocks else {}, (frame and frame.run.id, words)
    else:
        counts, key = place.counts, words
    number = counts.get(key, 0)
    name = key_of([words, numbers, number])[:20]
    part = record.journal
    reply = next((block.values[name] for block in reversed(blocks) if name in block.values), _MISSING)
    if part is not None:
        note = await part.read(f"answer/{name}")
        if note is None and reply is not _MISSING:
            await part.write(f"answer/{name}", {"value": reply, "when": wall_time(), "by": None})
        reply = note["value"] if note is not None and reply is _MISSING else reply
    if reply is not _MISSING:
        data.validate(data.declare(schema, root="any"), reply, f"The answer to {text!r:.200} ({name})")
        counts[key] = number + 1
        return cast("Json", reply)
    question = Question(name, text, value, thaw(schema), path, words)
    if part is not None:
        part.asked.add(name)
        await part.write(f"question/{name}", {**question.to_json(), "when": wall_time()})
    raise errors.Paused(_message([question]), [question])


def _on_symbols(text: str) -> errors.SymbolicValueError:
    """Return the error for a question asked on symbols, which have no values yet."""
    return errors.SymbolicValueError(
        f"{place_name()}: {text!r:.200} cannot be asked while the program is traced: no value is known yet. Ask in the "
        "`call` of a module that declares its output."
    )


def _form(answer: Any) -> tuple[Json, Callable[[Json], Any]]:
    """Return the schema of an answer, and what reads its JSON.

    Raises:
        SchemaError: The type has no schema.
    """
    if isinstance(answer, dict) or (isinstance(answer, type) and issubclass(answer, BaseModel)):
        declared, model = data.declaration(None, cast("Any", answer), "ask")
        return declared, lambda json: data.value_from(json, declared, model)
    declared, model = _wrapped(cast("Any", answer))
    whole = dict(data.portable(declared))
    schema = {**whole["properties"]["value"], **({"$defs": whole["$defs"]} if "$defs" in whole else {})}
    schema.pop("title", None)  # that of our field
    return frozen(schema), lambda json: data.value_from({"value": json}, declared, model).to()


@lru_cache(256)
def _wrapped(kind: Any) -> tuple[data.Schema, type[BaseModel]]:
    """Return the schema and the class of a data model whose field `value` is of a type (SchemaError: it has none)."""
    try:
        model: Any = create_model("Answer", __base__=data.Wrapped, value=(kind, ...))
        return data.schema_of(model), model
    except PydanticUserError as error:
        raise errors.SchemaError(f"ask: answer={kind!r:.100} has no schema: {error.message}") from None


def _message(questions: Sequence[Question]) -> str:
    """Return the text of a pause."""
    lines = [f"{question.path or 'A call'} asks: {question.text!r:.300} (id {question.id})" for question in questions]
    return "\n  ".join([
        "waiting for the answer of a person:" if len(lines) == 1 else f"waiting for {len(lines)} answers of people:",
        *lines,
        "Give them by sm.Run(folder).answer(id, value), or by `with sm.answers({id: value}):`, and run the same lines "
        "again.",
    ])  # fmt: skip


# -- branches ----------------------------------------------------------------------------------------------------------


class Pauses:
    """A `with` block of branches that run at once: those of them that pause let the others run to their end.

    Raises:
        Paused: (on leaving) At least one has paused; has the questions of all. A failure is raised as itself, with the
            pause as a note.
        CallError: (on leaving) Two of the questions are equal.

    Source: Temporal's and LangGraph's parallel branches.
    """

    def __init__(self) -> None:
        self._pauses: list[errors.Paused] = []

    async def run(self, branch: Awaitable[T]) -> T | None:
        """Return the result of a branch; None if it has paused."""
        try:
            return await branch
        except errors.Paused as pause:
            self.note(pause)
            return None

    def note(self, pause: errors.Paused) -> None:
        """Keep the pause of a branch."""
        self._pauses.append(pause)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        pauses, self._pauses = self._pauses, []
        if not pauses:
            return
        if error is not None:
            errors.add_note(error, f"a call beside it paused: {'; '.join(map(str, pauses))}")
            return
        try:
            raise pauses[0] if len(pauses) == 1 else _join(pauses)
        finally:
            del pauses  # else the exception and this frame form a reference cycle


def unwrap_group(error: BaseException) -> BaseException:
    """Return the only failure of a task group, or the pauses of its tasks as one; any other error unchanged."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    failures = [unwrap_group(failure) for failure in cast("BaseExceptionGroup[BaseException]", error).exceptions]
    pauses = [failure for failure in failures if isinstance(failure, errors.Paused)]
    if len(failures) == len(pauses) > 1:
        return _join(pauses)
    return failures[0] if len(failures) == 1 else cast("BaseException", error)


def _join(pauses: Sequence[errors.Paused]) -> errors.SynmodError:
    """Return one pause with the questions of several; a CallError where two that were asked apart are equal."""
    questions = list({id(question): question for pause in pauses for question in pause.questions}.values())
    words = dict[str, Question]()
    for question in questions:
        if question.words in words:
            return errors.CallError(
                f"{question.path or 'Two calls'}: {question.text!r:.200} is asked twice at the same time, and no "
                "answer could be told from the other: pass what each is about, sm.ask(question, value)."
            )
        words[question.words] = question
    return errors.Paused(_message(questions), questions)
