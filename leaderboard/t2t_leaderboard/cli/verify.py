"""`t2t verify`: rescore answers from their raw text."""

from __future__ import annotations

from pathlib import Path

import click

from t2t_core.errors import T2TError
from t2t_core.store.paths import SafePath


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--write/--no-write", default=True, help="Show the outcome in a bench folder's leaderboard.  [default: yes]")
def verify(folder: Path, write: bool) -> int:
    """Recompute every verdict, total and interval of a bench folder or a submission from its raw answers.

    Also checks the sets' hashes, duplicates, missing answers, answers to foreign instances, and whether a leaderboard's pages
    follow from its answers. Prints `verified` or exactly what is wrong. The exit status is 1 on any difference, or if a killed
    process left something unwritten. A page that shows something else is left as it is: t2t bench writes it again, and so does
    t2t verify once you have deleted it.

    If another version of the testbed's reader of answers scored the folder, that is not damage: the command lists the verdicts
    that differ under the present version.
    """
    from t2t_core.text import visible
    from t2t_leaderboard import rescoring, submission

    is_submission = (SafePath(folder) / submission.METADATA).exists()
    check = submission.verify(folder) if is_submission else rescoring.verify(folder)
    if check.verified and check.moved:
        click.echo(
            f"sound: {check.answers:,} answers of {check.rows} row(s), and the figures that their recorded verdicts give; but"
            f" another version of the reader gave those, and {len(check.moved):,} are others under reader {check.reader}:"
        )
        for move in rescoring.few(iter(check.moved)):
            click.echo(f"  {visible(move, 1000)}")
        click.echo("nobody can check whether that reader gave them; the same t2t bench scores the answers again")
    elif check.verified:
        click.echo(f"verified: {check.answers:,} answers of {check.rows} row(s), rescored from their raw text")
    elif check.problems:
        click.echo(f"NOT verified: {len(check.problems)} problem(s)")
        for problem in check.problems:
            click.echo(f"  {visible(problem, 1000)}")
    else:
        click.echo("incomplete, but nothing is damaged: the same t2t bench continues and finishes it")
    for text in (*check.unfinished, *check.partial):
        click.echo(f"  incomplete: {visible(text, 1000)}")
    for name in check.outdated:
        click.echo(f"{name}: laid out by an earlier version, {'written anew' if write else 'not compared'}")
    if write and not is_submission:
        try:
            rescoring.show(folder, check)
        except T2TError as error:  # a read-only folder can still be checked
            click.echo(f"the leaderboard does not show this: {error.what} ({error.cause})", err=True)
    return 0 if check.verified else 1
