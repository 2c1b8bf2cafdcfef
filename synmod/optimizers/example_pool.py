"""Pools of examples for Variables that hold them, from labels or from runs that went well; and sets made of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, NamedTuple

from synmod.data import dump_json, frozen, is_valid
from synmod.errors import TrainerError
from synmod.leaves import Json, is_object, json_equal
from synmod.lm import LanguageModel
from synmod.train import Bench, Optimizer, Rollout, Target, TargetKind, as_json, mean
from synmod.tree import State


class Entry(NamedTuple):
    """One entry for an examples Variable, and the train rows that it was made from."""

    rows: tuple[str, ...]
    value: Json


class ExamplePool(NamedTuple):
    """What examples can be made of.

    Attributes:
        entries: By path of their Variable, in the order of the rows; equal ones once.
    """

    entries: Mapping[str, Sequence[Entry]]

    @classmethod
    def of(cls, entries: Mapping[str, Iterable[tuple[str, Json]]]) -> ExamplePool:
        """Return the pool of rows and values by path; equal values are one entry, which has all of its rows."""
        merged: dict[str, list[Entry]] = {}
        for path, pairs in entries.items():
            rows: dict[str, dict[str, None]] = {}
            values: dict[str, Json] = {}
            for row, value in pairs:
                text = dump_json(value)
                rows.setdefault(text, {})[row] = None
                values[text] = value
            merged[path] = [Entry(tuple(rows[text]), value) for text, value in values.items()]
        return cls(merged)

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> ExamplePool:
        """Return the pool that `to_json` wrote."""
        return cls({path: [Entry(tuple(rows), value) for rows, value in entries] for path, entries in json.items()})

    def to_json(self) -> Json:
        """Return the pool as JSON, as an optimizer keeps it from step to step."""
        return {path: [[list(entry.rows), entry.value] for entry in entries] for path, entries in self.entries.items()}

    def __bool__(self) -> bool:
        return any(self.entries.values())

    def fill_rows_from(self, other: ExamplePool) -> ExamplePool:
        """Return a pool with the entries of another one for rows that this one has nothing of."""
        filled = {path: list(entries) for path, entries in self.entries.items()}
        for path, entries in other.entries.items():
            covered = {row for entry in filled.get(path, ()) for row in entry.rows}
            filled.setdefault(path, []).extend(entry for entry in entries if covered.isdisjoint(entry.rows))
        return ExamplePool(filled)

    def register(self, bench: Bench) -> None:
        """Let the bench know of which rows each entry was made, so that no train row sees its own answer.

        Raises:
            TrainerError: There are no entries.
        """
        if not self:
            raise TrainerError(
                "There is nothing to make examples of: no train row has a label that fits, and none went well. "
                "Begin with better instructions, or a teacher."
            )
        for path, entries in self.entries.items():
            for entry in entries:
                for row in entry.rows:
                    bench.note_source(path, entry.value, row)

    @property
    def rows(self) -> list[str]:
        """The rows that entries were made from."""
        return list(dict.fromkeys(entry.rows[0] for entries in self.entries.values() for entry in entries))

    def random_rows(self, most: int, rng: Random) -> list[str]:
        """Draw a size, three quarters of the largest at least, and rows: one of every answer where all of them fit."""
        rows, answers = self.rows, self._answers()
        most = min(most, len(rows))
        size = most - int(rng.random() * (most // 4 + 1))
        order = [*dict.fromkeys([*rng.sample(rows, size), *rng.sample(rows, len(rows))])]
        firsts = {answers[row]: row for row in reversed(order)}.values()
        size = max(size, len(firsts)) if len(firsts) <= most else size
        return sorted(sorted(order, key=lambda row: row not in firsts)[:size], key=order.index)

    def balance(self, rows: Iterable[str], excess: Mapping[str, float]) -> list[str]:
        """Return rows in the order of examples: those whose answers a model gives too often come first.

        Args:
            rows: In the order that they keep where their answers are given equally often.
            excess: By answer, by how much its share of those given is larger than its share of the right ones.
        """
        answers = self._answers()
        return sorted(rows, key=lambda row: -excess.get(answers[row], 0))

    def _answers(self) -> Mapping[str, str]:
        """Return the answers of the entries of each row, as text."""
        answers = defaultdict[str, str](str)
        for entries in self.entries.values():
            for entry in entries:
                answers[entry.rows[0]] += dump_json(entry.value["outputs"])
        return answers

    def rows_in(self, state: State) -> set[str]:
        """Return the rows that the examples of a State are made of."""
        rows: set[str] = set()
        for path, entries in self.entries.items():
            values = {dump_json(value) for value in state[path].value}
            rows.update(entry.rows[0] for entry in entries if dump_json(entry.value) in values)
        return rows

    def with_rows(self, state: State, rows: Iterable[str], most: int) -> State:
        """Return a State whose examples are the entries of some rows: the same rows for every Variable.

        Args:
            state: Keeps its other values.
            rows: In the order of the examples.
            most: Entries per Variable at most; a Variable that is a pool gets the entries of all rows.
        """
        place = {row: number for number, row in enumerate(rows)}
        changes: dict[str, Json] = {}
        for path, entries in self.entries.items():
            if state[path].metadata.get("is_pool"):
                changes[path] = [entry.value for entry in entries]
                continue
            chosen = [entry for entry in entries if entry.rows[0] in place]
            changes[path] = [entry.value for entry in sorted(chosen, key=lambda entry: place[entry.rows[0]])][:most]
        return state.replace(changes)

    def with_row(self, state: State, row: str, most: int, rng: Random) -> State:
        """Return a State with the entries of one more row: where there is no room, in the places of drawn ones.

        Args:
            state: What is changed.
            row: Has entries, which the State does not show.
            most: Entries per Variable at most.
            rng: Draws the same places for every Variable.
        """
        draws = [rng.random() for _ in range(most)]
        changes: dict[str, Json] = {}
        for path, entries in self.entries.items():
            new = [entry.value for entry in entries if entry.rows[0] == row][:most]
            examples: list[Any] = list(state[path].value)
            if state[path].metadata.get("is_pool"):
                changes[path] = [*examples, *new]
                continue
            for value, draw in zip(new, draws, strict=False):
                if len(examples) < most:
                    examples.append(value)
                else:
                    examples[int(draw * len(examples))] = value
            changes[path] = examples
        return state.replace(changes)


# -- where entries come from -------------------------------------------------------------------------------------------


def examples_from_labels(bench: Bench) -> ExamplePool:
    """Return entries made of labelled rows, where there is one examples Variable and it takes them; else nothing."""
    paths = _paths(bench)
    if len(paths) != 1:
        return ExamplePool({})
    target = bench.targets[paths[0]]
    entries = [(row, _entry(target, as_json(bench.example(row).inputs), bench.target_of(row))) for row in bench.train]
    return ExamplePool.of({paths[0]: [(row, entry) for row, entry in entries if entry is not None]})


async def examples_from_fitting_labels(bench: Bench, state: State, first: int) -> ExamplePool:
    """Return entries made of labelled rows, where the Variable's module really gets what the program gets.

    Args:
        bench: Runs the first validation rows.
        state: The State of the program; halving runs it on these rows, too.
        first: How many rows these are.
    """
    pool = examples_from_labels(bench)
    for path in pool.entries:
        rollouts = await bench.evaluate(state, _spread_rows(bench)[:first], calls=True)
        pairs = [(call, as_json(rollout.inputs)) for rollout in rollouts for call in rollout.calls]
        if not all(json_equal(call.inputs, got) for call, got in pairs if call.path == bench.targets[path].module):
            return ExamplePool({})
    return pool


async def examples_from_runs(
    bench: Bench,
    state: State,
    *,
    threshold: float | None = None,
    teacher: Mapping[str, Json] | LanguageModel | None = None,
    most: int | None = None,
) -> ExamplePool:
    """Return entries made of the calls of train rows that went well: those that reach a score.

    Args:
        bench: Runs the train rows.
        state: Under which State.
        threshold: The score; None for the highest there is if a quarter of the rows reaches it, else that of the best
            quarter, without rows of the lowest score.
        teacher: Runs the rows in the place of the State.
        most: Rows at most; None for all.
    """
    rollouts = await bench.evaluate(state, bench.train[:most], split="train", calls=True, teacher=teacher)
    scored = [(rollout.score, rollout) for rollout in rollouts if rollout.score is not None and rollout.error is None]
    if threshold is None:
        ranked = sorted(score for score, _ in scored)
        threshold = ranked[-((len(ranked) + 3) // 4)] if ranked else bench.best_score
        scored = [(score, rollout) for score, rollout in scored if score > bench.best_score - bench.width]
    calls = [(rollout.id, call) for score, rollout in scored if score >= threshold for call in rollout.calls]
    entries_by_path: dict[str, list[tuple[str, Json]]] = {}
    for path in _paths(bench):
        target = bench.targets[path]
        mine = [(row, call) for row, call in calls if call.path == target.module and call.error is None]
        entries = [(row, _entry(target, call.inputs, call.outputs)) for row, call in mine]
        entries_by_path[path] = [(row, entry) for row, entry in entries if entry is not None]
    return ExamplePool.of(entries_by_path)


def _paths(bench: Bench) -> list[str]:
    """Return the paths of the examples Variables."""
    return [path for path, target in bench.targets.items() if target.kind == "examples"]


def _entry(target: Target, inputs: Any, outputs: Any) -> Json | None:
    """Return inputs and outputs as an entry, without outputs that it has no place for; None where they do not fit."""
    schema: Any = target.schema
    fields = schema["items"]["properties"]["outputs"].get("properties")
    if fields and is_object(outputs):
        if "role" in fields and "messages" in outputs:  # a conversation, which ends with the answer
            outputs = outputs["messages"][-1]
        outputs = {name: outputs[name] for name in fields if name in outputs}
    entry = frozen({"inputs": inputs, "outputs": outputs})
    return entry if is_valid(target.schema, frozen([entry])) else None


# -- comparing sets ----------------------------------------------------------------------------------------------------


class FewShot(Optimizer):
    """An optimizer that searches for sets of examples."""

    kinds: ClassVar[tuple[TargetKind, ...]] = ("examples",)
    ends: ClassVar[bool] = True

    max_examples: int
    sets: int

    async def choose_set(self, bench: Bench, pool: ExamplePool, sets: Sequence[State], first: int, word: str) -> State:
        """Return the best of some sets, the present one first, and of random ones; `word` is their operator."""
        pool.register(bench)
        states = await draw_sets(bench, pool, sets, most=self.max_examples, sets=self.sets, first=first, operator=word)
        return await successive_halving(bench, states, first, word)

    async def finish(self, state: State, bench: Bench) -> State:
        """Return the best of those that were run on the most rows, proved on all validation rows."""
        return await bench.best_on_validation(state, most_rows=True)


async def draw_sets(
    bench: Bench, pool: ExamplePool, states: Sequence[State], *, most: int, sets: int, first: int, operator: str
) -> list[State]:
    """Return States, and random sets of examples behind them, in whose order answers are balanced.

    A small model repeats the answers of the last examples. So a set begins with examples of the answers that sets drawn
    before it gave too often, and ends with those that they gave too rarely. One is drawn first, then as many as there
    are.

    Args:
        bench: Runs each set on the first validation rows, as halving does.
        pool: The examples.
        states: The States to compare the sets with; the first one has the other values of the sets.
        most: Entries per Variable at most.
        sets: How many States there are in the end.
        first: How many validation rows these are.
        operator: The operation that makes the sets.

    Source: "Calibrate Before Use" (Zhao et al. 2021) on what orders do; differs: balanced by choice of the order.
    """
    rows = _spread_rows(bench)[:first]
    expected, answers = Counter(_label(bench, row) for row in rows), Counter[str]()
    states, newest = [*states], states[1:]
    while len(states) < sets:
        for rollouts in await bench.gather(*(bench.evaluate(state, rows) for state in newest)):
            answers.update(_answer(bench, rollout) for rollout in rollouts if rollout.error is None)
        total = answers.total()
        excess = {text: answers[text] / total - expected[text] / len(rows) for text in (answers | expected) if total}
        numbers = range(len(states), min(2 * len(states), sets))
        draws = [pool.random_rows(most, bench.rng(f"sets/{number}")) for number in numbers]
        newest = [pool.with_rows(states[0], pool.balance(draw, excess), most) for draw in draws]
        for state in newest:
            bench.candidate(state, states[0], operator=operator)
        states += newest
    return states


def _label(bench: Bench, row: str) -> str:
    """Return the target of a validation row as text."""
    return dump_json(bench.target_of(row, "validation"))


def _answer(bench: Bench, rollout: Rollout) -> str:
    """Return what came out of a validation row as text: the fields that its target has."""
    outputs, target = as_json(rollout.outputs), bench.target_of(rollout.id, "validation")
    is_narrower = is_object(outputs) and is_object(target)
    return dump_json({name: outputs.get(name) for name in target} if is_narrower else outputs)


def _spread_rows(bench: Bench) -> list[str]:
    """Return the validation rows in rounds, each of which has a row of every answer: few rows show them all."""
    counts, rounds = Counter[str](), dict[str, int]()
    for row in bench.validation:
        answer = _label(bench, row)
        rounds[row] = counts[answer]
        counts[answer] += 1
    return sorted(bench.validation, key=lambda row: rounds[row])


async def successive_halving(bench: Bench, states: Sequence[State], first: int, operator: str) -> State:
    """Return the best of several States: all run on the first rows, the better half on twice as many, and so on.

    Args:
        bench: Runs validation rows.
        states: The candidates, older ones first; the first one is what the program holds.
        first: How many rows the first round has.
        operator: The operation that made them.

    Source: successive halving (Jamieson and Talwalkar).
    """
    left, order = list(dict.fromkeys(states)), _spread_rows(bench)
    rows = min(first, len(order))
    while True:
        ids = order[:rows]
        await bench.gather(*(bench.evaluate(state, ids) for state in left))
        left.sort(key=lambda state: -_mean(bench, state, ids))
        if len(left) == 1 or rows == len(order):
            word = "no_gain" if left[0] == states[0] else "accepted"
            bench.log(operator, _paths(bench), word, rows=len(bench.scores(left[0])))
            return left[0]
        left = left[: (len(left) + 1) // 2]
        rows = min(2 * rows, len(order))


def cost_of_halving(sets: int, first: int, rows: int) -> int:
    """Return the most rollouts that `halved` takes."""
    size, cost = min(first, rows), sets * min(first, rows)
    while sets > 1 and size < rows:
        sets, before, size = (sets + 1) // 2, size, min(2 * size, rows)
        cost += sets * (size - before)
    return cost


def _mean(bench: Bench, state: State, ids: Sequence[str]) -> float:
    """Return the mean score of a State on some validation rows; below all where it has none."""
    scores = bench.scores(state)
    average = mean([scores[row] for row in ids if row in scores])
    return float("-inf") if average is None else average
