"""The leaderboard's plots as inline SVG: no script, no inline style, every name escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from t2t_leaderboard.wording import figure, interval, visible

Row = Mapping[str, Any]
_LABEL = 23  # characters of a name beside a mark


def _svg(width: int, height: int, title: str, body: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(body)}</svg>"
    )


def _text(x: float, y: float, text: str, anchor: str = "start", name: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{name}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, name: str, width: float = 1) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{name}" stroke-width="{width}"/>'


def _dot(x: float, y: float, name: str, hover: str, radius: float = 4.5) -> str:
    mark = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{name}" stroke-width="2"'
    return f"<circle {mark}><title>{escape(hover)}</title></circle>"


def label(row: Row) -> str:
    return visible(row.get("label", row["policy"]), _LABEL)


def colour(row: Row, colours: Mapping[str, int]) -> str:
    return "reported" if row["kind"] == "reported" else f"c{colours[row['row']]}"


def totals(rows: Sequence[Row], first: str, second: str | None, colours: Mapping[str, int]) -> str:
    """Each row's total of the first rate as a filled mark with its interval, of the second as a hollow one."""
    left, right, step = 186, 566, 22
    height = 34 + step * len(rows)
    scale = (right - left) / 100
    body = []
    for tick in range(0, 101, 25):
        x = left + tick * scale
        body += [_line(x, 14, x, height - 18, "grid"), _text(x, height - 4, f"{tick} %", "middle", "axis")]
    for place, row in enumerate(rows):
        y = 26 + step * place
        name = colour(row, colours)
        body.append(_text(left - 10, y + 4, label(row), "end", "faint" if name == "reported" else ""))
        for metric in (m for m in (second, first) if m):
            cell = row["total"].get(metric)
            if not cell or cell.get("value") is None:
                continue
            if cell.get("low") is not None:
                body.append(_line(left + cell["low"] * scale, y, left + cell["high"] * scale, y, name, 2))
            hover = f"{label(row)}: {metric} {figure(cell)} % {interval(cell, 1)}"
            body.append(_dot(left + cell["value"] * scale, y, name + (" hollow" if metric == second else ""), hover))
    return _svg(590, height, f"Totals: {first}" + (f" (filled) and {second} (hollow)" if second else ""), body)


def by_column(table: Mapping[str, Any], metric: str, colours: Mapping[str, int]) -> str:
    """A rate over the columns: measured rows with whiskers, reported ones thin and grey."""
    left, right, top, bottom = 40, 424, 14, 270
    columns = table["columns"]
    step = (right - left) / max(1, len(columns) - 1)
    body = []
    for tick in range(0, 101, 25):
        y = bottom - tick * (bottom - top) / 100
        body += [_line(left, y, right, y, "grid"), _text(left - 6, y + 4, str(tick), "end", "axis")]
    body += [_text(left + i * step, bottom + 18, visible(c, 8), "middle", "axis") for i, c in enumerate(columns)]
    ends: list[tuple[float, Row]] = []
    for row in sorted(table["rows"], key=lambda r: r["kind"] == "measured"):
        points = []
        name = colour(row, colours)
        for place, column in enumerate(columns):
            cell = row["cells"].get(column, {}).get(metric)
            if not cell or cell.get("value") is None:
                continue
            x, (y, low, high) = left + place * step, (_height(cell.get(k), top, bottom) for k in ("value", "low", "high"))
            points.append((x, y))
            if name != "reported":
                if cell.get("low") is not None:
                    body.append(_line(x, low, x, high, name, 1.2))
                body.append(_dot(x, y, name, f"{label(row)}, {column}: {figure(cell)} % {interval(cell, 1)}", 3))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = ' stroke-dasharray="4 3"' if name == "reported" else ""
        body.append(f'<polyline points="{path}" class="line {name}" stroke-width="{1 if dashes else 2}" fill="none"{dashes}/>')
        if points:
            ends.append((points[-1][1], row))
    body += _end_labels(ends, right + 10, top, bottom, colours)
    return _svg(606, 296, f"{metric} by column, %", body)


def _height(value: float | None, top: float, bottom: float) -> float:
    return bottom - (value or 0.0) * (bottom - top) / 100


def _end_labels(ends: Sequence[tuple[float, Row]], x: float, top: float, bottom: float, colours: Mapping[str, int]) -> list[str]:
    """Names at the right end of their lines, pushed apart so that none lies on another."""
    gap = min(14.0, (bottom - top) / max(1, len(ends)))
    placed: list[tuple[float, Row]] = []
    for y, row in sorted(ends, key=lambda end: end[0]):
        placed.append((max(y, placed[-1][0] + gap) if placed else y, row))
    over = max(0.0, placed[-1][0] - bottom) if placed else 0.0
    limit = bottom
    for place in range(len(placed) - 1, -1, -1):  # push back up what ran off the bottom
        y, row = placed[place]
        y = min(y, limit) if over else y
        placed[place], limit = (y, row), y - gap
    return [
        _text(x, y + 4, label(row), "start", "faint" if row["kind"] == "reported" else colour(row, colours)) for y, row in placed
    ]


def cost_against(rows: Sequence[Row], metric: str, colours: Mapping[str, int]) -> str:
    """A rate against USD per answer, the latter on a logarithmic axis; empty where no cost is known."""
    known = [
        (r["answers"]["cost_usd"] / r["answers"]["asked"], r["total"][metric], r)
        for r in rows
        if r["kind"] == "measured" and r["answers"]["cost_usd"] and r["total"][metric].get("value") is not None
    ]
    if not known:
        return ""
    left, right, top, bottom = 40, 560, 14, 250
    low = math.floor(min(math.log10(c) for c, _, _ in known) - 0.1)
    high = max(low + 1, math.ceil(max(math.log10(c) for c, _, _ in known) + 0.1))
    body = []
    for tick in range(0, 101, 25):
        y = _height(tick, top, bottom)
        body += [_line(left, y, right, y, "grid"), _text(left - 6, y + 4, str(tick), "end", "axis")]
    for power in range(low, high + 1):
        x = left + (power - low) / (high - low) * (right - left)
        body += [_line(x, top, x, bottom, "grid"), _text(x, bottom + 18, f"${10.0**power:.{max(0, -power)}f}", "middle", "axis")]
    for cost, cell, row in known:
        x = left + (math.log10(cost) - low) / (high - low) * (right - left)
        y, name = _height(cell["value"], top, bottom), colour(row, colours)
        if cell.get("low") is not None:
            body.append(_line(x, _height(cell["low"], top, bottom), x, _height(cell["high"], top, bottom), name, 1.5))
        body.append(_dot(x, y, name, f"{label(row)}: {figure(cell)} % at ${cost:.5f} an answer"))
        side = -1 if x > (left + right) / 2 else 1
        body.append(_text(x + 10 * side, y + 4, label(row), "start" if side > 0 else "end", name))
    return _svg(590, 290, f"{metric} against cost per answer", body)


def failures(counts: Mapping[str, int], valid: int, asked: int, order: Sequence[str]) -> str:
    """A bar of what became of the answers: valid ones empty, failures by their first failed check, errors at the end."""
    body, x = [], 100.0 * valid / max(1, asked)
    for name in order:
        share = 100.0 * counts.get(name, 0) / max(1, asked)
        if share:
            hover = f"{visible(name, 40)}: {counts[name]} of {asked}"
            tone = f"f{order.index(name) % 8}"
            box = f'x="{x:.2f}" y="0" width="{share:.2f}" height="10" class="{tone}" stroke-width="0"'
            body.append(f"<rect {box}><title>{escape(hover)}</title></rect>")
            x += share
    frame = 'class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="failures"'
    return f"<svg {frame}>{''.join(body)}</svg>"
