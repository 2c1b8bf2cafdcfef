"""The public functions of the room; what they need is imported when they are called."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any

from synmod.errors import ArgumentError, ConfigError
from synmod.leaves import check_int, check_number, checks_keywords, path_text
from synmod.scope import Hook, budget as budget_block

from .doors import Doors
from .endpoints import endpoints_from


@checks_keywords
def serve(
    program: Any,
    *,
    token: str | bool | None = None,
    hosts: Collection[str] = (),
    cors: Collection[str] = (),
    runs: str | os.PathLike[str] | None = None,
    concurrency: int = 64,
    queue: int = 256,
    timeout_s: float = 150,
    budget: Mapping[str, float] | None = None,
    max_body: int = 8 * 2**20,
    details: bool = False,
    hooks: Sequence[Hook] = (),
    title: str | None = None,
) -> Any:
    """Return an ASGI application that serves a program, or several by name.

    Run it with any ASGI server, or mount it in another application; it needs no lifespan. A call runs in the context of
    its request, so middleware around the application may enter blocks such as `sm.budget` or `sm.use_language_models`.

    Args:
        program: A program, or `{name: program}`; the first one answers paths without a name.
        token: The token that requests must have as `Authorization: Bearer`; None for that of the environment variable
            `SYNMOD_TOKEN`, without which only requests on a loopback address are answered; False for none.
        hosts: Names, beside those of the loopback, under which the server may be reached.
        cors: Origins, beside its own, whose pages may call it, such as `["https://shop.example"]`.
        runs: The folder of durable runs, which go on after a restart; None for a server without them.
        concurrency: How many calls run at once.
        queue: How many more wait; the rest gets a 429.
        timeout_s: Seconds for a request, its wait included.
        budget: The most that one request may spend, as the keywords of `sm.budget`: `{"calls": 10, "cost_usd": 0.05}`.
        max_body: The most bytes of a request.
        details: Whether streams show the pieces of all model calls, not only of those that answer.
        hooks: Listeners of all calls.
        title: The title of the page and of the description; None for the name of the first program.

    Returns:
        The application.

    Raises:
        ArgumentError: A name or an argument that is not allowed; something that is not a program.
        ConfigError: Starlette is missing: `pip install 'synmod-lm[serve]'`.

    Example:
        >>> import synmod as sm
        >>> class Question(sm.DataModel):
        ...     text: str
        >>> app = sm.serve(sm.Sequential([sm.Input(Question), sm.Identity()], name="echo"))

    Source: Starlette, LangGraph's server, OpenAI's chat completions, RFC 9457.
    """
    try:
        import starlette  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise ConfigError(f"serve needs starlette ({error}): pip install 'synmod-lm[serve]'.") from None
    from .app import Application

    if budget is not None:
        budget_block(**budget)  # pyright: ignore[reportArgumentType]  # its checks
    if any(not isinstance(hook, Hook) for hook in hooks):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"serve: hooks must be a list of sm.Hook, got {hooks!r:.100}.")
    app = Application(
        program,
        Doors(token, hosts, cors),
        runs=None if runs is None else path_text(runs),
        concurrency=check_int("serve: concurrency", concurrency),
        queue=check_int("serve: queue", queue, 0),
        timeout_s=check_number("serve: timeout_s", timeout_s, 0, inf),
        budget=budget,
        max_body=check_int("serve: max_body", max_body),
        details=details,
        hooks=tuple(hooks),
        title=title,
    )
    if not cors:
        return app
    from starlette.middleware.cors import CORSMiddleware

    readable = ["x-request-id", "x-usage", "location", "retry-after"]
    return CORSMiddleware(app, allow_origins=[*cors], allow_methods=["*"], allow_headers=["*"], expose_headers=readable)


def mcp_server(program: Any) -> Any:
    """Return an MCP server that offers a program, or several by name, as tools.

    Each tool has the input and output schema of its program; a failed call is a result with `is_error`.

    Args:
        program: A program, or `{name: program}`.

    Returns:
        An `mcp.server.Server`, for any transport.

    Raises:
        ArgumentError: A name that is not allowed; something that is not a program.
        ConfigError: The `mcp` package is missing: `pip install 'synmod-lm[serve]'`.

    Example:
        >>> import synmod as sm
        >>> server = sm.mcp_server({"echo": sm.Identity()})

    Source: the Model Context Protocol; FastMCP.
    """
    try:
        from . import mcp_tools
    except ImportError as error:
        raise ConfigError(f"mcp_server needs the mcp package ({error}): pip install 'synmod-lm[serve]'.") from None
    return mcp_tools.make_server(endpoints_from(program))
