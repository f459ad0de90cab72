"""A leaderboard as records. To go from a figure back to the answers: `Board.tables` -> `MeasuredRow.table` -> the row's folder
of that name -> its answers.jsonl, where each answer has the id of its instance. The testbed decides in which table and column an
instance counts (`Testbed.place`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType, field

from t2t_core.evaluation.row_tables import MetricFigure, RowTable
from t2t_core.records import Json, Metric
from t2t_core.store import schema
from t2t_leaderboard.families import family
from t2t_leaderboard.schemas import BenchSettings

FORMAT = 2  # format 1 had neither `repeated` nor `family` nor `answer_pages`


class PolicyRow(Struct, frozen=True, kw_only=True):
    """One policy of a bench, or one submission.

    `row`: its folder's name. `policy`: as typed, without how it is asked. `named`: what the user calls it. `caveat`: what it says
    of itself ("toy policy"). `sampling`: as its row.json has it. `reader`: the version of the testbed's reader of answers, left
    out where an early version of the suite wrote the row.
    """

    row: str
    policy: str
    named: str | UnsetType = UNSET
    caveat: str | UnsetType = UNSET
    family: str
    sampling: Mapping[str, Json]
    answers_sha256: str
    reader: int | UnsetType = UNSET


class PolicyFigures(Struct, frozen=True, kw_only=True):
    """A policy with its figures, by the title of the table."""

    policy: PolicyRow
    tables: Mapping[str, RowTable]


class MeasuredRow(Struct, frozen=True, kw_only=True):
    """A policy in one table of the board: its label there, and its figures."""

    policy: PolicyRow
    label: str
    table: RowTable

    @property
    def family(self) -> str:
        """The model family that the board groups it under."""
        return self.policy.family

    def cell(self, column: str, metric: str) -> MetricFigure | None:
        """The figure of one column, a rate in percent; None if the row has none."""
        return self.table.cells.get(column, {}).get(metric)

    def total(self, metric: str) -> MetricFigure | None:
        """The figure over all columns, a rate in percent; None if the row has none."""
        return self.table.total.get(metric)


class ReportedFigure(Struct, frozen=True, kw_only=True):
    """A figure as it was printed. `mean_of_cells` is the mean of the row's own cells, if the printed total differs from it."""

    value: float | None
    mean_of_cells: float | UnsetType = UNSET


class ReportedRow(Struct, frozen=True, kw_only=True):
    """What a publication printed for a policy, measured on its authors' own instances (`Testbed.reported`)."""

    policy: str
    source: str
    note: str | UnsetType = UNSET
    cells: Mapping[str, Mapping[str, ReportedFigure]] = field(default_factory=dict)
    totals: Mapping[str, ReportedFigure] = field(name="total", default_factory=dict)

    @property
    def label(self) -> str:
        """The policy in the publication's words."""
        return self.policy

    @property
    def family(self) -> str:
        """The model family that the board groups it under, by the policy's name."""
        return family(self.policy)

    def cell(self, column: str, metric: str) -> ReportedFigure | None:
        """The printed figure of one column, in percent; None if none was printed."""
        return self.cells.get(column, {}).get(metric)

    def total(self, metric: str) -> ReportedFigure | None:
        """The printed total, in percent; None if none was printed."""
        return self.totals.get(metric)


class BoardSet(Struct, frozen=True, kw_only=True):
    """A set whose instances are in a table."""

    name: str
    kind: str
    sha256: str
    notes: Sequence[str]


class BoardTable(Struct, frozen=True, kw_only=True):
    """One table of the board: the measured rows and the rows that others reported, each sorted best first."""

    title: str
    columns: Sequence[str]
    sets: Sequence[BoardSet]
    measured: Sequence[MeasuredRow]
    reported: Sequence[ReportedRow] = ()

    @property
    def rows(self) -> Sequence[MeasuredRow | ReportedRow]:
        """The measured rows, then the reported ones."""
        return [*self.measured, *self.reported]


class Board(Struct, frozen=True, kw_only=True):
    """A leaderboard: `settings` identify the question, and `settings_written` are the same as written in run.json. `columns`: the
    word for a column. `with_reported`: whether reported rows were asked for. `answer_pages`: whether its page links to pages of
    the answers."""

    testbed: str
    title: str
    settings: BenchSettings
    settings_written: Mapping[str, Json]
    metrics: Sequence[Metric]
    with_reported: bool = True
    answer_pages: bool = False
    columns: str = "column"
    notes: Sequence[str] = ()
    tables: Sequence[BoardTable] = ()

    @property
    def rates(self) -> list[Metric]:
        """The metrics that are rates."""
        return [metric for metric in self.metrics if metric.kind == "rate"]


def written(board: Board) -> dict[str, Json]:
    """The board as it is written to leaderboard.json."""
    return {
        "format": FORMAT,
        "testbed": board.testbed,
        "title": board.title,
        "settings": dict(board.settings_written),
        "metrics": [{name: getattr(metric, name) for name in _OF_A_METRIC} for metric in board.metrics],
        "reported": board.with_reported,
        "answer_pages": board.answer_pages,
        "columns": board.columns,
        "notes": list(board.notes),
        "tables": [_table(table) for table in board.tables],
    }


_OF_A_METRIC = ("name", "title", "kind", "unit", "higher_is_better")


def _table(table: BoardTable) -> dict[str, Json]:
    measured = [
        {"kind": "measured", **schema.plain(row.policy), "label": row.label, **schema.plain(row.table)} for row in table.measured
    ]
    reported = [{"kind": "reported", **schema.plain(row)} for row in table.reported]
    sets = [schema.plain(record) for record in table.sets]
    return {"title": table.title, "columns": list(table.columns), "sets": sets, "rows": [*measured, *reported]}
