"""`t2t analyze`: how a designer behaved, as numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from t2t_core.errors import T2TError
from t2t_core.loop.sweep import runs_of
from t2t_core.report.behaviour import MEASURES, arms
from t2t_core.report.behaviour import analyze as analyze_run
from t2t_core.report.behaviour_plots import behaviour_plots
from t2t_core.report.run_plots import run_plots
from t2t_core.report.summary import markdown, printable
from t2t_core.store import folders


@click.command()
@click.argument("places", metavar="FOLDERS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--formulas", is_flag=True, help="Also print each number's formula and its inputs.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write analysis.json, analysis.md and SVG plots there."
)
def analyze(places: tuple[Path, ...], as_json: bool, formulas: bool, out: Path | None) -> None:
    """How a designer behaved: the paper's five dimensions as numbers, per design step and on average.

    FOLDERS are runs, or sweeps of runs. Of several runs, those of one designer with one context are averaged.
    """
    chosen = list({run.path.resolve(): run for folder in places for run in runs_of(folder)}.values())  # each once
    results = [analyze_run(folder) for folder in chosen]
    if not any(result["steps"] for result in results):
        raise T2TError("no design step is finished in these runs", where=", ".join(map(str, places)))
    data = {"measures": described(), "runs": results, "arms": arms(results)}
    table, explained = printable(_table(results)), _formulas()
    click.echo(json.dumps(data, indent=2) if as_json else table + (f"\n\n{explained}" if formulas else ""))
    if out:
        folders.write_json(out / "analysis.json", data)
        folders.write_atomic(out / "analysis.md", f"{table}\n\n{explained}\n")
        plots = behaviour_plots(data["arms"])
        for number, folder in enumerate(chosen):
            name = f"{number}_{''.join(c for c in folder.path.resolve().name if c.isalnum())[:60]}"
            plots |= {f"{name}_{what}": svg for what, svg in run_plots(folder).items()}
        for name, svg in plots.items():
            folders.write_atomic(out / f"{name}.svg", svg)
        click.echo(f"written to {out}", err=as_json)


def described() -> list[dict[str, str]]:
    """The measures as data."""
    return [{k: getattr(m, k) for k in ("name", "behaviour", "formula", "inputs", "paper")} for m in MEASURES]


def _formulas() -> str:
    rows = [[m.name, m.behaviour, m.formula, m.inputs, m.paper] for m in MEASURES]
    return markdown(["number", "behaviour", "formula", "inputs", "the paper saw"], rows)


def _table(results: Sequence[Mapping[str, Any]]) -> str:
    """A row per number beside what the paper saw. Of one run a column per design step and their mean, of several a column per
    arm: its mean over runs, with an interval."""
    columns: dict[str, list[str]] = {}
    if len(results) == 1:
        for step in results[0]["steps"]:
            columns[f"after round {step['after_round']}"] = [_number(step[m.name]) for m in MEASURES]
    for arm in arms(results):
        runs_said = f", {arm['runs']} runs" if arm["runs"] > 1 else ""
        columns[f"{arm['arm']}: mean{runs_said}"] = [_interval(arm["mean"][m.name]) for m in MEASURES]
    rows = [[m.name, m.behaviour, *(c[i] for c in columns.values()), m.paper] for i, m in enumerate(MEASURES)]
    return markdown(["number", "behaviour", *columns, "the paper saw"], rows)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(estimate: Mapping[str, Any] | None) -> str:
    if estimate is None:
        return "-"
    ends = "" if estimate["low"] is None else f" [{estimate['low']:.3f}, {estimate['high']:.3f}]"
    return _number(estimate["value"]) + ends
