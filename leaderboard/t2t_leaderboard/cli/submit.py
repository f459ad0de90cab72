"""`t2t submit`: make a submission from a row of a bench folder."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", required=True, help="Small letters, digits, dots and dashes; usually the model's name.")
@click.option("--row", help="Which row, if the folder has several: its policy or its folder's name.")
@click.option("--into", type=click.Path(path_type=Path), default=Path("leaderboard/results"), show_default=True)
@click.option("--date", "day", help="Of the submission.  [default: today]")
def submit(folder: Path, name: str, row: str | None, into: Path, day: str | None) -> None:
    """Make <date>_<name>/ with metadata.json and answers.jsonl from one row of a verified bench folder.

    `t2t verify` checks a submission. leaderboard/results/README.md says what it can find and what nobody can.
    """
    from t2t_leaderboard import submission

    made = submission.make(folder, name, into, row, day)
    seal = submission.read(made).record.seal
    click.echo(f"{made}\nseal {seal}\ncheck it with: t2t verify {made}")
