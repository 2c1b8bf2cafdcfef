"""The harvest: entries for examples Variables, from labels or from runs that went well; and sets drawn from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from synmod.data import dump_json, frozen, is_valid
from synmod.errors import TrainerError
from synmod.leaves.frozen import Json, is_object
from synmod.train import Bench, Rollout, as_json
from synmod.tree import State


class Entry(NamedTuple):
    """One entry for an examples Variable, and the train row it was made from."""

    row: str
    value: Json


Harvest: TypeAlias = Mapping[str, Sequence[Entry]]
"""The entries by path of their Variable, in the order of the rows; equal ones once."""


def labelled(bench: Bench) -> dict[str, list[Entry]]:
    """Return entries made of labelled rows, where one examples Variable alone takes such inputs and targets."""
    rows = [(row, bench.example(row)) for row in bench.train]
    values = [
        Entry(row, frozen({"inputs": as_json(example.inputs), "outputs": as_json(example.target)}))
        for row, example in rows
        if is_object(as_json(example.target)) and is_object(as_json(example.inputs))
    ]
    fitting = {
        path: [entry for entry in values if is_valid(bench.targets[path].schema, frozen([entry.value]))]
        for path in examples_paths(bench)
    }
    found = {path: distinct(entries) for path, entries in fitting.items() if entries}
    return found if len(found) == 1 else {}


def examples_paths(bench: Bench) -> list[str]:
    """Return the paths of the examples Variables."""
    return [path for path, target in bench.targets.items() if target.kind == "examples"]


def distinct(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries without those whose value came before."""
    return list({dump_json(entry.value): entry for entry in reversed(list(entries))}.values())[::-1]


async def harvested(bench: Bench, state: State, *, threshold: float | None = None) -> dict[str, list[Entry]]:
    """Return entries made of the calls of train rows that went well: those that reach a score.

    Args:
        bench: Runs the train rows.
        state: Under which State.
        threshold: The score; None for the highest there is if enough rows reach it, else that of the best quarter.
    """
    rollouts = await bench.evaluate(state, bench.train, split="train", calls=True)
    scored = [rollout for rollout in rollouts if rollout.score is not None and rollout.error is None]
    if threshold is None:
        perfect = [rollout for rollout in scored if rollout.score == bench.best_score]
        enough = len(perfect) * 4 >= len(scored)
        ranked = sorted(scored, key=lambda rollout: -(rollout.score or 0.0))
        chosen = set(map(id, perfect if enough else ranked[: max(1, len(scored) // 4)]))
    else:
        chosen = {id(rollout) for rollout in scored if (rollout.score or 0.0) >= threshold}
    good = [rollout for rollout in scored if id(rollout) in chosen]
    return {path: distinct(_entries(bench, path, good)) for path in examples_paths(bench)}


def _entries(bench: Bench, path: str, rollouts: Iterable[Rollout]) -> Iterable[Entry]:
    """Yield what the calls of a Variable's module got and gave."""
    target = bench.targets[path]
    for rollout in rollouts:
        for call in rollout.calls:
            if call.path == target.module and call.error is None:
                value = frozen({"inputs": call.inputs, "outputs": call.outputs})
                if is_valid(target.schema, frozen([value])):
                    yield Entry(rollout.id, value)


def register(bench: Bench, harvest: Harvest) -> None:
    """Tell the bench of which row each entry was made, so that no train row sees its own answer.

    Raises:
        TrainerError: There is no entry at all.
    """
    if not any(harvest.values()):
        raise TrainerError(
            "There is nothing to make examples of: no train row has a label that fits, and none went well. "
            "Begin with better instructions, or a teacher."
        )
    for path, entries in harvest.items():
        for entry in entries:
            bench.made_from(path, entry.value, entry.row)


def with_entries(state: State, chosen: Mapping[str, Sequence[Entry]]) -> State:
    """Return a State with entries as its examples."""
    return state.replace({path: [entry.value for entry in entries] for path, entries in chosen.items()})


def random_set(harvest: Harvest, most: int, rng: Random) -> dict[str, list[Entry]]:
    """Draw a size and rows, the same rows for every Variable.

    Args:
        harvest: What there is.
        most: Entries per Variable at most.
        rng: Draws.
    """
    rows = list(dict.fromkeys(entry.row for entries in harvest.values() for entry in entries))
    size = 1 + int(rng.random() * min(most, len(rows)))
    size = max(size, min(most, len(rows)) // 2)
    order = {row: number for number, row in enumerate(rng.sample(rows, len(rows)))}
    return {
        path: sorted((entry for entry in entries), key=lambda entry: order[entry.row])[:size]
        for path, entries in harvest.items()
    }


async def halved(bench: Bench, states: Sequence[State], first: int) -> State:
    """Return the best of several States: all run on the first rows, the better half on twice as many, and so on.

    Args:
        bench: Runs validation rows.
        states: The candidates, older ones first.
        first: How many rows the first round has.

    Source: successive halving (Jamieson and Talwalkar).
    """
    left = list(dict.fromkeys(states))
    rows = min(first, len(bench.validation))
    while True:
        ids = bench.validation[:rows]
        await bench.gather(*(bench.evaluate(state, ids) for state in left))
        left.sort(key=lambda state: -_mean(bench, state, ids))
        if len(left) == 1 or rows == len(bench.validation):
            return left[0]
        left = left[: (len(left) + 1) // 2]
        rows = min(2 * rows, len(bench.validation))


def halving_cost(sets: int, first: int, rows: int) -> int:
    """Return the most rollouts that `halved` takes."""
    seen, cost = min(first, rows), sets * min(first, rows)
    while sets > 1 and seen < rows:
        sets, before, seen = (sets + 1) // 2, seen, min(2 * seen, rows)
        cost += sets * (seen - before)
    return cost


def _mean(bench: Bench, state: State, ids: Sequence[str]) -> float:
    """Return the mean score of a State on some validation rows; below all where it has none."""
    scores = bench.scores(state)
    known = [scores[row] for row in ids if row in scores]
    return sum(known) / len(known) if known else float("-inf")
