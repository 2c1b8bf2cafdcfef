"""DaskExecutor: sends rows to a cluster in batches, and hands back what became of each.

Here stand what sends, what a worker does (it reads the program once, then runs batches of rows; Dask calls `run_batch`
by name), and what crosses between them, as JSON.
"""

import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import import_module
from math import ceil
from typing import Any, Final, NamedTuple, cast

from synmod import data, errors, flow, lm, registry, saving, scope, train, tree
from synmod.data import DataModel, JsonDataModel
from synmod.errors import ArgumentError, DataError, RunError
from synmod.leaves import Gate, Json, Signal, aio, current_clock, frozen
from synmod.module import Module
from synmod.train import Example, Ran

_BATCH_S: Final = 1.0
_AHEAD: Final = 2  # batches per thread of the cluster, so that none waits for us
_GATHERING_S: Final = 0.01  # rows come in bursts
_CLOSING_S: Final = 10.0  # a client of Dask that is cut off while it closes is closed by nobody


class DaskExecutor:
    """Rows of `evaluate` and `fit` on a cluster of Dask: other processes, or other machines.

    Results equal those of one process. The program goes to each worker once, as the text of `sm.dumps`; rows, and the
    values and models in force where they run, follow as JSON, in batches of about one second. A batch whose worker dies
    runs again elsewhere. What a row writes into Variables, hooks and counters stays on its worker, but for usage.

    Dask's messages are pickles, and their senders are not authenticated unless TLS is configured: use it on this
    machine and in networks that you trust.

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
    ) -> AbstractAsyncContextManager[train.RunRow]:
        """Return a block that is connected, and gives what runs rows of a program; see `sm.train.Executor`.

        Raises:
            ConfigError: Dask is not installed.
            ArgumentError: A budget of model calls is open here, which cannot be kept across machines.
            SaveError: A class, function or value cannot be saved; names each.
            RunError: (on entering) No asyncio, no scheduler; workers lack a class or a model.
        """
        record = scope.ambient()
        if record is not None and record.budgets:
            raise ArgumentError(
                "executor: a budget of calls, tokens or dollars cannot be kept on several machines; use "
                "Budget(rollouts=..., seconds=...), or leave the executor out."
            )
        functions = {registry.id_of(each): each for each in metrics if not isinstance(each, Module)}
        if None in functions:
            metric = f"the metric {functions[None]!r:.100}"
            raise errors.SaveError(f"{metric} must be registered: @sm.register(package='my_app').")
        modules = [each for each in metrics if isinstance(each, Module)]
        nodes = {"program": program, "reward": reward, "metrics": modules}
        work = {
            "nodes": saving.dumps({name: node for name, node in nodes.items() if node}),
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
            raise errors.ConfigError("DaskExecutor needs dask[distributed]: pip install 'synmod[dask]'.") from None
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
        outcome: What became of it, or why that is unknown.
        ended: When that is there.
    """

    models: str
    json: dict[str, Json]
    meters: tuple[scope.UsageMeter, ...]
    outcome: Ran | RunError | None = None
    ended: Signal = field(default_factory=Signal)


class _Sending:
    """A block in which rows go to workers: they wait while each thread of the cluster has a batch, and one ahead.

    Batches are as large as fits into a second, by the last one, and never so large that other threads would have none.
    """

    def __init__(self, executor: DaskExecutor, program: Module, work: str) -> None:
        self._executor, self._program, self._text = executor, program, work
        self._first = tree.state(program)
        self._models: dict[Any, str] = {}
        self._waiting: deque[_Row] = deque()
        self._under_way, self._slots, self._size = 0, 1, 1
        self._news = Gate()
        self._client: Any
        self._work: Any
        self._group: aio.task_group

    async def __aenter__(self) -> train.RunRow:
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
        with suppress(errors.SchemaError):  # which is a failure of the row, and the worker's to record
            train.inputs_for(self._program, example)
        try:
            record = row_as_json(example)
        except DataError as error:
            raise DataError(f"row {example.id!r} cannot be sent to a worker: {error}") from None
        changes = self._first.diff(tree.state(self._program)).items()
        values = {path: new.value for path, (old, new) in changes if old is not None and new is not None}
        record = {"row": record, "sample": sample, "values": values}
        row = _Row(self._models_here(), record, scope.open_meters(scope.current_call()))
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
        default, blocks = lm.current_language_model(), lm.current_stand_ins()
        if default is None and not blocks:
            return ""
        key = default, *(tuple(block.items()) for block in blocks)
        if key not in self._models:
            nodes: dict[str, Any] = {
                "blocks": [{"all": block[None]} if None in block else {"named": dict(block)} for block in blocks]
            }
            self._models[key] = saving.dumps(nodes if default is None else {**nodes, "default": default})
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
                        meter.add(scope.Usage(**usage), phase)
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


# -- on a worker -------------------------------------------------------------------------------------------------------


class Work(NamedTuple):
    """What runs, and what judges it.

    Attributes:
        program: As it was saved.
        first: Its values then.
        reward: What judges a row, or None.
        metrics: What measures it.
        paths: The modules whose calls are recorded.
        setup: The function that makes live models, or None.
    """

    program: Module
    first: tree.State
    reward: scope.BoundReward | None
    metrics: train.Metrics
    paths: frozenset[str]
    setup: str | None


def run_batch(work: str, batch: str) -> str:
    """Return the records of rows that run at once, with the seconds that they took; or why they cannot run here."""
    try:
        return json.dumps(flow.run(_records, read(work), json.loads(batch)))
    except Exception as error:  # noqa: BLE001  # a worker's door: nothing of ours is pickled, errors neither
        return json.dumps({"fault": f"{type(error).__name__}: {error}"})


async def _records(work: Work, batch: Any) -> Json:
    """Run a batch under the models that are in force where it comes from."""

    async def record(row: Any) -> Json:
        with tree.using(work.program, work.first.replace(row["values"])), scope.track_usage() as usage:
            ran = await train.run_once(
                work.program,
                row_of(row["row"]),
                reward=work.reward,
                metrics=work.metrics,
                sample=row["sample"],
                paths=work.paths,
            )
        used = {phase: asdict(usage[phase]) for phase in scope.PHASES}
        return {"ran": ran_as_json(ran), "usage": used}

    clock, models = current_clock(), _models_of(batch["models"], work.setup)
    began = clock.now()
    with ExitStack() as stack:
        if "default" in models:
            stack.enter_context(lm.default_language_model(models["default"]))
        for block in reversed(models["blocks"]):
            stack.enter_context(lm.use_language_models(block.get("all") or block["named"]))
        rows = batch["rows"]
        async with flow.map_concurrently(record, rows, concurrency=len(rows) or 1, progress=False) as records:
            found = [each async for each in records]
    return {"records": found, "seconds": clock.now() - began}


@lru_cache(maxsize=4)
def read(text: str) -> Work:
    """Return the work of a text.

    Raises:
        ImportError: A module is missing here.
        LoadError: A class or function is not registered here.
        UnboundModelError: A model has no connection.
    """
    given: Any = json.loads(text)
    for module in given["imports"]:
        import_module(module)
    nodes = _loaded(given["nodes"], given["setup"])
    reward, functions = nodes.get("reward"), [*nodes.get("metrics", ()), *map(registry.lookup, given["functions"])]
    bound = None if reward is None else reward.bound()
    first = tree.state(nodes["program"])
    return Work(nodes["program"], first, bound, train.Metrics(functions), frozenset(given["paths"]), given["setup"])


@lru_cache(maxsize=16)
def _models_of(text: str, setup: str | None) -> dict[str, Any]:
    """Return the default model, where there is one, and the blocks of stand-ins."""
    return {"blocks": [], **_loaded(text, setup)} if text else {"blocks": []}


@lru_cache(maxsize=4)
def _made_by(setup: str) -> Mapping[str, lm.LanguageModel] | lm.LanguageModel | None:
    """Return the live models that a function makes, once in a process."""
    module, _, name = setup.partition(":")
    return getattr(import_module(module), name)()


def _loaded(text: str, setup: str | None) -> dict[str, Any]:
    """Return what a text of saving holds, with its live models.

    Raises:
        UnboundModelError: A model has no connection; names the line to write.
    """
    given, named = None if setup is None else _made_by(setup), json.loads(text)["language_models"]
    if isinstance(given, Mapping):  # `loads` refuses names that are not in the file
        given = {
            name: model for name, model in given.items() if any(name in (key, key.partition("#")[0]) for key in named)
        }
    nodes: dict[str, Any] = saving.loads(text, language_models=given)
    models: Iterator[tuple[Any, lm.SharedModel]] = tree.iter_graph(nodes, lm.SharedModel)
    unbound = dict.fromkeys(model.name for _, model in models if isinstance(model.adapter, lm.NoConnection))
    if unbound:
        raise errors.UnboundModelError(
            f"no file holds the connection of {', '.join(map(repr, unbound))}. Pass setup=, an importable function "
            "that returns {saved name: LanguageModel(...)}; keys come from the worker's environment."
        )
    return nodes


# -- what crosses ------------------------------------------------------------------------------------------------------


_SEQUENCES: Final[Mapping[str, type[Any]]] = {"several": train.Several, "tuple": tuple, "list": list}


def packed(value: Any) -> Json:
    """Return a nest of data models and JSON as JSON from which `unpacked` makes an equal one.

    Raises:
        DataError: A part of it is not JSON.

    Example:
        >>> unpacked(packed(({"a": 1}, None)))
        ({'a': 1}, None)
    """
    if isinstance(value, JsonDataModel | DataModel):
        return {"json": frozen(value), "schema": data.schema_of(cast("Any", value))}
    if isinstance(value, dict):
        return {"dict": {str(key): packed(part) for key, part in cast("dict[Any, Any]", value).items()}}
    for kind, cls in _SEQUENCES.items():
        if isinstance(value, cls):
            return {kind: [packed(part) for part in cast("Sequence[Any]", value)]}
    return {"plain": frozen(value)}


def unpacked(json: Any) -> Any:
    """Return what `packed` was given; a data model as a `JsonDataModel` of its schema."""
    if "schema" in json:
        return JsonDataModel.of(frozen(json["json"]), data.schema_from(json["schema"]))
    if "dict" in json:
        return {key: unpacked(part) for key, part in json["dict"].items()}
    for kind, cls in _SEQUENCES.items():
        if kind in json:
            return cast("Any", cls([unpacked(part) for part in json[kind]]))
    return json["plain"]


def row_as_json(example: Example) -> Json:
    """Return a row as JSON.

    Raises:
        DataError: Inputs, target or extra are not JSON.
    """
    values = {"inputs": example.inputs, "target": example.target, "extra": dict(example.extra)}
    return {"id": example.id, "group": example.group, **{name: packed(value) for name, value in values.items()}}


def row_of(json: Any) -> Example:
    """Return a row of JSON."""
    values = {name: unpacked(json[name]) for name in ("inputs", "target", "extra")}
    return Example(json["id"], **values, group=json["group"])


def ran_as_json(ran: Ran) -> Json:
    """Return what became of a run as JSON."""
    record = ran.record()
    if "feedback" in record:
        record["feedback"]["target"] = train.as_json(record["feedback"]["target"])
    return {**record, "outputs": packed(ran.outputs), "usage": asdict(ran.usage)}


def ran_of(json: Any) -> Ran:
    """Return what became of a run elsewhere; its failure is a `RunError` with the same text."""
    ran = Ran.of({**json, "outputs": unpacked(json["outputs"]), "usage": scope.Usage(**json["usage"])})
    ran.failure = None if ran.error is None else RunError(str(ran.error))
    return ran
