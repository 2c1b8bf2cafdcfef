"""What became of one example: its outputs and score, or its error."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self, cast

from synmod.errors import notes_of
from synmod.leaves.frozen import is_object, thaw
from synmod.scope import Feedback, Usage

_DEEPEST = 50  # what is deeper, or holds itself, is no JSON


@dataclass(frozen=True, slots=True)
class ExampleError:
    """Why one example failed, without what holds memory.

    Attributes:
        type: Name of the exception's class.
        message: Its text.
        path: The module in which it was raised; "" for the program itself, or outside of it.
        notes: Its notes.
    """

    type: str
    message: str
    path: str
    notes: tuple[str, ...]

    @classmethod
    def of(cls, error: BaseException, path: str) -> Self:
        """Take down an exception, also one that cannot be told."""
        try:
            text = str(error)
        except Exception:  # noqa: BLE001  # one example under collection: its failure is its result, whatever it is
            text = "(its text cannot be read)"
        return cls(type(error).__name__, _whole(text), path, tuple(map(_whole, notes_of(error))))

    def to_json(self) -> dict[str, Any]:
        """The error as plain JSON."""
        return {"type": self.type, "message": self.message, "path": self.path, "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """One run of the program on one example.

    Attributes:
        id: The example's id.
        inputs: What the program was called with.
        target: What should have come out.
        outputs: What came out; None where the run failed.
        score: The reward, or what stands in for it where the run failed; None for no score.
        feedback: What the reward said.
        error: Why it failed; None where it did not.
        usage: What the model calls of run and reward used.
        elapsed_s: Seconds.
        call_id: Id of the entry call; None where none began.
        sample: Number of the run among those of the example.

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

    def to_json(self) -> dict[str, Any]:
        """The result as plain JSON.

        Raises:
            DataError: Inputs, target or outputs are no JSON.
        """
        return thaw(self.record())

    def record(self) -> dict[str, Any]:
        """The result by name of its fields, data models as they are."""
        return {
            "id": self.id,
            "sample": self.sample,
            "inputs": _listed(self.inputs),
            "target": _listed(self.target),
            "outputs": _listed(self.outputs),
            "score": self.score,
            "feedback": None if self.feedback is None else self.feedback.record(),
            "error": None if self.error is None else self.error.to_json(),
            "usage": asdict(self.usage),
            "elapsed_s": self.elapsed_s,
            "call_id": self.call_id,
        }


def _listed(nest: Any, depth: int = 0) -> Any:
    """A nest with lists in place of tuples, which are no JSON."""
    if depth > _DEEPEST:
        return nest
    if is_object(nest):
        return {key: _listed(value, depth + 1) for key, value in nest.items()}
    if isinstance(nest, list | tuple):
        return [_listed(value, depth + 1) for value in cast("list[Any]", nest)]
    return nest


def _whole(text: str) -> str:
    """A text of whole characters, which any file can hold."""
    return text.encode("utf-8", "backslashreplace").decode()
