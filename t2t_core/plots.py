"""Small line plots as SVG text, without any dependency: one panel, several series over named positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{colour}"/>' for x, y in points]
        x = left + (number % 4) * 80
        y = _HEIGHT - 18 + 12 * (number // 4)
        parts.append(f'<rect x="{x}" y="{y - 8}" width="9" height="9" fill="{colour}"/>')
        parts.append(f'<text x="{x + 13}" y="{y}">{escape(name[:14])}</text>')
    return "\n".join([*parts, "</svg>"])
