"""Reflect: the simple one. It learns from each batch's feedback and changes all blamed paths in one child."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from synmod.errors import ArgumentError
from synmod.registry import register_own
from synmod.train import Bench, FeedbackByPath, positive
from synmod.tree import State

from .reflection import Evidence, Reflective, evidence, gain_in_two_waves


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
        ArgumentError: A number below 1, or another word.

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
        if accept not in ("gain", "always"):
            raise ArgumentError(f"Reflect: accept is {accept!r}; write 'gain' or 'always'.")
        self.minibatch = positive(self, "minibatch", minibatch)
        self.block = positive(self, "block", block)
        self.accept = accept

    def step_cost(self, bench: Bench) -> int:
        """Return the rollouts of the batch, of the child on it, and of the race."""
        if self.accept == "always":
            return len(bench.batch)
        return 2 * len(bench.batch) + 2 * len(bench.validation)

    async def update(self, state: State, feedback: FeedbackByPath, bench: Bench) -> State:
        """Take one step; return the child if it is kept."""
        found = await self._found(bench, state, feedback)
        if not found.blame:
            bench.log("reflect", [], "perfect", rows=len(bench.batch))
            self.end_step(False)
            return state
        child = await self.child(bench, found, found.blame)
        kept = child is not None and await self._is_better(bench, child, found)
        self.end_step(kept)
        return child if kept and child is not None else state

    async def _found(self, bench: Bench, state: State, feedback: FeedbackByPath) -> Evidence:
        """Return what the batch says; critiques blame where no reward does."""
        if self.accept == "gain":
            return await evidence(bench, state, bench.batch)
        blame = [path for path, items in feedback.items() if any(item.feedback.critique for item in items)]
        return Evidence(state, bench.batch, (), feedback, tuple(blame))

    async def _is_better(self, bench: Bench, child: State, found: Evidence) -> bool:
        """Whether a child gains on its batch, and wins a race against its parent."""
        paths = list(found.parent.diff(child))
        if self.accept == "always":
            bench.log("reflect", paths, "accepted")
            self.remember(child, found.parent, accepted=True)
            return True
        gain = await gain_in_two_waves(bench, child, found)
        if gain <= 0:
            bench.log("reflect", paths, "no_gain", gain, len(found.rows))
            self.remember(child, found.parent, accepted=False)
            return False
        race = await bench.race(child, found.parent, block=self.block)
        bench.log("reflect", paths, "accepted" if race.kept else "worse", race.gain, race.rows)
        self.remember(child, found.parent, accepted=race.kept)
        return race.kept
