"""How the knobs of a run's configurations are shown: as its testbed declares them."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_core.records import Knob
from t2t_core.report.charts import Axis
from t2t_core.report.figures import Figure


def knob_figure(knob: Knob | None, value: float | None, changed: bool = False) -> Figure:
    """A knob's value in the form in which it is shown; `changed` marks it."""
    if value is None:
        return Figure(None)
    if knob is None:
        return Figure(value, digits=3, changed=changed)
    if knob.form == "percent":
        return Figure(100 * value, digits=1, unit=" %", changed=changed)
    unit = f" {knob.unit}" if knob.unit else ""
    return Figure(value, digits=0 if knob.form == "whole" else 3, unit=unit, changed=changed)


def knob_axis(knob: Knob | None, figures: Sequence[Figure]) -> Axis:
    """The axis of a chart of that knob: from zero, or from its lowest value where that is below."""
    percent = knob is not None and knob.form == "percent"
    below = any(figure.value is not None and figure.value < 0 for figure in figures)
    return Axis(None if below else 0.0, None, " %" if percent else "")
