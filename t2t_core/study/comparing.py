"""What a study came to: its gate, its one primary comparison, the others with their corrections, and every arm by itself.

All figures are percentage points. Differences are paired on the instances and pooled over seeds (`stats.seeded_difference`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2t_core.evaluation.stats import SeededDifference, holm, seeded_difference, t_interval
from t2t_core.evaluation.trials import (
    area_under,
    forgetting,
    inference,
    interquartile_mean,
    probability_of_improvement,
    worst_quarter,
)
from t2t_core.loop.sweep import CONTROL
from t2t_core.report.summary import unequal
from t2t_core.run.round_files import PROPOSED
from t2t_core.study.outcomes import Trial, Trials, rates
from t2t_core.study.plan import BASE, Compared, Plan, PlanFile

Strata = list[list[float]]


@dataclass(frozen=True)
class ArmResult:
    """One arm: its score in every seed with their mean and interquartile mean; the area under its validations over updates and
    over tokens of training and design (to what the least-spending arm of the seed spent); the worst quarter of the cells, over
    the seeds together; the worst drop of a group from its best validation; what training and designs took, per seed; the arms
    that ended in the same bytes in every seed; its gain over the arm `fixed` with an interval and no test (None without such
    an arm); and how it designed, the mean of every number of `t2t analyze`."""

    arm: str
    designer: str
    scores: Sequence[float]
    mean: float
    low: float | None
    high: float | None
    interquartile_mean: float
    area_over_updates: float | None
    area_over_tokens: float | None
    worst_quarter: float
    forgetting: float | None
    tokens: float
    updates: float
    design_tokens: float
    design_usd: float
    designs_failed: int
    same_as: Sequence[str]
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    behaviour: Mapping[str, float | None]


@dataclass(frozen=True)
class Difference:
    """One arm minus another, with what its interval says beside itself; `p_holm` for secondary ones; `identical` counts the
    seeds in which both ended in the same bytes; `verdict` is one of "better", "worse", "equivalent", "undecided", "one designer"
    and, with one seed, "one seed"."""

    role: str
    arm: str
    against: str
    value: float
    low: float | None
    high: float | None
    seeds: Sequence[float]
    p: float | None
    p_holm: float | None
    detectable: float | None
    p_equivalence: float | None
    improvement: float
    identical: int
    verdict: str


@dataclass(frozen=True)
class StudyResult:
    """`study.json`. `leverage`: whether the gate held, None without one; where it did not, no designer is ranked."""

    title: str
    world: str
    start: str
    plan: str
    margin: float
    seeds: Sequence[int]
    leverage: bool | None
    differences: Sequence[Difference]
    arms: Sequence[ArmResult]
    deviations: Sequence[str]


@dataclass(frozen=True)
class GateResult:
    """`gate.json`: what is known before any designer is looked at."""

    plan: str
    seeds: Sequence[int]
    leverage: bool
    differences: Sequence[Difference]


def compare_gate(file: PlanFile, trials: Trials) -> GateResult:
    """The comparisons of the plan's gate, from its arms alone."""
    plan = file.plan
    compared = [(role, comparison) for role, comparison in plan.compared() if role in ("gate", "same")]
    differences = [_difference(plan, trials, role, comparison) for role, comparison in compared]
    return GateResult(file.sha256, plan.seeds, bool(_leverage(plan, differences)), differences)


def compare(file: PlanFile, trials: Trials) -> StudyResult:
    """Everything that the plan asks for, and nothing else is compared."""
    plan = file.plan
    differences = _corrected([_difference(plan, trials, role, comparison) for role, comparison in plan.compared()])
    return StudyResult(
        title=plan.title,
        world=plan.world or file.experiment.testbed,
        start=plan.start or "random",
        plan=file.sha256,
        margin=plan.margin,
        seeds=plan.seeds,
        leverage=_leverage(plan, differences),
        differences=differences,
        arms=[_arm(plan, trials, name) for name in plan.arms],
        deviations=list(_deviations(plan, trials)),
    )


# --- comparisons


def _strata(plan: Plan, answers: Any) -> Strata:
    """The outcomes of one policy under the plan's measures, column by column, in points."""
    strata: Strata = []
    for measure in plan.measure:
        strata += [[100 * value for value in by_id.values()] for by_id in rates(answers, measure).values()]
    return strata


def _of(plan: Plan, trials: Trials, arm: str) -> list[Strata]:
    answers = trials.base if arm == BASE else [trial.answers for trial in trials.arms[arm]]
    return [_strata(plan, answer) for answer in answers]


def _minus(ours: Strata, theirs: Strata) -> Strata:
    return [[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(ours, theirs, strict=True)]


def score(strata: Strata) -> float:
    """The unweighted mean over columns."""
    return sum(sum(column) / len(column) for column in strata) / len(strata)


def _pooled(ours: Sequence[Strata], theirs: Sequence[Strata]) -> SeededDifference:
    return seeded_difference([_minus(u, v) for u, v in zip(ours, theirs, strict=True)])


def _difference(plan: Plan, trials: Trials, role: str, comparison: Compared) -> Difference:
    ours, theirs = _of(plan, trials, comparison.arm), _of(plan, trials, comparison.against)
    difference = _pooled(ours, theirs)
    tests = inference(difference, plan.margin)
    return Difference(
        role=role,
        arm=comparison.arm,
        against=comparison.against,
        value=difference.value,
        low=_known(difference.low),
        high=_known(difference.high),
        seeds=difference.seeds,
        p=_known(tests.p),
        p_holm=None,
        detectable=_known(tests.detectable),
        p_equivalence=_known(tests.p_equivalence),
        improvement=probability_of_improvement([score(s) for s in ours], [score(s) for s in theirs]),
        identical=_identical(trials, comparison),
        verdict=_verdict(difference, tests.p, tests.p_equivalence, _identical(trials, comparison)),
    )


def _identical(trials: Trials, comparison: Compared) -> int:
    if BASE in (comparison.arm, comparison.against):
        return 0
    pairs = zip(trials.arms[comparison.arm], trials.arms[comparison.against], strict=True)
    return sum(a.digest == b.digest for a, b in pairs)


def _verdict(difference: SeededDifference, p: float, p_equivalence: float, identical: int) -> str:
    if identical == len(difference.seeds):
        return "one designer"
    if math.isnan(difference.high):
        return "one seed"
    if p < 0.05:
        return "better" if difference.value > 0 else "worse"
    return "equivalent" if p_equivalence < 0.05 else "undecided"


def _corrected(differences: list[Difference]) -> list[Difference]:
    """Holm's correction over the secondary comparisons; two arms that are one designer are no comparison, and comparisons that
    are the same in every seed count once."""
    counted = [d.role == "secondary" and d.p is not None and d.verdict != "one designer" for d in differences]
    family = {i: d for i, d in enumerate(differences) if counted[i]}
    once: dict[tuple[float, ...], int] = {}
    for i, d in family.items():
        once.setdefault(tuple(d.seeds), i)
    adjusted = holm({str(i): family[i].p or 0.0 for i in once.values()})
    made = []
    for i, d in enumerate(differences):
        if i not in family:
            made.append(d)
            continue
        p = adjusted[str(once[tuple(d.seeds)])]
        settled = d.verdict if d.verdict not in ("better", "worse") or p < 0.05 else "undecided"
        made.append(replace(d, p_holm=p, verdict=settled))
    return made


def _leverage(plan: Plan, differences: Sequence[Difference]) -> bool | None:
    if plan.gate is None:
        return None
    lever = next(d for d in differences if d.role == "gate")
    same = [d for d in differences if d.role == "same"]
    moved = lever.low is not None and lever.value >= plan.gate.at_least and lever.low > plan.gate.above
    return moved and all(d.low is not None and d.high is not None and -plan.margin < d.low and d.high < plan.margin for d in same)


# --- arms


def _arm(plan: Plan, trials: Trials, name: str) -> ArmResult:
    own = trials.arms[name]
    scores = [score(strata) for strata in _of(plan, trials, name)]
    mean = t_interval(scores)
    budgets = [trial.budget for trial in own]
    control = next((other for other, arm in plan.arms.items() if arm.designer == CONTROL and not arm.replica), None)
    gain = _pooled(_of(plan, trials, name), _of(plan, trials, control)) if control and control != name else None
    over_updates, over_tokens = (_area(trials, name, spent) for spent in ("updates", "tokens"))
    return ArmResult(
        arm=name,
        designer=plan.arms[name].designer,
        scores=scores,
        mean=mean.value,
        low=_known(mean.low),
        high=_known(mean.high),
        interquartile_mean=interquartile_mean(scores),
        area_over_updates=over_updates,
        area_over_tokens=over_tokens,
        worst_quarter=worst_quarter(_by_cell(plan, trials, own)),
        forgetting=_mean([100 * forgetting(_validations(trial)) for trial in own if trial.rounds]),
        tokens=sum(b.tokens for b in budgets) / len(own),
        updates=sum(b.updates for b in budgets) / len(own),
        design_tokens=sum(b.design_tokens for b in budgets) / len(own),
        design_usd=sum(b.design_usd for b in budgets) / len(own),
        designs_failed=sum(outcome not in PROPOSED for trial in own for outcome in trial.designs),
        same_as=[
            other
            for other, theirs in trials.arms.items()
            if other != name and all(a.digest == b.digest for a, b in zip(own, theirs, strict=True))
        ],
        gain=gain.value if gain else None,
        gain_low=_known(gain.low) if gain else None,
        gain_high=_known(gain.high) if gain else None,
        behaviour={measure: _mean([t.behaviour[measure] for t in own]) for measure in own[0].behaviour},
    )


def _by_cell(plan: Plan, trials: Trials, own: Sequence[Trial]) -> dict[str, float]:
    """The rate of every cell, over all seeds."""
    values: dict[str, list[float]] = {}
    for trial in own:
        for measure in plan.measure:
            for by_id in rates(trial.answers, measure).values():
                for instance, value in by_id.items():
                    values.setdefault(f"{measure.set} {trials.cells[measure.set][instance]}", []).append(100 * value)
    return {cell: sum(of) / len(of) for cell, of in values.items()}


def _validations(trial: Trial) -> list[dict[str, float]]:
    return [{group: valid for group, valid in record.groups.items() if valid is not None} for record in trial.rounds]


def _area(trials: Trials, name: str, spent: str) -> float | None:
    """The mean over seeds of the area under the validations' valid rate, up to what every arm of the seed spent."""
    areas = []
    for number, trial in enumerate(trials.arms[name]):
        curves = [_curve(own[number], spent) for own in trials.arms.values()]
        if not all(curves):
            return None
        areas.append(area_under(_curve(trial, spent), min(curve[-1][0] for curve in curves)))
    return _mean(areas)


def _curve(trial: Trial, spent: str) -> list[tuple[float, float]]:
    total, curve = 0.0, []
    for record in trial.rounds:
        total += getattr(record, spent)
        if record.valid is not None:
            curve.append((total, 100 * record.valid))
    return curve


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and not math.isnan(value)]
    return sum(known) / len(known) if known else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


# --- what was not as planned


def _deviations(plan: Plan, trials: Trials) -> Iterator[str]:
    if not plan.code:
        yield "the plan names no hash of the code"
    elif any(code != plan.code for code in trials.codes):
        yield f"the code is not the plan's: {', '.join(code[:12] for code in trials.codes)} instead of {plan.code[:12]}"
    if len(trials.codes) > 1:
        yield f"the code changed between sessions: {' -> '.join(code[:12] for code in trials.codes)}"
    for name, own in trials.arms.items():
        for seed, trial in zip(plan.seeds, own, strict=True):
            bad = [outcome for outcome in trial.designs if outcome not in PROPOSED]
            if bad:
                yield f"seed {seed}, {name}: {len(bad)} of {len(trial.designs)} designs {bad[0]}"
    for number, seed in enumerate(plan.seeds):
        for line in unequal({name: own[number].budget for name, own in trials.arms.items()}):
            yield f"seed {seed}, unequal budgets: {line}"
