"""RandomFewShot: random sets of examples, the best of which is found by halving."""

from math import inf
from typing import Any

from synmod.registry import register_own
from synmod.train import Bench, real_number, whole_numbers
from synmod.tree import OptState, State

from . import example_pool
from .example_pool import FewShot, cost_of_halving


@register_own()
class RandomFewShot(FewShot):
    """Draws sets of examples from labelled rows, or from rows that went well, and keeps the best: one step.

    A set has every answer of the rows, as far as they fit: what no example shows is rarely answered. A small model
    repeats the answers of the last examples: those that the first sets gave too often come first in the later ones.

    Args:
        max_examples: Entries per examples Variable at most.
        sets: How many sets are compared, the present one included.
        threshold: The score from which a row makes examples; None for the highest, if enough rows reach it.
        first: How many validation rows the first round has; more where the budget has room.
        **options: Those of every optimizer.

    Raises:
        TrainerError: A number that cannot be.

    Example:
        >>> RandomFewShot(max_examples=16).done
        False

    Source: DSPy's `BootstrapFewShotWithRandomSearch`; differs: halving in place of full evaluation, labels where they
    fit, an order that balances the answers, a row never sees the example made of it.
    """

    def __init__(
        self, max_examples: int = 8, sets: int = 16, threshold: float | None = None, first: int = 5, **options: Any
    ) -> None:
        super().__init__(**options)
        counts = {"max_examples": max_examples, "sets": sets, "first": first}
        self.max_examples, self.sets, self.first = whole_numbers(self, **counts)
        self.threshold = None if threshold is None else real_number(self, "threshold", threshold, least=-inf)
        self.searched = self.add_variable(False, schema={"type": "boolean"}, name="searched", type=OptState)

    async def update(self, state: State, feedback: Any, bench: Bench) -> State:  # noqa: ARG002  (of every optimizer)
        """Draw the sets and return the best."""
        first = self._first_rows(bench)
        most = bench.room - cost_of_halving(self.sets, first, len(bench.validation))
        pool = await example_pool.examples_from_fitting_labels(bench, state, first)
        pool = pool or await example_pool.examples_from_runs(bench, state, threshold=self.threshold, most=max(0, most))
        best = await self.choose_set(bench, pool, [state], first, "random set")
        self.searched.assign(True)
        return best

    def step_cost(self, bench: Bench) -> int:
        """Return the rollouts of the pool and of the halving."""
        runs = 0 if example_pool.examples_from_labels(bench) else len(bench.train)
        return runs + cost_of_halving(self.sets, self._first_rows(bench), len(bench.validation))

    def _first_rows(self, bench: Bench) -> int:
        """Return how many validation rows the first round has: as many as fit into a budget, beside the pool."""
        rows, room = len(bench.validation), bench.room - len(bench.train)
        more = range(self.first + 1, rows + 1) if bench.is_limited else ()
        return max([self.first, *(first for first in more if cost_of_halving(self.sets, first, rows) <= room)])

    @property
    def done(self) -> bool:
        """Whether the sets were drawn."""
        return bool(self.searched.value)
