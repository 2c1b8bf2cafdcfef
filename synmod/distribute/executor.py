"""DaskExecutor: sends rows to a cluster in batches, and hands back what became of each."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final, cast

from synmod.errors import ArgumentError, ConfigError, DataError, RunError, SaveError, SchemaError
from synmod.leaves import Gate, Json, Signal, aio
from synmod.lm import current_language_model, current_stand_ins
from synmod.module import Module
from synmod.registry import id_of
from synmod.saving import dumps
from synmod.scope import Usage, UsageMeter, ambient, current_call, open_meters
from synmod.train import Example, Ran, RunRow, inputs_for
from synmod.tree import state

from .wire import ran_of, row_as_json
from .worker import run_batch

_BATCH_S: Final = 1.0
_AHEAD: Final = 2  # batches per thread of the cluster, so that none waits for us
_GATHERING_S: Final = 0.01  # rows come in bursts
_CLOSING_S: Final = 1.0


class DaskExecutor:
    """Rows of `evaluate` and `fit` on a cluster of Dask: other processes, or other machines.

    Results equal those of one process. The program goes to each worker once, as the text of `sm.dumps`; rows, and the
    values and models in force where they run, follow as JSON, in batches of about one second. A batch whose worker dies
    runs again elsewhere. What a row writes into Variables, hooks and counters stays on its worker, but for usage.

    Dask's messages are pickles, and nobody is asked who they are unless TLS is configured: use it on this machine and
    in networks that you trust.

    Args:
        address: Of the scheduler, such as `"tcp://10.0.0.5:8786"`; or a `dask.distributed.Client` or cluster, whose
            address and security are used.
        imports: Names of modules that each worker imports, so that their classes and functions are registered.
        setup: A function in a module, or its name as `"module:function"`, called once in each worker: returns live
            language models by saved name, or one for all. Keys come from the worker's environment.
        batch: Rows per batch; None for about one second of them.

    Raises:
        ArgumentError: An argument is not such a thing.

    Example:
        >>> executor = DaskExecutor("tcp://127.0.0.1:8786", imports=["shop.modules"])
        >>> await sm.evaluate(program, rows, reward="exact_match", executor=executor)  # doctest: +SKIP

    Source: Dask distributed; Ray Tune, concurrent.futures; differs: no code or object of the caller is pickled.
    """

    def __init__(
        self,
        address: Any,
        *,
        imports: Sequence[str] = (),
        setup: str | Callable[[], Any] | None = None,
        batch: int | None = None,
    ) -> None:
        found: Any = address if isinstance(address, str) else _address_of(address)
        if not isinstance(found, str):
            raise ArgumentError(f"DaskExecutor: got {address!r:.100}, wanted the address of a scheduler, or a Client.")
        if isinstance(imports, str) or not all(isinstance(name, str) for name in imports):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"DaskExecutor: imports: got {imports!r:.100}, wanted a list of names of modules.")
        if batch is not None and (type(batch) is not int or batch < 1):
            raise ArgumentError(f"DaskExecutor: batch: got {batch!r:.100}, wanted a number of rows.")
        self.address, self.imports, self.batch = found, tuple(imports), batch
        self.setup = _name_of(setup)
        self._security: Any = getattr(address, "security", None)

    def __repr__(self) -> str:
        return f"DaskExecutor({self.address!r})"

    def opened(
        self,
        program: Module,
        *,
        reward: Module | None,
        metrics: Sequence[Any] = (),
        paths: frozenset[str] = frozenset(),
    ) -> AbstractAsyncContextManager[RunRow]:
        """Return a block that is connected, and gives what runs rows of a program; see `sm.train.Executor`.

        Raises:
            ConfigError: Dask is not installed.
            ArgumentError: A budget of model calls is open here, which nobody can keep on several machines.
            SaveError: A class, function or value cannot be saved; names each.
            RunError: (on entering) No asyncio, no scheduler; workers lack a class or a model.
        """
        record = ambient()
        if record is not None and record.budgets:
            raise ArgumentError(
                "executor: a budget of calls, tokens or dollars cannot be kept on several machines; use "
                "Budget(rollouts=..., seconds=...), or leave the executor out."
            )
        functions = {id_of(each): each for each in metrics if not isinstance(each, Module)}
        if None in functions:
            raise SaveError(f"the metric {functions[None]!r:.100} must be registered: @sm.register(package='my_app').")
        modules = [each for each in metrics if isinstance(each, Module)]
        nodes = {"program": program, "reward": reward, "metrics": modules}
        work = {
            "nodes": dumps({name: node for name, node in nodes.items() if node}),
            "functions": [*functions],
            "paths": sorted(paths),
            "imports": list(self.imports),
            "setup": self.setup,
        }
        return _Sending(self, program, json.dumps(work))

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Any]:
        """Give a client of Dask, on the running loop.

        Raises:
            ConfigError: Dask is not installed.
            RunError: Another loop than asyncio's, or no scheduler.
        """
        try:
            from distributed import Client
        except ImportError:
            raise ConfigError("DaskExecutor needs dask[distributed]: pip install 'synmod[dask]'.") from None
        if aio.backend() != "asyncio":
            raise RunError("DaskExecutor needs asyncio: Dask does not run on trio.")
        client: Any = Client(self.address, security=self._security, asynchronous=True, set_as_default=False)
        try:  # also a client that is cancelled while it connects must be closed
            try:
                await client
            except OSError as error:
                raise RunError(f"no scheduler of Dask answers at {self.address}: {error}") from None
            yield client
        finally:
            with aio.shield(_CLOSING_S):
                await client.close()


@dataclass(slots=True, eq=False)
class _Row:
    """A row on its way.

    Attributes:
        models: The models in force where it was sent from, as a text of saving.
        json: The row, its sample and its values.
        meters: What counts what it uses, here.
        outcome: What became of it, or why nobody knows.
        ended: When that is there.
    """

    models: str
    json: dict[str, Json]
    meters: tuple[UsageMeter, ...]
    outcome: Ran | RunError | None = None
    ended: Signal = field(default_factory=Signal)


class _Sending:
    """A block in which rows go to workers: they wait while each thread of the cluster has a batch, and one ahead.

    Batches are as large as fits into a second, by the last one, and never so large that other threads would have none.
    """

    def __init__(self, executor: DaskExecutor, program: Module, work: str) -> None:
        self._executor, self._program, self._text = executor, program, work
        self._first = state(program)
        self._models: dict[Any, str] = {}
        self._waiting: deque[_Row] = deque()
        self._under_way, self._slots, self._size = 0, 1, 1
        self._news = Gate()
        self._client: Any
        self._work: Any
        self._group: aio.task_group

    async def __aenter__(self) -> RunRow:
        async with AsyncExitStack() as stack:
            self._client = await stack.enter_async_context(self._executor.connected())
            self._work = self._client.submit(str, self._text)  # a task: sent to a worker once, made again where lost
            await self._answer(self._models_here(), [])
            self._group = await stack.enter_async_context(aio.task_group())
            self._group.start_soon(self._send)
            self._stack = stack.pop_all()
        return self.run_row

    async def __aexit__(self, *raised: object) -> None:
        self._group.cancel()
        await self._stack.__aexit__(*cast("Any", raised))

    async def run_row(self, example: Example, *, sample: int = 0) -> Ran:
        """Run a row on a worker, under the values and models in force here.

        Raises:
            UnreadableRow: As `run_once`.
            DataError: The row is not JSON; names it.
            RunError: No worker could run it.
        """
        with suppress(SchemaError):  # which is a failure of the row, and the worker's to record
            inputs_for(self._program, example)
        try:
            record = row_as_json(example)
        except DataError as error:
            raise DataError(f"row {example.id!r} cannot be sent to a worker: {error}") from None
        changes = self._first.diff(state(self._program)).items()
        values = {path: new.value for path, (old, new) in changes if old is not None and new is not None}
        record = {"row": record, "sample": sample, "values": values}
        row = _Row(self._models_here(), record, open_meters(current_call()))
        self._waiting.append(row)
        self._news.wake()
        try:
            await row.ended.wait()
        finally:
            if row in self._waiting:
                self._waiting.remove(row)
        if isinstance(row.outcome, Ran):
            return row.outcome
        assert row.outcome is not None
        raise row.outcome

    def _models_here(self) -> str:
        """Return the default model and the stand-ins in force here as a text of saving, "" where there are none."""
        default, blocks = current_language_model(), current_stand_ins()
        if default is None and not blocks:
            return ""
        key = default, *(tuple(block.items()) for block in blocks)
        if key not in self._models:
            nodes: dict[str, Any] = {
                "blocks": [{"all": block[None]} if None in block else {"named": dict(block)} for block in blocks]
            }
            self._models[key] = dumps(nodes if default is None else {**nodes, "default": default})
        return self._models[key]

    async def _send(self) -> None:
        """Send batches for as long as the block is open, while threads have room for them."""
        while True:
            if not self._waiting or self._under_way >= self._slots:
                await self._news.wait()
            await aio.sleep(_GATHERING_S)
            while self._waiting and self._under_way < self._slots:
                share = ceil(len(self._waiting) / (self._slots - self._under_way))
                most = self._executor.batch or min(self._size, share)
                rows = [self._waiting.popleft()]
                while self._waiting and len(rows) < most and self._waiting[0].models == rows[0].models:
                    rows.append(self._waiting.popleft())
                self._under_way += 1
                self._group.start_soon(self._run_batch, rows)

    async def _run_batch(self, rows: list[_Row]) -> None:
        """Send rows, and hand each what became of it."""
        try:
            answer = await self._answer(rows[0].models, [row.json for row in rows])
            for row, record in zip(rows, answer["records"], strict=True):
                row.outcome = ran_of(record["ran"])
                for meter in row.meters:
                    for phase, usage in record["usage"].items():
                        meter.add(Usage(**usage), phase)
            self._size = max(1, round(_BATCH_S * len(rows) / max(answer["seconds"], 1e-6)))
        except Exception as error:  # noqa: BLE001  # Dask's door: what it raises becomes ours
            text = str(error) if isinstance(error, RunError) else f"Dask: {type(error).__name__}: {error}"
            for row in rows:
                row.outcome = RunError(text)  # each has one of its own
        self._under_way -= 1
        self._news.wake()
        for row in rows:
            row.ended.set()

    async def _answer(self, models: str, rows: list[Json]) -> Any:
        """Run rows on a worker, return its answer, and look how many batches the cluster takes now.

        Raises:
            RunError: The worker lacks a class or a model.
            Exception: What Dask raised.
        """
        batch = json.dumps({"models": models, "rows": rows})
        answer: Any = json.loads(await self._client.submit(run_batch, self._work, batch, pure=False))
        if "fault" in answer:
            raise RunError(f"workers cannot run this program: {answer['fault']}")
        threads: dict[str, int] = await self._client.nthreads()
        self._slots = _AHEAD * max(1, sum(threads.values()))
        return answer


def _address_of(given: Any) -> Any:
    """Return the address of the scheduler of a client or cluster; None where it has none."""
    return getattr(getattr(given, "scheduler", None), "address", None) or getattr(given, "scheduler_address", None)


def _name_of(setup: Any) -> str | None:
    """Return the name by which a worker imports a function.

    Raises:
        ArgumentError: It has none there.
    """
    if callable(setup):
        setup = f"{getattr(setup, '__module__', '')}:{getattr(setup, '__qualname__', '')}"
    if setup is None or (
        isinstance(setup, str) and setup.count(":") == 1 and "<" not in setup and "__main__" not in setup
    ):
        return setup
    raise ArgumentError(
        f"DaskExecutor: setup: got {setup!r:.100}, wanted a function of a module that workers can import, or its name "
        "as 'module:function'."
    )
