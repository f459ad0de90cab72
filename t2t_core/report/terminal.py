"""A report in a terminal: intervals beside their figures if there is room, else under them, else those of totals alone."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from t2t_core.report.document import Block, Column, Divider, Document, Items, Paragraph, Row, Table, TableCell
from t2t_core.report.figures import Figure
from t2t_core.text import flowing, visible

WIDE = 100  # columns that a table of ten columns with the interval of every cell needs
_NAME = 24  # of what a row is about
_NARROW = 12  # the same in a narrow terminal
_ENDLESS = 10_000  # columns, to learn how wide a table would like to be
_STYLES = {"": "", "strong": "bold", "soft": "dim", "good": "green", "bad": "bold red"}


def console(error: bool = False) -> Console:
    """Standard output, or standard error. A file or a pipe gets every row on one line, however long."""
    plain = Console(stderr=error)
    return plain if plain.is_terminal else Console(stderr=error, width=_ENDLESS)


def show(document: Document, console: Console) -> None:
    """Print the document; charts and folded texts are left out."""
    for block in document.lead:
        _show(block, console)
    for section in document.sections:
        console.print(Text(f"\n{visible(section.title)}", style="bold"))
        for block in section.blocks:
            _show(block, console)


def _show(block: Block, console: Console) -> None:
    match block:
        case Paragraph(text, tone):
            console.print(Text(flowing(text), style=_STYLES[tone]))
        case Items(texts):
            for text in texts:
                console.print(Padding(Text(flowing(text), style="dim"), (0, 0, 0, 2), expand=False))
        case Table():
            print_table(block, console)


def print_table(made: Table, console: Console) -> None:
    """Print one table: intervals beside their figures where that fits, else under them, else (in a narrow terminal) only those
    of the totals."""
    grid = _grid(made, True, True)
    if Measurement.get(console, console.options.update(max_width=_ENDLESS), grid).maximum > console.width:
        grid = _grid(made, console.width >= WIDE, False)
    console.print(grid)


def _grid(made: Table, wide: bool, beside: bool) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, int(wide), 0, 0), title_style="bold", title_justify="left")
    grid.title = visible(made.title) if made.title else None
    for number, column in enumerate(made.columns):
        _add(grid, column, number == 0, wide, beside)
    for row in made.rows:
        match row:
            case Row(cells, kind):
                shown = [_cell(cell, column, wide, beside) for cell, column in zip(cells, made.columns, strict=True)]
                if kind:
                    shown[0].append(" reported", style="italic dim")
                grid.add_row(*shown)
            case Divider():
                grid.add_section()
    return grid


def _add(grid: Grid, column: Column, first: bool, wide: bool, beside: bool) -> None:
    title = visible(column.title, 40)
    if first:
        width = None if beside else _NAME if wide else _NARROW
        grid.add_column(title, min_width=_NARROW, max_width=width, overflow="fold")
    elif column.words:
        grid.add_column(title, overflow="fold")
    else:
        grid.add_column(title, justify="right", style="bold" if column.total else "", no_wrap=True)


def _cell(cell: TableCell, column: Column, wide: bool, beside: bool) -> Text:
    match cell:
        case Figure():
            text = Text(cell.text(0 if wide else 1), style="bold yellow" if cell.changed else "")
            between = cell.interval(0 if beside or cell.signed else 1) if wide or column.total else ""
            if between:
                text.append(f" [{between}]" if beside else f"\n{between}", style="dim not bold")
            return text
        case str():
            return Text(visible(cell))
        case _:
            text = Text(visible(cell.text), style=_STYLES[cell.tone])
            if cell.small:
                text.append(f" {visible(cell.small)}", style="dim" if cell.tone != "bad" else "red")
            return text
