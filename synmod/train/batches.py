"""Batches of rows: what they hold, in which contexts they run, and what becomes of them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any, Final, NamedTuple, cast

from synmod import errors, flow, leaves, lm, module, scope, tree
from synmod.data import DataModel, JsonDataModel

from .examples import is_data
from .rollouts import Rollout, RunOutcome, reward_arguments, run_once
from .rows import Example, as_json, digest_of


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that run together.

    Args:
        data: For one input a list of rows (data models or JSON objects); for several a dict from name to list.
        label: A list of targets, one per row; None where there are none.
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


def rows_of(batch: Any, *, filling: bool = True) -> list[Example]:
    """Return the rows of a batch as examples; rows that are `Example`s stand as they are.

    Args:
        batch: A `Batch`, or any object with `data` and what it needs of `label` and `pad`.
        filling: Whether rows that only fill it are among them.

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
        shown = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise errors.TrainerError(f"all data must have the same batch size, 1 or more; got {shown or 'no data'}.")
    pad = leaves.check_int("A batch: pad", getattr(batch, "pad", None) or 0, 0, error=errors.TrainerError)
    size = max(lengths.values())
    if pad > size:
        raise errors.TrainerError(f"A batch of {size} rows has pad={pad}; give at most as many as there are.")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    inputs: list[Any] = rows if isinstance(batch.data, Mapping) else [row["data"] for row in rows]
    targets = [None] * size if labels is None else labels
    return [
        row if isinstance(row, Example) else Example(None, row, target)
        for row, target in zip(inputs, targets, strict=True)
    ][: size if filling else size - pad]


def _columns(data: Any) -> Mapping[str, Sequence[Any]]:
    """Return lists of values by the name of the input; one list stands under `data` (TrainerError: not a list)."""
    columns = cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else {"data": data}
    return {name: _column(name, column) for name, column in columns.items()}


def _column(name: str, column: Any) -> Sequence[Any]:
    """Return a list of values, or raise TrainerError for what is not one, such as a text or a single row."""
    if is_data(column) and hasattr(column, "__len__") and hasattr(column, "__getitem__"):
        return column
    kind = type(column).__name__
    raise errors.TrainerError(
        f"A batch: {name} is a {kind}; give a list of them, [x] for a single one. sm.load_examples reads files, tables "
        "and streams."
    )


def batches_of(given: Any, most: int | None = None) -> Iterator[Any]:
    """Yield batches: those of an iterable, a single one, or rows as one batch.

    Args:
        given: Batches, or rows.
        most: How many of them; None for all.

    Raises:
        TrainerError: Neither batches nor rows, or `most` is not a number.
    """
    if most is not None and not leaves.check_int("num_batch", most, 0, error=errors.TrainerError):
        return
    found: Any = [given] if isinstance(given, Batch) else given
    if not is_data(found) or not hasattr(found, "__iter__"):
        kind = type(given).__name__
        raise errors.TrainerError(f"The data are a {kind}; give batches, such as sm.Batches(rows, labels), or rows.")
    rows: list[Any] = []
    for number, each in enumerate(found):
        if isinstance(each, DataModel | JsonDataModel | Mapping | Example) or not hasattr(each, "data"):
            pair = cast("Any", each if isinstance(each, tuple) else (each,))
            rows.append(each if isinstance(each, Example) else Example(None, *pair))
        elif number == most:
            return
        else:
            yield each
    if rows:
        yield Batch(rows)


def with_digest_id(row: Example) -> Example:
    """Return a row with an id: one without has the digest of its content."""
    return replace(row, id=row.id or digest_of([row.inputs, row.target, dict(row.extra)])[:16])


class Batches:
    """Batches of one data set, anew in each epoch.

    Args:
        data: Rows, or a dict from input name to rows.
        label: Targets, one per row.
        batch_size: Rows per batch; the last one may be short.
        shuffle: Whether each epoch has an order of its own.
        seed: What the orders are drawn from.

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
        self.shuffle, self.seed, self._epoch = (
            shuffle,
            leaves.check_int("Batches: seed", seed, None, error=errors.TrainerError),
            0,
        )

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
    language_model: lm.LanguageModel | str | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None:
            leaves.check_int(f"Context {self.name!r}: limit", self.limit)
        if self.language_model is not None:
            object.__setattr__(self, "language_model", lm.model_from(self.language_model, f"Context {self.name!r}"))


class ContextPool:
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
        for context in contexts:
            if not isinstance(context, Context):  # pyright: ignore[reportUnnecessaryIsInstance]  (see Trainer)
                raise errors.TrainerError(f"context has a {type(context).__name__}; give sm.Context, or a list.")
        if loads is not None and len(loads) != len(contexts):
            raise errors.TrainerError(f"work_load_list has {len(loads)} entries for {len(contexts)} contexts.")
        numbers = int, float
        if loads is not None and not all(type(load) in numbers and 0 < load < inf for load in loads):
            raise errors.TrainerError(f"work_load_list is {list(loads)}; give positive numbers.")
        self.contexts, self.loads = tuple(contexts), loads
        most = leaves.check_int("concurrency", concurrency, error=errors.TrainerError)
        self._free = [context.limit or most for context in contexts]
        self.size = sum(self._free)
        """How many rows run at once in all contexts."""
        self._gates = {index: leaves.Gate() for index in (None, *range(len(contexts)))}

    async def acquire(self, index: int | None = None) -> int:
        """Wait for a place, and take it until it is given back; return the number of its context.

        Args:
            index: That number; None for the context that has most room.
        """
        wanted = range(len(self._free)) if index is None else (index,)
        while not self._free[here := max(wanted, key=self._free.__getitem__)]:
            await self._gates[index].wait()
        self._free[here] -= 1
        return here

    def release(self, here: int) -> None:
        """Give a place of a context back."""
        self._free[here] += 1
        self._gates[here].wake()
        self._gates[None].wake()


def assign_contexts(rows: int, loads: Sequence[float]) -> list[int]:
    """Return for each row the number of its context: each gets its share, rounded half to even, the last the rest.

    Raises:
        TrainerError: A context would get no row.

    Example:
        >>> assign_contexts(10, [1, 2]).count(0), assign_contexts(7, [1, 1, 1]).count(2)
        (3, 3)
    """
    total = sum(loads)
    sizes = [round(rows * load / total) for load in loads[:-1]]
    sizes.append(rows - sum(sizes))
    if min(sizes) < 1:
        raise errors.TrainerError(f"Too many slices: {rows} rows on work loads {list(loads)} make slices of {sizes}.")
    return [index for index, size in enumerate(sizes) for _ in range(size)]


# -- rows that run -----------------------------------------------------------------------------------------------------

ROW: Final[ContextVar[int | None]] = ContextVar("synmod_row", default=None)
"""The number of the row that is running here, in its batch or evaluation; None outside of one."""


class Row(NamedTuple):
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
    ran: RunOutcome
    context: int
    after: tree.State

    def rollout(self, target: Any = None, feedback: scope.Feedback | None = None) -> Rollout:
        """Return the row as a rollout; its outputs are what the program returned, data models included."""
        target = self.example.target if target is None else target
        example = replace(self.example, id=self.example.id or str(self.number), target=target)
        return self.ran.result(Rollout, example, feedback, calls=self.ran.calls)


async def run_rows(
    program: module.Module,
    rows: Sequence[Example],
    context_pool: ContextPool,
    states: Sequence[tree.State],
    *,
    training: bool,
    paths: frozenset[str] | None,
    keep_failures: bool,
) -> list[Row]:
    """Run rows at once, each as one call with state Variables of its own.

    Args:
        program: Stays as it is.
        rows: Inputs as data models.
        context_pool: Where rows run.
        states: The state Variables of each row.
        training: The mode of the calls.
        paths: The modules that feedback will go to; None where no call is recorded.
        keep_failures: Whether a failure is kept, instead of raised.

    Raises:
        TrainerError: Too many slices.
        Exception: The first failure, with the number of its row as a note.
    """
    chosen = [None] * len(rows) if context_pool.loads is None else assign_contexts(len(rows), context_pool.loads)
    recorded = paths or frozenset()

    async def run(number: int) -> Row:
        context, token = await context_pool.acquire(chosen[number]), ROW.set(number)
        try:
            model = context_pool.contexts[context].language_model
            with (
                nullcontext() if model is None else lm.use_language_models(model),
                tree.using(program, states[number]) as overlay,
            ):
                ran = await run_once(
                    program, rows[number], paths=recorded, training=training, all_calls=paths is not None
                )
        finally:
            ROW.reset(token)
            context_pool.release(context)
        if ran.failure is not None and not keep_failures:
            errors.add_note(ran.failure, f"row {number}")
            raise ran.failure
        changes = {path: leaf for path, leaf in overlay.changes.items() if path in states[number]}
        return Row(number, rows[number], ran, context, states[number] | tree.State.of_leaves(changes))

    return await flow.together(*(partial(run, number) for number in range(len(rows))))


def check_labels(rows: Sequence[Row], fields: Sequence[str] | None) -> None:
    """Look at the targets of rows before they are judged.

    Args:
        rows: What ran.
        fields: What each target must have; None where no target is needed.

    Raises:
        TrainerError: A target is missing, or a field of it.
    """
    for row in rows if fields is not None else ():
        target = as_json(row.example.target)
        missing = [name for name in fields or () if isinstance(target, Mapping) and name not in target]
        if target is None or missing:
            names = ", ".join(missing or fields or ["at all"])
            raise errors.TrainerError(
                f"backward: row {row.number} has no label {names}: give Batch(data, label) with what label_names "
                "names, or backward(out_grads=[...])."
            )


async def judge_rows(rows: Sequence[Row], reward: scope.BoundReward | None) -> list[scope.Feedback]:
    """Return what a reward returns for each row: the lowest score for one that failed, none for an outage.

    Args:
        rows: What ran.
        reward: What judges them.

    Raises:
        TrainerError: There is no reward.
        Exception: What the reward raised, with the number of the row as a note.
    """
    if reward is None:
        raise errors.TrainerError("backward needs a reward: Trainer(reward=...), or backward(out_grads=[...]).")

    async def judge(row: Row) -> scope.Feedback:
        if row.ran.failure is not None:
            return cast("scope.Feedback", row.ran.final_feedback(reward))
        try:
            with scope.as_children_of(row.ran.frame):
                return await reward(**reward_arguments(row.ran, row.example))
        except Exception as error:
            errors.add_note(error, f"row {row.number}")
            raise

    return await flow.together(*(partial(judge, row) for row in rows))
