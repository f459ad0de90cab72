"""The bench at the end of a run: base, designed and control policy on the evaluation sets, with intervals and paired differences.

Rates are the unweighted mean over the columns of a table, as the paper prints them. Each arm's answers are on disk, so a bench
continues where it stopped. If two arms have the same checkpoint, it is asked once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.columns import columns_of
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.evaluation.stats import paired_difference, stratified
from t2t_core.evaluation.tables import Tally, together, value
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import InstanceSet, Scored
from t2t_core.run.engines import Engines
from t2t_core.run.experiment import Experiment
from t2t_core.run.progress import Reporter
from t2t_core.run.schemas import ArmRow, BenchSet, BenchTable, DifferenceRow, RateRow
from t2t_core.run.sets import limited, own_set, prompt_format
from t2t_core.seeding import key
from t2t_core.store import folders, schema
from t2t_core.store.interrupts import Interrupts
from t2t_core.store.paths import SafePath

Values = dict[str, dict[str, dict[str, float]]]  # metric -> column -> instance id -> value


@dataclass(frozen=True)
class Measured:
    """An arm's answers to one set: their sums by column, and every rate that is known for all instances, instance by
    instance."""

    tallies: Mapping[str, Tally]
    rates: Values


@dataclass(frozen=True)
class Arm:
    """A policy to measure: "base", "designed" or "control", and its checkpoint."""

    name: str
    checkpoint: Path | None


class ClosingBench:
    """The bench of a run in its folder. It asks arm by arm, all sets of one arm before the next, so that an engine starts only
    once. If two arms have the same checkpoint, the first is asked for both."""

    def __init__(
        self, experiment: Experiment, testbed: AnyTestbed, folder: SafePath, engines: Engines, reporter: Reporter
    ) -> None:
        self._experiment, self._testbed, self._folder = experiment, testbed, folder
        self._engines, self._reporter = engines, reporter
        self._sets = list(evaluations(experiment, testbed)) if experiment.evaluation else []

    def ask(self, arms: Sequence[Arm]) -> None:
        """Evaluate the arms on the sets that `[evaluation]` selects, as far as their answers are missing, starting with the arm
        whose policy is already loaded."""
        with Interrupts():
            for arm in sorted(_asked(arms), key=lambda arm: not self._engines.has(arm.checkpoint)):
                for evaluation_set, evaluation in self._sets:
                    self._ask(arm, evaluation, evaluation_set.name)

    def _ask(self, arm: Arm, evaluation: Evaluation, name: str) -> None:
        folder = self._folder / arm.name / name
        if _answered(evaluation, folder / ANSWERS):
            return
        started = time.monotonic()
        self._reporter.stage(f"bench {name} {arm.name}")
        policy = self._engines.policy(arm.checkpoint)
        outcome = evaluate(evaluation, policy, folder, progress=self._reporter.answers)
        self._reporter.figures(answers=outcome.progress.done, errors=outcome.progress.errors)
        outcome.require_answers(f"{name} to {arm.name}")
        self._reporter.done(f"bench {name} {arm.name}", time.monotonic() - started)

    def earlier_table(self) -> BenchTable | None:
        """The result of an earlier session, if there is one."""
        path = self._folder / "table.json"
        return read_table(path) if path.exists() else None

    def table(self, arms: Sequence[Arm]) -> BenchTable | None:
        """The result, also in `bench/table.json`: a pure function of the answers. None if no set is selected."""
        if not self._sets:
            return None
        sets = []
        for evaluation_set, evaluation in self._sets:
            by_checkpoint = {
                arm.checkpoint: measure(evaluation, scored(evaluation, self._folder / arm.name / evaluation_set.name / ANSWERS))
                for arm in _asked(arms)
            }
            measured = {arm.name: by_checkpoint[arm.checkpoint] for arm in arms}
            sets.append(
                BenchSet(
                    name=evaluation_set.name,
                    sha256=evaluation_set.sha256,
                    instances=len(evaluation),
                    rows=_rows(measured),
                    differences=list(_differences(measured)),
                    reader=self._testbed.reader,
                )
            )
        table = BenchTable(sets=sets)
        folders.write_json(self._folder / "table.json", table)
        return table


def _asked(arms: Sequence[Arm]) -> list[Arm]:
    """The first of the arms with the same checkpoint."""
    return list({arm.checkpoint: arm for arm in reversed(arms)}.values())[::-1]


def evaluations(experiment: Experiment, testbed: AnyTestbed) -> Iterator[tuple[InstanceSet, Evaluation]]:
    """Every set that `[evaluation]` selects, with the questions put to each arm."""
    limit = experiment.evaluation.get("limit", 0)
    form = prompt_format(experiment)
    for evaluation_set in evaluation_sets(experiment, testbed):
        instances = limited(testbed, evaluation_set.instances, limit)
        yield evaluation_set, Evaluation(testbed, instances, 1, experiment.sampling, form, key(experiment.seed, "bench") >> 1)


def evaluation_sets(experiment: Experiment, testbed: AnyTestbed) -> list[InstanceSet]:
    """What `[evaluation]` selects, nothing if it is empty: the testbed's sets by its options, then the file of one's own,
    `instances`. T2TError for what the testbed does not know."""
    if not experiment.evaluation:
        return []
    settings = {k: v for k, v in experiment.evaluation.items() if k not in ("limit", "instances")}
    options = {option.name: option for option in testbed.options()}
    unknown = next((name for name in settings if name not in options), None)
    if unknown:
        known = ", ".join(["limit", "instances", *options])
        raise T2TError(f"there is no setting {ascii(unknown)[:60]}", where="[evaluation]", cause=f"known: {known}")
    names: Sequence[str] = testbed.set_names({n: o.parse(str(settings.get(n, o.default))) for n, o in options.items()})
    own = own_set(experiment, testbed)
    return [*(testbed.load_set(name) for name in names), *([own] if own else [])]


def measured(experiment: Experiment, testbed: AnyTestbed, folder: SafePath, arm: str) -> dict[str, Values]:
    """Set by set, the rates per instance according to an arm's finished answers in a bench folder."""
    return {
        evaluation_set.name: measure(evaluation, scored(evaluation, folder / arm / evaluation_set.name / ANSWERS)).rates
        for evaluation_set, evaluation in evaluations(experiment, testbed)
    }


def _answered(evaluation: Evaluation, path: SafePath) -> bool:
    """Whether every question has an answer there; errors are asked again."""
    return path.exists() and all(answer.response.error is None for answer in scored(evaluation, path))


def measure(evaluation: Evaluation, answers: Iterable[Scored]) -> Measured:
    """The metrics of the answers to an evaluation with one answer per instance. In a rate, a missing answer counts as 0."""
    testbed = evaluation.testbed
    columns = columns_of(testbed, evaluation.instances)
    tallies: dict[str, Tally] = {}
    rates: Values = {m.name: {} for m in testbed.metrics if m.kind == "rate"}
    for answer in answers:
        column = columns[answer.instance.id]
        tallies.setdefault(column, Tally(testbed.metrics, 1)).add([answer])
        for metric in (m for m in testbed.metrics if m.name in rates):
            share = value(metric, [answer])
            if share is None:
                del rates[metric.name]
            else:
                rates[metric.name].setdefault(column, {})[answer.instance.id] = share
    return Measured(tallies, rates)


def _rows(measured: Mapping[str, Measured]) -> list[ArmRow]:
    return [
        ArmRow(arm=arm, rates={name: _rate(name, m) for name in _rate_names(m)}, means=dict(together(m.tallies.values())))
        for arm, m in measured.items()
    ]


def _rate_names(measured: Measured) -> list[str]:
    return [name for tally in list(measured.tallies.values())[:1] for name in tally.rates]


def _rate(name: str, measured: Measured) -> RateRow:
    if name not in measured.rates:  # e.g. valid answers to instances without a stored optimum: any figure would be a guess
        return RateRow(value=None, low=None, high=None, columns=dict.fromkeys(measured.tallies))
    columns = {column: tally.rates[name] for column, tally in measured.tallies.items()}
    total = stratified(list(columns.values()))
    shares = {column: rate.share for column, rate in columns.items()}
    return RateRow(value=total.value, low=total.low, high=total.high, columns=shares)


def _differences(measured: Mapping[str, Measured]) -> Iterator[DifferenceRow]:
    for arm, against in (("designed", "base"), ("designed", "control"), ("control", "base")):
        if {arm, against} <= set(measured):
            for metric, columns in measured[arm].rates.items():
                theirs = measured[against].rates.get(metric)
                if theirs is not None:
                    strata = [[v - theirs[c][i] for i, v in by_id.items()] for c, by_id in columns.items()]
                    yield DifferenceRow(arms=[arm, against], metric=metric, **asdict(paired_difference(strata)))


def read_table(path: SafePath) -> BenchTable:
    """Read `bench/table.json` and check it: a run folder may come from somebody else."""
    table = folders.read_record(path, BenchTable)
    for bench_set in table.sets:
        if len({(*row.rates, *row.means) for row in bench_set.rows}) > 1:
            raise T2TError("the rows have different metrics", where=str(path), cause=schema.EDITED)
    return table
