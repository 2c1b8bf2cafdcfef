"""Judging programs on data: examples, rewards, evaluations.

Floor: 9. Purpose: many examples through one program, each scored inside its own call; what was finished is never lost.
State: none. Speed: memory does not grow with the data where results are not kept. Must never know: Program, how a
provider is reached.
"""

from typing import TYPE_CHECKING, Any

from synmod.scope import Feedback

if TYPE_CHECKING:
    from synmod.train.evaluating import evaluate
    from synmod.train.evaluation import Evaluation
    from synmod.train.example_result import ExampleError, ExampleResult
    from synmod.train.examples import Example

__all__ = ["Evaluation", "Example", "ExampleError", "ExampleResult", "Feedback", "evaluate"]


def __getattr__(name: str) -> Any:
    """Load the room when a name of it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'synmod.train' has no attribute {name!r}")
    from synmod.train import evaluating, evaluation, example_result, examples

    for part in (examples, example_result, evaluation, evaluating):
        globals().update({each: getattr(part, each) for each in __all__ if hasattr(part, each)})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
