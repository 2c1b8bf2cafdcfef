"""Omega: mixtures of members, and who survives."""

from synmod.optimizers import Omega
from synmod.testing.tasks import RuleProposer, RuleTask
from tests.optimizers.doubles import run


async def test_members_are_mixed_path_by_path():
    """A mixture has two parents, and only values of theirs."""
    made = Omega(proposer=RuleProposer(), crossover=0.5)
    history, _ = await run(made, RuleTask(rows=16), budget=300)
    known = {candidate.id: candidate.state for candidate in history.candidates}
    mixed = [candidate for candidate in history.candidates if candidate.operator == "crossover"]
    assert mixed
    for candidate in mixed:
        parents = [known[parent].to_json() for parent in candidate.parents]
        assert len(parents) == 2
        assert all(value in [parent[path] for parent in parents] for path, value in candidate.state.to_json().items())


async def test_a_population_keeps_the_best_and_what_is_unlike_it():
    """No more than `population` survive; the one with the highest bound always does."""
    made = Omega(proposer=RuleProposer(), population=3)
    history, _ = await run(made, RuleTask(rows=16), budget=300)
    assert len(made.pool.value) == 3
    held = [{**history.candidates[0].state.to_json(), **changes} for changes in made.pool.value]
    assert max(held.count(value) for value in held) == 1
    assert history.best.score > history.candidates[0].score
