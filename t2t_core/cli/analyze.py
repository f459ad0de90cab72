"""`t2t analyze`: how a designer behaved, as numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from t2t_core import runs
from t2t_core.analysis import MEASURES
from t2t_core.analysis import analyze as analyze_run
from t2t_core.errors import T2TError
from t2t_core.loop_summary import markdown, printable
from t2t_core.run_plots import run_plots


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--formulas", is_flag=True, help="Also print each number's formula, its inputs, and what the paper saw.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write analysis.json and SVG plots there.")
def analyze(folders: tuple[Path, ...], as_json: bool, formulas: bool, out: Path | None) -> None:
    """How a designer behaved: the paper's five dimensions as numbers, per design step and on average."""
    results = [analyze_run(folder) for folder in folders]
    if not any(result["steps"] for result in results):
        raise T2TError("no design step is finished in these runs", where=", ".join(map(str, folders)))
    if as_json:
        click.echo(json.dumps({"measures": described(), "runs": results}, indent=2))
    else:
        click.echo(printable(_table(results)))
        if formulas:
            rows = [[m.name, m.behaviour, m.formula, m.inputs, m.paper] for m in MEASURES]
            click.echo("\n" + markdown(["number", "behaviour", "formula", "inputs", "the paper saw"], rows))
    if out:
        runs.write_json(out / "analysis.json", {"measures": described(), "runs": results})
        for number, folder in enumerate(folders):
            for name, svg in run_plots(folder).items():
                runs.write_atomic(
                    out / f"{number}_{''.join(c for c in folder.resolve().name if c.isalnum())[:60]}_{name}.svg", svg
                )
        click.echo(f"written to {out}", err=as_json)


def described() -> list[dict[str, str]]:
    """The measures as data."""
    return [{k: getattr(m, k) for k in ("name", "behaviour", "formula", "inputs", "paper")} for m in MEASURES]


def _table(results: list[dict[str, Any]]) -> str:
    """A row per number, a column per design step, then each run's mean."""
    header, columns = ["number", "behaviour"], []
    for result in results:
        name = f"{Path(result['run']).name} ({result['designer']}, {result['context']})"
        for step in result["steps"]:
            header.append(f"{name} after {step['after_round']}")
            columns.append(step)
        header.append(f"{name} mean")
        columns.append(result["mean"])
    rows = []
    for measure in MEASURES:
        values = [column[measure.name] for column in columns]
        rows.append([measure.name, measure.behaviour, *("-" if v is None else f"{v:.3f}" for v in values)])
    return markdown(header, rows)
