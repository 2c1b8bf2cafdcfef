"""What became of one example: its outputs and score, or its error."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from synmod.flow.nest import map_leaves
from synmod.leaves.notes import notes_of
from synmod.scope import Usage
from synmod.train.feedback import Feedback


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
        """Take down an exception."""
        return cls(type(error).__name__, str(error), path, tuple(notes_of(error)))

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
        """The result as plain JSON."""
        return {
            "id": self.id,
            "sample": self.sample,
            "inputs": _plain(self.inputs),
            "target": _plain(self.target),
            "outputs": _plain(self.outputs),
            "score": self.score,
            "feedback": None if self.feedback is None else self.feedback.to_json(),
            "error": None if self.error is None else self.error.to_json(),
            "usage": asdict(self.usage),
            "elapsed_s": self.elapsed_s,
            "call_id": self.call_id,
        }


def _plain(nest: Any) -> Any:
    """A nest of data as plain JSON."""
    return map_leaves(lambda leaf: leaf.get_json() if hasattr(leaf, "get_json") else leaf, nest)
