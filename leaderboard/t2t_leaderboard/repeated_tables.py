"""What several answers to an instance gain, as tables and curves of a leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from msgspec import UNSET

from t2t_core.evaluation.row_tables import Interval, Worth
from t2t_core.records import Metric
from t2t_core.report.charts import Lines, Series
from t2t_core.report.document import Block, Charts, Column, Items, Row, Table, TableCell
from t2t_core.report.figures import Figure
from t2t_leaderboard.named_rows import Named, facets, shown
from t2t_leaderboard.records import MeasuredRow

_NOTES = (
    "pass@k: the chance that one of k answers counts, estimated without bias from all of them",
    "best of k: the expected highest reward among k answers; somebody has to know which one that is",
    "majority: what the plan that most answers propose is worth; nobody has to know the right one. An answer without a readable"
    " plan does not vote; between plans with equally many votes the chance is the same",
)


def blocks(rates: Sequence[Metric], measured: Sequence[MeasuredRow], named: Named) -> Iterator[Block]:
    """A table and a curve for each rate; nothing if every instance has one answer."""
    rows = [(row, row.table.repeated.total) for row in measured if row.table.repeated is not UNSET]
    if not rows:
        return
    for metric in rates:
        yield _table(metric, rows, named)
    yield Charts([_curve(metric, rows, named) for metric in rates])
    yield Items([*_NOTES, *_warnings(rows)])


def _table(metric: Metric, rows: Sequence[tuple[MeasuredRow, Worth]], named: Named) -> Table:
    sizes = list(rows[0][1].best)
    made = []
    for row, worth in rows:
        passes, majority = worth.passes[metric.name], worth.majority[metric.name]
        cells: list[TableCell] = [named.name(row), *(_figure(passes[k]) for k in sizes), _figure(majority)]
        cells += [_figure(worth.best[k], 3) for k in (sizes[0], sizes[-1])]
        made.append(Row([*cells, Figure(worth.plans, digits=1)], facets=facets(row)))
    columns = [Column("policy", words=True), *(Column(f"pass@{k}", heat=True) for k in sizes), Column("majority", heat=True)]
    columns += [Column(f"best of {k}: reward") for k in (sizes[0], sizes[-1])] + [Column("plans per instance")]
    return Table(columns, made, f"{metric.title}, %, of several answers", sortable=True)


def _curve(metric: Metric, rows: Sequence[tuple[MeasuredRow, Worth]], named: Named) -> Lines:
    sizes = list(rows[0][1].best)
    series = [
        Series(row.label, [_figure(worth.passes[metric.name][k]) for k in sizes], named.colour(row)) for row, worth in rows
    ]
    return Lines(f"pass@k: {metric.title}, % by k", sizes, series)


def _warnings(rows: Sequence[tuple[MeasuredRow, Worth]]) -> list[str]:
    """The rows whose answers were all the same, so that asking again gave no information."""
    return [
        f"WARNING: {row.label} proposed the same plan each time (temperature {row.policy.sampling['temperature']:g}):"
        " several answers of it say no more than one"
        for row, worth in rows
        if (worth.plans or 2) <= 1
    ]


def _figure(interval: Interval, digits: int = 2) -> Figure:
    return replace(shown(interval), digits=digits, interval_digits=digits - 1)
