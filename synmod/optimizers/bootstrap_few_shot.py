"""BootstrapFewShot: examples from a teacher's good runs or from labels; what the best set misses is put into it."""

from collections.abc import Mapping
from typing import Any

from synmod.lm import LanguageModel, model_from
from synmod.registry import register_own
from synmod.train import Bench, whole_numbers
from synmod.tree import OptState, State

from . import example_pool
from .example_pool import ExamplePool, FewShot, cost_of_halving

_FIRST = 5  # validation rows of the first round of halving


@register_own()
class BootstrapFewShot(FewShot):
    """Finds a good set of examples by halving, then swaps entries for rows that the set misses.

    Args:
        max_examples: Entries per examples Variable at most.
        sets: How many sets are compared at first, the present one included.
        teacher: Whose good runs make examples: a State, or values of the program by path; a model that stands in for
            its models; None for the program itself.
        width: Swaps tried per step.
        probe: Train rows per step on which it is seen what the set misses.
        block: Rows per round of a race.
        patience: Steps without an accepted swap until it is done.
        **options: Those of every optimizer.

    Raises:
        TrainerError: A number that cannot be.

    Example:
        >>> BootstrapFewShot(max_examples=16).patience
        12

    Source: DSPy's `BootstrapFewShot`; differs: peers draw sets blindly and never ask what a set misses.
    """

    def __init__(
        self,
        max_examples: int = 8,
        sets: int = 8,
        teacher: State | Mapping[str, Any] | LanguageModel | str | None = None,
        width: int = 2,
        probe: int = 8,
        block: int = 8,
        patience: int = 12,
        **options: Any,
    ) -> None:
        super().__init__(patience=patience, **options)
        self.max_examples, self.sets = whole_numbers(self, max_examples=max_examples, sets=sets)
        self.width, self.probe, self.block = whole_numbers(self, width=width, probe=probe, block=block)
        if teacher is None or isinstance(teacher, Mapping):
            self.teacher = teacher.to_json() if isinstance(teacher, State) else teacher
        else:
            self.teacher = model_from(teacher, "BootstrapFewShot: teacher")
        self.entries = self.add_variable({}, schema={"type": "object"}, name="entries", type=OptState)
        rows = {"type": "array", "items": {"type": "string"}}
        self.unseen = self.add_variable([], schema=rows, name="unseen", type=OptState)
        self.hard = self.add_variable([], schema=rows, name="hard", type=OptState)
        self.proved = self.add_variable(0, schema={"type": "integer"}, name="proved", type=OptState)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, a State as its values."""
        config = super().get_config()
        return {**config, "teacher": self.teacher} if isinstance(self.teacher, Mapping) else config

    def step_cost(self, bench: Bench) -> int:
        """Return the rollouts of the examples and of the halving at first, then of the probe and the races."""
        rows = len(bench.validation)
        if self.entries.value:
            return self._swap_cost(bench, self._slots(bench))
        runs = 0 if self.teacher is None and example_pool.examples_from_labels(bench) else len(bench.train)
        return runs + cost_of_halving(self.sets, _FIRST, rows)

    def _swap_cost(self, bench: Bench, slots: int) -> int:
        """Return the rollouts of a probe, of what the present State was not run on, and of races in some slots."""
        rows = len(bench.validation)
        return min(self.probe, len(bench.train)) + max(0, rows - self.proved.value) + slots * rows

    def _slots(self, bench: Bench) -> int:
        """Return how many swaps are tried: fewer where the budget ends, one at least."""
        return next((slots for slots in range(self.width, 1, -1) if self._swap_cost(bench, slots) <= bench.room), 1)

    async def update(self, state: State, feedback: Any, bench: Bench) -> State:  # noqa: ARG002  (of every optimizer)
        """Take one step: examples and halving first, then swaps."""
        state = await (self._try_swaps(bench, state) if self.entries.value else self._choose_first_set(bench, state))
        self.proved.assign(len(bench.scores(state)))
        return state

    async def _choose_first_set(self, bench: Bench, state: State) -> State:
        """Return the best of the present set, labels, the first entries of the teacher, and random sets."""
        labels, taught = await example_pool.examples_from_fitting_labels(bench, state, _FIRST), ExamplePool({})
        if self.teacher is not None or not labels:
            most = bench.room - cost_of_halving(self.sets, _FIRST, len(bench.validation))
            taught = await example_pool.examples_from_runs(bench, state, teacher=self.teacher, most=max(0, most))
        pool = taught.fill_rows_from(labels)
        firsts = [source.with_rows(state, source.rows, self.max_examples) for source in (labels, taught) if source]
        sets = list(dict.fromkeys([state, *firsts]))[: self.sets]
        for first in sets:
            bench.candidate(first, state, operator="set")
        best = await self.choose_set(bench, pool, sets, _FIRST, "set")
        self.entries.assign(pool.to_json())
        return best

    async def _try_swaps(self, bench: Bench, state: State) -> State:
        """Return the best of some swaps, if it gains over all validation rows."""
        pool, rng, slots = ExamplePool.from_json(self.entries.value), bench.rng("swaps"), self._slots(bench)
        pool.register(bench)
        await bench.evaluate(state, bench.missing(state))
        hard = await self._find_hard_rows(bench, state, pool)
        children = [pool.with_row(state, row, self.max_examples, rng) for row in hard[:slots]]
        for child in children:
            bench.candidate(child, state, operator="swap")
        races = await bench.gather(*(bench.race(child, state, block=self.block) for child in children))
        gains = [race.gain if race.kept else 0.0 for race in races]
        best = max(range(len(gains)), key=lambda slot: gains[slot], default=None)
        accepted = best is not None and gains[best] > 0
        for slot, race in enumerate(races):
            word = "accepted" if accepted and slot == best else "no_gain" if race.kept else "worse"
            bench.log("swap", list(pool.entries), word, race.gain, race.rows)
        if not children:
            bench.log("swap", list(pool.entries), "perfect")
        again = [row for slot, row in enumerate(hard[:slots]) if slot != best and gains[slot] > 0]
        self.hard.assign([*again, *hard[slots:]])
        self.note(accepted)
        return children[best] if best is not None and accepted else state

    async def _find_hard_rows(self, bench: Bench, state: State, pool: ExamplePool) -> list[str]:
        """Return train rows that the present set misses and the pool has entries of; those left over come first."""
        unseen: list[str] = self.unseen.value
        if len(unseen) < self.probe:
            shuffled = bench.rng("probe").sample(bench.train, len(bench.train))
            unseen = [*unseen, *(row for row in shuffled if row not in unseen)]
        probed = unseen[: self.probe]
        self.unseen.assign(unseen[self.probe :])
        await bench.evaluate(state, probed, split="train")
        scores, useful = bench.scores(state, "train"), set(pool.rows) - pool.rows_in(state)
        missed = [row for row in probed if row in scores and scores[row] < bench.best_score]
        return [row for row in dict.fromkeys([*self.hard.value, *missed]) if row in useful]
