"""A bench folder -> the leaderboard as one JSON document, from which terminal, Markdown and HTML are rendered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import UNSET, UnsetType

from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.columns import arranged
from t2t_core.evaluation.row_tables import RowTable
from t2t_core.evaluation.scoring import scored
from t2t_core.evaluation.tables import tabulate
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Json
from t2t_core.store import folders, schema
from t2t_core.store.paths import SafePath
from t2t_core.text import one_line
from t2t_leaderboard import defaults
from t2t_leaderboard.families import family_of
from t2t_leaderboard.folder import Bench, Row
from t2t_leaderboard.records import (
    Board,
    BoardSet,
    BoardTable,
    MeasuredRow,
    PolicyFigures,
    PolicyRow,
    ReportedRow,
    written,
)


def measured(bench: Bench, row: Row) -> PolicyFigures:
    """One row's figures, recomputed from the raw text of its answers. If another version of the testbed's reader gave the
    recorded verdicts, those verdicts are used instead."""
    evaluation = bench.evaluation(row.sampling)
    path = row.folder / ANSWERS
    tables = tabulate(bench.testbed, scored(evaluation, path, row.reader != bench.testbed.reader), evaluation.samples)
    policy = PolicyRow(
        row=row.name,
        policy=row.policy,
        named=one_line(row.label) if row.label else UNSET,
        caveat=caveat(row.record.describe),
        family=family_of(row.policy, row.record.describe),
        sampling=row.written["sampling"],
        answers_sha256=folders.sha256(path),
        reader=row.reader if "reader" in row.written else UNSET,
    )
    return PolicyFigures(policy=policy, tables=tables)


def caveat(describe: Mapping[str, Json]) -> str | UnsetType:
    """What a policy says that readers of its figures must know, in a few words."""
    said = describe.get("caveat")
    return one_line(said)[:60] if isinstance(said, str) else UNSET


def build(bench: Bench, with_reported: bool = True, with_answers: bool = False) -> Board:
    """The whole leaderboard of a folder: every finished row, and the reported rows of its frozen sets. If `with_answers`, its
    page links to pages of the rows' answers."""
    return assembled(bench, [measured(bench, row) for row in bench.rows() if row.finished], with_reported, with_answers)


def assembled(bench: Bench, finished: Sequence[PolicyFigures], with_reported: bool, with_answers: bool) -> Board:
    """The leaderboard of these policies."""
    order = arranged(bench.testbed, chain.from_iterable(bench.stored))
    tables = [_table(bench, title, columns, finished, with_reported) for title, columns in order.items()]
    return Board(
        testbed=bench.testbed.name,
        title=bench.testbed.title,
        settings=bench.settings,
        settings_written=bench.written,
        metrics=bench.testbed.metrics,
        with_reported=with_reported,
        answer_pages=with_answers,
        columns=_columns(bench),
        notes=_notes(bench.testbed, tables),
        tables=tables,
    )


def _columns(bench: Bench) -> str:
    """The word for a column: the testbed's own word for a group if each column is one group, else "column"."""
    groups: dict[str, set[str]] = {}
    for place in map(bench.testbed.place, chain.from_iterable(bench.stored)):
        groups.setdefault(place.column, set()).add(place.group)
    of_one = all(len(group) == 1 for group in groups.values())
    return bench.testbed.group if of_one and len(groups) == len(set().union(*groups.values())) else "column"


def empty(bench: Bench) -> Board:
    """A leaderboard without figures."""
    testbed = bench.testbed
    return Board(
        testbed=testbed.name,
        title=testbed.title,
        settings=bench.settings,
        settings_written=bench.written,
        metrics=testbed.metrics,
    )


def _table(
    bench: Bench, title: str, columns: Sequence[str], finished: Sequence[PolicyFigures], with_reported: bool
) -> BoardTable:
    rows = [
        MeasuredRow(policy=row.policy, label=label + _how_far(row.tables[title]), table=row.tables[title])
        for row, label in zip(finished, _labels([row.policy for row in finished]), strict=True)
        if title in row.tables
    ]
    sets, reported = list[BoardSet](), list[ReportedRow]()
    for record, stored in zip(bench.sets, bench.stored, strict=True):
        if any(bench.testbed.place(instance).table == title for instance in stored):
            sets.append(BoardSet(name=record.name, kind=record.kind, sha256=record.sha256, notes=record.notes))
            if with_reported and record.kind == "evaluation":
                reported += _reported(bench.testbed, record.base, columns)
    return BoardTable(title=title, columns=columns, sets=sets, measured=_best_first(rows), reported=reported)


def _reported(testbed: AnyTestbed, set_name: str, columns: Sequence[str]) -> Sequence[ReportedRow]:
    where = f"reported({set_name!r}) of the testbed {testbed.name}"
    rows = [schema.check(dict(row), ReportedRow, where, "a fault of the testbed") for row in testbed.reported(set_name, columns)]
    return sorted(rows, key=lambda row: (*(-_or_last(figure.value) for figure in row.totals.values()), row.policy))


def _how_far(table: RowTable) -> str:
    partial = table.partial
    return f" (partial: {partial.asked:,} of {partial.of:,} asked)" if partial else ""


def _labels(policies: Sequence[PolicyRow]) -> list[str]:
    """The names that the user gave, else the policies as typed, each with its caveat. If two rows would share a label, it also
    says how their sampling differs."""
    labels = []
    for policy in policies:
        own = [policy.caveat] if policy.caveat else []
        if policy.named:
            labels.append(f"{policy.named} ({policy.caveat})" if policy.caveat else policy.named)
            continue
        twins = [other.sampling for other in policies if other.policy == policy.policy and not other.named]
        differing = [name for name, value in policy.sampling.items() if any(twin.get(name) != value for twin in twins)]
        extra = ", ".join(own + [f"{name}={policy.sampling[name]}" for name in differing])
        labels.append(f"{policy.policy} ({extra})" if extra else policy.policy)
    return labels


def _best_first(rows: Iterable[MeasuredRow]) -> list[MeasuredRow]:
    """Sort by the total rates, in the order of the metrics. A row without a figure goes last."""

    def key(row: MeasuredRow) -> tuple[Any, ...]:
        rates = (figure.value for figure in row.table.total.values() if figure.is_rate)
        return (*(-_or_last(rate) for rate in rates), row.policy.policy)

    return sorted(rows, key=key)


def _or_last(rate: float | None) -> float:
    return -1.0 if rate is None else rate


def _notes(testbed: AnyTestbed, tables: Sequence[BoardTable]) -> list[str]:
    notes = [
        "intervals: 95 % (Wilson per cell, stratified Wilson for totals, clustered by instance where k > 1)",
        "an error counts as not valid; means are over the answers they apply to; a total rate is the mean of its columns",
    ]
    measured = [row for table in tables for row in table.measured]
    reported = [row for table in tables for row in table.reported]
    if any(row.table.partial for row in measured):
        notes.append("PARTIAL: a partial row's figures are of the questions asked so far; a total needs answers in every column")
    if lacking := defaults.missing(testbed, (row.policy.policy for row in measured)):
        notes.append(lacking)
    if reported:
        notes.append("reported rows were measured on their authors' instances, not on these: they carry no interval of ours")
        notes += dict.fromkeys(f"reported: {row.source}" for row in reported)
    if any(figure.mean_of_cells is not UNSET for row in reported for figure in row.totals.values()):
        notes.append("two figures in a reported total: as printed / the mean of the row's own cells, where they disagree")
    if any(row.table.answers.erring for row in measured):
        notes.append("incomplete: more than 1 % of the row's answers are errors")
    for row in measured:
        if wrong := row.table.wrong_instances:
            notes.append(f"WRONG INSTANCES: {wrong.answers} answers of {row.label} disprove what is stored, e.g. {wrong.first}")
    for table in tables:
        for record in table.sets:
            notes += [f"{record.name}: {note}" for note in record.notes if f"{record.name}: {note}" not in notes]
    return notes


def write(folder: SafePath, board: Board) -> None:
    """Write the board as `leaderboard.json` into a bench's folder, atomically."""
    folders.write_json(folder / "leaderboard.json", written(board))
