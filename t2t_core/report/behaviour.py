"""How a designer behaved: the paper's five dimensions as numbers (the numbers are our choice; the paper describes in words).

One design step goes from a configuration C and the breakdown it led to, to the next configuration C'. Groups are taken in the
order that the testbed declares; one knob is a group's share, the others are its levels. A value is taken as it is where the knob
is shown in percent, else as a share of the knob's range; a level that makes instances easier counts with the other sign. The
values of a configuration are one for each knob of each group; one changed where it moved by more than 0.005. v_g is a group's
valid rate; a group fails where it is below 0.5; the capability boundary is the last group that does not (our choice). Numbers
about the groups' order have a value only where later groups are harder. A number is here because it finds a planted designer:
one that does on purpose what the number is about is told from those that do not (tests/core/test_planted.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2t_core.cells import numbers
from t2t_core.evaluation.stats import t_interval
from t2t_core.plugins import installed
from t2t_core.records import Knob
from t2t_core.run.declaration import Declaration, read_declaration
from t2t_core.run.round_files import RoundFiles, finished_rounds, open_run, round_facts
from t2t_core.store import folders
from t2t_core.store.paths import SafePath

MOVED = 0.005
CAPABLE = 0.5
KEPT = 0.01
Number = float | None


@dataclass(frozen=True)
class Edit:
    """One design step as arrays over groups: `before` and `after` (groups x knobs, the share first), `valid` (v_g, NaN if
    nothing was asked), `failed` (failed answers), `named` (whether the last summary names the group; None without one) and
    `start`, the configuration of round 0; `rise`: whether later groups are harder."""

    groups: Sequence[str]
    before: Any
    after: Any
    valid: Any
    failed: Any
    named: Any
    start: Any
    rise: bool = True

    @property
    def moved(self) -> Any:
        """Which values changed by more than MOVED: (groups, knobs), boolean."""
        return np.abs(self.after - self.before) > MOVED

    @property
    def failing(self) -> Any:
        """Which groups fail, that is, have a valid rate below 0.5: (groups,), boolean."""
        return self.valid < CAPABLE

    @property
    def boundary(self) -> int | None:
        """The capability boundary: the index of the last group whose valid rate is at least 0.5; None if there is none."""
        capable = np.flatnonzero(self.valid >= CAPABLE)
        return int(capable[-1]) if len(capable) else None


@dataclass(frozen=True)
class Measure:
    """One number: which of the five behaviours it belongs to, its formula, and what it reads; `ordered`: it is about the groups'
    order."""

    name: str
    behaviour: str
    formula: str
    inputs: str
    compute: Callable[[Edit], Number]
    ordered: bool = False

    def value(self, edit: Edit) -> Number:
        """The number of a design step; None if it has nothing to stand on."""
        return self.compute(edit) if edit.rise or not self.ordered else None


def _share(part: Any, whole: Any) -> Number:
    """The share of `whole` that is also `part`."""
    count = int(np.sum(whole))
    return float(np.sum(part & whole) / count) if count else None


def _overlap(first: Any, second: Any) -> Number:
    """Jaccard index of two sets of groups."""
    union = int(np.sum(first | second))
    return float(np.sum(first & second) / union) if union else None


def _spearman(values: Any) -> Number:
    """Spearman's rank correlation with the groups' order; None if the values are all equal."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2 or np.ptp(values) < 1e-12:
        return None
    ranks = np.array([np.mean(np.flatnonzero(np.sort(values) == v)) for v in values])
    return float(np.corrcoef(np.arange(len(values)), ranks)[0, 1])


def _near_boundary(edit: Edit, shares: Any) -> Number:
    if edit.boundary is None:
        return None
    return float(shares[max(0, edit.boundary - 1) : edit.boundary + 2].sum())


def _boundary_shift(edit: Edit) -> Number:
    before, after = _near_boundary(edit, edit.before[:, 0]), _near_boundary(edit, edit.after[:, 0])
    return None if before is None or after is None else after - before


def _most(values: Any) -> int | None:
    known = np.where(np.isnan(values), -1.0, values)
    return int(np.argmax(known)) if len(known) and known.max() > 0 else None


def _loud_over_informative(edit: Edit) -> Number:
    loudest, informative = _most(edit.failed), _most(edit.valid * (1 - edit.valid))
    if loudest is None or informative is None or loudest == informative:
        return None
    moved = edit.after[:, 0] - edit.before[:, 0]
    return float(moved[loudest] - moved[informative])


def _rewritten(edit: Edit) -> Any:
    return edit.moved.any(axis=1)


def _distance(first: Any, second: Any) -> float:
    return float(np.abs(first - second).mean())


def _centre_shift(edit: Edit) -> Number:
    """How far the centre of the shares moved through the groups' order, as a share of that order's length."""
    if len(edit.groups) < 2:
        return None
    return float(np.arange(len(edit.groups)) @ (edit.after[:, 0] - edit.before[:, 0]) / (len(edit.groups) - 1))


SALIENCE, GRANULARITY, TEMPLATE = "signal salience", "edit granularity", "template against evidence"
CORRECTION, GROUNDED = "cross-round self-correction", "task-grounded modelling"
MEASURES = (
    Measure(
        "loud_over_informative",
        SALIENCE,
        "C'.share - C.share at the group with most failed answers, minus the same at the group with the highest v (1 - v); none "
        "where they are one group",
        "configurations, breakdown.failed, breakdown.valid",
        _loud_over_informative,
    ),
    Measure(
        "distance_to_round_0",
        SALIENCE,
        "mean absolute difference of C' and C_0, over all values",
        "configurations",
        lambda e: _distance(e.after, e.start),
    ),
    Measure(
        "cells_rewritten",
        GRANULARITY,
        "changed values / all values",
        "configurations",
        lambda e: float(e.moved.mean()),
    ),
    Measure(
        "rewrites_at_failing",
        GRANULARITY,
        "changed values in failing groups / changed values",
        "configurations, breakdown.valid",
        lambda e: _share(np.broadcast_to(e.failing[:, None], e.moved.shape), e.moved),
    ),
    Measure(
        "healthy_rewritten",
        GRANULARITY,
        "groups with v >= 0.5 whose level knobs changed / groups with v >= 0.5",
        "configurations, breakdown.valid",
        lambda e: _share(e.moved[:, 1:].any(axis=1), e.valid >= CAPABLE),
    ),
    Measure(
        "levels_follow_order",
        TEMPLATE,
        "mean over level knobs of Spearman(C'.knob, group order)",
        "configurations",
        lambda e: _mean([_spearman(e.after[:, k]) for k in range(1, e.after.shape[1])]),
        ordered=True,
    ),
    Measure(
        "levels_monotone",
        TEMPLATE,
        "neighbouring groups whose level knobs do not fall / all neighbouring pairs, over level knobs",
        "configurations",
        lambda e: float((np.diff(e.after[:, 1:], axis=0) >= -MOVED).mean()) if min(len(e.groups), e.after.shape[1]) > 1 else None,
        ordered=True,
    ),
    Measure(
        "edit_follows_breakdown",
        CORRECTION,
        "Jaccard(changed groups, failing groups)",
        "configurations, breakdown.valid",
        lambda e: _overlap(_rewritten(e), e.failing),
    ),
    Measure(
        "edit_follows_summary",
        CORRECTION,
        "Jaccard(changed groups, groups the last summary names)",
        "configurations, last summary",
        lambda e: None if e.named is None else _overlap(_rewritten(e), e.named),
    ),
    Measure(
        "share_near_boundary",
        GROUNDED,
        "sum of C'.share within one group of the capability boundary",
        "configurations, breakdown.valid",
        lambda e: _near_boundary(e, e.after[:, 0]),
        ordered=True,
    ),
    Measure(
        "boundary_shift",
        GROUNDED,
        "share_near_boundary of C' minus that of C",
        "configurations, breakdown.valid",
        _boundary_shift,
        ordered=True,
    ),
    Measure(
        "centre_shift",
        GROUNDED,
        "mean place in the groups' order, weighted by C'.share, minus that weighted by C.share, / (groups - 1)",
        "configurations",
        _centre_shift,
        ordered=True,
    ),
    Measure(
        "groups_kept",
        GROUNDED,
        "groups with C'.share >= 0.01 / all groups",
        "configurations",
        lambda e: float((e.after[:, 0] >= KEPT).mean()),
    ),
)


def _mean(values: Sequence[Number]) -> Number:
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None


def analyze(folder: Path | SafePath) -> dict[str, Any]:
    """Every measure of every design step of a run: {"run", "designer", "context", "observed": {measure: what a publication saw},
    "steps": [{"after_round", "outcome", measure: value or None}], "mean"}. Steps whose designer failed count: their configuration
    stayed. Of a kept run, whose rounds were left out, its `summary.json` is read."""
    _, experiment = open_run(folder)
    declared = read_declaration(SafePath.of(folder), experiment)
    steps: list[dict[str, Any]] = []
    rounds = [files for files in finished_rounds(folder) if files.projection.exists()]
    told = ((files.index, files.read_proposal().outcome, read_edit(files, declared)) for files in rounds)
    for index, outcome, edit in told if rounds else kept_edits(SafePath.of(folder), declared):
        steps.append({"after_round": index, "outcome": outcome, **{m.name: m.value(edit) for m in MEASURES}})
    means = {m.name: _mean([step[m.name] for step in steps]) for m in MEASURES}
    named: dict[str, Any] = {"run": str(folder), "designer": experiment.designer, "context": experiment.context}
    named["observed"] = declared.observed
    if experiment.configuration:  # runs that were given one and are called alike were given the same
        named["start"] = folder.name
    return {**named, "steps": steps, "mean": means}


def arms(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Runs of one designer with one context, such as the seeds of a sweep, together: [{"arm", "runs", "values": {measure: its
    value at every step that has one}, "mean": {measure: {"value", "low", "high"} or None}}]. The mean is over the runs' means,
    with a 95 % t interval if there are two or more."""
    together: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        given = f", {result['start']}" if result.get("start") else ""
        together.setdefault(f"{result['designer']}, {result['context']}{given}", []).append(result)
    rows = []
    for name, runs in together.items():
        values = {m.name: [s[m.name] for r in runs for s in r["steps"] if s[m.name] is not None] for m in MEASURES}
        means = {m.name: _over_runs([r["mean"][m.name] for r in runs]) for m in MEASURES}
        rows.append({"arm": name, "runs": len(runs), "values": values, "mean": means})
    return rows


def _over_runs(means: Sequence[Number]) -> dict[str, Number] | None:
    known = [v for v in means if v is not None]
    if not known:
        return None
    estimate = t_interval(known)
    low, high = (None if np.isnan(end) else end for end in (estimate.low, estimate.high))
    return {"value": estimate.value, "low": low, "high": high}


def read_edit(files: RoundFiles, declared: Declaration) -> Edit:
    """The design step after a finished round."""
    facts = round_facts(files)
    start = RoundFiles(files.run, 0).read_configuration()
    after = files.read_projection().configuration
    groups = list(facts.configuration)
    counts = [facts.breakdown["groups"].get(g, {"answers": 0, "valid": 0}) for g in groups]
    valid = [c["valid"] / c["answers"] if c["answers"] else np.nan for c in counts]
    return Edit(
        groups,
        _table(facts.configuration, groups, declared),
        _table(after, groups, declared),
        np.array(valid),
        np.array([float(c["answers"] - c["valid"]) for c in counts]),
        named_groups(facts.summary, groups, _meaning(declared)),
        _table(start, groups, declared),
        declared.groups_rise or not declared.groups,  # a run that declares nothing is of a time when every testbed's did
    )


@dataclass(frozen=True)
class _KeptRound:
    round: int
    groups: dict[str, dict[str, float | None]]
    configuration: dict[str, Any]


@dataclass(frozen=True)
class _KeptDesign:
    after_round: int
    outcome: str
    summary: str | None


@dataclass(frozen=True)
class _Kept:
    """What a run's summary says of its design steps."""

    rounds: list[_KeptRound]
    designs: list[_KeptDesign]


def kept_edits(run: SafePath, declared: Declaration) -> Iterator[tuple[int, str, Edit]]:
    """The design steps that a run's summary tells: after which round, how it went, and the edit. The groups of a validation set
    are taken to hold as many answers each, as those of the frozen ones do."""
    path = run / "summary.json"
    if not path.exists():
        return
    kept = folders.read_record(path, _Kept)
    rounds = {record.round: record for record in kept.rounds}
    said = {design.after_round: design.summary for design in kept.designs}
    for design in kept.designs:
        before, after = rounds.get(design.after_round), rounds.get(design.after_round + 1)
        if before is None or after is None:
            continue
        groups = list(before.configuration)
        rates = [before.groups.get(group, {}).get("valid") for group in groups]
        valid = np.array([np.nan if rate is None else rate for rate in rates])
        tables = [_table(record.configuration, groups, declared) for record in (before, after, kept.rounds[0])]
        named = named_groups(said.get(design.after_round - 1), groups, _meaning(declared))
        rise = declared.groups_rise or not declared.groups
        yield design.after_round, design.outcome, Edit(groups, tables[0], tables[1], valid, 1 - valid, named, tables[2], rise)


def _table(configuration: Mapping[str, Mapping[str, Any]], groups: Sequence[str], declared: Declaration) -> Any:
    """Groups x knobs, the share first; a group that the configuration lacks has NaN. Of joint cells the numbers are the means."""
    names = declared.in_order(list(numbers(next(iter(configuration.values())))))
    rows = [numbers(configuration.get(group, {})) for group in groups]
    return np.array([[row.get(name, np.nan) * _scale(declared.knob(name)) for name in names] for row in rows], dtype=float)


def _scale(knob: Knob | None) -> float:
    """What a knob's value is multiplied by, so that knobs of all units can stand side by side."""
    if knob is None or knob.role == "share":
        return 1.0
    return (-1.0 if knob.harder < 0 else 1.0) / (1.0 if knob.form == "percent" else knob.high - knob.low)


def _meaning(declared: Declaration) -> Callable[[str], str | None]:
    """Which group a word means, in the testbed's own reading where it is installed."""
    if declared.name not in installed().testbeds:
        return lambda word: None
    group_of: Callable[[str], str | None] = installed().testbeds.make(declared.name).group_of
    return group_of


def named_groups(summary: str | None, groups: Sequence[str], meaning: Callable[[str], str | None] = lambda word: None) -> Any:
    """Which groups a summary names, as they are called or as the testbed reads its words; a number in percent or with decimals is
    none. None if there is no summary."""
    if summary is None:
        return None
    text = summary.casefold()
    called = {g for g in groups if re.search(rf"(?<![\w.]){re.escape(g.casefold())}(?![\w%]| %|\.\d)", text)}
    meant = {meaning(word) for word in re.findall(r"(?<![\w.])\w+(?![\w%]| %|\.\d)", summary)}
    return np.array([group in called | meant for group in groups])
