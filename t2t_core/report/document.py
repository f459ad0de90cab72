"""What a report holds, as plain data: sections of paragraphs, tables and charts, which `terminal`, `markdown` and `html` render.

A run's summary, a sweep, an analysis and a leaderboard are all made of these, so that a figure reads alike wherever it stands.
Every text may be a stranger's: the renderers make it harmless, nobody else has to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from t2t_core.report.charts import Chart
from t2t_core.report.figures import Figure

Tone = Literal["", "strong", "soft", "good", "bad"]


@dataclass(frozen=True)
class Words:
    """A text in a cell; `small` is said under or behind it, `colour` is the one that the charts give the same thing."""

    text: str
    small: str = ""
    tone: Tone = ""
    colour: int | None = None
    chart: Chart | None = None


Cell = str | Figure | Words


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        title: its head.
        words: it holds texts, not numbers.
        total: it sums the others up: set apart, and the last to lose its intervals where there is little room.
        heat: its figures are percentages, coloured by their size.
    """

    title: str
    words: bool = False
    total: bool = False
    heat: bool = False


@dataclass(frozen=True)
class Row:
    """The cells of a row, one per column; `kind` is "" or "quoted", of figures that others measured."""

    cells: Sequence[Cell]
    kind: Literal["", "quoted"] = ""


@dataclass(frozen=True)
class Divider:
    """A line between two parts of a table, saying what follows."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first column names the row."""

    columns: Sequence[Column]
    rows: Sequence[Row | Divider]
    title: str = ""


@dataclass(frozen=True)
class Paragraph:
    """One paragraph of text; a `bad` one is a warning."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True)
class Items:
    """A list of short texts."""

    texts: Sequence[str]


@dataclass(frozen=True)
class Charts:
    """Charts side by side. Only a page shows them: their figures stand in the tables too."""

    charts: Sequence[Chart]


@dataclass(frozen=True)
class Folded:
    """A long text, folded away behind its title; only a page has it."""

    title: str
    text: str


Block = Paragraph | Items | Table | Charts | Folded


@dataclass(frozen=True)
class Section:
    """Blocks under a title."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A whole report: what stands above the first section, then the sections."""

    title: str
    lead: Sequence[Block]
    sections: Sequence[Section]


def spaced(name: str) -> str:
    """A name of the code as words: `first_failures` is "first failures"."""
    return name.replace("_", " ")
