"""The marks that every chart is drawn with: SVG as text, no script, no inline style, every name escaped.

Colours and fonts come from classes (`templates/chart.css`), so that one chart suits a light page, a dark one and a file of its
own: `c0` to `c7` are the colours of rows, `quoted` those of figures that others measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from t2t_core.report.frame import sheet
from t2t_core.text import visible

COLOURS = 8


def tone(colour: int | None) -> str:
    """The class of a colour; None: of figures that others measured."""
    return "quoted" if colour is None else f"c{colour % COLOURS}"


def _said(words: str) -> str:
    """A text from anybody, visible and harmless."""
    return escape(visible(words))


def drawing(width: float, height: float, title: str, marks: Sequence[str]) -> str:
    """A whole picture; `title` is what a screen reader says."""
    said, size = _said(title), f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return f'<svg {size} role="img" aria-label="{said}"><title>{said}</title>{"".join(marks)}</svg>'


def standalone(svg: str) -> str:
    """The picture as a file of its own, with its colours in it."""
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        "</title>", f"</title><style>{sheet('chart.css')}</style>", 1
    )


def text(x: float, y: float, words: str, anchor: str = "start", name: str = "") -> str:
    """A <text> element. `name` is its class in the page's style."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{name}">{_said(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, name: str, width: float = 1) -> str:
    """A <line> element. `name` is its class in the page's style."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{name}" stroke-width="{width:g}"/>'


def dot(x: float, y: float, name: str, hover: str, radius: float = 4.5) -> str:
    """A <circle> element with a text that shows on hovering. `name` is its class in the page's style."""
    mark = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{name}" stroke-width="2"'
    return f"<circle {mark}><title>{_said(hover)}</title></circle>"


_SHAPES: Sequence[Sequence[float]] = (
    (),
    (-1, -1, 1, -1, 1, 1, -1, 1),
    (0, -1.3, 1.2, 0.9, -1.2, 0.9),
    (0, -1.4, 1.4, 0, 0, 1.4, -1.4, 0),
    (-1.2, -0.9, 1.2, -0.9, 0, 1.3),
)


def shape(number: int, x: float, y: float, name: str, hover: str, radius: float = 4.5) -> str:
    """A mark by its number: a disc, a square, a triangle, a diamond or a triangle on its head, so that colours need not tell."""
    corners = _SHAPES[number % len(_SHAPES)]
    if not corners:
        return dot(x, y, name, hover, radius)
    where = " ".join(f"{x + radius * corners[i]:.1f},{y + radius * corners[i + 1]:.1f}" for i in range(0, len(corners), 2))
    return f'<polygon points="{where}" class="{name}"><title>{_said(hover)}</title></polygon>'


_DASHES = ("", "7 3", "2 3", "9 3 2 3")


def path(points: Sequence[tuple[float, float]], name: str, width: float = 2, dashes: int = 0) -> str:
    """A line through points; `dashes` 0 is a whole one, 1, 2 and 3 are broken in their own ways."""
    where = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    broken = f' stroke-dasharray="{_DASHES[dashes % len(_DASHES)]}"' if dashes % len(_DASHES) else ""
    return f'<polyline points="{where}" class="line {name}" stroke-width="{width:g}"{broken}/>'


def box(x: float, width: float, height: float, name: str, hover: str, y: float = 0) -> str:
    """A <rect> element with a text that shows on hovering. `name` is its class in the page's style."""
    mark = f'x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{height:g}" class="{name}"'
    return f"<rect {mark}><title>{_said(hover)}</title></rect>"


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from `low` to `high`, at most `most` + 1 of them, zero among them where it lies between."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(s * power for s in (1, 2, 5, 10, 20) if span / (s * power) <= most)
    return [round(i * step, 10) for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def apart(ends: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The same heights in the same order, moved so that none lies within `gap` of another, and none beyond low..high unless
    there are too many."""
    gap = min(gap, (high - low) / max(1, len(ends)))
    order = sorted(range(len(ends)), key=lambda i: ends[i])
    placed: list[float] = []
    for i in order:
        placed.append(max(ends[i], placed[-1] + gap) if placed else ends[i])
    limit = high
    for index in range(len(placed) - 1, -1, -1):  # push back up what ran off the bottom
        placed[index] = min(placed[index], limit)
        limit = placed[index] - gap
    return [placed[order.index(i)] for i in range(len(ends))]
