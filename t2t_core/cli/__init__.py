"""The command `t2t`: one file per command, each found in the registry and imported only when typed."""

from __future__ import annotations

import errno
import io
import sys
import warnings
from typing import Any, NoReturn

import click

from t2t_core import guard
from t2t_core._version import __version__
from t2t_core.errors import T2TError
from t2t_core.plugins import OWN, installed
from t2t_core.text import plain_lines


class Commands(click.Group):
    """Commands come from the registry, so `t2t --help` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all registered commands; none of them is imported."""
        return [entry.name for entry in installed().commands]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command and return it. Raises T2TError for an unknown name, PluginFault if its import fails."""
        entry = installed().commands.find(name)
        command: click.Command = guard.load(guard.Plugin("command", entry.name, entry.distribution), entry.load)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. An unexpected exception of a plugin's command names the plugin; one of ours keeps its traceback."""
        try:
            return super().invoke(ctx)
        except (T2TError, OSError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            entry = installed().commands.find(ctx.invoked_subcommand or "")
            if entry.distribution.startswith(f"{OWN} "):
                raise  # our own bugs keep their traceback, so that they can be reported
            raise guard.failed(guard.Plugin("command", entry.name, entry.distribution), "its code", error) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the lines that they were registered with, so that none has to be imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(entry.name, entry.summary) for entry in installed().commands])


_OUTPUT_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)  # of writing to standard output


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="t2t")
def cli() -> None:
    """Environments that a model redesigns for its own training: testbed, exact solver, closed loop, leaderboard."""


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line. A user's mistake is printed without a traceback (status 2); Ctrl-C ends with status 130."""
    warnings.formatwarning = _warning
    try:
        for refusal in installed().refused:
            click.echo(f"warning: refused {refusal}", err=True)
        with guard.watching(lambda text: click.echo(f"note: {plain_lines(text)}", err=True)):
            status = cli.main(args=arguments, prog_name="t2t", standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except T2TError as error:
        click.echo(f"error: {plain_lines(str(error))}", err=True)
        if _in_an_interrupt(error):  # work under way could not be ended in order, for example on a full disk
            _end_interrupted()
        sys.exit(2)
    except OSError as error:  # a folder that this user may not even look into, or standard output on a full disk
        if not error.filename and error.errno not in _OUTPUT_FAULTS:
            raise
        where = f"\n  where: {error.filename or 'standard output'}"
        click.echo(f"error: {plain_lines((error.strerror or str(error)) + where)}", err=True)
        if not error.filename:
            sys.stdout = io.StringIO()  # Python would write what is left when it ends
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        _end_interrupted()


def _end_interrupted() -> NoReturn:
    click.echo("interrupted; finished work is kept, and the same command continues", err=True)
    sys.exit(130)


def _in_an_interrupt(error: BaseException | None) -> bool:
    """Whether the error was raised while Ctrl-C or SIGTERM was being handled."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


def _warning(message: Warning | str, *_: object, **__: object) -> str:
    """Print a warning on a line of its own, without our source line: it means nothing to somebody who typed a command."""
    return f"warning: {plain_lines(str(message))}\n"
