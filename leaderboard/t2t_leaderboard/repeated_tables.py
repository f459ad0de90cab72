"""What several answers to an instance are worth, as tables and curves of a leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_core.report.charts import Lines, Series
from t2t_core.report.document import Block, Cell, Charts, Column, Items, Row, Table
from t2t_core.report.figures import Figure
from t2t_leaderboard.named_rows import Named

Json = Mapping[str, Any]
_NOTES = (
    "pass@k: the chance that one of k answers counts, estimated without bias from all of them",
    "best of k: the expected highest reward among k answers; somebody has to know which one that is",
    "majority: what the plan that most answers propose is worth; nobody has to know the right one. An answer without a readable"
    " plan does not vote; between plans with equally many votes the chance is the same",
)


def blocks(rates: Sequence[Json], measured: Sequence[Json], named: Named) -> Iterator[Block]:
    """A table and a curve for each rate; nothing where every instance has one answer."""
    rows = [row for row in measured if "repeated" in row]
    if not rows:
        return
    for metric in rates:
        yield _table(metric, rows, named)
    yield Charts([_curve(metric, rows, named) for metric in rates])
    yield Items([*_NOTES, *_warnings(rows)])


def _table(metric: Json, rows: Sequence[Json], named: Named) -> Table:
    sizes = list(rows[0]["repeated"]["total"]["best"])
    made = []
    for row in rows:
        total = row["repeated"]["total"]
        passes, best = total["pass"][metric["name"]], total["best"]
        cells: list[Cell] = [named.name(row), *(_figure(passes[k]) for k in sizes), _figure(total["majority"][metric["name"]])]
        cells += [_figure(best[k], 3) for k in (sizes[0], sizes[-1])]
        made.append(Row([*cells, Figure(total["plans"], digits=1)], facets=named.facets(row)))
    columns = [Column("policy", words=True), *(Column(f"pass@{k}", heat=True) for k in sizes), Column("majority", heat=True)]
    columns += [Column(f"best of {k}: reward") for k in (sizes[0], sizes[-1])] + [Column("plans per instance")]
    return Table(columns, made, f"{metric['title']}, %, of several answers", sortable=True)


def _curve(metric: Json, rows: Sequence[Json], named: Named) -> Lines:
    sizes = list(rows[0]["repeated"]["total"]["best"])
    passes = [row["repeated"]["total"]["pass"][metric["name"]] for row in rows]
    series = [
        Series(str(row["label"]), [_figure(one[k]) for k in sizes], named.colour(row))
        for row, one in zip(rows, passes, strict=True)
    ]
    return Lines(f"pass@k: {metric['title']}, % by k", sizes, series)


def _warnings(rows: Sequence[Json]) -> list[str]:
    """The rows whose answers were all the same: asking again told nothing."""
    return [
        f"WARNING: {row['label']} proposed the same plan each time (temperature {row['sampling']['temperature']:g}):"
        " several answers of it say no more than one"
        for row in rows
        if (row["repeated"]["total"]["plans"] or 2) <= 1
    ]


def _figure(figure: Json, digits: int = 2) -> Figure:
    return Figure(figure["value"], figure["low"], figure["high"], digits, digits - 1)
