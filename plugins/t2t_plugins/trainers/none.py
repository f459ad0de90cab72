"""`none`: trains nothing, so that a run only evaluates and designs."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.hookspecs import TrainingJob
from t2t_core.records import TrainingResult
from t2t_core.settings import no_argument, read_settings


class NoTrainer:
    """Returns the checkpoint unchanged. It takes no argument and no settings."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "trainer none")
        read_settings(settings or {}, "trainer none", {})

    def train(self, job: TrainingJob) -> TrainingResult:
        return TrainingResult(checkpoint=job.checkpoint)
