"""Small plots as SVG text, without any dependency: lines over named positions, and differences with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 360, 220, 40, 28, 46


def lines(title: str, positions: Sequence[str], series: Mapping[str, Sequence[float | None]], high: float = 1.0) -> str:
    """A line per series over `positions`, from 0 to `high` (shares; the axis is in percent). None leaves a gap."""
    left, right = _LEFT, _WIDTH - 8
    bottom = _HEIGHT - _BOTTOM
    step = (right - left) / max(1, len(positions) - 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'role="img" font-family="sans-serif" font-size="10" fill="currentColor">',
        f"<title>{escape(title)}</title>",
        f'<text x="{left}" y="14" font-size="12">{escape(title)}</text>',
    ]
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = bottom - part * (bottom - _TOP)
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" stroke-opacity="0.15"/>')
        parts.append(f'<text x="{left - 5}" y="{y + 3:.1f}" text-anchor="end">{100 * part * high:g}%</text>')
    for i, name in enumerate(positions):
        parts.append(f'<text x="{left + i * step:.1f}" y="{bottom + 13}" text-anchor="middle">{escape(name[:12])}</text>')
    for number, (name, values) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = [(left + i * step, bottom - min(1.0, v / high) * (bottom - _TOP)) for i, v in enumerate(values) if v is not None]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        width = 1.8 + 1.2 * (len(series) - 1 - number)  # an equal line drawn later leaves the edges of this one to see
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{min(width, 6.6):.1f}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{colour}"/>' for x, y in points]
        x = left + (number % 4) * 80
        y = _HEIGHT - 18 + 12 * (number // 4)
        parts.append(f'<rect x="{x}" y="{y - 8}" width="9" height="9" fill="{colour}"/>')
        parts.append(f'<text x="{x + 13}" y="{y}">{escape(name[:14])}</text>')
    return "\n".join([*parts, "</svg>"])


@dataclass(frozen=True)
class Interval:
    """A difference with its interval, as shares; low and high are None where there is none."""

    value: float
    low: float | None
    high: float | None


def differences(title: str, panels: Mapping[str, Mapping[str, Interval]]) -> str:
    """Panels side by side, each with a row per name: a point, its 95 % interval, and a line at zero; all on one axis, in
    percentage points. The panels have the same names in the same order."""
    names = list(next(iter(panels.values()))) if panels else []
    ends = [v for rows in panels.values() for i in rows.values() for v in (i.value, i.low, i.high) if v is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    margin = 0.05 * (high - low) or 0.01
    low, high = low - margin, high + margin
    label, panel, gap, top, row = 120, 150, 24, 48, 18
    width, height = label + len(panels) * (panel + gap), top + len(names) * row + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="sans-serif" font-size="10" fill="currentColor">',
        f"<title>{escape(title)}</title>",
        f'<text x="4" y="14" font-size="12">{escape(title)}</text>',
    ]
    parts += [
        f'<text x="{label - 8}" y="{top + i * row + 12}" text-anchor="end">{escape(n[:22])}</text>' for i, n in enumerate(names)
    ]
    for number, (heading, rows) in enumerate(panels.items()):
        left = label + number * (panel + gap)

        def x(value: float, left: int = left) -> float:
            return left + panel * (value - low) / (high - low)

        bottom = top + len(names) * row + 4
        parts.append(f'<text x="{left}" y="{top - 12}">{escape(heading[:28])}</text>')
        for tick in ticks(low, high):
            at, strength = f"{x(tick):.1f}", 0.6 if tick == 0 else 0.15
            line = f'<line x1="{at}" x2="{at}" y1="{top - 4}" y2="{bottom}" stroke="currentColor" stroke-opacity="{strength}"/>'
            number_shown = f"{100 * tick:+g}" if tick else "0"
            parts += [line, f'<text x="{at}" y="{bottom + 12}" text-anchor="middle">{number_shown}</text>']
        for i, one in enumerate(rows.values()):
            y, colour = top + i * row + 8, COLOURS[i % len(COLOURS)]
            if one.low is not None and one.high is not None:
                ends_at = f'x1="{x(one.low):.1f}" x2="{x(one.high):.1f}"'
                parts.append(f'<line {ends_at} y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>')
            parts.append(f'<circle cx="{x(one.value):.1f}" cy="{y}" r="3.2" fill="{colour}"/>')
    return "\n".join([*parts, "</svg>"])


def ticks(low: float, high: float) -> list[float]:
    """Round shares between two ends, at most six, zero among them."""
    step = next(s for s in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if (high - low) / s <= 6)
    return [round(i * step, 6) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
