"""The leaderboard in a terminal: every interval where there are 100 columns, else those of the totals alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from t2t_leaderboard.wording import DASH, beside, cost, counts, figure, interval, status, visible

WIDE = 100  # columns that a table with the interval of every cell needs
_ROOM = 12  # of a policy's name in a narrow one
_SHORT = {"total trajectory length": "length", "response tokens": "tokens", "makespan gap": "gap"}  # in a narrow column


def console() -> Console:
    """Standard output; a file or a pipe gets the wide tables, whatever the terminal behind it."""
    plain = Console()
    return plain if plain.is_terminal or plain.width >= WIDE else Console(width=WIDE)


def show(board: Mapping[str, Any], verification: Mapping[str, Any] | None, console: Console) -> None:
    """Print every table, the figures beside the rates, the notes and the verification's status."""
    for table in board["tables"]:
        console.print(_rates(board, table, console.width >= WIDE))
        console.print(_means(board, table, console.width >= WIDE))
        console.print(_details(board, table))
    for note in board["notes"]:
        console.print(Text(f"  {visible(note)}", style="dim"))
    style = "green" if verification and verification["verified"] else "bold red" if verification else "yellow"
    console.print(Text(status(verification), style=style))


def _name(row: Mapping[str, Any]) -> Text:
    text = Text(visible(row.get("label", row["policy"]), 60), style="bold" if row["kind"] == "measured" else "")
    if row["kind"] == "reported":
        text.append(" reported", style="italic dim")
    elif row["incomplete"]:
        text.append(" incomplete", style="red")
    return text


def _rates(board: Mapping[str, Any], table: Mapping[str, Any], wide: bool) -> Table:
    """A measured row has two lines for each rate: the figures, and under them their intervals (the total's alone unless
    `wide`)."""
    shown = Table(title=visible(table["title"]), title_style="bold", title_justify="left", box=box.SIMPLE_HEAD)
    shown.padding = (0, int(wide), 0, 0)
    shown.add_column("policy", min_width=_ROOM, max_width=24 if wide else _ROOM, overflow="fold")
    shown.add_column("%", style="dim", no_wrap=True)
    for column in table["columns"]:
        shown.add_column(visible(column, 12), justify="right", no_wrap=True)
    shown.add_column("total", justify="right", style="bold", no_wrap=True)
    rates = [m for m in board["metrics"] if m["kind"] == "rate"]
    for row in table["rows"]:
        lines = 1 if row["kind"] == "reported" else 2
        shown.add_row(
            _name(row),
            ("\n" * lines).join(visible(m["title"], 10) for m in rates),
            *(_stacked([row["cells"].get(c, {}).get(m["name"]) for m in rates], lines, wide, wide) for c in table["columns"]),
            _stacked([row["total"].get(m["name"]) for m in rates], lines, wide, True),
            end_section=True,
        )
    return shown


def _stacked(cells: Sequence[Mapping[str, Any] | None], lines: int, wide: bool, intervals: bool) -> Text:
    """The rates of one column under each other, each with its interval below where there are two lines for it."""
    text = Text()
    for place, cell in enumerate(cells):
        text.append("\n" * (place > 0) + figure(cell, 2 if wide else 1))
        if lines == 2:
            text.append("\n" + interval(cell) * intervals, style="dim not bold")
    return text


def _means(board: Mapping[str, Any], table: Mapping[str, Any], wide: bool) -> Table:
    """n and the means of the measured rows, column by column."""
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, int(wide), 0, 0))
    shown.add_column("policy", min_width=_ROOM, max_width=24 if wide else _ROOM, overflow="fold")
    shown.add_column("mean", style="dim", max_width=10, overflow="fold")
    for column in table["columns"]:
        shown.add_column(visible(column, 12), justify="right", no_wrap=True)
    shown.add_column("total", justify="right", style="bold", no_wrap=True)
    for row in (r for r in table["rows"] if r["kind"] == "measured"):
        for place, (title, texts, total) in enumerate(beside(board, table, row)):
            name = Text(visible(row["label"], 60), style="bold") if place == 0 else Text()
            shown.add_row(name, visible(_SHORT.get(title, title), 24), *texts, total)
        shown.add_section()
    return shown


def _details(board: Mapping[str, Any], table: Mapping[str, Any]) -> Table:
    rows: Sequence[Mapping[str, Any]] = [row for row in table["rows"] if row["kind"] == "measured"]
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column("policy", min_width=_ROOM, max_width=24, overflow="fold")
    for name in ("answers", "tokens", "hidden", "cost"):
        shown.add_column(name, justify="right")
    shown.add_column("errors, truncated, refused")
    for row in rows:
        answers = row["answers"]
        shown.add_row(
            Text(visible(row["label"], 60)),
            f"{answers['asked']:,}",
            f"{answers['tokens']:,}" if answers["tokens"] else DASH,
            f"{answers['hidden_tokens']:,}" if answers["hidden_tokens"] else DASH,
            cost(row),
            Text(counts(row) or "none", style="red" if row["incomplete"] else ""),
        )
    return shown
