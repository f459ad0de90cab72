"""Learning curves over a whole run: a chart for every figure that the trainer told, a line for each arm, each design as an
event."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from t2t_core.report.charts import Axis, Event, Lines, Series
from t2t_core.report.document import spaced
from t2t_core.report.figures import Figure
from t2t_core.report.training import COUNTERS, is_number, updates
from t2t_core.run.round_files import RoundFiles

FIRST = ("reward", "valid", "optimal", "entropy", "kl", "response_tokens", "completion_length", "truncated")
_POINTS = 120  # on a line; of more updates, the means of neighbours

Lived = Sequence[tuple[int, Sequence[Mapping[str, Any]]]]  # of every round: its number, and the figures of its updates


def lived(rounds: Sequence[RoundFiles]) -> Lived:
    """What the trainer told, round by round."""
    return [(files.index, updates(files)) for files in rounds]


def learning_charts(arms: Mapping[str, Lived], designs: Sequence[int]) -> tuple[list[Lines], list[Lines]]:
    """The charts of the figures that are looked at first, and those of the others. `designs`: after which rounds somebody
    designed."""
    told = {arm: [line for _, lines in rounds for line in lines] for arm, rounds in arms.items()}
    most = max((len(lines) for lines in told.values()), default=0)
    if not most:
        return [], []
    width = math.ceil(most / _POINTS)
    names = dict.fromkeys(name for lines in told.values() for line in lines for name in line if is_number(line[name]))
    events = _events(next(iter(arms.values())), designs, width)
    charts = {name: _chart(name, told, most, width, events) for name in names if name not in COUNTERS}
    return [charts[name] for name in FIRST if name in charts], [chart for name, chart in charts.items() if name not in FIRST]


def _events(rounds: Lived, designs: Sequence[int], width: int) -> list[Event]:
    """A design stands where the updates of its round end."""
    done, events = 0, []
    for index, lines in rounds:
        done += len(lines)
        if index in designs:
            events.append(Event(max(0, done - 1) // width, f"design {index}"))
    return events


def _chart(name: str, told: Mapping[str, Sequence[Mapping[str, Any]]], most: int, width: int, events: Sequence[Event]) -> Lines:
    series = [
        Series(arm, [_mean(lines[at : at + width], name) for at in range(0, most, width)], number)
        for number, (arm, lines) in enumerate(told.items())
    ]
    per = "update" if width == 1 else f"{width} updates"
    figures = [figure for block in series for figure in block.points if figure and figure.value is not None]
    below = any((figure.value or 0.0) < 0 for figure in figures)
    axis = Axis(None if below else 0.0, None)
    return Lines(f"{spaced(name)}, mean per {per}", [str(at + 1) for at in range(0, most, width)], series, axis, events)


def _mean(lines: Sequence[Mapping[str, Any]], name: str) -> Figure | None:
    values = [float(line[name]) for line in lines if is_number(line.get(name)) and math.isfinite(line[name])]
    return Figure(sum(values) / len(values), digits=3) if values else None
