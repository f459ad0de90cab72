"""How the rows of one table of a leaderboard are named, coloured and linked, the same wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from t2t_core.evaluation.tables import erring
from t2t_core.report.document import Words
from t2t_leaderboard.families import family

Json = Mapping[str, Any]
Links = Mapping[tuple[str, int], str]  # of a row (its folder's name) and the number of a table: the page of the answers


@dataclass(frozen=True)
class Named:
    """The rows of one table: the colour of each measured one, by its name, and the page of its answers."""

    colours: Mapping[str, int]
    pages: Mapping[str, str]
    columns: Mapping[str, int]

    @classmethod
    def of(cls, table: Json, number: int, links: Links) -> Named:
        measured = [row["row"] for row in table["rows"] if row["kind"] == "measured"]
        pages = {row: links[row, number] for row in measured if (row, number) in links}
        columns = {column: place for place, column in enumerate(table["columns"], 1)}
        return cls({row: colour for colour, row in enumerate(measured)}, pages, columns)

    def name(self, row: Json) -> Words:
        if row["kind"] != "measured":
            return Words(row["policy"])
        incomplete = erring(row)
        small, link = "incomplete" if incomplete else "", self.pages.get(row["row"], "")
        return Words(row["label"], small, "bad" if incomplete else "", self.colours[row["row"]], link=link)

    def colour(self, row: Json) -> int | None:
        return self.colours[row["row"]] if row["kind"] == "measured" else None

    def link(self, row: Json, column: str) -> str:
        """Where the answers of one column stand, "" where they stand nowhere."""
        page = self.pages.get(row["row"], "") if row["kind"] == "measured" else ""
        return f"{page}#s{self.columns[column]}" if page and column in row["cells"] else ""

    def facets(self, row: Json) -> dict[str, str]:
        return {"family": row.get("family") or family(row["policy"])}
