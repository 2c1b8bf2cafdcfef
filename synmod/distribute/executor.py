"""`DaskExecutor`: sends rows to a cluster in batches, and returns the result of each.

This file has the sender, the worker (it reads the program once, then runs batches of rows; Dask calls `run_batch` by
name), and the JSON that passes between them.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import asdict
from functools import lru_cache
from importlib import import_module
from math import ceil
from typing import Any, Final, NamedTuple, cast

from synmod import data, errors, flow, lm, registry, saving, scope, train, tree
from synmod.data import DataModel, JsonDataModel
from synmod.errors import ArgumentError, DataError, RunError
from synmod.leaves import Gate, Json, aio, check_int, current_clock, frozen, is_object, must_be
from synmod.module import Module
from synmod.train import Example, RunOutcome

_BATCH_S: Final = 1.0
_AHEAD: Final = 2  # batches per thread of the cluster, so that none is idle
_GATHERING_S: Final = 0.01  # rows come in bursts
_CLOSING_S: Final = 10.0  # a Dask client that is cancelled while it closes stays open


class DaskExecutor:
    """Runs rows of `evaluate` and `fit` on a Dask cluster: in other processes or on other machines.

    Results equal those of a single process. Each worker receives the program once, as the text of `sm.dumps`; rows
    follow as JSON in batches of about one second, with the values and models in force at the caller. A batch whose
    worker dies runs again on another one. Usage is counted at the caller; anything else that a row changes (Variables,
    hooks, counters) stays on its worker.

    Dask sends pickles, and does not authenticate their senders unless TLS is configured: use it on this machine and in
    networks that you trust.

    Args:
        address: The address of the scheduler, such as `"tcp://10.0.0.5:8786"`, or a `dask.distributed.Client` or
            cluster, whose address and security are used.
        imports: Names of modules that each worker imports, so that their classes and functions are registered.
        setup: An importable function, or its name as `"module:function"`, that each worker calls once. It returns live
            language models by saved name, or one for all. Keys come from the worker's environment.
        batch: Rows per batch; None for batches of about one second.

    Raises:
        ArgumentError: An argument is not as described.

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
        scheduler: Any = address if isinstance(address, str) else _address_of(address)
        if not isinstance(scheduler, str):
            raise ArgumentError(must_be("DaskExecutor: address", "that of a scheduler, or a Client", address))
        if isinstance(imports, str) or not all(isinstance(name, str) for name in imports):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(must_be("DaskExecutor: imports", "a list of names of modules", imports))
        if batch is not None:
            check_int("DaskExecutor: batch", batch)
        self.address, self.imports, self.batch = scheduler, tuple(imports), batch
        self.setup = _name_of(setup)
        self._security: Any = getattr(address, "security", None)

    def __repr__(self) -> str:
        return f"DaskExecutor({self.address!r})"

    def connect(
        self,
        program: Module,
        *,
        reward: Module | None,
        metrics: Sequence[Any] = (),
        paths: frozenset[str] = frozenset(),
    ) -> AbstractAsyncContextManager[train.RunRow]:
        """Return a context that connects to the cluster and yields a function that runs rows; see `sm.train.Executor`.

        Raises:
            ConfigError: Dask is not installed.
            ArgumentError: A budget of model calls is open; it cannot be kept across machines.
            SaveError: A class, function or value cannot be saved; names each.
            RunError: (on entering) The loop is not asyncio's, no scheduler answers, or workers lack a class or a model.
        """
        if scope.ambient().budgets:
            raise ArgumentError(
                "executor: a budget of calls, tokens or dollars cannot be kept on several machines; use "
                "Budget(rollouts=..., seconds=...), or leave the executor out."
            )
        functions = {registry.id_of(metric): metric for metric in metrics if not isinstance(metric, Module)}
        if None in functions:
            what = f"the metric {functions[None]!r:.100}"
            raise errors.SaveError(f"{what} must be registered: @sm.register(package='my_app').")
        nodes = {"program": program, "reward": reward, "metrics": [x for x in metrics if isinstance(x, Module)]}
        work = {
            "nodes": saving.dumps({name: node for name, node in nodes.items() if node}),
            "functions": [*functions],
            "paths": sorted(paths),
            "imports": list(self.imports),
            "setup": self.setup,
        }
        return _Sender(self, program, json.dumps(work))

    @asynccontextmanager
    async def open_client(self) -> AsyncGenerator[Any]:
        """Yield a Dask client on the running loop.

        Raises:
            ConfigError: Dask is not installed.
            RunError: The loop is not asyncio's, or no scheduler answers.
        """
        try:
            from distributed import Client
        except ImportError:
            raise errors.ConfigError("DaskExecutor needs dask[distributed]: pip install 'synmod-lm[dask]'.") from None
        if aio.backend() != "asyncio":
            raise RunError("DaskExecutor needs asyncio: Dask does not run on trio.")
        client: Any = Client(self.address, security=self._security, asynchronous=True, set_as_default=False)
        try:  # a client that is cancelled while it connects must be closed, too
            try:
                await client
            except OSError as error:
                raise RunError(f"no Dask scheduler answers at {self.address}: {error}") from None
            yield client
        finally:
            with aio.shield(_CLOSING_S):
                await client.close()


class _Row(NamedTuple):
    """A row to run on a worker.

    Attributes:
        models: The models in force at the caller, as the text of `sm.dumps`.
        json: The row, its sample and its values.
        meters: The caller's meters, which count its usage.
        outcome: Its result.
    """

    models: str
    json: dict[str, Json]
    meters: tuple[scope.UsageMeter, ...]
    outcome: asyncio.Future[RunOutcome]


class _Sender:
    """A context in which rows go to workers; they wait while each thread of the cluster has a batch and another queued.

    A batch has as many rows as the last one would have run in a second, but leaves rows for the other free threads.
    """

    def __init__(self, executor: DaskExecutor, program: Module, work: str) -> None:
        self._executor, self._program, self._text = executor, program, work
        self._initial = tree.state(program)
        self._models: dict[Any, str] = {}
        self._waiting: deque[_Row] = deque()
        self._under_way, self._slots, self._size = 0, 1, 1
        self._changed = Gate()
        self._client: Any
        self._work: Any
        self._group: aio.task_group

    async def __aenter__(self) -> train.RunRow:
        async with AsyncExitStack() as stack:
            self._client = await stack.enter_async_context(self._executor.open_client())
            self._work = self._client.submit(str, self._text)  # a task: sent to each worker once, recomputed if lost
            await self._answer(self._models_here(), [])
            self._group = await stack.enter_async_context(aio.task_group())
            self._group.start_soon(self._send)
            self._stack = stack.pop_all()
        return self.run_row

    async def __aexit__(self, *raised: object) -> None:
        self._group.cancel()
        await self._stack.__aexit__(*cast("Any", raised))

    async def run_row(self, example: Example, *, sample: int = 0) -> RunOutcome:
        """Run a row on a worker, under the values and models in force here.

        Raises:
            ArgumentError: As `Runner.run_here`.
            DataError: The row is not JSON; names it.
            RunError: No worker could run it.
        """
        with suppress(errors.SchemaError):  # the worker records it as a failure of the row
            train.inputs_for(self._program, example)
        try:
            record = row_to_json(example)
        except DataError as error:
            raise DataError(f"row {example.id!r} cannot be sent to a worker: {error}") from None
        changes = self._initial.diff(tree.state(self._program)).items()
        values = {path: new.value for path, (old, new) in changes if old is not None and new is not None}
        record = {"row": record, "sample": sample, "values": values}
        future: asyncio.Future[RunOutcome] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Row(self._models_here(), record, scope.open_meters(scope.current_call()), future))
        self._changed.wake()
        return await future

    def _models_here(self) -> str:
        """Return the default model and the stand-ins in force here as the text of `sm.dumps`; "" for none."""
        default, blocks = lm.current_language_model(), lm.current_stand_ins()
        if default is None and not blocks:
            return ""
        key = default, *(tuple(block.items()) for block in blocks)
        if key not in self._models:
            nodes: dict[str, Any] = {"blocks": [{name or "*": model for name, model in of.items()} for of in blocks]}
            self._models[key] = saving.dumps(nodes if default is None else {**nodes, "default": default})
        return self._models[key]

    async def _send(self) -> None:
        """Send batches whenever the cluster has room for them, until cancelled."""
        while True:
            if not self._waiting or self._under_way >= self._slots:
                await self._changed.wait()
            await aio.sleep(_GATHERING_S)
            self._waiting = deque(row for row in self._waiting if not row.outcome.cancelled())
            while self._waiting and self._under_way < self._slots:
                share = ceil(len(self._waiting) / (self._slots - self._under_way))
                most = self._executor.batch or min(self._size, share)
                rows = [self._waiting.popleft()]
                while self._waiting and len(rows) < most and self._waiting[0].models == rows[0].models:
                    rows.append(self._waiting.popleft())
                self._under_way += 1
                self._group.start_soon(self._run_batch, rows)

    async def _run_batch(self, rows: list[_Row]) -> None:
        """Send rows, and set the outcome of each."""
        try:
            answer = await self._answer(rows[0].models, [row.json for row in rows])
            for row, record in zip(rows, answer["records"], strict=True):
                if not row.outcome.done():  # the caller still waits
                    row.outcome.set_result(outcome_from_json(record["outcome"]))
                for meter in row.meters:
                    for phase, usage in record["usage"].items():
                        meter.add(scope.Usage(**usage), phase)
            self._size = max(1, round(_BATCH_S * len(rows) / max(answer["seconds"], 1e-6)))
        except Exception as error:  # noqa: BLE001  # whatever Dask raises becomes a RunError
            text = str(error) if isinstance(error, RunError) else f"Dask: {type(error).__name__}: {error}"
            for row in rows:
                if not row.outcome.done():
                    row.outcome.set_exception(RunError(text))  # one per row, since each is raised
        self._under_way -= 1
        self._changed.wake()

    async def _answer(self, models: str, rows: list[Json]) -> Any:
        """Return a worker's answer to a batch of rows, and update how many batches the cluster takes.

        Raises:
            RunError: The worker lacks a class or a model.
            Exception: Raised by Dask.
        """
        batch = json.dumps({"models": models, "rows": rows})
        answer: Any = json.loads(await self._client.submit(run_batch, self._work, batch, pure=False))
        if "fault" in answer:
            raise RunError(f"workers cannot run this program: {answer['fault']}")
        threads: dict[str, int] = await self._client.nthreads()
        self._slots = _AHEAD * max(1, sum(threads.values()))
        return answer


def _address_of(cluster: Any) -> Any:
    """Return the address of the scheduler of a client or cluster, or None."""
    return getattr(getattr(cluster, "scheduler", None), "address", None) or getattr(cluster, "scheduler_address", None)


def _name_of(setup: Any) -> str | None:
    """Return the name by which a worker imports a function.

    Raises:
        ArgumentError: It cannot be imported by name.
    """
    if callable(setup):
        setup = f"{getattr(setup, '__module__', '')}:{getattr(setup, '__qualname__', '')}"
    if setup is None or (
        isinstance(setup, str) and setup.count(":") == 1 and "<" not in setup and "__main__" not in setup
    ):
        return setup
    expected = "a function of a module that workers can import, or its name as 'module:function'"
    raise ArgumentError(must_be("DaskExecutor: setup", expected, setup))


# -- on a worker -------------------------------------------------------------------------------------------------------


class _Work(NamedTuple):
    """A program, and what runs its rows.

    Attributes:
        runner: Runs and scores them.
        initial: The saved values of the program.
        setup: The function that makes live models, or None.
    """

    runner: train.Runner
    initial: tree.State
    setup: str | None


def run_batch(work: str, batch: str) -> str:
    """Run rows concurrently, and return their records and the seconds they took, or why they cannot run here."""
    try:
        return json.dumps(flow.run(_records, _read_work(work), json.loads(batch)))
    except Exception as error:  # noqa: BLE001  # an error crosses as text: no object of synmod is pickled
        return json.dumps({"fault": f"{type(error).__name__}: {error}"})


async def _records(work: _Work, batch: Any) -> Json:
    """Run a batch under the models in force at the caller."""

    async def record(row: Any) -> Json:
        with tree.using(work.runner.program, work.initial.replace(row["values"])), scope.track_usage() as usage:
            outcome = await work.runner.run_here(row_from_json(row["row"]), sample=row["sample"])
        used = {phase: asdict(usage[phase]) for phase in scope.PHASES}
        return {"outcome": outcome_to_json(outcome), "usage": used}

    clock, models = current_clock(), _models_of(batch["models"], work.setup)
    began = clock.now()
    with ExitStack() as stack:
        if "default" in models:
            stack.enter_context(lm.default_language_model(models["default"]))
        for block in reversed(models["blocks"]):
            stack.enter_context(lm.use_language_models(block.get("*") or block))
        rows = batch["rows"]
        async with flow.map_concurrently(record, rows, concurrency=len(rows) or 1, progress=False) as records:
            results = [result async for result in records]
    return {"records": results, "seconds": clock.now() - began}


@lru_cache(maxsize=4)
def _read_work(text: str) -> _Work:
    """Return the `_Work` that a text describes.

    Raises:
        ImportError: A module is missing here.
        LoadError: A class or function is not registered here.
        UnboundModelError: A model has no connection.
    """
    message: Any = json.loads(text)
    for module in message["imports"]:
        import_module(module)
    setup, nodes = message["setup"], _load(message["nodes"], message["setup"])
    metrics = train.Metrics([*nodes.get("metrics", ()), *map(registry.lookup, message["functions"])])
    paths = frozenset(message["paths"])
    runner = train.Runner(nodes["program"], nodes.get("reward"), metrics=metrics, paths=paths)
    return _Work(runner, tree.state(runner.program), setup)


@lru_cache(maxsize=16)
def _models_of(text: str, setup: str | None) -> dict[str, Any]:
    """Return the default model, if there is one, and the blocks of stand-ins."""
    return {"blocks": [], **_load(text, setup)} if text else {"blocks": []}


@lru_cache(maxsize=4)
def _setup_models(setup: str) -> Mapping[str, lm.LanguageModel] | lm.LanguageModel | None:
    """Return the live models that the `setup` function makes; it is called once per process."""
    module, _, name = setup.partition(":")
    return getattr(import_module(module), name)()


def _load(text: str, setup: str | None) -> dict[str, Any]:
    """Return the objects that a saved text describes, with live models.

    Raises:
        UnboundModelError: A model has no connection; names the line to write.
    """
    live = None if setup is None else _setup_models(setup)
    if isinstance(live, Mapping):  # `loads` refuses names that are not in the file
        names = {part for key in json.loads(text)["language_models"] for part in (key, key.partition("#")[0])}
        live = {name: model for name, model in live.items() if name in names}
    nodes: dict[str, Any] = saving.loads(text, language_models=live)
    models: Iterator[tuple[Any, lm.SharedModel]] = tree.iter_graph(nodes, lm.SharedModel)
    unbound = dict.fromkeys(model.name for _, model in models if isinstance(model.adapter, lm.NoConnection))
    if unbound:
        raise errors.UnboundModelError(
            f"no file holds the connection of {', '.join(map(repr, unbound))}. Pass setup=, an importable function "
            "that returns {saved name: LanguageModel(...)}; keys come from the worker's environment."
        )
    return nodes


# -- messages ----------------------------------------------------------------------------------------------------------

_SEQUENCES: Final[Mapping[str, type[Any]]] = {"several": train.PositionalInputs, "tuple": tuple, "list": list}


def pack_nest(value: Any) -> Json:
    """Return a nest of data models and JSON as JSON, from which `unpack_nest` restores an equal one.

    Raises:
        DataError: A part of it is not JSON.

    Example:
        >>> unpack_nest(pack_nest(({"a": 1}, None)))
        ({'a': 1}, None)
    """
    if isinstance(value, JsonDataModel | DataModel):
        return {"json": frozen(value), "schema": data.schema_of(cast("Any", value))}
    if is_object(value):
        return {"dict": {str(key): pack_nest(part) for key, part in value.items()}}
    for kind, cls in _SEQUENCES.items():
        if isinstance(value, cls):
            return {kind: [pack_nest(part) for part in cast("Sequence[Any]", value)]}
    return {"plain": frozen(value)}


def unpack_nest(json: Any) -> Any:
    """Return what `pack_nest` was given; a data model as a `JsonDataModel` of its schema."""
    if "schema" in json:
        return JsonDataModel.of(frozen(json["json"]), data.schema_from(json["schema"]))
    if "dict" in json:
        return {key: unpack_nest(part) for key, part in json["dict"].items()}
    for kind, cls in _SEQUENCES.items():
        if kind in json:
            return cast("Any", cls([unpack_nest(part) for part in json[kind]]))
    return json["plain"]


def row_to_json(example: Example) -> Json:
    """Return a row as JSON.

    Raises:
        DataError: Inputs, target or extra are not JSON.
    """
    values = {"inputs": example.inputs, "target": example.target, "extra": dict(example.extra)}
    return {"id": example.id, "group": example.group, **{name: pack_nest(value) for name, value in values.items()}}


def row_from_json(json: Any) -> Example:
    """Return the row that `row_to_json` was given."""
    values = {name: unpack_nest(json[name]) for name in ("inputs", "target", "extra")}
    return Example(json["id"], **values, group=json["group"])


def outcome_to_json(outcome: RunOutcome) -> Json:
    """Return the result of a run as JSON."""
    record = outcome.record()
    if "feedback" in record:
        record["feedback"]["target"] = train.as_json(record["feedback"]["target"])
    return {**record, "outputs": pack_nest(outcome.outputs), "usage": asdict(outcome.usage)}


def outcome_from_json(json: Any) -> RunOutcome:
    """Return the result of a run on a worker; its failure is a `RunError` with the same text.

    Raises:
        RunError: It is not one.
    """
    outcome = RunOutcome.of({**json, "outputs": unpack_nest(json["outputs"]), "usage": scope.Usage(**json["usage"])})
    if outcome is None:
        raise RunError("a worker returned a record that cannot be read: install the same release of synmod on it.")
    outcome.failure = None if outcome.error is None else RunError(str(outcome.error))
    return outcome
