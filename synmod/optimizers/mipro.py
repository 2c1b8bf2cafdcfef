"""Mipro: instructions and sets of examples, chosen together by what a linear model of their scores expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from operator import mul
from random import Random
from typing import Any, ClassVar, Final, TypeAlias

from synmod.data import dump_json, problems
from synmod.errors import TrainerError
from synmod.leaves import Json, check_choice
from synmod.registry import register_own
from synmod.train import Bench, TargetKind, whole_number, whole_numbers
from synmod.tree import OptState, State

from .example_pool import draw_sets, examples_from_fitting_labels, examples_from_runs
from .reflection import Reflective, evidence, minibatches

Choice: TypeAlias = tuple[int, ...]
"""The number of the value that is chosen, per dimension."""

_REDRAWS, _FINALISTS, _RECORDS, _VALUES = 4, 3, 8, 6
_HINTS: Final = (
    "",
    "Keep the value brief: two sentences at most.",
    "Describe the procedure step by step.",
    "Name the mistakes to avoid that the records with low scores show.",
)


@register_own()
class Mipro(Reflective):
    """Chooses an instruction and a set of examples for each module, all together, by few rows per combination.

    Each step draws combinations from what is known so far (Thompson sampling) and runs each on its next rows. Of a
    Variable whose schema lists its values, the choices are these values.

    Args:
        instructions: Texts per instruction, or values of another Variable, the present one included; further
            `proposals` are kept, too. None: 6 from a model, or the `proposals` alone, and no model is asked.
        sets: Sets per examples Variable, the present one included.
        max_examples: Entries per set at most; 0 chooses instructions alone.
        proposals: Texts, or other values, by path. A model is asked only for what `instructions` wants beyond them.
        width: Combinations per step.
        block: Validation rows per combination and step.
        steps: How many; None until `patience` is over.
        patience: Steps in a row of which none found anything better until it is done.
        **options: Those of every optimizer.

    Raises:
        TrainerError: A number that cannot be.

    Example:
        >>> Mipro(max_examples=0, proposals={"instructions": ["Be brief.", "Think first."]}).width
        4

    Source: DSPy's MIPROv2; differs: an exact linear model in place of a density estimator, rows by block.
    """

    kinds: ClassVar[tuple[TargetKind, ...]] = ("examples", "instruction", "value")

    def __init__(
        self,
        instructions: int | None = None,
        sets: int = 6,
        max_examples: int = 4,
        proposals: Mapping[str, Sequence[Any]] | None = None,
        width: int = 4,
        block: int = 8,
        steps: int | None = None,
        patience: int = 20,
        **options: Any,
    ) -> None:
        super().__init__(patience=patience, **options)
        self.instructions = None if instructions is None else whole_number(self, "instructions", instructions)
        self.sets, self.width, self.block = whole_numbers(self, sets=sets, width=width, block=block)
        self.max_examples = whole_number(self, "max_examples", max_examples, least=0)
        for path, texts in (proposals or {}).items():
            if isinstance(texts, str):
                raise TrainerError(f"Mipro: proposals[{path!r}] is a text; give a list of texts.")
        self.proposals = {path: list(texts) for path, texts in (proposals or {}).items()}
        self.steps = None if steps is None else whole_number(self, "steps", steps)
        self.choices = self.add_variable({}, schema={"type": "object"}, name="choices", type=OptState)
        self.seen = self.add_variable([], schema={"type": "array"}, name="seen", type=OptState)
        self.best = self.add_variable([], schema={"type": "array"}, name="best", type=OptState)
        self.taken = self.add_variable(0, schema={"type": "integer"}, name="taken", type=OptState)

    @property
    def done(self) -> bool:
        """Whether the steps are over, or nothing better was found for long."""
        return super().done if self.steps is None else self.taken.value >= self.steps

    def step_cost(self, bench: Bench) -> int:
        """Return the rollouts of a step, and of those at the end that the bench does not keep by itself."""
        rows = len(bench.validation)
        draws = self.width * min(self.block, rows)
        if not self.choices.value:
            asks = any(
                self._count_values(bench, path) > len(self.proposals.get(path, ())) + 1 for path in _text_paths(bench)
            )
            sets = self.sets // 2 * min(self.block, rows) if self.max_examples else 0
            return draws + rows + sets + (len(bench.train) if asks or self.max_examples else 0)
        end = sum(len(bench.missing(self._combine(bench, choice))) for choice in self.best.value)
        return draws + max(0, end - bench.finish_cost())

    async def update(self, state: State, feedback: Any, bench: Bench) -> State:  # noqa: ARG002  (of every optimizer)
        """Take one step; return the combination of which most is expected."""
        if not self.choices.value:
            self.choices.assign(await self._values(bench, state))
        await bench.evaluate(self._combine(bench), bench.validation)
        modules = [bench.targets[path].module for path in self.choices.value]
        model = LinearScores(modules, [len(values) for values in self.choices.value.values()], bench.width)
        for observed in self.seen.value:
            model.observe(*observed)
        draws = self._draw(bench, model)
        await bench.gather(*(bench.evaluate(self._combine(bench, choice), rows) for choice, rows in draws.items()))
        for choice, rows in draws.items():
            if gains := self._gains(bench, choice, rows):
                mean = fsum(gains) / len(gains)
                model.observe(choice, mean, len(gains))
                self.seen.assign([*self.seen.value, [list(choice), mean, len(gains)]])
        expected, observed_choices = model.weights(), dict.fromkeys(tuple(choice) for choice, _, _ in self.seen.value)
        gains = {self._present: 0.0} | {choice: model.gain(expected, choice) for choice in observed_choices}
        ranked = sorted(gains, key=lambda choice: -gains[choice])
        return self._end_step(bench, state, ranked)

    def _draw(self, bench: Bench, model: LinearScores) -> dict[Choice, list[str]]:
        """Draw combinations with rows left, and return the next rows of each."""
        rng, draws = bench.rng("draws"), dict[Choice, list[str]]()
        for _ in range(_REDRAWS * self.width):
            choice = model.best(model.weights(rng), rng)
            if rows := bench.missing(self._combine(bench, choice)):
                draws[choice] = rows[: self.block]
                bench.candidate(self._combine(bench, choice), bench.seed, operator="draw")
            if len(draws) == self.width:
                break
        return draws

    def _end_step(self, bench: Bench, state: State, ranked: Sequence[Choice]) -> State:
        """Note what a step came to; return the best combination."""
        best, gains = self._combine(bench, ranked[0]), self._gains(bench, ranked[0], bench.validation)
        word = "no_gain" if best == state else "accepted"
        bench.log("draws", state.diff(best), word, fsum(gains), len(gains))
        self.best.assign([list(choice) for choice in ranked[:_FINALISTS]])
        self.taken.assign(self.taken.value + 1)
        self.note(best != state)
        return best

    async def finish(self, state: State, bench: Bench) -> State:  # noqa: ARG002  (of every optimizer)
        """Return the best of those of which most is expected, proved on all validation rows; else the seed."""
        await bench.complete_validation([self._combine(bench, choice) for choice in self.best.value])
        best, most = bench.seed, 0.0
        for choice in self.best.value:
            gain = fsum(self._gains(bench, choice, bench.validation))
            if gain > most and not bench.missing(self._combine(bench, choice)):
                best, most = self._combine(bench, choice), gain
        return best

    # -- combinations -------------------------------------------------------------------------------------------------

    @property
    def _present(self) -> Choice:
        """The combination of the present values, which stand first."""
        return (0,) * len(self.choices.value)

    def _combine(self, bench: Bench, choice: Sequence[int] | None = None) -> State:
        """Return a combination as a State."""
        chosen = zip(self.choices.value.items(), choice or self._present, strict=True)
        return bench.seed.replace({path: values[number] for (path, values), number in chosen})

    def _gains(self, bench: Bench, choice: Sequence[int], rows: Sequence[str]) -> list[float]:
        """Return what a combination gains over the present values, on those rows that both were run on."""
        old, new = bench.scores(self._combine(bench)), bench.scores(self._combine(bench, choice))
        return [new[row] - old[row] for row in rows if row in new and row in old]

    # -- what there is to choose from ---------------------------------------------------------------------------------

    async def _values(self, bench: Bench, state: State) -> dict[str, list[Json]]:
        """Return the values of each dimension, the present one first.

        Raises:
            TrainerError: There is nothing to choose, or proposals for something else.
        """
        paths = _text_paths(bench)
        for path, proposals in self.proposals.items():
            check_choice("Mipro: a path of proposals", path, paths, error=TrainerError)
            for value in proposals:
                if faults := problems(bench.targets[path].schema, value):
                    raise TrainerError(
                        f"Mipro: proposals[{path!r}] has {faults[0].got}; its schema wants {faults[0].wanted}."
                    )
        options = await self._sets(bench, state)
        self.tried.assign({path: [] for path in paths})
        texts = await bench.gather(*(self._texts(bench, state, path) for path in paths))
        options |= dict(zip(paths, texts, strict=True))
        values = {path: options[path] for path in bench.targets if len(options.get(path, ())) > 1}
        if not values:
            error = bench.proposal_error
            raise TrainerError(
                "Mipro has nothing to choose from: there are no proposals, no row makes an example, and the proposer "
                f"gave no text{f': {error}' if error else '.'}"
            )
        return values

    async def _sets(self, bench: Bench, state: State) -> dict[str, list[Json]]:
        """Return sets of examples by path: the present one, labels where they fit, the first harvested, random ones."""
        if not self.max_examples or not any(target.kind == "examples" for target in bench.targets.values()):
            return {}
        pool = await examples_from_fitting_labels(bench, state, self.block) or await examples_from_runs(bench, state)
        if not pool:
            return {}
        pool.register(bench)
        states = list(dict.fromkeys([state, pool.with_rows(state, pool.rows, self.max_examples)]))[: self.sets]
        most, first = self.max_examples, self.block
        states = await draw_sets(bench, pool, states, most=most, sets=self.sets, first=first, operator="set")
        return {path: _distinct([each[path].value for each in states]) for path in pool.entries}

    async def _texts(self, bench: Bench, state: State, path: str) -> list[Json]:
        """Return values for one path: the present one, the proposals, and what is missing from a model."""
        own: list[Json] = [state[path].value, *_members(bench.targets[path].schema), *self.proposals.get(path, ())]
        texts = _distinct(own)
        for number in range(self._count_values(bench, path) - len(texts)):
            self.tried.assign({**self.tried.value, path: texts[1:]})
            rows = minibatches(bench, [state], _RECORDS, f"records/{path}/{number}")[0]
            batch = await evidence(bench, state, rows)
            child = await self.child(bench, batch, [path], _HINTS[number % len(_HINTS)])
            if child is not None and child[path].value not in texts:
                texts.append(child[path].value)
        return texts

    def _count_values(self, bench: Bench, path: str) -> int:
        """Return how many values of a path there should be, where a model must give those that are missing."""
        is_given = bool(self.proposals) or bool(_members(bench.targets[path].schema))
        return (0 if is_given else _VALUES) if self.instructions is None else self.instructions


def _text_paths(bench: Bench) -> list[str]:
    """Return the paths of instructions and other values."""
    return [path for path, target in bench.targets.items() if target.kind != "examples"]


def _distinct(values: Sequence[Json]) -> list[Json]:
    """Return values without repeats, in order."""
    return [*{dump_json(value): value for value in values}.values()]


def _members(schema: Any) -> list[Json]:
    """Return the values that a schema lists, if it does."""
    return list(schema.get("enum", ()))


# -- what it draws from: scores of combinations as a linear model, whose posterior is exact --------------------------

_OF_ONE, _OF_PAIR, _NOISE = 0.15, 0.08, 0.5  # deviations, as shares of the range of scores
_STARTS = 4


class LinearScores:
    """Gains as sums of weights: one for all, one per choice, and one per pair of choices in the same module.

    The weights are Gaussian, and so is the noise; so what is known of them is exact. It is kept as a Cholesky factor of
    how the observations vary together: few of them are seen of many weights.

    Args:
        modules: The module of each dimension.
        sizes: How many choices each dimension has.
        width: The width of the range of scores.

    Source: Thompson sampling in linear bandits; a posterior draw by perturbing prior and observations (Papandreou and
    Yuille).
    """

    def __init__(self, modules: Sequence[str], sizes: Sequence[int], width: float = 1.0) -> None:
        self.sizes, self._noise = tuple(sizes), _NOISE * width
        pairs = [(a, b) for b in range(len(sizes)) for a in range(b) if modules[a] == modules[b]]
        counts = [1, *sizes, *(sizes[a] * sizes[b] for a, b in pairs)]
        first = [sum(counts[:at]) for at in range(len(counts))]
        self._singles = first[1 : 1 + len(sizes)]
        self._pairs = [(a, b, at) for (a, b), at in zip(pairs, first[1 + len(sizes) :], strict=True)]
        ones = 1 + sum(sizes)
        deviations = [_OF_ONE * width] * ones + [_OF_PAIR * width] * (sum(counts) - ones)
        self._prior = [(deviation, deviation**2) for deviation in deviations]
        self._seen: list[tuple[list[int], float, float]] = []
        self._factor: list[list[float]] = []

    def _weights_of(self, choice: Sequence[int]) -> list[int]:
        """Return the numbers of the weights whose sum is the gain of a choice."""
        singles = [at + number for at, number in zip(self._singles, choice, strict=True)]
        return [0, *singles, *(at + choice[a] * self.sizes[b] + choice[b] for a, b, at in self._pairs)]

    def observe(self, choice: Sequence[int], gain: float, rows: int) -> None:
        """Take in the mean gain of a choice over some rows."""
        numbers, variance, row = self._weights_of(choice), self._noise**2 / rows, list[float]()
        own = {number: self._prior[number][1] for number in numbers}
        for (others, _, _), factor in zip(self._seen, self._factor, strict=True):
            shared = fsum(own[number] for number in others if number in own)
            row.append((shared - fsum(map(mul, row, factor))) / factor[-1])
        self._factor.append([*row, sqrt(variance + fsum(own.values()) - fsum(map(mul, row, row)))])
        self._seen.append((numbers, gain, variance))

    def weights(self, rng: Random | None = None) -> list[float]:
        """Return the weights that are expected; with a generator a draw: prior and observations are perturbed."""
        weights = [rng.gauss(0.0, deviation) if rng else 0.0 for deviation, _ in self._prior]
        pulls = list[float]()
        for (numbers, gain, variance), factor in zip(self._seen, self._factor, strict=True):
            noise = rng.gauss(0.0, sqrt(variance)) if rng else 0.0
            surprise = gain + noise - fsum(weights[number] for number in numbers)
            pulls.append((surprise - fsum(map(mul, pulls, factor))) / factor[-1])
        for (numbers, _, _), factor in zip(reversed(self._seen), reversed(self._factor), strict=True):
            pull = pulls.pop() / factor[-1]
            pulls = [earlier - pull * share for earlier, share in zip(pulls, factor, strict=False)]
            for number in numbers:
                weights[number] += pull * self._prior[number][1]
        return weights

    def gain(self, weights: Sequence[float], choice: Sequence[int]) -> float:
        """Return the gain of a choice under some weights."""
        return fsum(weights[number] for number in self._weights_of(choice))

    def best(self, weights: Sequence[float], rng: Random) -> Choice:
        """Return the choice of the highest gain, as far as changing one dimension at a time finds it."""
        optima: list[tuple[float, Choice]] = []
        for _ in range(_STARTS):
            choice = [int(rng.random() * size) for size in self.sizes]
            before, gain = None, self.gain(weights, choice)
            while before is None or gain > before:
                before = gain
                for at, size in enumerate(self.sizes):
                    options = [[*choice[:at], number, *choice[at + 1 :]] for number in range(size)]
                    choice = max(options, key=lambda option: self.gain(weights, option))
                gain = self.gain(weights, choice)
            optima.append((gain, tuple(choice)))
        return max(optima)[1]
