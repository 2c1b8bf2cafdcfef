"""The ASGI application of `sm.serve`: routes, and the way of each call from the door to its answer."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from synmod import lm, scope, tree
from synmod.leaves import aio
from synmod.scope.frame import ambient

from . import pages
from .chat import answer_chat, list_models
from .doors import Doors
from .durable_runs import DurableRuns
from .endpoints import ServedProgram, endpoints_from, find_endpoint, outputs_json
from .exchange import Exchange, event_of
from .load import Counters, Places
from .refusals import CLIENT_LEFT, ClientLeft, GoingDown, Refusal, refusal_of

Handler: TypeAlias = Callable[["Application", Exchange, str | None], Awaitable[None]]


class Application:
    """The ASGI application; see `sm.serve` for the arguments.

    Attributes:
        programs: The programs by name.
        runs: The durable runs; None without a folder for them.
        in_flight: The requests whose calls have not ended, and the runs.
        readers: The requests that read the events of a run: a server that goes down does not wait for them.
        is_stopping: Whether new calls are refused.
    """

    def __init__(self, program: Any, doors: Doors, concurrency: int, queue: int, **settings: Any) -> None:
        self.programs = endpoints_from(program)
        self.title: str = settings["title"] or next(iter(self.programs))
        self.doors, self.places, self.metrics = doors, Places(concurrency, queue), Counters()
        self.max_body: int = settings["max_body"]
        self.details: bool = settings["details"]
        self.timeout_s: float = settings["timeout_s"]
        self._budget: Mapping[str, Any] | None = settings["budget"]
        self._hooks: tuple[scope.Hook, ...] = settings["hooks"]
        self.in_flight: set[Any] = set()
        self.readers: set[Exchange] = set()
        folder: str | None = settings["runs"]
        self.runs = None if folder is None else DurableRuns(self, Path(folder), concurrency, queue)
        self.is_stopping = False

    async def __call__(self, asgi: Any, receive: Any, send: Any) -> None:
        """Answer one connection of ASGI."""
        if asgi["type"] == "http":
            await self._answer(Exchange(asgi, receive, send))
        elif asgi["type"] == "lifespan":
            for what in ("startup", "shutdown"):
                await receive()
                if self.runs is not None:
                    (self.runs.start if what == "startup" else self.runs.stop)()
                await send({"type": f"lifespan.{what}.complete"})
        else:
            await receive()
            await send({"type": "websocket.close"})

    async def _answer(self, exchange: Exchange) -> None:
        """Answer one request, whatever happens, and count it."""
        began = time.perf_counter()
        budgets: tuple[Any, ...] = ()
        try:
            self.doors.check(exchange.scope, exchange.path, exchange.headers)
            handler, name = _find_handler(exchange)
            with ExitStack() as blocks:
                if exchange.scope["method"] == "POST":
                    if exchange.route != "/mcp":  # which answers with a result
                        blocks.enter_context(scope.deadline(self.timeout_s))
                    budgets = self.open_blocks(blocks, f"POST {exchange.route}", exchange.headers)
                await handler(self, exchange, name)
        except ClientLeft:
            exchange.status = CLIENT_LEFT
        except Exception as error:  # noqa: BLE001  # each becomes an answer
            await exchange.refuse(refusal_of(error, exchange.request_id, budgets))
        finally:
            self.metrics.count(exchange.program, exchange.route, exchange.status, time.perf_counter() - began)

    def open_blocks(self, blocks: ExitStack, name: str, headers: Mapping[str, str]) -> tuple[Any, ...]:
        """Open what surrounds a call or a run, its budget, hooks and span; return the accounts of the budgets."""
        if self._budget is not None:
            blocks.enter_context(scope.budget(**self._budget))
        for hook in self._hooks:
            if isinstance(hook, scope.hooks_lib.OpenTelemetry):
                blocks.enter_context(hook.server_span(name, headers))
        if self._hooks:
            blocks.enter_context(scope.hooks(*self._hooks))
        return ambient().budgets

    @asynccontextmanager
    async def place(self, exchange: Exchange) -> AsyncGenerator[None]:
        """Hold a place for a call in a block, and measure what it uses.

        Raises:
            Refusal: The queue is full, or the server is going down.
        """
        self.check_room()
        self.in_flight.add(exchange)
        with scope.track_usage() as usage:
            try:
                async with self.places.take():
                    yield
            finally:
                exchange.usage = usage.total()
                self.metrics.count_usage(exchange.usage)
                self.in_flight.discard(exchange)

    async def call(self, exchange: Exchange, endpoint: ServedProgram, inputs: Any) -> Any:
        """Return what a program returns, once there is a place for its call."""
        async with self.place(exchange):
            return await endpoint.call(inputs)

    def check_room(self) -> None:
        """Raise Refusal where no call can begin or wait: before its body is read."""
        if self.is_stopping:
            raise GoingDown
        self.places.check_room()

    def find(self, exchange: Exchange, name: Any) -> ServedProgram:
        """Return the endpoint that a request names.

        Raises:
            Refusal: There is none.
        """
        endpoint = find_endpoint(self.programs, name)
        exchange.program = endpoint.name
        return endpoint

    async def read_call(self, exchange: Exchange, name: str | None) -> tuple[ServedProgram, Any]:
        """Return the endpoint and the inputs of a call.

        Raises:
            Refusal: The request is not a call, or the queue is full.
        """
        endpoint = self.find(exchange, name)
        self.check_room()
        return endpoint, endpoint.take_inputs(await exchange.read_json(self.max_body))

    def open_runs(self) -> DurableRuns:
        """Return the durable runs, which go on from the first request at the latest.

        Raises:
            Refusal: The server has no folder for runs.
        """
        if self.runs is None:
            raise Refusal(404, "The server keeps no runs; give it a folder with runs= or --runs.")
        self.runs.start()
        return self.runs

    def begin_to_stop(self) -> None:
        """Refuse new calls from now on."""
        self.is_stopping = True

    def cancel_rest(self) -> None:
        """Cancel the calls that are still running; their clients get a 503."""
        for work in [*self.in_flight]:
            work.stop()

    def end_readers(self) -> None:
        """End the events of runs that are being read; the last one is a 503."""
        for reader in [*self.readers]:
            reader.stop()


# -- calls -------------------------------------------------------------------------------------------------------------


async def _call(app: Application, exchange: Exchange, name: str | None) -> None:
    """Answer a call with its outputs."""
    endpoint, inputs = await app.read_call(exchange, name)
    outputs = await exchange.run_attended(lambda: app.call(exchange, endpoint, inputs))
    await exchange.answer(200, outputs_json(outputs))


async def _stream(app: Application, exchange: Exchange, name: str | None) -> None:
    """Answer a call with its events."""
    endpoint, inputs = await app.read_call(exchange, name)

    async def work() -> Any:
        async with app.place(exchange), lm.stream(endpoint.call, inputs, events=True) as source:
            answering = endpoint.answering
            async for item in exchange.read_patiently(source):
                if (event := event_of(item, answering, details=app.details)) is not None:
                    await exchange.send_event(*event, waits=not isinstance(item, lm.LMChunk | scope.Emitted))
        return source.result

    outputs = await exchange.run_attended(work)
    usage = None if exchange.usage is None else vars(exchange.usage)
    result = {"outputs": outputs_json(outputs), "usage": usage, "request_id": exchange.request_id}
    await exchange.send_event("result", result)
    await exchange.end_events()


# -- the other routes --------------------------------------------------------------------------------------------------


async def _health(_app: Application, exchange: Exchange, _name: str | None) -> None:
    """Answer that the process is alive."""
    await exchange.answer(200, {"status": "alive"})


async def _ready(app: Application, exchange: Exchange, _name: str | None) -> None:
    """Answer whether calls are taken, and every model has its connection."""
    if app.is_stopping:
        raise GoingDown
    for name, endpoint in app.programs.items():
        models: Iterator[tuple[Any, lm.SharedModel]] = tree.iter_graph(endpoint.program, lm.SharedModel)
        for _, model in models:
            if isinstance(model.adapter, lm.NoConnection) and lm.stand_in_for(model.name) is None:
                raise Refusal(503, f"The program {name!r} has a model without its connection.")
    await exchange.answer(200, {"status": "ready"})


async def _metrics(app: Application, exchange: Exchange, _name: str | None) -> None:
    """Answer with the numbers of the server."""
    text = "".join(f"{line}\n" for line in app.metrics.lines(app.places))
    await exchange.answer(200, text, kind="text/plain; version=0.0.4; charset=utf-8")


async def _mcp(app: Application, exchange: Exchange, name: str | None) -> None:
    """Answer a request of MCP; its package takes half a second to import, in a thread, while other calls go on."""
    if app.is_stopping:
        raise GoingDown
    tools: Any = await aio.to_thread(import_module, "synmod.serving.mcp_tools")
    await tools.answer_mcp(app, exchange, name)


async def _page(_app: Application, exchange: Exchange, _name: str | None) -> None:
    """Answer with the page, to try the programs."""
    page, policy = pages.page()
    headers = {"content-security-policy": policy, "referrer-policy": "no-referrer"}
    await exchange.answer(200, page, headers, kind="text/html")


async def _openapi(app: Application, exchange: Exchange, _name: str | None) -> None:
    """Answer with the description of the routes."""
    await exchange.answer(200, await pages.openapi(app.title, app.programs, has_runs=app.runs is not None))


def _on_runs(method: Callable[[DurableRuns, Exchange, str | None], Awaitable[None]]) -> Handler:
    """Return a handler of the durable runs."""
    return lambda app, exchange, name: method(app.open_runs(), exchange, name)


_OF_RUNS: Final = {"POST": DurableRuns.begin, "GET": DurableRuns.show, "DELETE": DurableRuns.cancel}
_ROUTES: Final[dict[str, dict[str, Handler]]] = {
    "/": {"GET": _page},
    "/call": {"POST": _call},
    "/stream": {"POST": _stream},
    "/v1/chat/completions": {"POST": answer_chat},
    "/v1/models": {"GET": list_models},
    "/mcp": {"POST": _mcp},
    "/runs": {name: _on_runs(method) for name, method in _OF_RUNS.items()},
    "/runs/answers": {"POST": _on_runs(DurableRuns.answer)},
    "/runs/events": {"GET": _on_runs(DurableRuns.send_events)},
    "/openapi.json": {"GET": _openapi},
    "/health": {"GET": _health},
    "/ready": {"GET": _ready},
    "/metrics": {"GET": _metrics},
}
_PATH: Final = re.compile(r"(/call|/stream|/runs)/([^/]+)(/answers|/events)?")
"""Paths with the name of a program, or the id of a run."""


def _find_handler(exchange: Exchange) -> tuple[Handler, str | None]:
    """Return the handler of a request, and the name in its path.

    Raises:
        Refusal: The path is unknown, or does not take the method.
    """
    match = _PATH.fullmatch(exchange.path)
    route, name = (exchange.path, None) if match is None else (match[1] + (match[3] or ""), match[2])
    if route not in _ROUTES or (match is None and route in ("/runs/answers", "/runs/events")):
        raise Refusal(404, f"There is nothing at {exchange.path[:200]!r}.")
    exchange.route = route
    methods = _ROUTES[route]
    method = "GET" if exchange.scope["method"] == "HEAD" else exchange.scope["method"]
    if method not in methods:
        allowed = ", ".join(methods)
        raise Refusal(405, f"{route} takes {allowed}.", {"allow": allowed})
    return methods[method], name
