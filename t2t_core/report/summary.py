"""What a run came to, as a pure function of its folder: validation per round, configurations and what changed in them, the
bench, and what each arm was given."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_core.cells import numbers
from t2t_core.evaluation.stats import Estimate, Rate, stratified
from t2t_core.report.training import TrainingSummary, training_summary
from t2t_core.run.closing_bench import read_table
from t2t_core.run.round_files import RoundFiles, finished_rounds, open_run
from t2t_core.run.schemas import BenchTable, Configuration, Correction, Cost
from t2t_core.store.paths import SafePath

EQUAL = ("rounds", "instances", "samples", "updates")  # what two arms must have been given alike


@dataclass(frozen=True)
class Share:
    """A rate as a share with its 95 % interval; None if nothing was answered."""

    value: float | None
    low: float
    high: float

    @classmethod
    def of(cls, estimate: Estimate) -> Share:
        """From an estimate; NaN becomes None."""
        return cls(None if math.isnan(estimate.value) else estimate.value, estimate.low, estimate.high)


@dataclass(frozen=True)
class RoundSummary:
    """One round's validation: totals as unweighted mean over the groups, the shares of each group, and its configuration."""

    round: int
    valid: Share
    optimal: Share
    groups: Mapping[str, Mapping[str, float | None]]
    configuration: Configuration

    @property
    def knobs(self) -> dict[str, dict[str, float]]:
        """The configuration's numbers: group -> knob -> value."""
        return {group: numbers(values) for group, values in self.configuration.items()}


@dataclass(frozen=True)
class Changed:
    """A knob, or the joint cells, of a group that differ between two configurations; None if there was, or is, none."""

    group: str
    knob: str
    before: Any
    after: Any


@dataclass(frozen=True)
class DesignSummary:
    """One design step: who, how it went, what it cost, every value that changed, and every correction."""

    after_round: int
    designer: str
    outcome: str
    notes: Sequence[str]
    cost: Cost
    changed: Sequence[Changed]
    corrections: Sequence[Correction]
    summary: str | None


@dataclass(frozen=True)
class Budget:
    """What an arm was given and used: rounds, instances drawn, samples, updates and tokens of training, and of
    designs the calls and the tokens, those of trial runs included."""

    rounds: int = 0
    instances: int = 0
    samples: int = 0
    updates: int = 0
    tokens: int = 0
    design_calls: int = 0
    design_tokens: int = 0
    design_usd: float = 0


@dataclass(frozen=True)
class Summary:
    """`summary.json`. By arm ("designed", "control"): what training came to, what was given, and what the training instances of
    each round share with each set kept for measuring."""

    experiment: Mapping[str, Any]
    rounds: Sequence[RoundSummary]
    training: Mapping[str, Sequence[TrainingSummary]]
    designs: Sequence[DesignSummary]
    budgets: Mapping[str, Budget]
    unequal: Sequence[str]
    shared: Mapping[str, Sequence[Mapping[str, Mapping[str, int]]]]
    bench: BenchTable | None


def summarize(path: Path | SafePath) -> Summary:
    """The summary of a run."""
    folder = SafePath.of(path)
    _, experiment = open_run(folder)
    arms = {"designed": folder} | ({"control": folder / "control"} if (folder / "control").exists() else {})
    budgets = {name: budget(root) for name, root in arms.items()}
    bench = folder / "bench" / "table.json"
    return Summary(
        experiment={name: value for name, value in experiment.to_dict().items() if name != "report_to"},  # who watches
        rounds=[round_summary(files) for files in finished_rounds(folder)],
        training={name: list(training_summary(list(finished_rounds(root)))) for name, root in arms.items()},
        designs=list(designs(folder)),
        budgets=budgets,
        unequal=unequal(budgets),
        shared={name: [files.read_generation().shared for files in finished_rounds(root)] for name, root in arms.items()},
        bench=read_table(bench) if bench.exists() else None,
    )


def round_summary(files: RoundFiles) -> RoundSummary:
    """Validation of one round."""
    groups = files.read_breakdown()["groups"]

    def total(name: str) -> Share:
        return Share.of(stratified([Rate(1, counts["answers"], counts[name], counts[name]) for counts in groups.values()]))

    per_group = {group: {name: _share(counts, name) for name in ("valid", "optimal")} for group, counts in groups.items()}
    return RoundSummary(files.index, total("valid"), total("optimal"), per_group, files.read_configuration())


def _share(counts: Mapping[str, Any], name: str) -> float | None:
    return counts[name] / counts["answers"] if counts["answers"] else None


def designs(folder: SafePath) -> Iterator[DesignSummary]:
    """Each design step of a run."""
    files = RoundFiles(folder, 0)
    while files.projection.exists():
        proposal, projection = files.read_proposal(), files.read_projection()
        yield DesignSummary(
            after_round=files.index,
            designer=proposal.designer,
            outcome=proposal.outcome,
            notes=[*proposal.notes, *([projection.note] if projection.note else [])],
            cost=proposal.cost,
            changed=changed_values(files.read_configuration(), projection.configuration),
            corrections=projection.changes,
            summary=proposal.summary,
        )
        files = RoundFiles(folder, files.index + 1)


def changed_values(before: Configuration, after: Configuration) -> list[Changed]:
    """What differs between two configurations, group by group."""
    return [
        Changed(group, knob, before.get(group, {}).get(knob), value)
        for group, knobs in after.items()
        for knob, value in {**dict.fromkeys(before.get(group, {})), **knobs}.items()
        if before.get(group, {}).get(knob) != value
    ]


def budget(folder: SafePath) -> Budget:
    """What the arm in that folder was given and used."""
    rounds = list(finished_rounds(folder))
    trained = [files.read_training() for files in rounds]
    costs = [files.read_proposal().cost for files in rounds if files.proposal.exists()]
    return Budget(
        rounds=len(rounds),
        instances=sum(files.read_generation().instances for files in rounds),
        samples=sum(record.samples for record in trained),
        updates=sum(record.updates for record in trained),
        tokens=sum(record.tokens for record in trained),
        design_calls=sum(cost.calls for cost in costs),
        design_tokens=sum(files.design_tokens() for files in rounds),
        design_usd=sum(cost.usd for cost in costs),
    )


def unequal(budgets: Mapping[str, Budget]) -> list[str]:
    """Where the arms were not given the same; empty means that they compare."""
    differing = []
    for name in EQUAL:
        values = {arm: getattr(given, name) for arm, given in budgets.items()}
        if len(set(values.values())) > 1:
            differing.append(f"{name} differ: " + ", ".join(f"{arm} {value}" for arm, value in values.items()))
    return differing
