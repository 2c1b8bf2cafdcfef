"""The group of all commands, and what becomes of a failure: a line on standard error and a status."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Final, NoReturn

import click

from synmod.leaves import __version__, did_you_mean
from synmod.serving.refusals import describe_failure

from . import programs, project, servers

_ON_PROGRAMS = (programs.show, programs.run_program, programs.evaluate, programs.fit, programs.diff)
_COMMANDS: Final[tuple[click.Command, ...]] = (project.init, *_ON_PROGRAMS, servers.serve, servers.mcp, servers.runs)


class _Commands(click.Group):
    """The commands; a misspelt one is guessed."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that the arguments name."""
        if args and args[0] not in self.commands:
            names = ", ".join(self.commands)
            raise click.UsageError(f"there is no command {args[0]!r}.{did_you_mean(args[0], self.commands)} ({names})")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, commands={str(command.name): command for command in _COMMANDS})
@click.version_option(__version__, prog_name="synmod")
def _synmod() -> None:
    """Run, measure, train and serve saved programs."""


def main() -> NoReturn:
    """Run the command of this process's arguments, and end with its status.

    The status is 0; 1 where the program or its data failed; 2 for usage, a missing file, or an argument that is not
    JSON; 130 after Ctrl-C.
    """
    debug = "--debug" in sys.argv
    warnings.formatwarning = _format_warning
    try:
        status = _synmod.main(prog_name="synmod", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        status = 130
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        status = 2
    except click.ClickException as error:
        where = f"{error.ctx.command_path}: " if isinstance(error, click.UsageError) and error.ctx else "synmod: "
        status = _fail(where + error.format_message(), error.exit_code)
    except FileNotFoundError as error:
        status = _fail(f"synmod: there is no file {error.filename!r}.", 2)
    except Exception as error:
        if debug:
            raise
        status = _fail(f"synmod: {describe_failure(error)}", 1)
    sys.exit(status if isinstance(status, int) else 0)


def _format_warning(message: Warning | str, *_place: Any, **_line: Any) -> str:
    """Return a warning as one line, without the line of code that it is about."""
    return f"synmod: {' '.join(str(message).split())}\n"


def _fail(text: str, status: int) -> int:
    """Write a line to standard error; return the status."""
    click.echo(" ".join(text.split()), err=True)
    return status
