"""The pool: the candidates that an optimizer keeps, in an `OptState` Variable of its own."""

from __future__ import annotations

from math import fsum, sqrt

from synmod.leaves.frozen import Json
from synmod.train import Bench
from synmod.tree import State, Variable


class Pool:
    """Candidates with their bounds, over a Variable of an optimizer.

    Args:
        kept: What each candidate changes of the seed.
        bench: Knows the scores.
        lcb: How many standard errors of a score in the whole range a bound lies below the mean.
    """

    def __init__(self, kept: Variable, bench: Bench, lcb: float) -> None:
        self._kept, self._bench, self._lcb = kept, bench, lcb

    def members(self) -> list[State]:
        """Return the candidates, oldest first; the seed is the first one."""
        values: list[dict[str, Json]] = self._kept.value or [{}]
        return [self._bench.seed.replace(each) for each in values]

    def add(self, state: State) -> None:
        """Keep a candidate: what it changes of the seed."""
        members = self.members()
        if state not in members:
            self.set([*members, state])

    def set(self, members: list[State]) -> None:
        """Keep these candidates."""
        seed = self._bench.seed
        changes = (seed.diff(state) for state in members)
        self._kept.assign([{path: leaf.value for path, (_, leaf) in each.items() if leaf} for each in changes])

    def bound(self, state: State) -> float:
        """Return the lower bound of a candidate's mean score on validation rows."""
        scores = self._bench.scores(state).values()
        if not scores:
            return float("-inf")
        return fsum(scores) / len(scores) - self._lcb * self._bench.width / sqrt(len(scores))

    def best(self) -> State:
        """Return the candidate with the highest bound; of equal ones the older."""
        return max(self.members(), key=self.bound)
