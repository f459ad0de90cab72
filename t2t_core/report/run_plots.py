"""The plots of a run: validation per group and round, and each knob of the configurations."""

from __future__ import annotations

from pathlib import Path

from t2t_core.cells import numbers
from t2t_core.plugins import installed
from t2t_core.report.plots import lines
from t2t_core.report.summary import round_summary
from t2t_core.run.round_files import finished_rounds, open_run
from t2t_core.store.paths import SafePath


def run_plots(folder: Path | SafePath) -> dict[str, str]:
    """Name -> SVG: `valid` and `optimal` per group with a line per round, then one plot per knob."""
    rounds = [round_summary(files) for files in finished_rounds(folder)]
    if not rounds:
        return {}
    groups = list(rounds[0]["configuration"])
    testbed = open_run(folder)[1].testbed
    by = installed().testbeds.make(testbed).group if testbed in installed().testbeds else "group"
    plots = {}
    for metric in ("valid", "optimal"):
        series = {f"round {r['round']}": [r["groups"].get(g, {}).get(metric) for g in groups] for r in rounds}
        plots[metric] = lines(f"validation: {metric}, by {by}", groups, series)
    for knob in numbers(rounds[0]["configuration"][groups[0]]):
        series = {f"round {r['round']}": [r["configuration"].get(g, {}).get(knob) for g in groups] for r in rounds}
        top = max((v for values in series.values() for v in values if v is not None), default=1.0)
        plots[knob] = lines(f"configuration: {knob.replace('_', ' ')}, by {by}", groups, series, 1.0 if top > 0.5 else 0.5)
    return plots
