"""GridSearch: all combinations of the values that Variables may have."""

from math import prod
from typing import Any, ClassVar

from synmod.errors import TrainerError
from synmod.leaves import Json
from synmod.registry import register_own
from synmod.train import Bench, Optimizer, TargetKind
from synmod.tree import OptState, State


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
