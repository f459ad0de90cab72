"""A grid of runs over designers, contexts and seeds, each arm forked from one shared round 0 per seed, and its table.

    OUT/run.json            the grid
    OUT/seed_3/shared/      round 0 alone, which all arms of the seed share, and the bench of the untrained policy
    OUT/seed_3/rule_V6/     an arm: a run folder like any other

Or fixed configurations as arms. They share no round, because their training differs from the first round on.

    OUT/seed_3/uniform/     an arm: every round trains on the configuration in uniform.json. The first arm's bench measures the
                            untrained policy too, and its trained policy is what the others are compared with

Every arm continues where it stopped, so the same command resumes an interrupted sweep.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from t2t_core import transport
from t2t_core.errors import T2TError
from t2t_core.evaluation.stats import seeded_difference, t_interval
from t2t_core.hookspecs import AnyTestbed
from t2t_core.loop import context
from t2t_core.loop.preparation import prepared_configuration
from t2t_core.loop.whole_run import run_experiment
from t2t_core.plugins import installed
from t2t_core.report import markdown, svg
from t2t_core.report.summary import Budget, Summary, unequal
from t2t_core.report.sweep_document import (
    BASE,
    ArmResult,
    OverSeeds,
    QuotedArm,
    SweepDifference,
    SweepResult,
    difference_charts,
    sweep_document,
)
from t2t_core.run.closing_bench import Values, evaluation_sets, measured
from t2t_core.run.experiment import Experiment
from t2t_core.run.forks import Fork
from t2t_core.run.progress import Reporter
from t2t_core.run.round_files import PROPOSED
from t2t_core.run.sets import request
from t2t_core.store import folders, jsonlines, locks
from t2t_core.store.paths import SafePath

KIND = "sweep"
CONTROL = "fixed"  # the designer that every other one is compared with: it leaves round 0's configuration as it is


@dataclass(frozen=True)
class Grid:
    """The grid: every designer with every context, for every seed; or named, fixed configurations."""

    designers: Sequence[str]
    contexts: Sequence[str]
    seeds: Sequence[int]
    configurations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def control(self) -> str | None:
        """The arm that the others are compared with, besides the untrained policy."""
        if self.configurations:
            return next(iter(self.configurations))
        return next((f"{designer} {seen}" for designer, seen in self.arms() if designer == CONTROL), None)

    def to_dict(self) -> dict[str, Any]:
        settings = {name: list(getattr(self, name)) for name in ("designers", "contexts", "seeds")}
        return settings | ({"configurations": dict(self.configurations)} if self.configurations else {})

    def arms(self) -> Iterator[tuple[str, str]]:
        """Every (designer, context) of the grid."""
        return ((designer, context) for designer in self.designers for context in self.contexts)


def sweep(
    experiment: Experiment,
    grid: Grid,
    out: Path,
    reporter: Reporter,
    ahead: Ahead | None = None,
) -> SweepResult:
    """Do or resume the grid. Returns the result, which is also written to `sweep.json` and `sweep.md` with charts of the
    differences.

    Args:
        ahead: does the runs elsewhere first, given those of every seed; the sweep then finds them finished and makes the
            tables.
    """
    folder = SafePath(out)
    _check(experiment, grid)
    settings = {**experiment.to_dict(), "grid": grid.to_dict()}
    planned = [list(planned_runs(replace(experiment, seed=seed), grid, folder / f"seed_{seed}")) for seed in grid.seeds]
    with locks.locked(folder):
        folders.open_manifest(folder, KIND, settings, asked=transport.asked)
        if ahead:
            ahead(planned)
        arms: dict[str, list[Summary]] = {}
        answers: dict[str, list[dict[str, Values]]] = {}
        for of_seed in planned:
            for name, summary, answered in _results(of_seed, reporter):
                arms.setdefault(name, []).append(summary)
                answers.setdefault(name, []).append(answered)
        result = SweepResult(
            arms=[_arm(name, grid.seeds, summaries) for name, summaries in arms.items()],
            differences=list(_differences(answers, grid.control)),
            unequal=_unequal(grid.seeds, {name: summaries for name, summaries in arms.items() if name != BASE}),
            quoted=list(_quoted(experiment, grid)),
        )
        folders.write_json(folder / "sweep.json", result)
        folders.write_atomic(folder / "sweep.md", markdown.render(sweep_document(result)))
        for against, chart in difference_charts(result.differences).items():
            folders.write_atomic(folder / f"minus_{arm_name(*against.split(' ', 1))}.svg", svg.standalone(chart.svg()))
        return result


def _check(experiment: Experiment, grid: Grid) -> None:
    """Check the arms up front: a misspelt arm or an unusable configuration is better reported before hours of training."""
    for designer, seen in grid.arms():
        installed().designers.make(designer)
        context.modules(seen, installed().contexts)
    testbed = installed().testbeds.make(experiment.testbed)
    asked, uses = request(experiment, testbed), dict[str, str]()
    for name, configuration in grid.configurations.items():
        if arm_name(name) in (BASE, "shared"):
            raise T2TError(f"an arm cannot be called {name}", where="--configurations", next="rename the file")
        first = prepared_configuration(configuration, testbed, asked)
        comes_to = jsonlines.dumps(first.to_dict())
        if comes_to in uses:
            raise T2TError(f"{uses[comes_to]} and {name} amount to the same configuration", where="--configurations")
        uses[comes_to] = name


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep: its arm, its experiment, its folder, the run it forks from, and the policies that it measures at its
    end."""

    arm: str
    experiment: Experiment
    folder: SafePath
    fork: Fork | None = None
    measured: Sequence[str] = ("designed",)

    @property
    def title(self) -> str:
        return f"seed {self.experiment.seed}: {'the shared round 0' if self.arm == BASE else self.arm}"

    def run(self, reporter: Reporter) -> Summary:
        """Do the run, or continue it."""
        return run_experiment(self.experiment, self.folder, reporter, self.fork, measured=self.measured)


Ahead = Callable[[Sequence[Sequence[PlannedRun]]], None]  # does the runs of every seed somewhere else


def planned_runs(experiment: Experiment, grid: Grid, folder: SafePath) -> Iterator[PlannedRun]:
    """The runs of one seed: the shared round 0 and the arms that fork from it, or one for each fixed configuration."""
    for number, (name, configuration) in enumerate(grid.configurations.items()):
        arm = replace(experiment, configuration=configuration, designer=CONTROL)
        yield PlannedRun(name, arm, folder / arm_name(name), measured=["designed"] if number else ["designed", "base"])
    if grid.configurations:
        return
    shared = folder / "shared"
    yield PlannedRun(BASE, replace(experiment, rounds=1, designer=CONTROL), shared, measured=["base"])
    for designer, seen in grid.arms():
        arm = replace(experiment, designer=designer, context=seen)
        yield PlannedRun(f"{designer} {seen}", arm, folder / arm_name(designer, seen), Fork(shared, 0, "../shared@0"))


def _results(planned: Sequence[PlannedRun], reporter: Reporter) -> Iterator[tuple[str, Summary, dict[str, Values]]]:
    """Every arm of one seed, the untrained policy first: its name, its summary and its answers to every evaluation set."""
    for run in planned:
        reporter.say(run.title)
        summary, bench = run.run(reporter), run.folder / "bench"
        testbed = installed().testbeds.make(run.experiment.testbed)
        if "base" in run.measured:
            asked = "base" if (bench / "base").is_dir() else "designed"  # each checkpoint is asked once
            yield BASE, replace(summary, rounds=[]), measured(run.experiment, testbed, bench, asked)
        if "designed" in run.measured:
            yield run.arm, summary, measured(run.experiment, testbed, bench, "designed")


def _differences(answers: Mapping[str, Sequence[dict[str, Values]]], control: str | None) -> Iterator[SweepDifference]:
    """Every arm against the untrained policy, and against the control where the grid has one, set by set and metric by metric:
    paired on the instances and pooled over the seeds."""
    for against in (BASE, *([control] if control else [])):
        for arm in answers:
            if arm in (BASE, against):
                continue
            for set_name, metrics in answers[arm][0].items():
                for metric in metrics:
                    seeds = zip(answers[arm], answers[against], strict=True)
                    pairs = [(ours[set_name], theirs[set_name]) for ours, theirs in seeds]
                    if all(metric in ours and metric in theirs for ours, theirs in pairs):  # a rate that is known of both
                        both = [(ours[metric], theirs[metric]) for ours, theirs in pairs]
                        deltas = [[[v - b[c][i] for i, v in a[c].items()] for c in a] for a, b in both]
                        figures = _plain(asdict(seeded_difference(deltas)))
                        yield SweepDifference(arm, against, set_name, metric, **figures)


def _unequal(seeds: Sequence[int], arms: Mapping[str, Sequence[Summary]]) -> list[str]:
    """Where the arms of a seed had different budgets; equal sums over seeds would hide it."""
    return [
        f"seed {seed}, {line}"
        for number, seed in enumerate(seeds)
        for line in unequal({name: summaries[number].budgets["designed"] for name, summaries in arms.items()})
    ]


def arm_name(*words: str) -> str:
    """The name of an arm's folder, from its designer and its context."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "_".join(words))[:150]


def _arm(name: str, seeds: Sequence[int], summaries: Sequence[Summary]) -> ArmResult:
    """One arm over its seeds: mean final validation and bench rates, and its budget."""
    figures: dict[str, list[float]] = {}
    for summary in summaries:
        for metric in ("valid", "optimal") if summary.rounds else ():
            figures.setdefault(f"validation {metric}", []).append(getattr(summary.rounds[-1], metric).value)
        for table in summary.bench.sets if summary.bench else ():
            row = next(row for row in table.rows if row.arm == (BASE if name == BASE else "designed"))
            for metric, rate in row.rates.items():
                if rate.value is not None:
                    figures.setdefault(f"{table.name} {metric}", []).append(rate.value)
    budgets = [asdict(summary.budgets["designed"]) for summary in summaries]
    return ArmResult(
        arm=name,
        seeds=list(seeds),
        figures={key: OverSeeds(values, **_plain(asdict(t_interval(values)))) for key, values in figures.items()},
        budget=Budget(**{key: sum(b[key] for b in budgets) for key in budgets[0]}),
        designs_failed=sum(design.outcome not in PROPOSED for summary in summaries for design in summary.designs),
    )


def _quoted(experiment: Experiment, grid: Grid) -> Iterator[QuotedArm]:
    """What publications printed for the arms that the grid compares: for its designers, or for its contexts."""
    testbed = installed().testbeds.make(experiment.testbed)
    for arm in grid.arms() if not grid.configurations else ():
        for words, source, figures in _printed(testbed, experiment, grid, *arm):
            yield QuotedArm(" ".join(arm), words, source, figures)


def _printed(
    testbed: AnyTestbed, experiment: Experiment, grid: Grid, designer: str, seen: str
) -> Iterator[tuple[str, str, dict[str, float]]]:
    printed: dict[tuple[str, str], dict[str, float]] = {}
    for evaluation_set in evaluation_sets(experiment, testbed):
        for row in testbed.reported_arms(evaluation_set.name):
            same_designer = len(grid.designers) > 1 and row.get("designer") == designer
            same_context = len(grid.contexts) > 1 and "context" in row and _modules(row["context"]) == _modules(seen)
            if same_designer or same_context:
                totals = {f"{evaluation_set.name} {metric}": value for metric, value in row["total"].items()}
                printed.setdefault((row["arm"], row["source"]), {}).update(totals)
    return ((words, source, figures) for (words, source), figures in printed.items())


def _modules(text: str) -> list[str]:
    return [module.spec for module in context.modules(text, installed().contexts)]


def _plain(figures: Mapping[str, Any]) -> dict[str, Any]:
    """None for what a single seed cannot estimate: JSON has no NaN."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in figures.items()}


def runs_of(path: Path) -> list[SafePath]:
    """The arms of a sweep, finished or not, seed by seed; any other folder unchanged."""
    folder = SafePath(path)
    manifest = folder / folders.MANIFEST
    if not manifest.exists() or folders.read_json(manifest).get("kind") != KIND:
        return [folder]
    seeds = sorted((s for s in folder.entries() if s.name.startswith("seed_")), key=lambda s: (len(s.name), s.name))
    arms = (arm for seed in seeds for arm in seed.entries() if arm.name != "shared" and arm.is_dir())
    return [arm for arm in arms if (arm / folders.MANIFEST).exists()]
