"""Runs a plan: round 0 once a seed, every arm from there, and nothing is compared before the last one is done.

    OUT/run.json                the plan, its file's hash, and what each session ran with
    OUT/code.json               the hash of the code at the start of every session
    OUT/seed_101/shared/        round 0 alone, and the bench of the untrained policy
    OUT/seed_101/fixed/         an arm: a run folder like any other
    OUT/study.json, study.md    written last
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from t2t_core import transport
from t2t_core.loop.sweep import CONTROL
from t2t_core.loop.whole_run import run_experiment
from t2t_core.plugins import installed
from t2t_core.report.behaviour import analyze
from t2t_core.report.summary import Summary
from t2t_core.run.closing_bench import Values, evaluations, measured
from t2t_core.run.experiment import Experiment
from t2t_core.run.forks import Fork
from t2t_core.run.progress import Reporter
from t2t_core.run.round_files import finished_rounds
from t2t_core.store import folders, locks
from t2t_core.store.paths import SafePath
from t2t_core.study.plan import PlanFile, code_hash

KIND = "study"
BASE = "base"


@dataclass(frozen=True)
class Trial:
    """One arm with one seed: its summary, what each round's training spent ("updates", "tokens"), its answers to every set, the
    hash of what it trained (of what it trained on, where nothing was trained), and how it designed."""

    summary: Summary
    spent: Sequence[Mapping[str, int]]
    answers: Mapping[str, Values]
    digest: str
    behaviour: Mapping[str, float | None]


@dataclass(frozen=True)
class Trials:
    """Everything that was run: arm -> its trials, in the order of the plan's seeds; the untrained policy by seed; of each set
    the cell of every instance; and the hashes of the code that it was run with."""

    arms: Mapping[str, list[Trial]]
    base: list[Mapping[str, Values]]
    cells: Mapping[str, Mapping[str, str]]
    codes: list[str]


def run_plan(file: PlanFile, out: Path, reporter: Reporter) -> Trials:
    """Do or go on with everything that the plan names."""
    folder = SafePath(out)
    with locks.locked(folder):
        folders.open_manifest(folder, KIND, file.to_dict(), "plan", asked=transport.asked)
        codes = _codes(folder)
        arms: dict[str, list[Trial]] = {name: [] for name in file.plan.arms}
        base: list[Mapping[str, Values]] = []
        for seed in file.plan.seeds:
            place, experiment = folder / f"seed_{seed}", replace(file.experiment, seed=seed)
            reporter.say(f"seed {seed}: the shared round 0")
            shared = replace(experiment, rounds=1, designer=CONTROL)
            run_experiment(shared, place / "shared", reporter, measured=[BASE])
            base.append(_answers(experiment, place / "shared", BASE))
            for name in file.plan.arms:
                reporter.say(f"seed {seed}: {name}")
                arms[name].append(_trial(_arm(file, experiment, name), place / name, place / "shared", reporter))
        return Trials(arms, base, _cells(file.experiment), codes)


def _arm(file: PlanFile, experiment: Experiment, name: str) -> Experiment:
    arm = file.plan.arms[name]
    return replace(experiment, designer=arm.designer, context=arm.context or experiment.context, replica=arm.replica)


def _trial(arm: Experiment, place: SafePath, shared: SafePath, reporter: Reporter) -> Trial:
    summary = run_experiment(arm, place, reporter, Fork(shared, 0, "../shared@0"), measured=["designed"])
    trainings = [files.read_training() for files in finished_rounds(place)]
    spent = [{"updates": training.updates, "tokens": training.tokens} for training in trainings]
    return Trial(summary, spent, _answers(arm, place, "designed"), _digest(place), analyze(place)["mean"])


def _answers(experiment: Experiment, place: SafePath, name: str) -> dict[str, Values]:
    return measured(experiment, installed().testbeds.make(experiment.testbed), place / "bench", name)


def _codes(folder: SafePath) -> list[str]:
    """The hashes of the code of every session so far, this one last."""
    path, now = folder / "code.json", code_hash()
    known: list[str] = folders.read_json(path)["sha256"] if path.exists() else []
    if not known or known[-1] != now:
        known.append(now)
        folders.write_json(path, {"sha256": known})
    return known


def _digest(place: SafePath) -> str:
    """Equal for two runs that ended in the same weights, or, without training, went through the same configurations."""
    rounds = list(finished_rounds(place))
    weights = [file for file in rounds[-1].checkpoint.entries() if file.name.endswith(".safetensors")] if rounds else []
    files = weights or [files.configuration for files in rounds]
    return " ".join(folders.sha256(file) for file in files)


def _cells(experiment: Experiment) -> dict[str, dict[str, str]]:
    testbed = installed().testbeds.make(experiment.testbed)
    cells: dict[str, dict[str, str]] = {}
    for chosen, evaluation in evaluations(experiment, testbed):
        places = {instance.id: testbed.place(instance) for instance in evaluation.instances}
        cells[chosen.name] = {name: testbed.cell_of(place.cell) or place.cell or place.column for name, place in places.items()}
    return cells
