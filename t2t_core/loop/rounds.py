"""The closed loop: generate -> train -> validate -> break down -> design -> project, round after round (paper section 1).

Every stage writes its files whole or not at all, and a stage whose last file exists is never repeated. The same command
therefore continues from wherever the last one stopped. Design runs after every round but the last.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2t_core import guard, transport
from t2t_core.closing import close
from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS, Progress
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.scoring import scored
from t2t_core.hookspecs import Brief, TrainingJob
from t2t_core.hostile import plain_json
from t2t_core.loop.design_step import (
    Decision,
    decide,
    make_brief,
    projection_record,
    propose,
    recorded,
    round_state,
    step_record,
)
from t2t_core.loop.divergence import check_finite, telling_divergence
from t2t_core.loop.preparation import prepare
from t2t_core.loop.trial_runs import TrialRuns
from t2t_core.records import InstanceRecord, Round, TrainingResult
from t2t_core.run import declaration
from t2t_core.run.engines import Engines
from t2t_core.run.experiment import Experiment, resolved
from t2t_core.run.forks import Fork
from t2t_core.run.gpus import Gpus, gpus_here
from t2t_core.run.progress import Reporter
from t2t_core.run.round_files import KIND, RoundFiles, round_facts
from t2t_core.run.schemas import Generation, Training, TriedAll
from t2t_core.run.sets import failed, own_set
from t2t_core.run.tracking import Tracking
from t2t_core.seeding import key
from t2t_core.store import folders, jsonlines
from t2t_core.store.interrupts import Interrupts
from t2t_core.store.paths import SafePath

MAX_ERRORS = 0.01  # if a larger share of the validation questions has no answer, the endpoint's faults would steer the design


class Loop:
    """One run in its folder.

    Args:
        experiment: the run's settings, resolved.
        folder: the run's folder: new, empty, or begun by the same experiment.
        reporter: where progress is reported.
        fork: the run and round whose results are taken over, if any.
        gpus: the GPUs that the training is planned for; None asks the machine.
        engines: the source of the run's policies; whoever passes it closes it.
        tracking: shows the run's figures; whoever passes it closes it.

    Raises:
        T2TError: an unknown plugin, option or set, before anything is written.
    """

    def __init__(
        self,
        experiment: Experiment,
        folder: Path | SafePath,
        reporter: Reporter,
        fork: Fork | None = None,
        gpus: Gpus | None = None,
        engines: Engines | None = None,
        tracking: Tracking | None = None,
    ) -> None:
        self.experiment, self.folder, self.reporter, self.fork = experiment, SafePath.absolute(folder), reporter, fork
        self._gpus = gpus
        parts = prepare(experiment)
        self.testbed, self.trainer, self.context = parts.testbed, parts.trainer, parts.context
        self.designer = parts.designer_at_hand
        self.request, self.order, self.first = parts.request, parts.order, parts.first
        self.validation = parts.validation_at_hand
        self.engines, self.tracking = engines or Engines(experiment), tracking or Tracking()
        self._facts: dict[int, Round] = {}  # of finished rounds, so that a long run reads its past once

    def run(self) -> None:
        """Do what is not finished yet. KeyboardInterrupt (also on SIGTERM) leaves every finished stage in place."""
        settings = self.experiment.to_dict() | ({"fork": self.fork.label} if self.fork else {})
        if self.fork:
            self.fork.check(self.experiment)
        self._ready()
        with Interrupts() as self._interrupts:
            reader = {"reader": self.testbed.reader}
            folders.open_manifest(self.folder, KIND, settings, asked=transport.asked, session=reader)
            context = {module.spec: module.module for module in self.context}
            values = plain_json(resolved(self.experiment, self.testbed, self.trainer, self.designer, context))
            if not (everything := self.folder / "resolved.json").exists():
                folders.write_json(everything, values)
            self.tracking.follow(self.folder, values)
            if not (self.folder / declaration.FILE).exists():
                folders.write_json(self.folder / declaration.FILE, declaration.Declaration.of(self.testbed, self.request))
            if self.fork:
                self._take_over(self.fork)
            log = self.folder / "log.jsonl"
            with closing(jsonlines.Appender(log, _torn(log))) as self._log:
                for index in range(self.experiment.rounds):
                    self._round(RoundFiles(self.folder, index))

    def _take_over(self, fork: Fork) -> None:
        rounds = [RoundFiles(self.folder, index) for index in range(fork.index + 1)]
        new = [files for files in rounds if not files.folder.exists()]
        fork.take_over(self.folder)
        for files in new:
            self.tracking.whole_round(files, self._updates(files.index))

    def _ready(self) -> None:
        """Raise T2TError, before anything starts, if the trainer lacks something it needs. On a machine with GPUs, also report
        what the training will take of them."""
        rounds = (RoundFiles(self.folder, index) for index in range(self.experiment.rounds))
        if all(files.training.exists() for files in rounds):
            return
        ready, plan = getattr(self.trainer, "ready", None), getattr(self.trainer, "plan", None)
        gpus = self._gpus or gpus_here()
        if plan is not None and gpus is not None:
            self.reporter.say(plan(self.order, gpus))
        if ready is not None:
            ready(self.order)

    def _round(self, files: RoundFiles) -> None:
        self.reporter.round(files.index, self.experiment.rounds)
        folders.make_folder(files.folder)
        if not files.configuration.exists():
            folders.write_json(files.configuration, self._configuration(files).to_dict())
        if not files.instances.exists():
            self.tracking.configuration(files)
            with self._stage(files, "generate"):
                self._generate(files)
        if not files.training.exists():
            with self._stage(files, "train"):
                self._train(files)
        self._clear(files)
        if not files.breakdown.exists():
            with self._stage(files, "validate"):
                self._validate(files)
        if files.index + 1 < self.experiment.rounds:
            if not files.proposal.exists():
                with self._stage(files, "design"):
                    self._design(files)
            if not files.projection.exists():  # it was stopped between the two
                previous = self.testbed.read_configuration(files.read_configuration())
                self._settle(files, decide(self.testbed, recorded(files.read_proposal()), previous, self.request))

    @contextmanager
    def _stage(self, files: RoundFiles, name: str) -> Iterator[None]:
        """Report a stage and log how long it took. The log is for people: nothing is read back from it."""
        started = time.monotonic()
        self.reporter.stage(name)
        yield
        seconds = time.monotonic() - started
        self.reporter.done(name, seconds)
        self._log.append({"at": folders.now(), "round": files.index, "stage": name, "seconds": round(seconds, 3)})

    # --- the stages

    def _configuration(self, files: RoundFiles) -> Any:
        if files.index == 0 and self.first is not None:
            return self.first
        if files.index == 0:
            return self.testbed.random_configuration(self.request, key(self.experiment.seed, "configuration") >> 1)
        projected = RoundFiles(self.folder, files.index - 1).read_projection()
        return self.testbed.read_configuration(projected.configuration)

    def _generate(self, files: RoundFiles) -> None:
        configuration = self.testbed.read_configuration(files.read_configuration())
        seed = self.experiment.key("generate", files.index)
        instances = self.testbed.generate(configuration, self.request, seed)
        report = getattr(instances, "report", None)
        facts = report.to_dict() if report is not None and hasattr(report, "to_dict") else {}
        record = Generation(seed=seed, instances=len(instances), report=facts, shared=self._shared(instances))
        folders.write_json(files.generation, record)
        files.write_instances(instances)
        self.reporter.figures(instances=len(instances))

    def _shared(self, instances: Sequence[InstanceRecord]) -> dict[str, dict[str, int]]:
        """What the round's instances share with each set that is kept for measuring, if the testbed can tell."""
        named = {name: self.testbed.load_set(name) for name in self.testbed.protected_sets()}
        own = own_set(self.experiment, self.testbed)
        kept = named | ({own.name: own} if own else {})
        counts = {name: self.testbed.shared(instances, other.instances) for name, other in kept.items()}
        return {name: {str(what): int(n) for what, n in shared.items()} for name, shared in counts.items()}

    def _train(self, files: RoundFiles) -> None:
        before = RoundFiles(self.folder, files.index - 1)
        folders.make_folder(files.metrics.parent)
        path, earlier = files.metrics, self._updates(files.index)
        warned: dict[str, int] = {}
        with closing(jsonlines.Appender(path, _torn(path))) as metrics:

            def progress(figures: Mapping[str, Any]) -> None:
                guard.alive()
                check_finite(figures)
                kept = plain_json(figures)
                metrics.append(kept)
                self.tracking.update(earlier, kept)
                for text in kept.get("warnings", ()):
                    if text not in warned:
                        self.reporter.note(f"update {kept.get('update')}: {text}")
                    warned[text] = warned.get(text, 0) + 1
                self.reporter.tick(kept)

            job = TrainingJob(
                checkpoint=before.trained_checkpoint() if files.index else self.experiment.start(),
                instances=files.read_instances(self.testbed),
                testbed=self.testbed,
                settings=self.experiment.training,
                folder=files.checkpoint.checked_path(),
                seed=self.experiment.key("train", files.index),
                round_index=files.index,
                resume_from=before.checkpoint.checked_path() if files.index and before.checkpoint.exists() else None,
                progress=progress,
                reward=self.experiment.reward,
            )
            self.engines.close()  # so that the memory a training needs is free
            with telling_divergence():
                result = self._trained(job)
        if result.checkpoint not in (None, job.checkpoint) and not result.checkpoint.exists():
            raise T2TError(
                f"the trainer says that its checkpoint is in {result.checkpoint}, but it is not there",
                where=self.experiment.trainer,
                next="t2t_core.testing.check_trainer finds such faults",
            )
        record = Training(
            checkpoint=files.relative(result.checkpoint),
            samples=result.samples,
            updates=result.updates,
            tokens=result.tokens,
            metrics=plain_json(result.metrics),
            keep_updates=result.keep_updates,
        )
        folders.sync_folder(files.checkpoint)  # before the file that refers to it is written
        folders.write_json(files.training, record)
        self._interrupts.check()
        for text, count in warned.items():
            self.reporter.note(f"{count} of {result.updates} updates: {text}")
        counts = {"samples": result.samples, "updates": result.updates, "tokens": result.tokens}
        self.reporter.figures(**{**counts, **record.metrics})

    def _trained(self, job: TrainingJob) -> TrainingResult:
        """The trainer's result. A trainer that stops when asked gets the remaining time to save its state."""
        trainer = self.trainer
        if not getattr(trainer, "stops_when_asked", False):
            return trainer.train(job)
        told: list[bool] = []
        with self._interrupts.asking() as asked:

            def stop() -> bool:
                if asked() and not told:
                    told.append(True)
                    self.reporter.note("asked to stop: the training saves its state first; a second SIGTERM stops it at once")
                return asked()

            return trainer.train(replace(job, stop=stop))

    def _updates(self, index: int) -> int:
        """How many updates the rounds before that one took."""
        return sum(RoundFiles(self.folder, before).read_training().updates for before in range(index))

    def _clear(self, files: RoundFiles) -> None:
        """Remove the state that an interrupted training continues from: it is several times the size of a checkpoint, and
        useless once the round is trained."""
        if files.updates.exists() and not files.read_training().keep_updates:
            folders.remove_folder(files.updates)

    def _validate(self, files: RoundFiles) -> None:
        if not files.validation.exists():
            policy = self.engines.policy(files.trained_checkpoint())
            outcome = evaluate(self.validation, policy, files.validation_log, progress=self.reporter.answers)
            _refuse_errors(outcome.progress)
            folders.rename(files.validation_log / ANSWERS, files.validation)
        answers = list(scored(self.validation, files.validation))
        breakdown = dict(self.testbed.breakdown(answers))
        folders.write_json(files.breakdown, {**breakdown, "reader": self.testbed.reader})
        self.tracking.validation(files)
        total = breakdown.get("total", {})
        self.reporter.figures(valid=total.get("valid"), optimal=total.get("optimal"), answers=total.get("answers"))

    def brief(self, files: RoundFiles) -> Brief:
        """Everything a designer gets after that round."""
        for index in range(files.index + 1):
            if index not in self._facts:
                self._facts[index] = round_facts(RoundFiles(self.folder, index))
        rounds = [self._facts[index] for index in range(files.index + 1)]
        examples = failed(self.validation, files.validation)
        state = round_state(self.testbed, self.trainer, self.experiment, self.request, rounds, examples)
        brief = make_brief(self.experiment, self.context, state, self.request, files.trained_checkpoint())
        return replace(brief, policy=self.engines.policy)

    def _design(self, files: RoundFiles) -> None:
        trials = TrialRuns(self.experiment, self.testbed, self.trainer, self.validation, files)
        brief = replace(self.brief(files), trial=trials.run)
        self.reporter.say(f"    asking {self.experiment.designer}")  # a large model may think for minutes
        if callable(getattr(self.designer, "close", None)):
            self.engines.close()  # the designer has an engine of its own
        try:
            step = propose(self.designer, brief, self.experiment.design_seconds)
        finally:
            close(self.designer)
        decision = decide(self.testbed, step, brief.previous, self.request)
        shown = step.proposal.prompt if step.proposal.prompt is not None else brief.text
        folders.write_atomic(files.context, shown.encode("utf-8", "backslashreplace"))
        if trials.done:
            folders.write_json(files.trials, TriedAll(trials=trials.done))
        folders.write_json(files.proposal, step_record(self.experiment.designer, decision.step))
        if decision.step.outcome == "unchanged":
            self.reporter.note("the designer's proposal amounts to the configuration in force")
        elif step.outcome != "proposed":
            self.reporter.note(f"designer {step.outcome}, the configuration stays: {'; '.join(step.proposal.notes)[:300]}")
        self._settle(files, decision)

    def _settle(self, files: RoundFiles, decision: Decision) -> None:
        """Keep the next configuration, and report what Project corrected."""
        folders.write_json(files.projection, projection_record(decision))
        self.tracking.design(files)
        for change in decision.projection.changes:
            self.reporter.note(f"corrected {change.knob}: {change.reason}"[:200])


def _refuse_errors(progress: Progress) -> None:
    missing = progress.total - progress.done + progress.errors
    if missing > MAX_ERRORS * progress.total:
        raise T2TError(
            f"{missing} of {progress.total} validation questions have no answer",
            cause="the policy's endpoint failed; a breakdown of its faults would steer the design",
            next="repeat the command: it asks for the missing answers and continues",
        )


def _torn(path: SafePath) -> jsonlines.Torn | None:
    torn: list[jsonlines.Torn] = []
    if path.exists():
        for _ in jsonlines.read(path, torn):
            pass
    return torn[0] if torn else None
