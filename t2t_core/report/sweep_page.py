"""A sweep as a page: every seed of every arm, paired differences with their intervals, the way there, and what each was given."""

from __future__ import annotations

from pathlib import Path

from t2t_core.report.arm_curves import curves, require_finished, seeds_chart
from t2t_core.report.document import Charts, Document, Section
from t2t_core.report.sweep_document import SweepResult, sweep_document
from t2t_core.store import folders
from t2t_core.store.paths import SafePath


def sweep_page(path: Path | SafePath) -> Document:
    """The page of a finished sweep's folder. Raises T2TError if it is none."""
    folder = SafePath.of(path)
    result = folders.read_record(require_finished(folder, "sweep.json", "sweep"), SweepResult)
    made = sweep_document(result)
    figures = list(dict.fromkeys(name for arm in result.arms for name in arm.figures))
    values = {n: {a.arm: [100 * v for v in a.figures[n].values] for a in result.arms if n in a.figures} for n in figures}
    told = [name for name, arms in values.items() if len({value for seeds in arms.values() for value in seeds}) > 1]
    charts = [seeds_chart(f"{name}, %: a dot per seed, a bar at the mean", values[name]) for name in told]
    seeds = Section("Every seed", [Charts(charts)])
    order = [arm.arm.replace(" ", "_") for arm in result.arms]  # as their folders are called
    return Document(made.title, made.lead, [*made.sections, seeds, *curves(folder, order)])
