"""`t2t analyze`: how a designer behaved, as numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from t2t_core.errors import T2TError
from t2t_core.loop.sweep import runs_of
from t2t_core.report import markdown, svg, terminal
from t2t_core.report.behaviour import MEASURES, arms
from t2t_core.report.behaviour import analyze as analyze_run
from t2t_core.report.behaviour_document import behaviour_charts, behaviour_document
from t2t_core.report.run_document import run_charts
from t2t_core.store import folders


@click.command()
@click.argument("paths", metavar="FOLDERS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--formulas", is_flag=True, help="Also print each number's formula and its inputs.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write analysis.json, analysis.md and SVG plots there."
)
def analyze(paths: tuple[Path, ...], as_json: bool, formulas: bool, out: Path | None) -> None:
    """How a designer behaved: the paper's five dimensions as numbers, per design step and on average.

    FOLDERS are runs, or sweeps of runs. Runs of the same designer with the same context are averaged.
    """
    runs = list({run.path.resolve(): run for folder in paths for run in runs_of(folder)}.values())  # each folder once
    results = [analyze_run(folder) for folder in runs]
    if not any(result["steps"] for result in results):
        raise T2TError("these runs hold no finished design step", where=", ".join(map(str, paths)))
    data: dict[str, Any] = {"measures": described(), "runs": results, "arms": arms(results)}
    if as_json:
        click.echo(json.dumps(data, indent=2))
    else:
        terminal.show(behaviour_document(results, formulas), terminal.console())
    if out:
        folders.write_json(out / "analysis.json", data)
        folders.write_atomic(out / "analysis.md", markdown.render(behaviour_document(results, formulas=True)))
        charts = behaviour_charts(data["arms"])
        for number, folder in enumerate(runs):
            name = f"{number}_{''.join(c for c in folder.path.resolve().name if c.isalnum())[:60]}"
            charts |= {f"{name}_{what}": chart for what, chart in run_charts(folder).items()}
        for name, chart in charts.items():
            folders.write_atomic(out / f"{name}.svg", svg.standalone(chart.svg()))
        click.echo(f"written to {out}", err=as_json)


def described() -> list[dict[str, str]]:
    """The measures as data."""
    return [{k: getattr(m, k) for k in ("name", "behaviour", "formula", "inputs")} for m in MEASURES]
