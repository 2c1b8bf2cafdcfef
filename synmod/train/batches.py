"""Batches of rows, the contexts in which they run, and the judgement of their outputs."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from math import inf
from typing import Any, TypeAlias, cast

from synmod import errors, flow, leaves, lm, scope
from synmod.data import DataModel, JsonDataModel

from .examples import is_data
from .rollouts import RunOutcome, reward_arguments
from .rows import Example, as_json, digest_of


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that run together.

    Args:
        data: For one input a list of rows (data models or JSON objects); for several a dict from name to list.
        label: A list of targets, one per row; None for no targets.
        pad: How many of the last rows only fill the batch; predictions drop them.

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


def rows_of(batch: Any, *, filling: bool = True) -> list[Example]:
    """Return the rows of a batch as examples; a row that is an `Example` is returned as it is.

    Args:
        batch: A `Batch`, or any object with `data` and, optionally, `label` and `pad`.
        filling: Whether to include the rows that only fill the batch.

    Raises:
        TrainerError: It is not a batch, its lists differ in length, it has no rows, or `pad` is not a number of them.
    """
    if not hasattr(batch, "data"):
        raise errors.TrainerError(f"A batch has `data`; got a {type(batch).__name__}: write sm.Batch(rows, labels).")
    labels: Any = getattr(batch, "label", None)
    columns = _columns(batch.data)
    lengths = {name: len(column) for name, column in columns.items()}
    if labels is not None:
        lengths["label"] = len(_column("label", labels))
    if len(set(lengths.values())) != 1 or not any(lengths.values()):
        sizes = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise errors.TrainerError(f"all data must have the same batch size, 1 or more; got {sizes or 'no data'}.")
    pad = leaves.check_int("A batch: pad", getattr(batch, "pad", None) or 0, 0, error=errors.TrainerError)
    size = max(lengths.values())
    if pad > size:
        raise errors.TrainerError(f"A batch of {size} rows has pad={pad}; give at most as many as there are.")
    by_name = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    rows: Iterable[Any] = by_name if isinstance(batch.data, Mapping) else columns["data"]
    pairs = zip(rows, [None] * size if labels is None else labels, strict=True)
    examples = [row if isinstance(row, Example) else Example(None, row, target) for row, target in pairs]
    return examples[: size if filling else size - pad]


def _columns(data: Any) -> Mapping[str, Sequence[Any]]:
    """Return a list of values for each input; a single list is named `data` (TrainerError: not a list)."""
    columns = cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else {"data": data}
    return {name: _column(name, column) for name, column in columns.items()}


def _column(name: str, column: Any) -> Sequence[Any]:
    """Return a list of values; raise TrainerError for anything else, such as a text or a single row."""
    if is_data(column) and hasattr(column, "__len__") and hasattr(column, "__getitem__"):
        return column
    kind = type(column).__name__
    raise errors.TrainerError(
        f"A batch: {name} is a {kind}; give a list of them, [x] for a single one. sm.load_examples reads files, tables "
        "and streams."
    )


def batches_of(source: Any, most: int | None = None) -> Iterator[Any]:
    """Yield the batches of an iterable, a single batch, or rows as one batch.

    Args:
        source: Batches, or rows.
        most: How many batches; None for all.

    Raises:
        TrainerError: Neither batches nor rows, or `most` is not a number.
    """
    if most is not None and not leaves.check_int("num_batch", most, 0, error=errors.TrainerError):
        return
    items: Any = [source] if isinstance(source, Batch) else source
    if not is_data(items) or not hasattr(items, "__iter__"):
        kind = type(source).__name__
        raise errors.TrainerError(f"The data are a {kind}; give batches, such as sm.Batches(rows, labels), or rows.")
    rows: list[Any] = []
    for number, item in enumerate(items):
        if isinstance(item, DataModel | JsonDataModel | Mapping | Example) or not hasattr(item, "data"):
            pair = cast("Any", item if isinstance(item, tuple) else (item,))
            rows.append(item if isinstance(item, Example) else Example(None, *pair))
        elif number == most:
            return
        else:
            yield item
    if rows:
        yield Batch(rows)


def with_digest_id(row: Example) -> Example:
    """Return a row with an id: its own, or the digest of its content."""
    return replace(row, id=row.id or digest_of([row.inputs, row.target, dict(row.extra)])[:16])


class Batches:
    """The batches of one data set, drawn again in each epoch.

    Args:
        data: Rows, or a dict from input name to rows.
        label: Targets, one per row.
        batch_size: Rows per batch; the last one may be short.
        shuffle: Whether each epoch has an order of its own.
        seed: The seed of these orders.

    Raises:
        TrainerError: Lists of different lengths, what is not a list, no rows, a batch size below 1, or a seed that is
            not a whole number.

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
        self._columns, self._label = _columns(data), label
        self._is_dict = isinstance(data, Mapping)
        self._size = leaves.check_int("batch_size", batch_size, error=errors.TrainerError)
        self._rows = Batch(data, label).size
        self.shuffle, self._epoch = shuffle, 0
        self.seed = leaves.check_int("Batches: seed", seed, None, error=errors.TrainerError)

    def __len__(self) -> int:
        return len(range(0, self._rows, self._size))

    def __iter__(self) -> Iterator[Batch]:
        order = list(range(self._rows))
        if self.shuffle:
            leaves.rng(self.seed, self._epoch, "batches").shuffle(order)
        self._epoch += 1
        for start in range(0, self._rows, self._size):
            chosen = order[start : start + self._size]
            data = {name: [column[i] for i in chosen] for name, column in self._columns.items()}
            label = None if self._label is None else [self._label[i] for i in chosen]
            yield Batch(data if self._is_dict else data["data"], label)


Rows: TypeAlias = tuple[list[list[str]], dict[str, Example], dict[str, Example], int | None]
"""Batches as ids of train rows, all of these by id, those on which candidates are compared, and the seed of orders."""


def read_rows(train: Any, eval_data: Any) -> Rows:
    """Read the data of a run, once.

    Args:
        train: An iterable of
        eval_data: Batches or rows for validation; None for the train rows, with a warning.

    Raises:
        TrainerError: No batch, an id that names two rows.
    """
    train_rows: dict[str, Example] = {}
    validation: dict[str, Example] = {}
    ids_of_batches = [_read(rows_of(batch), train_rows) for batch in batches_of(train)]
    if not ids_of_batches:
        raise errors.TrainerError("fit: the train data have no batch.")
    for batch in batches_of([] if eval_data is None else eval_data):
        _read(rows_of(batch, filling=False), validation)
    if not validation:
        message = "There are no validation rows: candidates are compared on the training rows."
        warnings.warn(message, errors.SynmodWarning, stacklevel=4)
    order = None
    if isinstance(train, Batches) and train.shuffle:  # which have an order of their own each time they are read
        train_rows, order = dict(sorted(train_rows.items())), train.seed
        ids_of_batches = cut(sorted(chain(*ids_of_batches)), ids_of_batches)
    return ids_of_batches, train_rows, validation or train_rows, order


def cut(ids: Iterable[str], sizes: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return ids as batches of the sizes of others."""
    left = iter(ids)
    return [list(islice(left, len(batch))) for batch in sizes]


def _read(rows: Iterable[Example], rows_by_id: dict[str, Example]) -> list[str]:
    """Add rows to those that are known, and return their ids."""
    ids: list[str] = []
    for row in map(with_digest_id, rows):
        name = cast("str", row.id)
        if rows_by_id.setdefault(name, row) != row:
            raise errors.TrainerError(f"fit: the id {name!r} is there twice; ids name one row each.")
        ids.append(name)
    return ids


@dataclass(frozen=True, slots=True)
class Context:
    """A place where rows run: a language model in place of the program's, and a limit of rows at once.

    Args:
        name: Its name in messages.
        language_model: Used in place of every model of the program; None for the program's own.
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
    language_model: lm.LanguageModel | str | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None:
            leaves.check_int(f"Context {self.name!r}: limit", self.limit)
        if self.language_model is not None:
            object.__setattr__(self, "language_model", lm.model_from(self.language_model, f"Context {self.name!r}"))


class ContextPool:
    """The contexts of a trainer, and how many rows each has room for.

    Args:
        contexts: Where rows run.
        concurrency: How many rows run at once in a context without a limit; None for 64, which `most` may raise.
        loads: The share of a batch for each context; None to send rows to whichever context is free.

    Raises:
        TrainerError: Another number of loads than contexts, a load that is not positive, or a concurrency below 1.
    """

    def __init__(
        self, contexts: Sequence[Context], concurrency: int | None = None, loads: Sequence[float] | None = None
    ) -> None:
        for context in contexts:
            leaves.check_type("context", context, Context, "a sm.Context, or a list of them", error=errors.TrainerError)
        if loads is not None and len(loads) != len(contexts):
            raise errors.TrainerError(f"work_load_list has {len(loads)} entries for {len(contexts)} contexts.")
        numbers = int, float
        if loads is not None and not all(type(load) in numbers and 0 < load < inf for load in loads):
            raise errors.TrainerError(f"work_load_list is {list(loads)}; give positive numbers.")
        self.contexts, self.loads, self.concurrency = tuple(contexts), loads, concurrency
        most = 64 if concurrency is None else concurrency
        self.most = leaves.check_int("concurrency", most, error=errors.TrainerError)
        self._running = [0 for _ in contexts]
        self._gates = {index: leaves.Gate() for index in (None, *range(len(contexts)))}

    @property
    def size(self) -> int:
        """How many rows run at once in all contexts."""
        return sum(context.limit or self.most for context in self.contexts)

    def _room(self, index: int) -> int:
        """Return how many more rows a context has room for."""
        return (self.contexts[index].limit or self.most) - self._running[index]

    def assign(self, rows: int) -> list[int | None]:
        """Return for each row of a batch the number of its context; None where any context will do.

        By work loads each context gets its share of the rows, rounded half to even, and the last one the rest.

        Raises:
            TrainerError: A context would get no row.

        Example:
            >>> pool = ContextPool([Context("a"), Context("b")], loads=[1, 2])
            >>> pool.assign(10).count(0)
            3
        """
        if self.loads is None:
            return [None] * rows
        total = sum(self.loads)
        sizes = [round(rows * load / total) for load in self.loads[:-1]]
        sizes.append(rows - sum(sizes))
        if min(sizes) < 1:
            raise errors.TrainerError(
                f"Too many slices: {rows} rows on work loads {list(self.loads)} make slices of {sizes}."
            )
        return [index for index, size in enumerate(sizes) for _ in range(size)]

    async def acquire(self, index: int | None = None) -> int:
        """Wait for room in a context, and take it until `release`; return the number of the context.

        Args:
            index: That number; None for the context with the most room.
        """
        indices = range(len(self.contexts)) if index is None else (index,)
        while self._room(context := max(indices, key=self._room)) < 1:
            await self._gates[index].wait()
        self._running[context] += 1
        return context

    def release(self, context: int) -> None:
        """Give the room of one row back to a context."""
        self._running[context] -= 1
        self._gates[context].wake()
        self._gates[None].wake()


def group_by_context(values: Sequence[Any], contexts: Sequence[int], count: int) -> list[list[Any]]:
    """Return the values of rows as a list per context; all in the first one if the contexts are of other rows.

    Args:
        values: A value per row.
        contexts: The number of the context of each row.
        count: How many contexts there are.
    """
    groups: list[list[Any]] = [[] for _ in range(count)]
    for value, context in zip(values, contexts if len(contexts) == len(values) else [0] * len(values), strict=True):
        groups[context].append(value)
    return groups


def ungroup(groups: Iterable[Sequence[Any]], contexts: Sequence[int]) -> list[Any]:
    """Return values in the order of their rows; the inverse of `group_by_context`.

    Raises:
        TrainerError: Another number of values than rows.
    """
    values, count = [*chain(*groups)], len(contexts)
    if len(values) != count:
        raise errors.TrainerError(f"set_states: {len(values)} States for the {count} rows of the last forward.")
    by_row = dict(zip(sorted(range(count), key=contexts.__getitem__), values, strict=True))
    return [by_row[number] for number in range(count)]


# -- rows that were run ------------------------------------------------------------------------------------------------


def check_labels(rows: Sequence[Example], fields: Sequence[str]) -> None:
    """Raise for a row whose target lacks a field.

    Args:
        rows: The rows.
        fields: The fields; empty where any target serves.

    Raises:
        TrainerError: A target is missing, or a field of it.
    """
    for number, row in enumerate(rows):
        target = as_json(row.target)
        missing = [name for name in fields if isinstance(target, Mapping) and name not in target]
        if target is None or missing:
            names = ", ".join(missing or fields or ["at all"])
            raise errors.TrainerError(
                f"backward: row {number} has no label {names}: give Batch(data, label) with what label_names "
                "names, or backward(out_grads=[...])."
            )


async def judge_rows(
    rows: Sequence[Example], outcomes: Sequence[RunOutcome], reward: scope.BoundReward | None
) -> list[scope.Feedback]:
    """Return the feedback of a reward on each row: the lowest score for a row that failed, none for an outage.

    Args:
        rows: The rows.
        outcomes: The outcomes of their runs.
        reward: Judges them.

    Raises:
        TrainerError: The reward is None.
        Exception: Any error of the reward, with the number of the row as a note.
    """
    if reward is None:
        raise errors.TrainerError("backward needs a reward: Trainer(reward=...), or backward(out_grads=[...]).")

    async def judge(number: int, row: Example, outcome: RunOutcome) -> scope.Feedback:
        if outcome.failure is not None:
            return cast("scope.Feedback", outcome.final_feedback(reward))
        try:
            with scope.as_children_of(outcome.frame):
                return await reward(**reward_arguments(outcome, row))
        except Exception as error:
            errors.add_note(error, f"row {number}")
            raise

    pairs = enumerate(zip(rows, outcomes, strict=True))
    return await flow.together(*(partial(judge, number, *pair) for number, pair in pairs))
