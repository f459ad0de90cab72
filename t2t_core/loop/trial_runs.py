"""Short trial runs for designers that try before they propose: train from the current checkpoint, validate, and charge for
it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from t2t_core import guard
from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.hookspecs import AnyTestbed, Trainer, TrainingJob, TrialRun
from t2t_core.records import ConfigurationRecord, Request
from t2t_core.run.engines import Engines
from t2t_core.run.experiment import Experiment
from t2t_core.run.round_files import RoundFiles
from t2t_core.run.schemas import TriedOut
from t2t_core.run.sets import request
from t2t_core.store import fresh
from t2t_core.store.paths import SafePath


class TrialRuns:
    """The function behind `Brief.trial` after one round. All trials of a round share their random draws, so two of them differ
    only by their configurations. Nothing remains of a trial but its result and its cost.

    Args:
        experiment, testbed, trainer, validation: the run's.
        files: those of the round that was just validated.
    """

    def __init__(
        self, experiment: Experiment, testbed: AnyTestbed, trainer: Trainer, validation: Evaluation, files: RoundFiles
    ) -> None:
        self._experiment, self._testbed, self._trainer = experiment, testbed, trainer
        self._validation, self._files = validation, files
        self.done: list[TriedOut] = []

    def run(self, configuration: Mapping[str, Any], instances: int) -> TrialRun:
        """Project the configuration, train on `instances` instances of it, and validate as the run does."""
        experiment, total = self._experiment, {"samples": instances}
        asked = request(replace(experiment, generation={**experiment.generation, **total}), self._testbed)
        previous = self._testbed.read_configuration(self._files.read_configuration())
        used = self._testbed.project(configuration, previous, asked).configuration
        with fresh.folder_beside(self._files.trials) as folder:
            trial = self._tried(used, asked, folder)
        counts = trial.breakdown.get("total", {})
        valid = counts["valid"] / counts["answers"] if counts.get("answers") else None
        self.done.append(TriedOut(configuration=used.to_dict(), valid=valid, updates=trial.updates, tokens=trial.tokens))
        return trial

    def _tried(self, configuration: ConfigurationRecord, asked: Request, folder: SafePath) -> TrialRun:
        experiment, index = self._experiment, self._files.index
        kept = self._files.checkpoint
        job = TrainingJob(
            checkpoint=self._files.trained_checkpoint(),
            instances=self._testbed.generate(configuration, asked, experiment.key("trial instances", index)),
            testbed=self._testbed,
            settings=experiment.training,
            folder=(folder / "checkpoint").path,
            seed=experiment.key("trial", index),
            round_index=index + 1,
            resume_from=kept.checked_path() if kept.exists() else None,
            progress=lambda figures: guard.alive(),
            reward=experiment.reward,
        )
        result = self._trainer.train(job)
        with Engines(experiment) as engines:
            evaluate(self._validation, engines.policy(result.checkpoint), folder / "validation")
        answers = list(scored(self._validation, folder / "validation" / ANSWERS))
        said = sum(answer.response.completion_tokens or 0 for answer in answers)
        return TrialRun(dict(self._testbed.breakdown(answers)), result.updates, result.tokens + said)
