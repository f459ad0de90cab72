"""`t2t compare`: two rows that answered the same instances, as paired differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS, NOT_ASKED
from t2t_core.evaluation.columns import arranged, natural
from t2t_core.evaluation.lines import read_response
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.evaluation.stats import Difference, holm, paired_difference
from t2t_core.evaluation.tables import value
from t2t_core.records import Metric, Scored
from t2t_core.store import jsonlines
from t2t_core.store.paths import SafePath
from t2t_leaderboard import submission
from t2t_leaderboard.folder import read_bench

ASSUMPTIONS = (
    "each difference is A minus B on the instances that both answered; they are taken as independent draws, columns weigh alike",
    "intervals: 95 % percentile bootstrap over instances within each column; none where no column's differences vary",
    "p: exact McNemar for rates with one answer per instance, else sign flips (differences symmetric if there is no effect)",
    "p (Holm) holds for all rows of this table together",
    "an error counts as not valid; a mean is compared over the instances where both have a value",
)


@dataclass(frozen=True)
class Side:
    """One of the two: what it is called, what it was asked, where its answers are."""

    label: str
    evaluation: Evaluation
    answers: SafePath


@dataclass(frozen=True)
class Comparison:
    """One metric of one table: both figures over the shared instances, the difference, and p corrected over all."""

    table: str
    metric: str
    unit: str
    a: float | None
    b: float | None
    difference: Difference
    holm: float

    @property
    def interval(self) -> tuple[float, float] | None:
        """None if nothing varies within a column (one instance each, say): resampling tells nothing then."""
        d = self.difference
        return None if d.low == d.high else (d.low, d.high)

    def to_dict(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        return {**asdict(self), "difference": {**asdict(self.difference), "low": low, "high": high}}


def read_side(path: Path) -> Side:
    """A bench folder with one row, a row's own folder (`DIR/rows/ROW`), or a submission."""
    if (SafePath(path) / submission.METADATA).exists():
        read = submission.read(path)
        return Side(f"{read.record.name} ({read.record.policy})", read.evaluation, read.folder / ANSWERS)
    inside = path.parent.name == "rows" and (SafePath(path) / "row.json").exists()
    bench = read_bench(path.parent.parent if inside else path)
    row = submission.pick(bench.rows(), path.name if inside else None, path)
    return Side(row.policy, bench.evaluation(row.sampling), row.folder / ANSWERS)


def compare(a: Side, b: Side, seed: int = 0) -> list[Comparison]:
    """Every metric of every table, over the instances that both answered. T2TError if there is none."""
    _refuse_strangers(a, b)
    metrics = a.evaluation.testbed.metrics
    one_each = a.evaluation.samples == b.evaluation.samples == 1
    pairs: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
    theirs = {_key(instance): [value(metric, group) for metric in metrics] for instance, group in _groups(b)}
    for instance, group in _groups(a):
        place = a.evaluation.testbed.place(instance)
        for metric, y in zip(metrics, theirs.get(_key(instance), ()), strict=False):
            x = value(metric, group)
            if x is not None and y is not None:
                pairs.setdefault((place.table, metric.name), {}).setdefault(place.column, []).append((x, y))
    compared = []
    for table in arranged(a.evaluation.testbed, a.evaluation.instances):
        for metric in metrics:
            strata = pairs.get((table, metric.name))
            if strata:
                compared.append((table, metric, *_figures(metric, strata, seed, one_each)))
    corrected = holm({f"{table} {m.name}": d.p for table, m, _, _, d in compared})
    return [Comparison(t, m.title, m.unit, x, y, d, corrected[f"{t} {m.name}"]) for t, m, x, y, d in compared]


def in_common(a: Side, b: Side) -> str:
    """How many instances each side answered and both did; "" if they are the same."""
    ours, theirs = _asked(a), _asked(b)
    if ours == theirs:
        return ""
    return f"A answered {len(ours):,} instances and B {len(theirs):,}; compared are the {len(ours & theirs):,} that both did"


def _refuse_strangers(a: Side, b: Side) -> None:
    if a.evaluation.testbed.name != b.evaluation.testbed.name:
        raise T2TError(f"two testbeds: {a.evaluation.testbed.name} and {b.evaluation.testbed.name}")
    ours, theirs = _asked(a), _asked(b)
    if not ours & theirs:
        raise T2TError(
            "the two answered no instance in common",
            where=f"{a.answers} and {b.answers}",
            cause=f"{len(ours)} and {len(theirs)} instances, labels included",
            next="run t2t bench for both with the same sets",
        )


def _asked(side: Side) -> set[bytes]:
    """The instances that the side was asked about at least once."""
    lines = enumerate(jsonlines.read(side.answers))
    asked = {i for i, line in lines if read_response(line.value, f"{side.answers}, line {line.number}") != NOT_ASKED}
    return {_key(side.evaluation.instance(index)) for index in asked if index < len(side.evaluation)}


def _key(instance: Any) -> bytes:
    return jsonlines.canonical(instance.to_dict())


def _groups(side: Side) -> Iterator[tuple[Any, list[Scored]]]:
    """The answers to each instance that was asked, without what was not asked yet."""
    group: list[Scored] = []
    for sample in scored(side.evaluation, side.answers):
        group.append(sample)
        if len(group) == side.evaluation.samples:
            if asked := [answer for answer in group if answer.response != NOT_ASKED]:
                yield sample.instance, asked
            group = []


def _figures(
    metric: Metric, strata: dict[str, list[tuple[float, float]]], seed: int, one_each: bool
) -> tuple[float, float, Difference]:
    scale = 100.0 if metric.kind == "rate" else 1.0
    columns = [strata[column] for column in natural(strata)]
    a, b = (sum(sum(p[side] for p in c) / len(c) for c in columns) / len(columns) * scale for side in (0, 1))
    differences = [[(x - y) for x, y in column] for column in columns]
    d = paired_difference(differences, seed, binary=one_each and metric.kind == "rate")
    scaled = Difference(d.value * scale, d.low * scale, d.high * scale, d.instances, d.higher, d.lower, d.p, d.test)
    return a, b, scaled
