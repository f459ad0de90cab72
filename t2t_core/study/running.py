"""Runs a plan: round 0 once a seed, every arm from there, and nothing is compared before the last one is done.

    OUT/run.json                    the plan, its file's hash, and what each session ran with
    OUT/code.json                   the hash of the code at the start of every session
    OUT/seed_101/shared/            round 0 alone, and the bench of the untrained policy
    OUT/seed_101/fixed/             an arm: a run folder like any other
    OUT/outcomes/seed_101.json      what the seed came to, once all of its arms are done; its run folders may go then
    OUT/gate.json                   whether configurations matter here, before any designer is looked at
    OUT/study.json, study.md        written last

The arms of the gate come first, of all seeds, and its verdict is told; then whatever is missing, seed by seed. Where a cluster
does the runs (`t2t sweep --plan FILE --ray auto`), those of each stage are done ahead of it and then found done.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from pathlib import Path

from t2t_core import transport
from t2t_core.errors import T2TError
from t2t_core.loop.sweep import CONTROL, Ahead, PlannedRun
from t2t_core.plugins import installed
from t2t_core.report.behaviour import analyze
from t2t_core.report.summary import RoundSummary, Summary
from t2t_core.run.closing_bench import Values, measured
from t2t_core.run.experiment import Experiment
from t2t_core.run.forks import Fork
from t2t_core.run.progress import Reporter
from t2t_core.run.round_files import finished_rounds
from t2t_core.run.schemas import Training
from t2t_core.store import folders, locks
from t2t_core.store.paths import SafePath
from t2t_core.study import outcomes
from t2t_core.study.comparing import compare_gate
from t2t_core.study.outcomes import RoundOutcome, SeedOutcome, Trial, Trials, measured_rates
from t2t_core.study.plan import BASE, PlanFile, code_hash
from t2t_core.study.study_document import gate_words

KIND = "study"


@dataclass(frozen=True)
class ArmRun(PlannedRun):
    """One run of a study. `code`: the hash of the code that it is to be run with."""

    code: str = ""

    def run(self, reporter: Reporter) -> Summary:
        """Do or go on with it; T2TError on a machine that has other code, whose runs would be another study's."""
        if (here := code_hash()) != self.code:
            raise T2TError(
                f"the machine {platform.node()} has other code than the study",
                where=self.title,
                cause=f"{here[:12]} there, {self.code[:12]} where the study was started",
                next="install the same version of the suite and of its plugins on every node",
            )
        return super().run(reporter)


def run_plan(file: PlanFile, out: Path, reporter: Reporter, ahead: Ahead | None = None) -> Trials:
    """Do or go on with everything that the plan names.

    Args:
        ahead: does the runs elsewhere first, given those of every seed that is not done; what follows finds them done.
    """
    folder = SafePath(out)
    with locks.locked(folder):
        folders.open_manifest(folder, KIND, file.to_dict(), "plan", asked=transport.asked)
        codes = _codes(folder, file)
        if file.plan.gate:
            _run_arms(file, folder, file.plan.gate_arms(), reporter, ahead)
            gate = compare_gate(file, outcomes.read_trials(file, folder, codes, file.plan.gate_arms()))
            folders.write_json(folder / "gate.json", gate)
            reporter.say(gate_words(gate, file.plan))
        _run_arms(file, folder, list(file.plan.arms), reporter, ahead)
        return outcomes.read_trials(file, folder, codes, list(file.plan.arms))


def _run_arms(file: PlanFile, folder: SafePath, arms: list[str], reporter: Reporter, ahead: Ahead | None) -> None:
    """Those arms of every seed of which one is not kept yet."""
    kept = outcomes.kept_seeds(file, folder, arms)
    missing, code = [seed for seed in file.plan.seeds if seed not in kept], code_hash()
    if ahead:
        seed_folders = [(seed, folder / f"seed_{seed}") for seed in missing]
        ahead([[_shared(file, *of, code), *(_arm(file, *of, name, code) for name in arms)] for of in seed_folders])
    for seed in missing:
        base, trials = _run_seed(file, seed, folder / f"seed_{seed}", arms, reporter)
        outcomes.write_seed(folder, file, seed, SeedOutcome(base, trials))


def _shared(file: PlanFile, seed: int, folder: SafePath, code: str) -> ArmRun:
    experiment = replace(file.experiment, seed=seed, rounds=1, designer=CONTROL)
    return ArmRun(BASE, experiment, folder / "shared", measured=[BASE], code=code)


def _arm(file: PlanFile, seed: int, folder: SafePath, name: str, code: str) -> ArmRun:
    arm = file.plan.arms[name]
    seen = arm.context or file.experiment.context
    own = replace(file.experiment, seed=seed, designer=arm.designer, context=seen, replica=arm.replica)
    return ArmRun(name, own, folder / name, Fork(folder / "shared", 0, "../shared@0"), code=code)


def _run_seed(
    file: PlanFile, seed: int, folder: SafePath, arms: list[str], reporter: Reporter
) -> tuple[dict[str, Values], dict[str, Trial]]:
    """The untrained policy's values, and those arms of one seed; what is there already is read."""
    trials, code = {}, code_hash()
    shared = _shared(file, seed, folder, code)
    reporter.say(shared.title)
    shared.run(reporter)
    for name in arms:
        arm = _arm(file, seed, folder, name, code)
        reporter.say(arm.title)
        trials[name] = _trial(file, arm.experiment, folder / name, arm.run(reporter))
    return _answers(file, replace(file.experiment, seed=seed), folder / "shared", BASE), trials


def _trial(file: PlanFile, arm: Experiment, folder: SafePath, summary: Summary) -> Trial:
    trainings = [files.read_training() for files in finished_rounds(folder)]
    designed = [0, *(files.design_tokens() for files in finished_rounds(folder))]
    return Trial(
        budget=summary.budgets["designed"],
        rounds=[_round(*of_round) for of_round in zip(summary.rounds, trainings, designed, strict=False)],
        designs=[design.outcome for design in summary.designs],
        digest=_digest(folder),
        behaviour=analyze(folder)["mean"],
        answers=_answers(file, arm, folder, "designed"),
    )


def _round(validation: RoundSummary, training: Training, designed: int) -> RoundOutcome:
    """The tokens are those of the training and of the design that led to it."""
    groups = {group: values.get("valid") for group, values in validation.groups.items()}
    return RoundOutcome(training.updates, training.tokens + designed, validation.valid.value, groups)


def _answers(file: PlanFile, experiment: Experiment, folder: SafePath, name: str) -> dict[str, Values]:
    values = measured(experiment, installed().testbeds.make(experiment.testbed), folder / "bench", name)
    return measured_rates(file.plan, values)


def _codes(folder: SafePath, file: PlanFile) -> list[str]:
    """The hashes of the code of every session that ran something, this one last if there is something to run."""
    known = outcomes.code_hashes(folder)
    if len(outcomes.kept_seeds(file, folder, list(file.plan.arms))) < len(file.plan.seeds) and known[-1:] != [now := code_hash()]:
        known.append(now)
        folders.write_json(folder / outcomes.CODE, outcomes.CodeRecord(known))
    return known


def _digest(folder: SafePath) -> str:
    """Equal for two runs that ended in the same weights, or, without training, went through the same configurations."""
    rounds = list(finished_rounds(folder))
    weights = [file for file in rounds[-1].checkpoint.entries() if file.name.endswith(".safetensors")] if rounds else []
    files = weights or [files.configuration for files in rounds]
    return " ".join(folders.sha256(file) for file in files)
