"""The behaviour numbers as SVG: a plot per behaviour, a strip per number, a dot per design step and a bar at each arm's mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from t2t_core.report.behaviour import MEASURES
from t2t_core.report.plots import COLOURS, ticks

_WIDTH, _LEFT, _TOP, _LANE, _GAP = 720, 170, 34, 12, 14


def behaviour_plots(arms: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Name -> SVG of every behaviour, from arms as `analysis.arms` gives them."""
    behaviours = dict.fromkeys(measure.behaviour for measure in MEASURES)
    return {f"behaviour_{name.replace(' ', '_').replace('-', '_')}": _plot(name, arms) for name in behaviours}


def _plot(behaviour: str, arms: Sequence[Mapping[str, Any]]) -> str:
    names = [measure.name for measure in MEASURES if measure.behaviour == behaviour]
    values = [v for arm in arms for name in names for v in arm["values"][name]]
    low: float = min([0.0, *values])
    high: float = max([1.0 if low == 0 else 0.0, *values])
    strip = _GAP + _LANE * len(arms)
    bottom = _TOP + strip * len(names)
    height = bottom + 30 + 14 * ((len(arms) + 1) // 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" font-family="sans-serif" font-size="10" fill="currentColor">',
        f"<title>{escape(behaviour)}</title>",
        f'<text x="4" y="16" font-size="12">{escape(behaviour)}: a dot per design step, a bar at the mean</text>',
    ]

    def x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 20) * (value - low) / (high - low)

    for value in ticks(low, high):
        parts.append(_line(x(value), _TOP, bottom, 0.15 if value else 0.7))
        parts.append(f'<text x="{x(value):.1f}" y="{bottom + 13}" text-anchor="middle">{value:g}</text>')
    for row, name in enumerate(names):
        top = _TOP + row * strip
        parts.append(f'<text x="{_LEFT - 10}" y="{top + strip / 2 + 3:.1f}" text-anchor="end">{escape(name)}</text>')
        for number, arm in enumerate(arms):
            parts += _lane(x, top + _GAP / 2 + (number + 0.5) * _LANE, arm["values"][name], COLOURS[number % len(COLOURS)])
    for number, arm in enumerate(arms):
        left, y = _LEFT + (number % 2) * 270, bottom + 30 + 14 * (number // 2)
        parts.append(f'<rect x="{left}" y="{y - 8}" width="9" height="9" fill="{COLOURS[number % len(COLOURS)]}"/>')
        parts.append(f'<text x="{left + 13}" y="{y}">{escape(arm["arm"][:44])}</text>')
    return "\n".join([*parts, "</svg>"])


def _lane(x: Any, y: float, values: Sequence[float], colour: str) -> list[str]:
    dots = [f'<circle cx="{x(v):.1f}" cy="{y:.1f}" r="2.6" fill="{colour}" fill-opacity="0.6"/>' for v in values]
    if values:
        at = x(sum(values) / len(values))
        dots.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y - 5:.1f}" y2="{y + 5:.1f}" stroke="{colour}" stroke-width="2.5"/>')
    return dots


def _line(x: float, top: float, bottom: float, strength: float) -> str:
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" stroke="currentColor" stroke-opacity="{strength}"/>'
