"""Optimizers that try everything once, without a model: all combinations of options, a program without each part."""

import re
from collections.abc import Sequence
from math import fsum, prod
from typing import Any, ClassVar, Final

from synmod.data import problems
from synmod.errors import TrainerError
from synmod.leaves import Json
from synmod.registry import register_own
from synmod.train import LEFT_OUT, Bench, Optimizer, TargetKind, mean_bounds, real_number, row_losses
from synmod.tree import OptState, State

_SPLITS: Final = ("validation", "train")
_LINE: Final = re.compile(r"\s*\S.*")  # with the blank lines before it


@register_own()
class GridSearch(Optimizer):
    """Runs each combination of options on all validation rows, in a seeded order, as many as the budget allows.

    The options are those of each `Choice`, or of any other Variable whose schema lists its values.

    Args:
        only: Paths, globs or Filters of the Variables that it may change; None for all that are trained.
        **options: Those of every optimizer.

    Raises:
        TrainerError: When it runs: no Variable that it may change lists its values.

    Example:
        >>> GridSearch().done
        False

    Source: KerasTuner's `GridSearch`; differs: a seeded order, so that a part of it is a fair sample.
    """

    kinds: ClassVar[tuple[TargetKind, ...]] = ("value",)
    ends = True

    def __init__(self, *, only: Any = None, **options: Any) -> None:
        super().__init__(only=only, **options)
        self.searched = self.add_variable(False, schema={"type": "boolean"}, name="searched", type=OptState)

    @property
    def done(self) -> bool:
        """Whether it has run."""
        return bool(self.searched.value)

    def step_cost(self, bench: Bench) -> int:
        """Return the rollouts of all combinations, or as many as there is room for."""
        return min(bench.room, len(bench.validation) * prod(map(len, _options(bench).values())))

    async def update(self, state: State, feedback: Any, bench: Bench) -> State:  # noqa: ARG002  (of every optimizer)
        """Run the combinations; return the best."""
        options, rows = _options(bench), len(bench.validation)
        if not options:
            raise TrainerError("GridSearch: no Variable that it may change lists its values; write sm.Choice([...]).")
        await bench.evaluate(state, bench.validation)
        total = prod(map(len, options.values()))
        places = bench.rng("order").sample(range(total), min(total, max(1, bench.room // rows + 1)))
        states = [_combine(state, options, place) for place in places]
        for combination in states:
            bench.candidate(combination, state, operator="combination")
        await bench.complete_validation([combination for combination in states if combination != state])
        self.searched.assign(True)
        return await bench.best_on_validation(state)


def _options(bench: Bench) -> dict[str, list[Json]]:
    """Return the options by path."""
    return {path: list(target.schema["enum"]) for path, target in bench.targets.items() if "enum" in target.schema}


def _combine(state: State, options: dict[str, list[Json]], place: int) -> State:
    """Return the combination at a place in the order of all combinations."""
    values: dict[str, Json] = {}
    for path, choices in options.items():
        place, index = divmod(place, len(choices))
        values[path] = choices[index]
    return state.replace(values)


@register_own()
class Prune(Optimizer):
    """Leaves out lines of texts, and examples, one after the other, the last one first: a step each.

    A program is compared without the part and with it, on the same rows: all validation rows, and as many train rows,
    as far as the budget has room for them. With a margin of 0 a part goes only if no row gets worse. Above 0 it goes
    if the one-sided 95 % bound of the mean loss is at most the margin, both against the program so far and against
    the first one: so many small losses do not add up. What remains is thereby proved as a whole.

    `History.worth` returns what each part is worth.

    Args:
        margin: How much worse the mean score may become, in the units of the reward.
        only: Paths, globs or Filters of the Variables that it may change; None for all that are trained.
        **options: Those of every optimizer.

    Raises:
        TrainerError: The margin is not a number of at least 0.

    Example:
        >>> Prune(margin=0.02).done
        False

    Source: ablation studies, backward elimination; non-inferiority trials (a margin that is shown, not assumed).
    """

    kinds: ClassVar[tuple[TargetKind, ...]] = ("examples", "instruction")
    ends = True

    def __init__(self, margin: float = 0.0, *, only: Any = None, **options: Any) -> None:
        super().__init__(only=only, **options)
        self.margin = real_number(self, "margin", margin)
        self.left = self.add_variable(None, schema={"type": ["integer", "null"]}, name="left", type=OptState)
        self.extra = self.add_variable(0, schema={"type": "integer"}, name="extra", type=OptState)

    @property
    def done(self) -> bool:
        """Whether every part was tried."""
        return self.left.value == 0

    def step_cost(self, bench: Bench) -> int:
        """Return the rollouts of one part; the bench itself keeps the validation rows of the first program."""
        extra = 2 * self._count_extra(bench, bench.seed) if self.left.value is None else self.extra.value
        return len(bench.validation) + extra

    async def update(self, state: State, feedback: Any, bench: Bench) -> State:  # noqa: ARG002  (of every optimizer)
        """Try the program without one part; return what it shall hold."""
        if self.left.value is None:
            self.extra.assign(self._count_extra(bench, state))
        parts = _parts(bench, state)
        left = len(parts) if self.left.value is None else min(self.left.value, len(parts))
        self.left.assign(max(0, left - 1))
        if not left:
            return state
        path, rest = parts[left - 1]
        if problems(bench.targets[path].schema, rest):
            return state
        shorter = state.replace({path: rest})
        bench.candidate(shorter, state, operator=LEFT_OUT)
        is_proved = await self._is_proved(bench, state, shorter)
        losses = row_losses(_scores(bench, state), _scores(bench, shorter))
        gain = 0.0 - fsum(losses)
        bench.log(LEFT_OUT, [path], "accepted" if is_proved else "worse" if gain < 0 else "no_gain", gain, len(losses))
        return shorter if is_proved else state

    async def finish(self, state: State, bench: Bench) -> State:  # noqa: ARG002  (of every optimizer)
        """Return the State as it is: each step has proved it against the first one."""
        return state

    async def _is_proved(self, bench: Bench, state: State, shorter: State) -> bool:
        """Whether a State is good enough; the train rows are run only if validation rows leave that open."""
        olds, is_proved = [*dict.fromkeys((state, bench.seed))], False
        for split, rows in zip(_SPLITS, (bench.validation, _more_rows(bench)[: self.extra.value]), strict=True):
            await bench.gather(*(bench.evaluate(program, rows, split=split) for program in (*olds, shorter)))
            bounds = [self._loss(bench, old, shorter) for old in olds]
            if any(low > self.margin for low, _ in bounds):
                return False
            is_proved = all(high <= self.margin for _, high in bounds)
        return is_proved

    def _loss(self, bench: Bench, old: State, new: State) -> tuple[float, float]:
        """Return bounds of the mean loss; with a margin of 0 the loss of the row that got worse most."""
        losses = row_losses(_scores(bench, old), _scores(bench, new))
        return mean_bounds(losses, bench.width) if self.margin or not losses else (max(losses), max(losses))

    def _count_extra(self, bench: Bench, state: State) -> int:
        """Return how many train rows each part is tried on: as many as the budget has room for."""
        rows = len(bench.validation)
        room = bench.room // (len(_parts(bench, state)) + 1) - rows
        return max(0, min(room, rows, len(_more_rows(bench))))


def _parts(bench: Bench, state: State) -> list[tuple[str, Json]]:
    """Return the path of each line and example, in order, and the value of its Variable without it."""
    parts: list[tuple[str, Json]] = []
    for path, target in bench.targets.items():
        value: Any = state[path].value
        is_text = target.kind == "instruction"
        items: Sequence[Any] = _LINE.findall(value.rstrip()) if is_text else value
        for at in range(len(items)):
            rest = [*items[:at], *items[at + 1 :]]
            parts.append((path, "".join(rest).lstrip("\n") if is_text else rest))
    return parts


def _scores(bench: Bench, state: State) -> dict[str, dict[str, float]]:
    """Return the scores of a State by split and row."""
    return {split: bench.scores(state, split) for split in _SPLITS}


def _more_rows(bench: Bench) -> list[str]:
    """Return the train rows that are not validation rows, too."""
    validation = {*bench.validation}
    return [
        row for row in bench.train if row not in validation or bench.example(row) != bench.example(row, "validation")
    ]
