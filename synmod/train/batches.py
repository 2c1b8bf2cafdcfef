"""Batches of rows: what they hold, in which contexts they run, and what becomes of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, cast

from synmod.cache import key_of
from synmod.data import DataModel, JsonDataModel
from synmod.errors import ArgumentError, TrainerError, add_note
from synmod.flow import Failed, together
from synmod.leaves import Gate, rng
from synmod.lm import LanguageModel, model_from, use_language_models
from synmod.module import Module
from synmod.scope import BoundReward, Feedback
from synmod.tree import State, using

from .examples import Example, as_json
from .rollouts import Ran, Rollout, offered_of, run_once


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that run together.

    Args:
        data: For one input a list of rows (data models or JSON objects); for several a dict from name to list.
        label: A list of targets, one per row; None where nobody knows.
        pad: The last `pad` rows are filling: predictions drop them.

    Example:
        >>> Batch([{"text": "a"}, {"text": "b"}], ["x", "y"]).size
        2

    Source: MXNet's `DataBatch`.
    """

    data: Any
    label: Sequence[Any] | None = None
    pad: int = 0

    @property
    def size(self) -> int:
        """How many rows it has.

        Raises:
            TrainerError: Its lists differ in length.
        """
        return len(rows_of(self))


def rows_of(batch: Any) -> list[Example]:
    """Return the rows of a batch as examples; rows that are `Example`s stand as they are.

    Args:
        batch: A `Batch`, or any object with `data` and what it needs of `label` and `pad`.

    Raises:
        TrainerError: Its lists differ in length, or it has no rows.
    """
    data, labels = batch.data, getattr(batch, "label", None)
    columns = cast("Mapping[str, Sequence[Any]]", data) if isinstance(data, Mapping) else {"data": data}
    lengths = {name: len(column) for name, column in columns.items()}
    if labels is not None:
        lengths["label"] = len(labels)
    if len(set(lengths.values())) != 1:
        shown = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise TrainerError(f"all data must have the same batch size; got {shown or 'no data'}.")
    size = next(iter(lengths.values()))
    if not size:
        raise TrainerError("the batch has no rows.")
    rows = [{name: column[i] for name, column in columns.items()} for i in range(size)]
    inputs: list[Any] = list(rows) if isinstance(data, Mapping) else list(data)
    targets = [None] * size if labels is None else labels
    return [
        row if isinstance(row, Example) else Example(None, row, target)
        for row, target in zip(inputs, targets, strict=True)
    ]


def batches_of(given: Any, most: int | None = None) -> Iterator[Any]:
    """Yield batches: those of an iterable, a single one, or rows as one batch.

    Args:
        given: Batches, or rows.
        most: How many of them; None for all.
    """
    if isinstance(given, Batch):
        given = [given]
    rows: list[Any] = []
    for number, each in enumerate(given):
        if not _is_batch(each):
            rows.append(each)
        elif most is None or number < most:
            yield each
        else:
            break
    if rows:
        yield Batch([row if isinstance(row, Example) else Example(None, *_pair(row)) for row in rows])


def _is_batch(each: Any) -> bool:
    """Whether something is a batch, rather than a row."""
    return hasattr(each, "data") and not isinstance(each, DataModel | JsonDataModel | Mapping | Example)


def _pair(row: Any) -> tuple[Any, ...]:
    """Return the inputs of a row, with its target where it is a pair."""
    if isinstance(row, tuple) and len(pair := cast("tuple[Any, ...]", row)) == 2:
        return pair
    return (cast("Any", row),)


def filled(batch: Any) -> list[Example]:
    """Return the rows of a batch without those that only fill it."""
    rows = rows_of(batch)
    return rows[: len(rows) - getattr(batch, "pad", 0)]


def identified(rows: Iterable[Example], known: Mapping[str, Example]) -> list[Example]:
    """Return rows with ids: a row without one has the digest of its JSON; other rows of one id get a number.

    Args:
        rows: What `rows_of` returned.
        known: Rows by id that came before.
    """
    found: dict[str, Example] = {}
    named: list[Example] = []
    for row in rows:
        content = as_json([row.inputs, row.target, dict(row.extra)])
        first = name = row.id or key_of({"row": content})[:16]
        number = 1
        while (other := found.get(name) or known.get(name)) is not None:
            if as_json([other.inputs, other.target, dict(other.extra)]) == content:
                break
            number += 1
            name = f"{first}-{number}"
        found[name] = replace(row, id=name)
        named.append(found[name])
    return named


class Batches:
    """Batches of one data set, anew in each epoch.

    Args:
        data: Rows, or a dict from input name to rows.
        label: Targets, one per row.
        batch_size: Rows per batch; the last one may be short.
        shuffle: Whether each epoch has an order of its own.
        seed: What the orders are drawn from.

    Raises:
        TrainerError: Lists of different lengths, no rows, or a batch size below 1.

    Example:
        >>> [batch.size for batch in Batches([{"n": i} for i in range(5)], batch_size=2)]
        [2, 2, 1]

    Source: MXNet's `NDArrayIter`; differs: orders are a function of seed and epoch.
    """

    def __init__(
        self,
        data: Any,
        label: Sequence[Any] | None = None,
        *,
        batch_size: int = 32,
        shuffle: bool = False,
        seed: int = 0,
    ) -> None:
        if type(batch_size) is not int or batch_size < 1:
            raise TrainerError(f"batch_size is {batch_size!r}; give a whole number of at least 1.")
        self._data: Any = data
        self._label = label
        self._size, self._rows = batch_size, Batch(data, label).size
        self.shuffle, self.seed, self._epoch = shuffle, seed, 0

    def __len__(self) -> int:
        return math.ceil(self._rows / self._size)

    def __iter__(self) -> Iterator[Batch]:
        order = list(range(self._rows))
        if self.shuffle:
            rng(self.seed, self._epoch, "batches").shuffle(order)
        self._epoch += 1
        for start in range(0, self._rows, self._size):
            chosen = order[start : start + self._size]
            label = None if self._label is None else [self._label[i] for i in chosen]
            is_one = not isinstance(self._data, Mapping)
            columns = cast("Mapping[str, Sequence[Any]]", {"data": self._data} if is_one else self._data)
            data = {name: [column[i] for i in chosen] for name, column in columns.items()}
            yield Batch(data["data"] if is_one else data, label)


@dataclass(frozen=True, slots=True)
class Context:
    """Where rows run: a language model that stands in for the program's, and a limit of rows at once.

    Args:
        name: What messages call it.
        language_model: Stands in for every model of the program; None for the program's own.
        limit: How many rows run at once; None for what the trainer allows.

    Raises:
        ArgumentError: A limit below 1.
        ConfigError: Something that is not a model.

    Example:
        >>> Context("local", limit=4).name
        'local'

    Source: MXNet's contexts; differs: a provider instead of a device.
    """

    name: str
    language_model: LanguageModel | str | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise ArgumentError(f"Context {self.name!r}: limit is {self.limit!r}; give a whole number of at least 1.")
        if self.language_model is not None:
            object.__setattr__(self, "language_model", model_from(self.language_model, f"Context {self.name!r}"))


class Places:
    """Room for rows in the contexts of a trainer.

    Args:
        contexts: Where rows run.
        concurrency: How many rows of a context without a limit run at once.
        loads: Shares of a batch, one per context; None where rows go to whichever context is free.

    Raises:
        TrainerError: Another number of loads than contexts, or one that is not positive; a concurrency below 1.
    """

    def __init__(
        self, contexts: Sequence[Context], concurrency: int = 64, loads: Sequence[float] | None = None
    ) -> None:
        if type(concurrency) is not int or concurrency < 1:
            raise TrainerError(f"Trainer: concurrency is {concurrency!r}; give a whole number of at least 1.")
        if loads is not None and len(loads) != len(contexts):
            raise TrainerError(f"work_load_list has {len(loads)} entries for {len(contexts)} contexts.")
        if loads is not None and min(loads) <= 0:
            raise TrainerError(f"work_load_list is {list(loads)}; give positive numbers.")
        self.contexts, self.loads = tuple(contexts), loads
        self.free = [context.limit or concurrency for context in contexts]
        self.size = sum(self.free)
        """How many rows run at once in all contexts."""
        self.gates: dict[int | None, Gate] = {index: Gate() for index in (None, *range(len(contexts)))}

    def taken(self, index: int | None = None) -> Place:
        """Return a block that holds a place, and gives the number of its context, whose model stands in inside.

        Args:
            index: Number of the context; None for the one that has most room.
        """
        return Place(self, range(len(self.free)) if index is None else (index,), self.gates[index])

    def give_back(self, here: int) -> None:
        """Let another row have a place of a context."""
        self.free[here] += 1
        self.gates[here].wake()
        self.gates[None].wake()


class Place:
    """The block of `Places.taken`; a class, since it is entered for each row."""

    __slots__ = ("_gate", "_here", "_model", "_places", "_wanted")

    def __init__(self, places: Places, wanted: Sequence[int], gate: Gate) -> None:
        self._places, self._wanted, self._gate = places, wanted, gate

    async def __aenter__(self) -> int:
        free = self._places.free
        while not any(free[i] for i in self._wanted):
            await self._gate.wait()
        self._here = max(self._wanted, key=free.__getitem__)
        free[self._here] -= 1
        model = self._places.contexts[self._here].language_model
        self._model = None if model is None else use_language_models(model)
        if self._model is not None:
            self._model.__enter__()
        return self._here

    async def __aexit__(self, *failure: object) -> None:
        self._places.give_back(self._here)
        if self._model is not None:
            self._model.__exit__(None, None, None)


def sliced(rows: int, loads: Sequence[float]) -> list[int]:
    """Return for each row the number of its context: each gets its share, rounded half to even, the last the rest.

    Raises:
        TrainerError: A context would get no row.

    Example:
        >>> sliced(10, [1, 2]).count(0), sliced(7, [1, 1, 1]).count(2)
        (3, 3)
    """
    total = sum(loads)
    sizes = [round(rows * load / total) for load in loads[:-1]]
    sizes.append(rows - sum(sizes))
    if min(sizes) < 1:
        raise TrainerError(f"Too many slices: {rows} rows on work loads {list(loads)} make slices of {sizes}.")
    return [index for index, size in enumerate(sizes) for _ in range(size)]


# -- rows that run -----------------------------------------------------------------------------------------------------

_ROW: Final[ContextVar[int | None]] = ContextVar("synmod_row", default=None)


def current_row() -> int | None:
    """Return the number of the row that is running here, in its batch; None outside of one."""
    return _ROW.get()


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one row of a batch.

    Attributes:
        number: Its place in the batch.
        example: Inputs and target.
        ran: The run.
        context: Number of the context where it ran.
        after: The state Variables after it.
    """

    number: int
    example: Example
    ran: Ran
    context: int
    after: State

    @property
    def shown(self) -> Any:
        """The outputs, or a `Failed` in their place."""
        return self.ran.outputs if self.ran.failure is None else Failed(self.number, self.ran.failure)

    def rollout(self, target: Any = None, feedback: Feedback | None = None) -> Rollout:
        """Return the row as a rollout; its outputs are what the program returned, data models included."""
        target = self.example.target if target is None else target
        example = replace(self.example, id=self.example.id or str(self.number), target=target)
        score = None if feedback is None else feedback.score
        return self.ran.result(Rollout, example, feedback, score, calls=self.ran.calls)


async def run_rows(
    program: Module,
    rows: Sequence[Example],
    places: Places,
    *,
    states: Sequence[State],
    training: bool = False,
    paths: frozenset[str] = frozenset(),
    all_calls: bool = False,
    keep_failures: bool = False,
) -> list[Row]:
    """Run rows at once, each as one call with state Variables of its own.

    Args:
        program: Stays as it is.
        rows: Inputs as data models.
        places: Where rows run.
        states: The state Variables of each row.
        training: The mode of the calls.
        paths: The modules whose calls are recorded.
        all_calls: Whether calls of all modules are recorded, for a reward that will ask for them.
        keep_failures: Whether a failure is kept, instead of raised.

    Raises:
        Exception: The first failure, with the number of its row as a note.
    """
    chosen = None if places.loads is None else sliced(len(rows), places.loads)

    async def run(number: int) -> Row:
        async with places.taken(None if chosen is None else chosen[number]) as context:
            token = _ROW.set(number)
            try:
                with using(program, states[number]) as overlay:
                    ran = await run_once(program, rows[number], paths=paths, training=training, all_calls=all_calls)
            finally:
                _ROW.reset(token)
        if ran.failure is not None and not keep_failures:
            add_note(ran.failure, f"row {number}")
            raise ran.failure
        changes = {path: leaf for path, leaf in overlay.changes.items() if path in states[number]}
        return Row(number, rows[number], ran, context, states[number] | State.of_leaves(changes))

    return await together(*(partial(run, number) for number in range(len(rows))))


async def judge_rows(rows: Sequence[Row], reward: BoundReward | None, fields: Sequence[str] | None) -> list[Feedback]:
    """Return what a reward returns for each row: the lowest score for one that failed, none for an outage.

    Args:
        rows: What ran.
        reward: What judges them.
        fields: What each target must have; None where no target is needed.

    Raises:
        TrainerError: There is no reward, or a target is missing, or a field of it.
        Exception: What the reward raised, with the number of the row as a note.
    """
    if reward is None:
        raise TrainerError("backward needs a reward: Trainer(reward=...), or backward(out_grads=[...]).")
    for row in rows if fields is not None else ():
        target = as_json(row.example.target)
        missing = [name for name in fields or () if isinstance(target, Mapping) and name not in target]
        if target is None or missing:
            raise TrainerError(
                f"backward: row {row.number} has no label {', '.join(missing)}: give Batch(data, label) with what "
                "label_names names, or backward(out_grads=[...])."
            )

    async def judge(row: Row) -> Feedback:
        if row.ran.failure is not None:
            return Feedback(None if row.ran.fault == "void" else reward.lowest, critique=str(row.ran.error))
        try:
            return await reward(**offered_of(row.ran, row.example))
        except Exception as error:
            add_note(error, f"row {row.number}")
            raise

    return await together(*(partial(judge, row) for row in rows))


def by_context(values: Sequence[Any], contexts: Sequence[int], count: int) -> list[list[Any]]:
    """Return values of rows as a list per context, each in input order.

    Args:
        values: One per row.
        contexts: The number of the context of each row.
        count: How many contexts there are.

    Example:
        >>> by_context("abc", [1, 0, 1], 2)
        [['b'], ['a', 'c']]
    """
    return [[value for value, number in zip(values, contexts, strict=True) if number == n] for n in range(count)]


def in_input_order(groups: Sequence[Sequence[Any]], contexts: Sequence[int]) -> list[Any]:
    """Return what `by_context` returned as one list in input order; groups of other sizes one behind the other.

    Example:
        >>> in_input_order([["b"], ["a", "c"]], [1, 0, 1])
        ['a', 'b', 'c']
    """
    if [len(group) for group in groups] != [contexts.count(n) for n in range(len(groups))]:
        return [value for group in groups for value in group]
    rest = [iter(group) for group in groups]
    return [next(rest[number]) for number in contexts]
