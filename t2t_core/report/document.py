"""What a report holds, as plain data: sections of paragraphs, tables and charts, which `terminal`, `markdown` and `html` render.

A run's summary, a sweep, an analysis and a leaderboard are all made of these, so that a figure reads alike wherever it stands.
Every text may be a stranger's: the renderers make it harmless, nobody else has to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from t2t_core.report.charts import Chart
from t2t_core.report.figures import Figure

Tone = Literal["", "strong", "soft", "good", "bad"]
Facets = Mapping[str, str]  # what a page's filters go by, e.g. {"column": "small"}; the names are plain small letters


@dataclass(frozen=True)
class Words:
    """A text in a cell; `small` is said under or behind it, `colour` is the one that the charts give the same thing, `link` where
    a page leads from it (an address of the suite's own making)."""

    text: str
    small: str = ""
    tone: Tone = ""
    colour: int | None = None
    link: str = ""


TableCell = str | Figure | Words


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        title: its head.
        words: it holds texts, not numbers.
        total: it sums the others up: set apart, and the last to lose its intervals if there is little room.
        heat: its figures are percentages, coloured by their size.
        facets: what the page's filters know it by.
    """

    title: str
    words: bool = False
    total: bool = False
    heat: bool = False
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """The cells of a row, one per column; `kind` is "" or "quoted", of figures that others measured."""

    cells: Sequence[TableCell]
    kind: Literal["", "quoted"] = ""
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Divider:
    """A line between two parts of a table, saying what follows."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first column names the row. A page lets its reader sort a `sortable` one."""

    columns: Sequence[Column]
    rows: Sequence[Row | Divider]
    title: str = ""
    sortable: bool = False


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


@dataclass(frozen=True)
class Example:
    """One answer, folded away behind its title: how it was judged, in a few words, what was said (who, words), and a moving
    picture of it (an <svg> element). Only a page has it; `size` is how many pixels the picture is wide."""

    title: str
    judged: str
    tone: Tone
    said: Sequence[tuple[str, str]]
    picture: str = ""
    facets: Facets = field(default_factory=dict)
    size: int = 320


@dataclass(frozen=True)
class Links:
    """Links with what they lead to: (words, address); addresses are of the suite's own making. Only a page has them."""

    links: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Beside:
    """Blocks side by side, as far as there is room. Only a page has them."""

    parts: Sequence[Sequence[Block]]


Block = Paragraph | Items | Table | Charts | Folded | Example | Links | Beside


@dataclass(frozen=True)
class Section:
    """Blocks under a title."""

    title: str
    blocks: Sequence[Block]
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Filter:
    """A choice that a page offers: of everything with this facet, show one value."""

    facet: str
    title: str


@dataclass(frozen=True)
class Document:
    """A whole report: what stands above the first section, then the sections; and by what a page's reader may choose."""

    title: str
    lead: Sequence[Block]
    sections: Sequence[Section]
    filters: Sequence[Filter] = ()

    @property
    def blocks(self) -> Iterator[Block]:
        """Every block."""
        yield from _flat(self.lead)
        for section in self.sections:
            yield from _flat(section.blocks)

    def choices(self, facet: str) -> list[str]:
        """The values of a facet, in the order in which they stand."""
        return list(dict.fromkeys(facets[facet] for facets in self._facets() if facet in facets))

    def _facets(self) -> Iterator[Facets]:
        for section in self.sections:
            yield section.facets
        for block in self.blocks:
            match block:
                case Table():
                    yield from (column.facets for column in block.columns)
                    yield from (row.facets for row in block.rows if isinstance(row, Row))
                case Example():
                    yield block.facets


def _flat(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        for part in block.parts if isinstance(block, Beside) else ():
            yield from _flat(part)


def spaced(name: str) -> str:
    """A name of the code as words: `first_failures` is "first failures"."""
    return name.replace("_", " ")
