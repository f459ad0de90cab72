"""Options shared by the commands that let agents act."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from t2t_core.store.paths import SafePath
from t2t_jobs.ledger import Limits
from t2t_jobs.room import Room

Command = TypeVar("Command", bound=Callable[..., Any])


def room_options(command: Command) -> Command:
    """Add --pool, --max-usd, --max-cpu-seconds and --allow-code. The command gets them by keyword and passes them to `opener`."""
    for add in (
        click.option(
            "--allow-code", multiple=True, metavar="FILE", help="Let jobs bring this file of code; it runs in a sandbox."
        ),
        click.option("--max-cpu-seconds", type=click.FloatRange(min=0), help="Hard limit for all jobs together."),
        click.option("--max-usd", type=click.FloatRange(min=0), help="Hard limit for all answers together."),
        click.option("--pool", default="local:2", show_default=True, help="The pool of workers (t2t plugins); none: t2t worker."),
    ):
        command = add(command)
    return command


def opener(
    pool: str, max_usd: float | None, max_cpu_seconds: float | None, allow_code: tuple[str, ...]
) -> Callable[[SafePath], Room]:
    """A function that opens the room in a folder."""

    def open_room(folder: SafePath) -> Room:
        if pool == "none":
            click.echo(f"note: jobs wait until you run t2t worker --queue {folder / 'queue'}", err=True)
        return Room(folder, pool, Limits(usd=max_usd, cpu_seconds=max_cpu_seconds), allow_code=allow_code)

    return open_room


def folder_of(out: Path) -> SafePath:
    """The folder that --out names."""
    return SafePath.absolute(out)


def words(text: str) -> list[str]:
    """Words separated by spaces, each once."""
    return list(dict.fromkeys(text.split()))
