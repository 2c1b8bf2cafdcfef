"""Reflection: better values from a model, and the cheap test that a child must pass. Shared by Gepa, Omega, Reflect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, ClassVar, Final

from synmod.data import problems
from synmod.errors import AuthError, BudgetExceeded, ConfigError, EvaluationError, TrainerError, UnboundModelError
from synmod.leaves.frozen import Json
from synmod.module import Module
from synmod.scope import is_of_block_around
from synmod.train import (
    Bench,
    FeedbackItem,
    Optimizer,
    Proposer,
    Rollout,
    TargetKind,
    as_json,
    blamed,
    is_too_long,
    records_of,
    reflection_inputs,
)  # fmt: skip
from synmod.tree import OptState, State

_FATAL: Final = (AuthError, ConfigError, UnboundModelError)
_REMEMBERED: Final = 6
_FAILED_STEPS: Final = 3


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a parent did on some train rows.

    Attributes:
        parent: The State that was run.
        rows: Ids.
        rollouts: In their order.
        items: What each target's module was told.
        blame: The paths that failures blame, the most blamed first.
    """

    parent: State
    rows: tuple[str, ...]
    rollouts: tuple[Rollout, ...]
    items: Mapping[str, tuple[FeedbackItem, ...]]
    blame: tuple[str, ...]


async def evidence(bench: Bench, parent: State, rows: Sequence[str]) -> Evidence:
    """Run a parent on train rows, and see what its failures blame."""
    rollouts = await bench.evaluate(parent, rows, split="train", calls=True)
    items = await bench.feedback(rollouts)
    counts = blamed(items, rollouts, bench.best_score)
    return Evidence(parent, tuple(rows), tuple(rollouts), items, tuple(sorted(counts, key=lambda path: -counts[path])))


async def gain_in_two_waves(bench: Bench, child: State, found: Evidence) -> float:
    """Return what a child gains on the rows of its parent; rows that cannot gain run only if others did.

    Source: the minibatch test of GEPA; differs: exact for less than half of its price.
    """
    old = bench.scores(found.parent, "train")
    open_rows = [row for row in found.rows if row in old and old[row] < bench.best_score]
    closed_rows = [row for row in found.rows if row in old and row not in open_rows]
    gain = 0.0
    for rows in (open_rows, closed_rows):
        await bench.evaluate(child, rows, split="train")
        new = bench.scores(child, "train")
        gain += fsum(new[row] - old[row] for row in rows if row in new)
        if gain <= 0:
            break
    return gain


class Reflective(Optimizer):
    """An optimizer that asks a model for better values, and remembers what was accepted and tried."""

    kinds: ClassVar[tuple[TargetKind, ...]] = ("instruction", "value")
    ends: ClassVar[bool] = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.proposer: Module = self.proposer or Proposer(self.language_model)
        lists = {"type": "object"}
        self.accepted = self.add_variable({}, schema=lists, name="accepted", type=OptState)
        self.tried = self.add_variable({}, schema=lists, name="tried", type=OptState)
        counts = {"type": "object"}
        self.asked = self.add_variable({}, schema=counts, name="asked", type=OptState)

    async def child(
        self, bench: Bench, found: Evidence, paths: Sequence[str], hint: str = "", operator: str = "reflect"
    ) -> State | None:
        """Return a State with better values at some paths; None where the model gave none that can be used.

        Args:
            bench: Asks.
            found: What the parent did.
            paths: The targets to change, one after the other.
            hint: What else the model is told.
            operator: What the log calls it.
        """
        child = found.parent
        for path in paths:
            value = await self._value(bench, found, child, path, hint, operator)
            child = child if value is None else child.replace({path: value})
        if child == found.parent:
            return None
        bench.candidate(child, found.parent, operator=operator)
        return child

    async def _value(
        self, bench: Bench, found: Evidence, state: State, path: str, hint: str, operator: str
    ) -> Json | None:
        """Return a better value of one target: asked once more, told why, where the first cannot be used."""
        target = bench.targets[path]
        current: Any = state[path].value
        others = {other: state[other].value for other in bench.targets if other != path}
        expected = [as_json(rollout.target) for rollout in found.rollouts]
        records = records_of(found.items[path], bench.best_score, expected)
        accepted, tried = (memory.value.get(path, []) for memory in (self.accepted, self.tried))
        for _ in range(2):
            inputs = reflection_inputs(
                bench.task, target, current, others, records, accepted=accepted, tried=tried, hint=hint
            )
            try:
                value = (await bench.ask(self.proposer, inputs))["value"]
            except Exception as error:
                if is_of_block_around(error) or isinstance(error, BudgetExceeded):
                    raise
                if isinstance(error, _FATAL):
                    raise EvaluationError(f"the proposer cannot be asked: {error}. What finished is kept.") from error
                bench.log(operator, [path], "failed")
                self._count("failed")
                return None
            self._count("answered")
            faults = problems(target.schema, value)
            if faults:
                word, why = "invalid", f"misses its schema: {faults[0].wanted} wanted, {faults[0].got} got"
            elif is_too_long(value, current, self.proposer):
                word, why = "invalid", "is too long"
            elif bench.knows(state.replace({path: value})):
                word, why = "duplicate", "was tried before"
            else:
                return value
            bench.log(operator, [path], word)
            hint = f"{hint} Your last answer {why}: write another one.".strip()
        return None

    def _count(self, word: str) -> None:
        """Count an answer or a failure of the model in this step."""
        counts = self.asked.value
        self.asked.assign({**counts, word: counts.get(word, 0) + 1})

    def end_step(self, accepted: bool) -> None:
        """Count steps without an accepted candidate, and such in which the model answered nothing but errors.

        Raises:
            TrainerError: Three of the latter in a row.
        """
        self.note(accepted)
        counts = self.asked.value
        in_vain = counts.get("in_vain", 0) + 1 if counts.get("failed") and not counts.get("answered") else 0
        self.asked.assign({"in_vain": in_vain})
        if in_vain >= _FAILED_STEPS:
            raise TrainerError(
                f"{type(self).__name__}: in {in_vain} steps the proposer answered nothing but errors: look at the log "
                "synmod.train, and at the model that it asks."
            )

    def remember(self, child: State, parent: State, *, accepted: bool) -> None:
        """Note the values of a child that are not its parent's, for the next questions."""
        for memory in (self.tried, self.accepted) if accepted else (self.tried,):
            known = dict(memory.value)
            for path, (_, leaf) in parent.diff(child).items():
                if leaf is not None:
                    known[path] = [*known.get(path, []), leaf.value][-_REMEMBERED:]
            memory.assign(known)
