"""How the rows of one table of a leaderboard are named, coloured and linked, the same in every block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import UNSET

from t2t_core.evaluation.row_tables import Interval, MetricFigure
from t2t_core.report.document import Words
from t2t_core.report.figures import Figure
from t2t_leaderboard.records import BoardTable, MeasuredRow, ReportedFigure, ReportedRow

Links = Mapping[tuple[str, int], str]  # (a row's folder name, the number of a table) -> the page of the answers


@dataclass(frozen=True)
class Named:
    """The rows of one table: the colour of each measured row, by its name, and the page of its answers."""

    colours: Mapping[str, int]
    pages: Mapping[str, str]
    columns: Mapping[str, int]

    @classmethod
    def of(cls, table: BoardTable, number: int, links: Links) -> Named:
        """The names for a table's rows. `number` is the table's on the page, and `links` has the pages of answers."""
        measured = [row.policy.row for row in table.measured]
        pages = {row: links[row, number] for row in measured if (row, number) in links}
        columns = {column: index for index, column in enumerate(table.columns, 1)}
        return cls({row: colour for colour, row in enumerate(measured)}, pages, columns)

    def name(self, row: MeasuredRow | ReportedRow) -> Words:
        """A row's name with its colour and its link; a row with too many errors is marked."""
        if isinstance(row, ReportedRow):
            return Words(row.label)
        erring = row.table.answers.erring
        small = "incomplete" if erring else ""
        return Words(row.label, small, "bad" if erring else "", self.colours[row.policy.row], link=self.page(row))

    def colour(self, row: MeasuredRow | ReportedRow) -> int | None:
        """The row's colour in every chart; None for a reported row, which is in none."""
        return self.colours[row.policy.row] if isinstance(row, MeasuredRow) else None

    def page(self, row: MeasuredRow) -> str:
        """The page of the row's answers, "" if there is none."""
        return self.pages.get(row.policy.row, "")

    def link(self, row: MeasuredRow | ReportedRow, column: str) -> str:
        """The link to the answers of one column, "" if there is no page of them."""
        page = self.page(row) if isinstance(row, MeasuredRow) and column in row.table.cells else ""
        return f"{page}#s{self.columns[column]}" if page else ""


def facets(row: MeasuredRow | ReportedRow) -> dict[str, str]:
    """What a reader can filter the row by."""
    return {"family": row.family}


def shown(figure: MetricFigure | ReportedFigure | Interval | None, link: str = "") -> Figure:
    """A figure of the board as a page shows it; None is a dash."""
    match figure:
        case None:
            return Figure(None)
        case ReportedFigure():
            return Figure(figure.value, also=None if figure.mean_of_cells is UNSET else figure.mean_of_cells, link=link)
        case _:
            low, high = (None if end is UNSET else end for end in (figure.low, figure.high))
            return Figure(figure.value, low, high, link=link)
