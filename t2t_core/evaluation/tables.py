"""Scored answers -> the figures of one row: a pure function, so that anybody who has the answers gets the same ones.

Rates are percentages with 95 % intervals (Wilson per cell, stratified over the columns for totals, clustered by instance
where an instance has several answers); every instance counts, an error as a failure. Means are over the answers the metric
applies to, in totals too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import UNSET, UnsetType

from t2t_core.evaluation import repeated
from t2t_core.evaluation.answers import NOT_ASKED
from t2t_core.evaluation.columns import natural
from t2t_core.evaluation.repeated import Repeated
from t2t_core.evaluation.row_tables import (
    AnswerCounts,
    Interval,
    MetricFigure,
    Partial,
    RepeatedTable,
    RowTable,
    WrongInstances,
    rounded,
)
from t2t_core.evaluation.stats import Rate, stratified
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Metric, Place, Scored

_COUNTED = ("asked", "errors", "truncated", "refused", "tokens", "hidden_tokens", "priced", "unasked")


@dataclass
class Tally:
    """What the answers of one policy to the instances of one column add up to; `samples` answers each, and where there are
    several what k of them are worth (`repeated`)."""

    metrics: Sequence[Metric]
    samples: int
    repeated: Repeated | None = None
    rates: dict[str, Rate] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_COUNTED, 0)))
    wrong: int = 0  # answers that show a fault of the instance itself; the first of them:
    first_wrong: str = ""
    cost_usd: float = 0.0

    def __post_init__(self) -> None:
        self.rates = {m.name: Rate(self.samples) for m in self.metrics if m.kind == "rate"}

    def add(self, group: Sequence[Scored]) -> None:
        """All answers to one instance. What was not asked yet is counted as that, and enters nothing else."""
        group, all_of_them = [answer for answer in group if answer.response != NOT_ASKED], len(group)
        self.answers["unasked"] += all_of_them - len(group)
        if not group:
            return
        shares: dict[str, float] = defaultdict(float)
        for answer in group:
            self._count(answer)
            for metric in self.metrics:
                failed = answer.response.error is not None
                value = None if failed else metric.value(answer.verdict, answer.response)
                if metric.kind == "rate":
                    shares[metric.name] += value or 0.0
                    self.unknown[metric.name] += value is None and not failed
                elif value is not None:
                    self.sums[metric.name] += value
                    self.counts[metric.name] += 1
        for name, rate in self.rates.items():
            rate.add(shares[name] / len(group))
        if self.repeated:
            self.repeated.add(group)

    def _count(self, answer: Scored) -> None:
        response = answer.response
        self.answers["asked"] += 1
        self.answers["errors"] += response.error is not None
        self.answers["truncated"] += response.error is None and response.finish_reason == "length"
        self.answers["refused"] += response.error is None and response.finish_reason == "refusal"
        for reply in (response, *response.earlier):  # what was used is counted, whatever came of it
            self.answers["tokens"] += reply.completion_tokens or 0
            self.answers["hidden_tokens"] += reply.reasoning_tokens or 0
            self.answers["priced"] += reply.cost_usd is not None
            self.cost_usd += reply.cost_usd or 0.0
        if response.error is None and answer.verdict.failure:
            self.failures[answer.verdict.failure] += 1
        for name, fault in answer.verdict.faults.items():
            if name not in answer.verdict.checks:
                self.wrong += 1
                self.first_wrong = self.first_wrong or f"{answer.instance.id}: {fault.message}"

    def figures(self) -> dict[str, MetricFigure]:
        return {m.name: _figure(m, [self]) for m in self.metrics}


def _figure(metric: Metric, tallies: Sequence[Tally]) -> MetricFigure:
    """One metric over one column of a row, or over all of them."""
    if metric.kind == "mean":
        n = sum(tally.counts[metric.name] for tally in tallies)
        return MetricFigure(value=rounded(sum(tally.sums[metric.name] for tally in tallies) / n) if n else None, n=n)
    rates = [tally.rates[metric.name] for tally in tallies]
    n = sum(r.instances for r in rates)
    if not all(r.instances for r in rates):  # a total is of every column; one that nobody was asked about has no figure
        return MetricFigure(value=None, low=None, high=None, n=n)
    unknown = sum(tally.unknown[metric.name] for tally in tallies)
    if unknown:  # e.g. valid answers to instances without a stored optimum: any figure would be a guess
        return MetricFigure(value=None, low=None, high=None, n=n, unknown=unknown)
    rate = Interval.of(rates[0].estimate() if len(rates) == 1 else stratified(rates))
    return MetricFigure(value=rate.value, low=rate.low, high=rate.high, n=n)


def tabulate(testbed: AnyTestbed, scored: Iterable[Scored], samples: int) -> dict[str, RowTable]:
    """The row's figures by table. Answers come in instance order, `samples` each."""
    tallies: dict[Place, Tally] = {}
    group: list[Scored] = []
    for answer in scored:
        group.append(answer)
        if len(group) == samples:
            place = testbed.place(answer.instance)
            column = Place(place.table, place.column)
            if column not in tallies:
                tallies[column] = Tally(testbed.metrics, samples, Repeated(testbed, samples) if samples > 1 else None)
            tallies[column].add(group)
            group = []
    tables = natural(dict.fromkeys(place.table for place in tallies))
    return {table: _table(testbed, {p.column: c for p, c in tallies.items() if p.table == table}) for table in tables}


def _table(testbed: AnyTestbed, columns: Mapping[str, Tally]) -> RowTable:
    tallies = {column: columns[column] for column in natural(columns)}
    every = list(columns.values())
    failures: Counter[str] = Counter()
    for tally in every:
        failures.update(tally.failures)
    answers, unasked = _counts(every), sum(tally.answers["unasked"] for tally in every)
    return RowTable(
        cells={column: tally.figures() for column, tally in tallies.items()},
        total={m.name: _figure(m, every) for m in testbed.metrics},
        answers=answers,
        failures=dict(sorted(failures.items())),
        incomplete=bool(unasked) or answers.erring,
        partial=Partial(asked=answers.asked, of=answers.asked + unasked) if unasked else UNSET,
        wrong_instances=_wrong(list(tallies.values())),
        repeated=_repeated(tallies),
    )


def _counts(tallies: Sequence[Tally]) -> AnswerCounts:
    answers: Counter[str] = Counter()
    for tally in tallies:
        answers.update(tally.answers)
    cost = round(sum(tally.cost_usd for tally in tallies), 6) if answers["priced"] else None
    counted = {name: answers[name] for name in _COUNTED if name not in ("priced", "unasked")}
    return AnswerCounts(**counted, cost_usd=cost)


def _wrong(tallies: Sequence[Tally]) -> WrongInstances | UnsetType:
    wrong = [tally for tally in tallies if tally.wrong]
    return WrongInstances(answers=sum(tally.wrong for tally in wrong), first=wrong[0].first_wrong) if wrong else UNSET


def _repeated(tallies: Mapping[str, Tally]) -> RepeatedTable | UnsetType:
    several = {name: tally.repeated for name, tally in tallies.items() if tally.repeated is not None}
    if not several:
        return UNSET
    every = list(several.values())
    worth_of = {name: repeated.worth([column]) for name, column in several.items()}
    return RepeatedTable(answers=every[0].samples, cells=worth_of, total=repeated.worth(every))


def together(tallies: Iterable[Tally]) -> Mapping[str, float | None]:
    """The mean of every metric that is no rate, over all the answers it applies to."""
    every = list(tallies)
    metrics = every[0].metrics if every else ()
    means: dict[str, float | None] = {}
    for name in (m.name for m in metrics if m.kind != "rate"):
        count = sum(tally.counts[name] for tally in every)
        means[name] = sum(tally.sums[name] for tally in every) / count if count else None
    return means


def value(metric: Metric, group: Sequence[Scored]) -> float | None:
    """A metric of one instance: the mean over the answers to it. An error is a failure in a rate and nothing in a mean; None
    where the metric does not apply, e.g. where no optimum is stored that a valid answer could be held against."""
    values: list[float] = []
    for answer in group:
        failed = answer.response.error is not None
        value = None if failed else metric.value(answer.verdict, answer.response)
        if value is not None:
            values.append(value)
        elif metric.kind == "rate":
            if not failed:
                return None
            values.append(0.0)
    return sum(values) / len(values) if values else None
