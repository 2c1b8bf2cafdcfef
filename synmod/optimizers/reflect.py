"""Reflect: the simple one. It learns from each batch's feedback and changes all blamed paths in one child."""

from typing import Any, ClassVar, Literal

from synmod.errors import TrainerError
from synmod.leaves import check_choice
from synmod.registry import register_own
from synmod.train import Bench, FeedbackByPath, FeedbackItem, whole_numbers
from synmod.tree import State

from .reflection import Child, Evidence, Reflective, evidence


@register_own()
class Reflect(Reflective):
    """Asks for better values of all paths that a batch blames; keeps them if they gain and win a race.

    Args:
        minibatch: Rows per batch, where `fit` makes the batches.
        block: Rows per round of a race.
        accept: `"gain"` proves a child; `"always"` takes it as it is, and needs no reward: critiques are enough.
        patience: Steps without an accepted candidate until it is done.
        **options: Those of every optimizer.

    Raises:
        TrainerError: A number that cannot be, or another word.

    Example:
        >>> Reflect(minibatch=4).learns_from_batches
        True

    Source: TextGrad; differs: proof by rows before a value is kept.
    """

    learns_from_batches: ClassVar[bool] = True

    def __init__(
        self,
        minibatch: int = 8,
        block: int = 10,
        accept: Literal["gain", "always"] = "gain",
        patience: int = 8,
        **options: Any,
    ) -> None:
        super().__init__(patience=patience, **options)
        self.accept = check_choice("Reflect: accept", accept, ("gain", "always"), error=TrainerError)
        self.minibatch, self.block = whole_numbers(self, minibatch=minibatch, block=block)
        self.needs_reward = accept == "gain"

    def step_cost(self, bench: Bench) -> int:
        """Return the rollouts of the batch, of the child on it, and of the race."""
        if self.accept == "always":
            return len(bench.batch)
        return 2 * len(bench.batch) + 2 * len(bench.validation)

    async def update(self, state: State, feedback: FeedbackByPath, bench: Bench) -> State:
        """Take one step; return the child if it is kept."""
        proved = self.accept == "gain"
        batch = await evidence(bench, state, bench.batch) if proved else self._read_batch(bench, state, feedback)
        child = None
        if not batch.blame:
            bench.log("reflect", [], "perfect", rows=len(bench.batch))
        elif proved:
            survivors = await self.survivors(bench, [(batch, batch.blame)])
            child = survivors[0].state if survivors and await self.wins(bench, survivors[0], self.block) else None
        else:
            child = await self.child(bench, batch, batch.blame)
            if child is not None:
                bench.log("reflect", batch.blame, "accepted")
                self.remember(Child(child, batch, 0.0), accepted=True)
        self.note(child is not None)
        return state if child is None else child

    def _read_batch(self, bench: Bench, state: State, feedback: FeedbackByPath) -> Evidence:
        """Return what the batch says: a score below the best is blamed, or any critique that has no score."""

        def blames(item: FeedbackItem) -> bool:
            score = item.feedback.score
            return bool(item.feedback.critique) if score is None else score < bench.best_score

        blame = [path for path in bench.targets if any(map(blames, feedback.get(path, ())))]
        return Evidence(state, bench.batch, feedback, blame)
