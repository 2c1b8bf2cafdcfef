"""The process of `synmod serve`: uvicorn, and how it goes down."""

from __future__ import annotations

import signal
import socket
import time
from typing import Any, Final

import uvicorn

from .app import Application

_REST_S: Final = 2.0
"""How long clients may take to read the answers to cancelled calls."""

_LEAST_S: Final = 0.5
"""How long the server listens after a signal at least: clients that have connected are answered."""


class _Server(uvicorn.Server):
    """A server whose first signal lets the calls in flight end, and whose second one ends the process.

    Args:
        config: The configuration of uvicorn.
        app: The application.
        grace_s: Seconds for the calls in flight after the first signal; then they are cancelled.
    """

    def __init__(self, config: uvicorn.Config, app: Application, grace_s: float) -> None:
        super().__init__(config)
        self._app, self._grace_s = app, grace_s
        self._ends: float | None = None  # when the rest is cancelled

    def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ARG002  # of the standard library
        """Handle a signal."""
        if self._ends is not None:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        self._app.begin_to_stop()
        self._ends = time.monotonic() + self._grace_s

    async def on_tick(self, counter: int) -> bool:
        """Return whether the server is to end; called ten times a second."""
        if self._ends is not None:
            late_s = time.monotonic() - self._ends
            if late_s >= 0:
                self._app.cancel_rest()
            is_idle = not self._app.in_flight and late_s >= _LEAST_S - self._grace_s
            self.should_exit = is_idle or late_s > _REST_S
            if self.should_exit:
                self._app.end_readers()
        return await super().on_tick(counter)


def run_server(app: Any, listener: socket.socket, grace_s: float) -> None:
    """Serve an application until a signal.

    Args:
        app: The application that `sm.serve` returned.
        listener: The socket to listen on.
        grace_s: Seconds for the calls in flight after the first signal.
    """
    config = uvicorn.Config(
        app,
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(_REST_S),
    )
    inner = app if isinstance(app, Application) else app.app  # behind the middleware for other origins
    _Server(config, inner, grace_s).run(sockets=[listener])
