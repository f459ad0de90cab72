"""The bench at the end of a run: base, designed and control policy on the evaluation sets, with intervals and paired differences.

Rates are the unweighted mean over the columns of a table, as the paper prints them. Each arm's answers are on
disk, so a bench goes on where it stopped; two arms with one checkpoint are asked once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.evaluate import evaluate, scored
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.stats import Rate, paired_difference, stratified
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import InstanceSet, Scored
from t2t_core.run.experiment import Experiment
from t2t_core.run.progress import Reporter
from t2t_core.run.questions import limited, own_set, prompt_format
from t2t_core.run.round_files import Types, checked
from t2t_core.seeding import key
from t2t_core.store import folders
from t2t_core.store.paths import SafePath

Values = dict[str, dict[str, dict[str, float]]]  # metric -> column -> instance id -> value


@dataclass(frozen=True)
class Measured:
    """An arm's answers to one set: its rate metrics per instance, and the mean of every other metric over the answers that
    have it (None where none has)."""

    rates: Values
    means: Mapping[str, float | None]


@dataclass(frozen=True)
class Arm:
    """A policy to measure: "base", "designed" or "control", and its checkpoint."""

    name: str
    checkpoint: Path | None


def bench(
    experiment: Experiment, testbed: AnyTestbed, folder: SafePath, arms: Sequence[Arm], reporter: Reporter
) -> dict[str, Any]:
    """Evaluate the arms on the sets that `[evaluation]` selects; the result is `bench/table.json`, a pure function of the
    answers: {"sets": [{"name", "sha256", "instances", "rows": [...], "differences": [...]}]}, rates as shares."""
    sets = []
    for chosen, evaluation in evaluations(experiment, testbed):
        found = _measure(experiment, evaluation, folder, chosen.name, arms, reporter)
        sets.append({"name": chosen.name, "sha256": chosen.sha256, "instances": len(evaluation), **_table(found)})
    table = {"sets": sets}
    folders.write_json(folder / "table.json", table)
    return table


def evaluations(experiment: Experiment, testbed: AnyTestbed) -> Iterator[tuple[InstanceSet, Evaluation]]:
    """Every set that `[evaluation]` selects, with the questions put to each arm."""
    limit = experiment.evaluation.get("limit", 0)
    form = prompt_format(experiment)
    for chosen in evaluation_sets(experiment, testbed):
        instances = limited(testbed, chosen.instances, limit)
        yield chosen, Evaluation(testbed, instances, 1, experiment.sampling, form, key(experiment.seed, "bench") >> 1)


def evaluation_sets(experiment: Experiment, testbed: AnyTestbed) -> list[InstanceSet]:
    """What `[evaluation]` selects, nothing where it is empty: the testbed's sets by its options, then the file of one's own,
    `instances`. T2TError for what the testbed does not know."""
    if not experiment.evaluation:
        return []
    settings = {k: v for k, v in experiment.evaluation.items() if k not in ("limit", "instances")}
    options = {option.name: option for option in testbed.options()}
    unknown = next((name for name in settings if name not in options), None)
    if unknown:
        known = ", ".join(["limit", "instances", *options])
        raise T2TError(f"there is no setting {ascii(unknown)[:60]}", where="[evaluation]", cause=f"known: {known}")
    limit = experiment.evaluation.get("limit", 0)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise T2TError(f"limit must be a whole number, not {ascii(limit)[:60]}", where="[evaluation]")
    names: Sequence[str] = testbed.set_names({n: o.parse(str(settings.get(n, o.default))) for n, o in options.items()})
    own = own_set(experiment, testbed)
    return [*(testbed.load_set(name) for name in names), *([own] if own else [])]


def measured(experiment: Experiment, testbed: AnyTestbed, folder: SafePath, arm: str) -> dict[str, Values]:
    """Set by set, the rates per instance that an arm's finished answers in a bench folder give."""
    return {
        chosen.name: measure(testbed, scored(evaluation, folder / arm / chosen.name / ANSWERS)).rates
        for chosen, evaluation in evaluations(experiment, testbed)
    }


def _measure(
    experiment: Experiment, evaluation: Evaluation, folder: SafePath, name: str, arms: Sequence[Arm], reporter: Reporter
) -> dict[str, Measured]:
    found: dict[str, Measured] = {}
    asked: dict[Path | None, str] = {}
    for arm in arms:
        if arm.checkpoint in asked:
            found[arm.name] = found[asked[arm.checkpoint]]
            continue
        asked[arm.checkpoint] = arm.name
        place = folder / arm.name / name
        if not _answered(evaluation, place / ANSWERS):
            started = time.monotonic()
            reporter.stage(f"bench {name} {arm.name}")
            outcome = evaluate(evaluation, experiment.make_policy(arm.checkpoint), place, progress=reporter.answers)
            reporter.figures(answers=outcome.progress.done, errors=outcome.progress.errors)
            outcome.require_answers(f"{name} to {arm.name}")
            reporter.done(f"bench {name} {arm.name}", time.monotonic() - started)
        found[arm.name] = measure(evaluation.testbed, scored(evaluation, place / ANSWERS))
    return found


def _answered(evaluation: Evaluation, path: SafePath) -> bool:
    """Whether every question has an answer there; errors are asked again."""
    return path.exists() and all(answer.response.error is None for answer in scored(evaluation, path))


def measure(testbed: AnyTestbed, answers: Iterable[Scored]) -> Measured:
    """The testbed's metrics of these answers; in a rate, an answer that never came counts 0."""
    rates: Values = {m.name: {} for m in testbed.metrics if m.kind == "rate"}
    others: dict[str, list[float]] = {m.name: [] for m in testbed.metrics if m.kind != "rate"}
    for answer in answers:
        column = testbed.place(answer.instance).column
        for metric in testbed.metrics:
            value = None if answer.response.error else metric.value(answer.verdict, answer.response)
            if metric.kind == "rate":
                rates[metric.name].setdefault(column, {})[answer.instance.id] = float(value or 0.0)
            elif value is not None:
                others[metric.name].append(float(value))
    return Measured(rates, {name: sum(values) / len(values) if values else None for name, values in others.items()})


def _table(found: Mapping[str, Measured]) -> dict[str, Any]:
    rows = [
        {"arm": arm, "rates": {metric: _rate(columns) for metric, columns in m.rates.items()}, "means": m.means}
        for arm, m in found.items()
    ]
    pairs = [(a, b) for a, b in (("designed", "base"), ("designed", "control"), ("control", "base")) if {a, b} <= set(found)]
    differences = []
    for one, other in pairs:
        for metric, columns in found[one].rates.items():
            theirs = found[other].rates[metric]
            strata = [[v - theirs[c][i] for i, v in by_id.items()] for c, by_id in columns.items()]
            differences.append({"arms": [one, other], "metric": metric, **asdict(paired_difference(strata))})
    return {"rows": rows, "differences": differences}


def _rate(columns: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    strata = {}
    for column, by_id in columns.items():
        strata[column] = Rate()
        for value in by_id.values():
            strata[column].add(value)
    return {**asdict(stratified(list(strata.values()))), "columns": {c: r.share for c, r in strata.items()}}


def read_table(path: SafePath) -> dict[str, Any]:
    """`bench/table.json`, checked: a run folder may come from a stranger."""
    table = checked(folders.read_json(path), {"sets": (list,)}, path)
    for one in table["sets"]:
        checked(one, {"name": (str,), "instances": (int,), "rows": (list,), "differences": (list,)}, path)
        metrics: set[str] | None = None
        for row in one["rows"]:
            rates = checked(row, {"arm": (str,), "rates": (dict,), "means": (dict,)}, path)["rates"]
            checked(row["means"], dict.fromkeys(row["means"], (int, float, NoneType)), path)
            for rate in rates.values():
                checked(rate, dict.fromkeys(("value", "low", "high"), (int, float)), path)
            if metrics not in (None, {*rates, *row["means"]}):
                raise T2TError("the rows have different metrics", where=str(path), cause="the file was edited by hand")
            metrics = {*rates, *row["means"]}
        for difference in one["differences"]:
            _check_difference(difference, path)
    return table


def _check_difference(difference: Any, path: SafePath) -> None:
    wanted: Types = {"metric": (str,), "test": (str,), "p": (int, float), "arms": (list,)}
    checked(difference, wanted, path, ("value", "low", "high"))
    numbers = [difference[name] for name in ("value", "low", "high")]
    names = difference["arms"]
    if len(names) != 2 or not all(isinstance(n, str) for n in names) or not all(type(n) in (int, float) for n in numbers):
        raise T2TError("a difference is not what was written", where=str(path), cause="the file was edited by hand")
