"""The behaviour of designers as a document and as charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2t_core.report.behaviour import MEASURES, arms
from t2t_core.report.charts import Axis, Chart, Dots, Lane, Point
from t2t_core.report.document import Column, Document, Row, Section, Table, TableCell, spaced
from t2t_core.report.figures import Figure


def behaviour_document(results: Sequence[Mapping[str, Any]], formulas: bool) -> Document:
    """A row per number beside what the paper saw. Of one run a column per design step and their mean, of several a column per
    arm: its mean over runs, with an interval. Then, where asked for, how each number is computed."""
    columns: dict[str, list[TableCell]] = {}
    if len(results) == 1:
        for step in results[0]["steps"]:
            columns[f"after round {step['after_round']}"] = [Figure(step[m.name], digits=3) for m in MEASURES]
    for arm in arms(results):
        runs = f", {arm['runs']} runs" if arm["runs"] > 1 else ""
        means = (arm["mean"][m.name] or {"value": None, "low": None, "high": None} for m in MEASURES)
        columns[f"{arm['arm']}: mean{runs}"] = [Figure(**mean, digits=3, interval_digits=3) for mean in means]
    rows = [[spaced(m.name), m.behaviour, *(c[i] for c in columns.values())] for i, m in enumerate(MEASURES)]
    head = [Column("number", words=True), Column("behaviour", words=True), *(Column(name, total=True) for name in columns)]
    seen = {name: text for result in results for name, text in result["observed"].items()}
    sections = [Section("Behaviour", [with_observed(head, rows, seen)])]
    if formulas:
        sections.append(Section("Formulas", [formula_table()]))
    return Document("How designers behaved", [], sections)


def with_observed(columns: Sequence[Column], rows: Sequence[Sequence[TableCell]], observed: Mapping[str, str]) -> Table:
    """A table with a row per measure, and what a publication saw of each beside it, where the testbed says so."""
    if not observed:
        return Table(list(columns), [Row(list(row)) for row in rows])
    seen = [observed.get(measure.name, "") for measure in MEASURES]
    made = [Row([*row, text]) for row, text in zip(rows, seen, strict=True)]
    return Table([*columns, Column("the paper saw", words=True)], made)


def formula_table() -> Table:
    """How each number is computed, and from what."""
    head = [Column(name, words=True) for name in ("number", "behaviour", "formula", "inputs")]
    return Table(head, [Row([spaced(m.name), m.behaviour, m.formula, m.inputs]) for m in MEASURES])


def behaviour_charts(arms: Sequence[Mapping[str, Any]]) -> dict[str, Chart]:
    """By file name, a chart per behaviour: lanes per number and arm, a dot per design step and a bar at the arm's mean."""
    behaviours = dict.fromkeys(measure.behaviour for measure in MEASURES)
    return {f"behaviour_{name.replace(' ', '_').replace('-', '_')}": _chart(name, arms) for name in behaviours}


def _chart(behaviour: str, arms: Sequence[Mapping[str, Any]]) -> Chart:
    lanes = []
    for measure in (m for m in MEASURES if m.behaviour == behaviour):
        for number, arm in enumerate(arms):
            values = arm["values"][measure.name]
            steps = [Point(Figure(value, digits=3), says=arm["arm"]) for value in values]
            mean = sum(values) / len(values) if values else None
            lanes.append(Lane("" if number else spaced(measure.name), steps, number, mean))
    legend = [(arm["arm"], number) for number, arm in enumerate(arms)]
    return Dots(f"{behaviour}: a dot per design step, a bar at the mean", {"": lanes}, Axis(None, None), legend)
