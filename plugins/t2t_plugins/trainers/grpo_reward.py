"""The reward of `trl-grpo`: the testbed's verdict and the length of a response, under weights that move from update to update."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from t2t_core.hookspecs import TrainingJob
from t2t_core.length_reward import AdaptiveWeights, length_reward, total_reward
from t2t_core.reward import reward
from t2t_core.store import folders
from t2t_plugins.trainers.grpo_settings import Settings

WEIGHTS_FILE = "adaptive_weights.json"


class Reward:
    """The total reward of responses, as TRL calls it for every part of an update.

    The weights of an update are fixed before its rewards are computed; `settle` moves them when it is done.
    """

    __name__ = "total"

    def __init__(self, job: TrainingJob, settings: Settings, weights: AdaptiveWeights) -> None:
        self.job, self.settings, self.weights = job, settings, weights
        self.short: list[float] = []  # of the parts of this update
        self.gather: Any = None  # over all processes; set once the trainer has its accelerator

    def __call__(self, prompts: Any, completions: Any, completion_ids: Any, index: Any, log_metric: Any, **_: Any) -> list[float]:
        import torch

        accuracies, lengths, valid, optimal = [], [], [], []
        for at, completion, ids in zip(index, completions, completion_ids, strict=True):
            instance = self.job.instances[at]
            verdict = self.job.testbed.verify(instance, completion[-1]["content"])
            accuracies.append(reward(self.job.testbed, instance, verdict, self.job.reward))
            lengths.append(length_reward(len(ids), self.settings.length_start, self.settings.length_end))
            valid.append(float(verdict.valid))
            optimal.append(float(verdict.optimal is True))
        weights = self.weights.weights()
        short = torch.tensor([float(len(ids) <= self.settings.length_start) for ids in completion_ids])
        self.short.append(float(self.gather(short.to(self._device())).mean()))
        for name, values in (("valid", valid), ("optimal", optimal), ("accuracy", accuracies), ("length", lengths)):
            log_metric(name, sum(values) / len(values))
        log_metric("w_acc", weights[0])
        log_metric("share_short", self.weights.share)
        return [total_reward(a, n, weights) for a, n in zip(accuracies, lengths, strict=True)]

    def settle(self) -> None:
        """The update is done: move the weights by its share of short responses (its parts are of one size)."""
        self.weights = self.weights.update(sum(self.short) / len(self.short))
        self.short = []

    def _device(self) -> Any:
        return self.gather.__self__.device


def read_weights(folder: Path) -> AdaptiveWeights:
    """The state in a checkpoint; a fresh one where the checkpoint has none."""
    path = folder / WEIGHTS_FILE
    return AdaptiveWeights.from_dict(folders.read_json(path)) if path.exists() else AdaptiveWeights()
