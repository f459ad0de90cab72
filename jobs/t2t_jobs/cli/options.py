"""What the commands that let agents act have in common."""

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
    """--pool, --max-usd, --max-cpu-seconds, --allow-code; the command gets them by keyword, for `opened`."""
    for add in (
        click.option(
            "--allow-code", multiple=True, metavar="FILE", help="Let jobs bring this file of code, in a process shut in."
        ),
        click.option("--max-cpu-seconds", type=click.FloatRange(min=0), help="What all jobs together may take; hard."),
        click.option("--max-usd", type=click.FloatRange(min=0), help="What all answers together may cost; hard."),
        click.option("--pool", default="local:2", show_default=True, help="Who does the jobs (t2t plugins); none: t2t worker."),
    ):
        command = add(command)
    return command


def opener(
    pool: str, max_usd: float | None, max_cpu_seconds: float | None, allow_code: tuple[str, ...]
) -> Callable[[SafePath], Room]:
    """What opens the room in a folder."""

    def open_room(folder: SafePath) -> Room:
        if pool == "none":
            click.echo(f"note: jobs wait until somebody runs t2t worker --queue {folder / 'queue'}", err=True)
        return Room(folder, pool, Limits(usd=max_usd, cpu_seconds=max_cpu_seconds), allow_code=allow_code)

    return open_room


def folder_of(out: Path) -> SafePath:
    """Of an --out."""
    return SafePath.absolute(out)


def words(text: str) -> list[str]:
    """Words separated by spaces, each once."""
    return list(dict.fromkeys(text.split()))
