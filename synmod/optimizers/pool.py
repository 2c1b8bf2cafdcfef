"""The pool: the candidates that an optimizer keeps, in an `OptState` Variable of its own."""

from collections.abc import Iterable
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
        """Return the candidates, oldest first: the seed alone, before others are kept."""
        values: list[dict[str, Json]] = self._kept.value or [{}]
        return [self._bench.seed.replace(each) for each in values]

    def keep(self, members: Iterable[State]) -> None:
        """Keep these candidates, each once, and no others."""
        changes = (self._bench.seed.diff(state) for state in dict.fromkeys(members))
        self._kept.assign([{path: leaf.value for path, (_, leaf) in each.items() if leaf} for each in changes])

    def bound(self, state: State) -> float:
        """Return the lower bound of a candidate's mean score on validation rows; without rows that of the worst."""
        bench = self._bench
        scores = list(bench.scores(state).values()) or [bench.best_score - bench.width]
        return fsum(scores) / len(scores) - self._lcb * bench.width / sqrt(len(scores))

    def ranked(self) -> list[State]:
        """Return the candidates by their bounds, the highest first; of equal ones the older."""
        return sorted(self.members(), key=self.bound, reverse=True)
