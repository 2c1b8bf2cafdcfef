"""RandomFewShot: random sets of examples, the best of which is found by halving."""

from math import inf
from typing import Any

from synmod.registry import register_own
from synmod.train import Bench, real_number, whole_number
from synmod.tree import OptState, State

from .example_pool import (
    FewShot,
    cost_of_halving,
    examples_from_fitting_labels,
    examples_from_labels,
    examples_from_runs,
    successive_halving,
)


@register_own()
class RandomFewShot(FewShot):
    """Draws sets of examples from labelled rows, or from rows that went well, and keeps the best: one step.

    A set has every answer of the rows, as far as they fit: what no example shows is rarely answered.

    Args:
        max_examples: Entries per examples Variable at most.
        sets: How many sets are compared, the present one included.
        threshold: The score from which a row makes examples; None for the highest, if enough rows reach it.
        first: How many validation rows the first round has.
        **options: Those of every optimizer.

    Raises:
        TrainerError: A number that cannot be.

    Example:
        >>> RandomFewShot(max_examples=16).done
        False

    Source: DSPy's `BootstrapFewShotWithRandomSearch`; differs: halving in place of full evaluation, labels where they
    fit, a row never sees the example made of it.
    """

    def __init__(
        self, max_examples: int = 8, sets: int = 16, threshold: float | None = None, first: int = 5, **options: Any
    ) -> None:
        super().__init__(**options)
        self.max_examples = whole_number(self, "max_examples", max_examples)
        self.sets = whole_number(self, "sets", sets)
        self.threshold = None if threshold is None else real_number(self, "threshold", threshold, least=-inf)
        self.first = whole_number(self, "first", first)
        self.searched = self.add_variable(False, schema={"type": "boolean"}, name="searched", type=OptState)

    async def update(self, state: State, feedback: Any, bench: Bench) -> State:  # noqa: ARG002  (of every optimizer)
        """Draw the sets and return the best."""
        most = bench.room - cost_of_halving(self.sets, self.first, len(bench.validation))
        pool = await examples_from_fitting_labels(bench, state, self.first)
        pool = pool or await examples_from_runs(bench, state, threshold=self.threshold, most=max(0, most))
        pool.register(bench)
        states = [state]
        for number in range(1, self.sets):
            rows = pool.random_rows(self.max_examples, bench.rng(f"sets/{number}"))
            states.append(pool.with_rows(state, rows, self.max_examples))
            bench.candidate(states[-1], state, operator="random set")
        best = await successive_halving(bench, states, self.first, "random set")
        self.searched.assign(True)
        return best

    def step_cost(self, bench: Bench) -> int:
        """Return the rollouts of the pool and of the halving."""
        runs = 0 if examples_from_labels(bench) else len(bench.train)
        return runs + cost_of_halving(self.sets, self.first, len(bench.validation))

    @property
    def done(self) -> bool:
        """Whether the sets were drawn."""
        return bool(self.searched.value)
