"""A whole run: the loop, its control, the bench of every arm and the summary. What `t2t run` and `t2t sweep` call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from t2t_core import guard
from t2t_core.loop.rounds import Loop
from t2t_core.report import markdown
from t2t_core.report.run_document import run_document
from t2t_core.report.summary import Summary, summarize
from t2t_core.run.closing_bench import Arm, ClosingBench
from t2t_core.run.engines import Engines
from t2t_core.run.experiment import Experiment
from t2t_core.run.forks import Fork
from t2t_core.run.gpus import Gpus
from t2t_core.run.progress import Reporter
from t2t_core.run.round_files import RoundFiles
from t2t_core.run.tracking import Tracking
from t2t_core.store import folders, locks
from t2t_core.store.paths import SafePath

CONTROL = "fixed"  # the designer of the control arm ("GRPO (random)" in the paper)


def run_experiment(
    experiment: Experiment,
    folder: Path | SafePath,
    reporter: Reporter,
    fork: Fork | None = None,
    with_control: bool = False,
    measured: Sequence[str] = ("base", "designed"),
    gpus: Gpus | None = None,
) -> Summary:
    """Do or go on with a run; the summary, which is also in `summary.json` and `summary.md`.

    Args:
        experiment: what to run.
        folder: of the run; locked against a second process meanwhile.
        reporter: where progress goes.
        fork: the round of another run to start from.
        with_control: afterwards also the control: the same round 0, then its configuration for good, in `control/`.
        measured: which policies the bench at the end measures, beside the control.
        gpus: what the training is planned for; None asks the machine.
    """
    folder = SafePath.absolute(folder)
    with ExitStack() as held:
        held.enter_context(guard.watching(reporter.note))
        engines = held.enter_context(Engines(experiment))
        tracking = held.enter_context(Tracking.of(experiment, reporter.note))
        # a mistake in the configuration leaves no folder behind
        loop = Loop(experiment, folder, reporter, fork, gpus, engines, tracking)
        note = held.enter_context(locks.locked(folder))
        if note:
            reporter.note(note)
        loop.run()
        policies = {"base": experiment.start(), "designed": _last(experiment, folder)}
        arms = [Arm(name, policies[name]) for name in measured]
        closing = ClosingBench(experiment, loop.testbed, folder / "bench", engines, reporter)
        closing.ask(arms)
        if with_control:
            control = folder / "control"
            reporter.say("control: the configuration of round 0 for good")
            fixed, first = replace(experiment, designer=CONTROL), Fork(folder, 0, "..@0")
            with Tracking.of(experiment, reporter.note) as own:
                Loop(fixed, control, reporter, first, gpus, engines, own).run()
            arms.append(Arm("control", _last(experiment, control)))
            closing.ask(arms)
        before, table = closing.earlier_table(), closing.table(arms)
        if table != before:
            tracking.bench(experiment.rounds - 1, table)
        engines.close()
        summary = summarize(folder)
        folders.write_json(folder / "summary.json", summary)
        document = run_document(folder, summary)
        folders.write_atomic(folder / "summary.md", markdown.render(document))
        return summary


def _last(experiment: Experiment, folder: SafePath) -> Path | None:
    return RoundFiles(folder, experiment.rounds - 1).trained_checkpoint()
