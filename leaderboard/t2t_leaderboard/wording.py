"""How figures and names read, the same in terminal, Markdown and HTML."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

DASH = "–"


def visible(text: str, width: int = 200) -> str:
    """A name from anybody as one harmless line: control characters, bidirectional overrides and escapes are spelt out."""
    shown = "".join(c if c == " " or unicodedata.category(c)[0] not in "CZ" else f"\\u{ord(c):04x}" for c in text[:width])
    return shown + ("…" if len(text) > width else "")


def number(value: float | None, digits: int = 1) -> str:
    if value is None:
        return DASH
    return f"{value:.{digits}f}" if abs(value) < 10_000 else f"{value:,.0f}"


def figure(cell: Mapping[str, Any] | None, digits: int = 2) -> str:
    """A figure, and beside it the mean of the row's cells where a printed total disagrees."""
    if not cell:
        return DASH
    if "mean_of_cells" in cell:
        return f"{number(cell['value'], 2)} / {number(cell['mean_of_cells'], 2)}"
    return number(cell.get("value"), digits)


def interval(cell: Mapping[str, Any] | None, digits: int = 0) -> str:
    """`low–high`, empty where there is none (reported rows, means)."""
    if not cell or cell.get("low") is None:
        return ""
    return f"{number(cell['low'], digits)}{DASH}{number(cell['high'], digits)}"


def status(verification: Mapping[str, Any] | None) -> str:
    """What is known of the figures: verified, not verified, or what is wrong."""
    if not verification:
        return "not verified: t2t verify has not looked at this folder"
    if verification["verified"]:
        return (
            f"verified: {verification['answers']:,} answers of {verification['rows']} row(s) rescored from their raw text"
            f" (t2t-core {verification['version']})"
        )
    if not verification["problems"]:
        return f"incomplete: {visible(verification['unfinished'][0], 400)}"
    return f"NOT VERIFIED: {len(verification['problems'])} problem(s), the first: {visible(verification['problems'][0], 400)}"


def counts(row: Mapping[str, Any]) -> str:
    """Errors, truncated and refused answers in words; empty where there are none."""
    answers = row.get("answers")
    if not answers:
        return ""
    names = [n for n in ("errors", "truncated", "refused") if answers[n]]
    words = [f"{answers[n]} {n.removesuffix('s') if answers[n] == 1 else n}" for n in names]
    return ", ".join((["incomplete"] if row["incomplete"] else []) + words)


def cost(row: Mapping[str, Any]) -> str:
    value = row.get("answers", {}).get("cost_usd")
    return DASH if value is None else f"${value:,.4f}" if value < 1 else f"${value:,.2f}"


Line = tuple[str, Sequence[str], str]


def beside(board: Mapping[str, Any], table: Mapping[str, Any], row: Mapping[str, Any]) -> list[Line]:
    """What stands beside a measured row's rates: (title, one text per column, total) for n and each mean that any row has."""
    rate = next(m["name"] for m in board["metrics"] if m["kind"] == "rate")
    cells = [row["cells"].get(column, {}) for column in table["columns"]]
    lines: list[Line] = [("n", [f"{c[rate]['n']:,}" if rate in c else DASH for c in cells], f"{row['total'][rate]['n']:,}")]
    for metric in board["metrics"]:
        name, measured = metric["name"], [r for r in table["rows"] if r["kind"] == "measured"]
        if metric["kind"] == "mean" and any(r["total"][name]["value"] is not None for r in measured):
            texts = [number(c.get(name, {}).get("value"), 2) for c in cells]
            lines.append((metric["title"], texts, number(row["total"][name]["value"], 2)))
    return lines
