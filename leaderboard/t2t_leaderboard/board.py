"""A bench folder -> the leaderboard as one JSON document, from which terminal, Markdown and HTML are rendered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.scoring import scored
from t2t_core.evaluation.tables import arranged, erring, tabulate
from t2t_core.hookspecs import AnyTestbed
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_core.text import one_line
from t2t_leaderboard import defaults
from t2t_leaderboard.families import family_of
from t2t_leaderboard.folder import Bench, Row

FORMAT = 2  # 1 had neither `repeated` nor `family` nor `answer_pages`


def measured(bench: Bench, row: Row) -> dict[str, Any]:
    """One row's figures, recomputed from the raw text of its answers; by the recorded verdicts where another version of the
    testbed's reader gave them."""
    evaluation = bench.evaluation(row.sampling)
    path = row.folder / ANSWERS
    tables = tabulate(bench.testbed, scored(evaluation, path, row.reader != bench.testbed.reader), evaluation.samples)
    caveat = row.record.describe.get("caveat")
    return {
        "row": row.name,
        "policy": row.policy,
        **({"named": one_line(row.label)} if row.label else {}),
        **({"caveat": one_line(caveat)[:60]} if isinstance(caveat, str) else {}),
        "family": family_of(row.policy, row.record.describe),
        "sampling": row.written["sampling"],
        "answers_sha256": folders.sha256(path),
        **({"reader": row.reader} if "reader" in row.written else {}),
        "tables": tables,
    }


def build(bench: Bench, with_reported: bool = True, with_answers: bool = False) -> dict[str, Any]:
    """The whole leaderboard of a folder: every finished row, and the reported ones of its frozen sets; `with_answers`: its page
    leads to pages of the rows' answers."""
    return assembled(bench, [measured(bench, row) for row in bench.rows() if row.finished], with_reported, with_answers)


def assembled(bench: Bench, finished: list[dict[str, Any]], with_reported: bool, with_answers: bool) -> dict[str, Any]:
    """The leaderboard of these rows, which are as `measured` makes them."""
    order = arranged(bench.testbed, chain.from_iterable(bench.stored))
    tables = [_table(bench, title, columns, finished) for title, columns in order.items()]
    if with_reported:
        for one, stored in zip(bench.sets, bench.stored, strict=True):
            if one.kind == "evaluation":
                places = {bench.testbed.place(i).table for i in stored}
                for table in (t for t in tables if t["title"] in places):
                    table["rows"] += _sorted(_reported(bench.testbed, one.base, table["columns"]))
    facts = {"reported": with_reported, "answer_pages": with_answers, "notes": _notes(bench.testbed, tables)}
    facts["columns"] = _columns(bench)
    return {**empty(bench), **facts, "tables": tables}


def _columns(bench: Bench) -> str:
    """What the columns are together: the testbed's own word where each of them is one of its groups."""
    groups: dict[str, set[str]] = {}
    for place in map(bench.testbed.place, chain.from_iterable(bench.stored)):
        groups.setdefault(place.column, set()).add(place.group)
    of_one = all(len(group) == 1 for group in groups.values())
    return bench.testbed.group if of_one and len(groups) == len(set().union(*groups.values())) else "column"


def empty(bench: Bench) -> dict[str, Any]:
    """A leaderboard without figures."""
    return {
        "format": FORMAT,
        "testbed": bench.testbed.name,
        "title": bench.testbed.title,
        "settings": dict(bench.written),
        "metrics": _metrics(bench.testbed),
        "reported": True,
        "answer_pages": False,
        "columns": "column",
        "notes": [],
        "tables": [],
    }


def _table(bench: Bench, title: str, columns: list[str], finished: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [
        {
            "kind": "measured",
            **{k: v for k, v in row.items() if k != "tables"},
            "label": label + _how_far(row["tables"][title]),
            **row["tables"][title],
        }
        for row, label in zip(finished, _labels(finished), strict=True)
        if title in row["tables"]
    ]
    sets = [
        {"name": one.name, "kind": one.kind, "sha256": one.sha256, "notes": one.notes}
        for one, stored in zip(bench.sets, bench.stored, strict=True)
        if any(bench.testbed.place(i).table == title for i in stored)
    ]
    return {"title": title, "columns": columns, "sets": sets, "rows": _sorted(rows)}


def _reported(testbed: AnyTestbed, set_name: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    return [{"kind": "reported", **row} for row in testbed.reported(set_name, columns)]


def _how_far(table: Mapping[str, Any]) -> str:
    partial = table.get("partial")
    return f" (partial: {partial['asked']:,} of {partial['of']:,} asked)" if partial else ""


def _labels(rows: list[dict[str, Any]]) -> list[str]:
    """The names that the user gave, else the policies as typed, each with its own caveat; where two rows share one, what differs
    in their sampling is added."""
    labels = []
    for row in rows:
        if "named" in row:
            labels.append(f"{row['named']} ({row['caveat']})" if "caveat" in row else row["named"])
            continue
        twins = [r["sampling"] for r in rows if r["policy"] == row["policy"] and "named" not in r]
        differing = [n for n, v in row["sampling"].items() if any(t.get(n) != v for t in twins)]
        own = [row["caveat"]] if "caveat" in row else []
        extra = ", ".join(own + [f"{name}={row['sampling'][name]}" for name in differing])
        labels.append(f"{row['policy']} ({extra})" if extra else row["policy"])
    return labels


def _sorted(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Best first, by the totals in the order of the metrics; a row without a figure goes last."""

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        rates = [f.get("value") for f in row["total"].values() if row["kind"] == "reported" or "low" in f]
        return (*(-(r if r is not None else -1) for r in rates), row["policy"])

    return sorted(rows, key=key)


def _metrics(testbed: AnyTestbed) -> list[dict[str, Any]]:
    return [
        {"name": m.name, "title": m.title, "kind": m.kind, "unit": m.unit, "higher_is_better": m.higher_is_better}
        for m in testbed.metrics
    ]


def _notes(testbed: AnyTestbed, tables: list[dict[str, Any]]) -> list[str]:
    notes = [
        "intervals: 95 % (Wilson per cell, stratified Wilson for totals, clustered by instance where k > 1)",
        "an error counts as not valid; means are over the answers they apply to; a total rate is the mean of its columns",
    ]
    rows = [row for table in tables for row in table["rows"]]
    if any("partial" in row for row in rows):
        notes.append("PARTIAL: a partial row's figures are of the questions asked so far; a total needs answers in every column")
    if lacking := defaults.missing(testbed, (row["policy"] for row in rows if row["kind"] == "measured")):
        notes.append(lacking)
    if any(row["kind"] == "reported" for row in rows):
        notes.append("reported rows were measured on their authors' instances, not on these: they carry no interval of ours")
        notes += dict.fromkeys(f"reported: {row['source']}" for row in rows if row["kind"] == "reported")
    if any("mean_of_cells" in figure for row in rows for figure in row["total"].values()):
        notes.append("two figures in a reported total: as printed / the mean of the row's own cells, where they disagree")
    if any(row["kind"] == "measured" and erring(row) for row in rows):
        notes.append("incomplete: more than 1 % of the row's answers are errors")
    for row in rows:
        if wrong := row.get("wrong_instances"):
            count, first = wrong["answers"], wrong["first"]
            notes.append(f"WRONG INSTANCES: {count} answers of {row['label']} disprove what is stored, e.g. {first}")
    for table in tables:
        for one in table["sets"]:
            notes += [f"{one['name']}: {note}" for note in one["notes"] if f"{one['name']}: {note}" not in notes]
    return notes


def write(folder: SafePath, board: Mapping[str, Any]) -> None:
    folders.write_json(folder / "leaderboard.json", board)
