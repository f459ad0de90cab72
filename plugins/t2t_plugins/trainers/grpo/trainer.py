"""The trainer `grpo`, as a run calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.records import TrainingResult
from t2t_core.settings import no_argument
from t2t_plugins.policies.hf import quiet
from t2t_plugins.trainers.common import UPDATES, refuse_overlap, saving, threads
from t2t_plugins.trainers.extra import require
from t2t_plugins.trainers.grpo.settings import MAX_GRAD_NORM, WHERE, Settings, check, check_model
from t2t_plugins.trainers.grpo.training import Training
from t2t_plugins.trainers.settings import check_settings


class Grpo:
    """The trainer `grpo`. A run sets its settings under [training]."""

    facts: ClassVar[Mapping[str, str]] = {
        "algorithm": "GRPO with AdamW and a constant learning rate, on whole conversations",
        "reward": "the testbed's, of the whole conversation",
    }
    stops_when_asked = True
    constants: ClassVar[Mapping[str, Any]] = {
        "optimizer": "AdamW",
        "schedule": "constant",
        "kl_estimator": "k3",
        "adam_beta1": 0.9,
        "adam_epsilon": 1e-8,
        "max_grad_norm": MAX_GRAD_NORM,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
    }

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, WHERE)
        self._settings = dict(settings or {})
        self.defaults = asdict(check_settings(Settings, self._settings, WHERE))

    def check(self, order: TrainingOrder) -> None:
        """Raise T2TError for whatever `train` would refuse, before a run begins."""
        check(check_settings(Settings, {**self._settings, **order.settings}, WHERE), order)

    def ready(self, order: TrainingOrder) -> None:
        """Raise T2TError if something that it needs is not available on this machine."""
        require(WHERE, "torch", "transformers")
        check_model(str(order.checkpoint))

    def train(self, job: TrainingJob) -> TrainingResult:
        settings = check_settings(Settings, {**self._settings, **job.settings}, WHERE)
        check(settings, TrainingOrder(job.checkpoint, job.testbed, job.settings, len(job.instances)))
        refuse_overlap(job)
        quiet()
        with threads(settings.threads), saving(job.folder / UPDATES):
            return Training(job, settings).run()
