"""`t2t bench-designers`: the leaderboard of designers, and a row for your own designer."""

from __future__ import annotations

from pathlib import Path

import click

from t2t_core.errors import T2TError
from t2t_core.report import html, markdown, terminal
from t2t_core.run.progress import Reporter
from t2t_core.store import folders
from t2t_core.study.comparing import compare
from t2t_core.study.plan import entered, read_plan
from t2t_core.study.running import run_plan
from t2t_core.study.study_document import study_document
from t2t_leaderboard.designers import leaderboard, read_studies


@click.command()
@click.argument("paths", metavar="[STUDIES...]", nargs=-1, type=click.Path(path_type=Path, file_okay=False))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write designers.md and designers.html there.")
@click.option("--plan", type=click.Path(path_type=Path, dir_okay=False), help="A frozen plan to enter a designer into.")
@click.option("--designer", help="With --plan: the designer that enters, as t2t plugins names it.")
@click.option("--seeds", type=click.IntRange(1, 1000), help="With --plan: how many of the plan's seeds to use.")
def bench_designers(
    paths: tuple[Path, ...], out: Path | None, plan: Path | None, designer: str | None, seeds: int | None
) -> None:
    """The leaderboard of designers, from study folders.

    \b
    a table          t2t bench-designers studies/first studies/other
    a page           t2t bench-designers studies/first --out site
    your own row     t2t bench-designers --plan plan.toml --designer mine --out my_study

    An entry runs the plan's gate, its arm `fixed` and the designer, from the plan's round 0 with the plan's seeds. Its folder
    is a study like any other, so you can name it in a table.
    """
    if (plan is None) != (designer is None):
        raise T2TError("--plan and --designer go together", where="t2t bench-designers")
    if plan and designer:
        if out is None or paths:
            raise T2TError("an entry needs --out for its study, and no other folders", where="t2t bench-designers")
        file = entered(read_plan(plan), designer, seeds)
        result = compare(file, run_plan(file, out, Reporter(click.echo)))
        folders.write_json(out / "study.json", result)
        folders.write_atomic(out / "study.md", markdown.render(study_document(result)))
        terminal.show(study_document(result), terminal.console())
        return
    if not paths:
        raise T2TError("no study is named", where="t2t bench-designers", next="name folders of finished studies, or --plan")
    document = leaderboard(read_studies(paths))
    terminal.show(document, terminal.console())
    if out:
        folders.write_atomic(out / "designers.md", markdown.render(document))
        folders.write_atomic(out / "designers.html", html.render(document))
        click.echo(f"written to {out}")
