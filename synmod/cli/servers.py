"""The commands that serve programs: serve, mcp; and the one on their durable runs."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from synmod.flow import run as run_async
from synmod.journal import Run
from synmod.leaves import did_you_mean
from synmod.scope import hooks_lib
from synmod.serving import mcp_server, serve as make_app
from synmod.serving.doors import is_loopback
from synmod.serving.durable_runs import record_of
from synmod.serving.endpoints import name_from

from .programs import Opener, explain_usage, opens_programs, print_json, read_answer


def _open_programs(opener: Opener, files: tuple[str, ...]) -> dict[str, Any]:
    """Return the programs of arguments such as `desk.json` and `other=other.json`, by name."""
    programs = dict[str, Any]()
    for argument in files:
        name, equals, file = argument.partition("=")
        if Path(argument).exists() or not equals:
            name, file = name_from(Path(argument).stem), argument
        if not Path(file).is_file():
            raise click.UsageError(f"there is no file {file!r}; write FILE or NAME=FILE.")
        programs[name] = opener(file)
    return programs


def _read_budget(_context: Any, _parameter: Any, values: tuple[str, ...]) -> Mapping[str, float] | None:
    """Return the limits in arguments such as `calls=10`."""
    try:
        pairs = [value.split("=") for value in values]
        limits = {name: float(number) if name == "cost_usd" else int(number) for name, number in pairs}
    except ValueError:
        raise click.BadParameter("write NAME=NUMBER, such as calls=10 or cost_usd=0.05.") from None
    return limits or None


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE [NAME=FILE]...")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8000, show_default=True, help="0 for any free port.")
@click.option("--runs", type=click.Path(file_okay=False), help="The folder of durable runs.")
@click.option("--concurrency", type=click.IntRange(1), default=64, show_default=True, help="Calls that run at once.")
@click.option("--queue", type=click.IntRange(0), default=256, show_default=True, help="Calls that wait.")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0), default=150, show_default=True, help="Seconds for a request."
)
@click.option("--budget", multiple=True, callback=_read_budget, help="What a request may spend: calls=10.")
@click.option("--max-body", type=click.IntRange(1), default=8 * 2**20, show_default=True, help="Bytes of a request.")
@click.option("--token", envvar="SYNMOD_TOKEN", help="The token of clients; better in the variable SYNMOD_TOKEN.")
@click.option("--no-token", is_flag=True, help="Let everybody in: behind a proxy that checks its users.")
@click.option("--allow-host", "hosts", multiple=True, help="A name under which the server may be reached.")
@click.option("--cors", multiple=True, metavar="ORIGIN", help="An origin whose pages may call the server.")
@click.option("--grace", type=click.FloatRange(0), default=30, show_default=True, help="Seconds for calls at the end.")
@click.option("--otel", is_flag=True, help="Make spans of OpenTelemetry.")
@click.option("--details", is_flag=True, help="Show all model calls in streams.")
@opens_programs
def serve(
    opener: Opener, files: tuple[str, ...], host: str, port: int, no_token: bool, grace: float, **options: Any
) -> None:
    """Serve programs over HTTP."""
    if not (options["token"] or no_token or is_loopback(host)):
        raise click.UsageError(f"--host {host} needs SYNMOD_TOKEN, or --no-token behind a proxy that checks its users.")
    programs = _open_programs(opener, files)
    options["token"] = False if no_token else options["token"] or None
    options["hosts"] += () if host in ("0.0.0.0", "::") else (host,)  # noqa: S104  # compared, not bound
    options["hooks"] = [hooks_lib.OpenTelemetry()] if options.pop("otel") else []
    with explain_usage():
        app = make_app(programs, **options)
    from synmod.serving.process import run_server

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2_048)
    except OSError as error:
        raise click.UsageError(f"cannot listen on {host} port {port}: {error.strerror}. Try another --port.") from None
    address = f"[{host}]" if ":" in host else host
    click.echo(f"synmod: {', '.join(programs)} on http://{address}:{listener.getsockname()[1]}", err=True)
    run_server(app, listener, grace)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE [NAME=FILE]...")
@opens_programs
def mcp(opener: Opener, files: tuple[str, ...]) -> None:
    """Serve programs as tools of MCP, over standard input and output."""
    wire = os.dup(1)
    os.dup2(2, 1)  # what modules print when they are imported is no message
    try:
        with explain_usage():
            server = mcp_server(_open_programs(opener, files))
        from synmod.serving.mcp_tools import serve_stdio
    finally:
        sys.stdout.flush()
        os.dup2(wire, 1)
        os.close(wire)
    try:
        run_async(serve_stdio, server)
    except (KeyboardInterrupt, SystemExit) as end:  # by a signal: a thread still waits for the next line
        os._exit(130 if isinstance(end, KeyboardInterrupt) else 143)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.argument("answer", nargs=-1, metavar="[answer ID QUESTION VALUE]")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of a failure.")
def runs(folder: str, answer: tuple[str, ...]) -> None:
    """Show the durable runs of a folder, a line each; or answer an open question of one of them."""
    if answer and (len(answer) != 4 or answer[0] != "answer"):
        raise click.UsageError("write: synmod runs DIR answer ID QUESTION VALUE.")
    folders = [path.parent for path in sorted(Path(folder).glob("*/run.json"))]
    if not answer:
        for path in folders:
            print_json(record_of(path))
        return
    _, run_id, name, value = answer
    run = Run(Path(folder, run_id))
    if Path(folder, run_id) not in folders:
        raise click.UsageError(f"there is no run {run_id!r}.{did_you_mean(run_id, [path.name for path in folders])}")
    questions = {question.id: question for question in run.waiting}
    if name not in questions:
        raise click.UsageError(f"the question {name!r} is not open; open are: {', '.join(questions) or 'none'}.")
    run.answer(name, read_answer(questions[name], value))
