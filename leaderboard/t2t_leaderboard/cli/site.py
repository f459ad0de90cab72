"""`t2t site`: one static site of all submissions."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("paths", metavar="RESULTS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder of the site.")
@click.option("--studies", multiple=True, type=click.Path(path_type=Path, file_okay=False),
              help="A finished study of designers, for their board. Repeatable.")  # fmt: skip
def site(paths: tuple[Path, ...], out: Path, studies: tuple[Path, ...]) -> int:
    """One static site of all submissions in RESULTS, each checked as t2t verify does.

    The site shows results overall and by world, every answer, the history, the designers of studies, and what twins say about
    contamination. If a submission does not pass its check, the site only names it and the exit status is 1. The same
    submissions give the same bytes.
    """
    from t2t_core.text import visible
    from t2t_leaderboard import site as building
    from t2t_leaderboard.designers import read_studies
    from t2t_leaderboard.joined import join

    joined = join(paths)
    names = building.write(out, joined, read_studies(studies) if studies else [])
    click.echo(f"{len(names)} pages in {out}: open {out / building.INDEX}")
    for name, problems in joined.refused.items():
        click.echo(f"not shown: {visible(name, 100)}: {visible(problems[0], 300)}")
    return 1 if joined.refused else 0
