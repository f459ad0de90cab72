"""The reward of `trl-grpo`: the testbed's own and, if the testbed has a length term, one for the length of a response. Their
weights move from update to update."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from t2t_core.conversation import judge
from t2t_core.hookspecs import AnyTestbed, TrainingJob
from t2t_core.length_reward import AdaptiveWeights, length_reward, total_reward
from t2t_core.reward import reward
from t2t_core.store import folders, schema
from t2t_plugins.trainers.facts import CellFacts, CellRecord, Judged
from t2t_plugins.trainers.trl_grpo.settings import Settings

FACTS_FILE = "cell_facts.json"
# Rewards are whole multiples of it (ours), so that float32 sums the equal rewards of a group exactly and their spread is 0.
GRAIN = 2.0**-18
NO_LENGTH = (1.0, 0.0)  # the weights for a testbed without a length term


class Reward:
    """The total reward of responses; TRL calls it for every part of an update.

    The weights stay fixed while an update's rewards are computed; `settle` moves them once the update is done.
    """

    __name__ = "total"

    def __init__(self, job: TrainingJob, settings: Settings, weights: AdaptiveWeights, format: str = "") -> None:
        self.job, self.settings, self.weights, self.format = job, settings, weights, format
        self.facts = CellFacts(job.testbed)
        self.short: list[float] = []  # of the parts of this batch
        self.sampled: list[list[list[float]]] = []  # likewise: rows of reward, short, valid, instance, failed check, tokens
        self.gather: Any = None  # over all processes; set once the trainer has its accelerator

    def __call__(
        self, prompts: Any, completions: Any, completion_ids: Any, index: Any, log_metric: Any, held: Any = None, **_: Any
    ) -> list[float]:
        """For a task with turns, `held` has the conversations; only the policy's own tokens count towards their lengths."""
        import torch

        accuracies, lengths, short, valid, optimal, judged = [], [], [], [], [], []
        for row, at in enumerate(index):
            if held is None:
                instance, tokens = self.job.instances[at], len(completion_ids[row])
                verdict = self.job.testbed.verify(instance, completions[row][-1]["content"])
            else:
                instance, tokens = held[row].task, sum(held[row].own)
                verdict = judge(self.job.testbed, instance, held[row].messages, self.format)
            accuracies.append(reward(self.job.testbed, instance, verdict, self.job.reward))
            lengths.append(length_reward(tokens, self.settings.length_start, self.settings.length_end))
            short.append(float(tokens <= self.settings.length_start))
            valid.append(float(verdict.valid))
            optimal.append(float(verdict.optimal is True))
            judged.append([float(at), float(self._check(verdict.failure)), float(tokens)])
        weights = self.weights.weights() if self.job.testbed.length_term else NO_LENGTH
        totals = [round(total_reward(a, n, weights) / GRAIN) * GRAIN for a, n in zip(accuracies, lengths, strict=True)]
        rows = [[*row, *judgement] for *row, judgement in zip(totals, short, valid, judged, strict=True)]
        everywhere = self.gather(torch.tensor(rows, dtype=torch.float64, device=self._device()))  # a group may be spread
        self.short.append(float(everywhere[:, 1].mean()))
        self.sampled.append(everywhere.tolist())
        for name, values in (("valid", valid), ("optimal", optimal), ("accuracy", accuracies), ("length", lengths)):
            log_metric(name, sum(values) / len(values))
        log_metric("w_acc", weights[0])
        log_metric("share_short", self.weights.share)
        log_metric("zero_variance", self._zero_variance(everywhere[:, 0]))
        return totals

    def _zero_variance(self, totals: Any) -> float:
        """The share of groups whose responses all have the same reward. TRL's own figure compares a standard deviation with 1e-8,
        which the noise of float32 exceeds."""
        groups = totals.view(-1, self.settings.group)
        return float((groups.amax(1) - groups.amin(1) < GRAIN / 2).double().mean())

    def settle(self) -> None:
        """After an update, move the weights by its share of short responses (its parts have equal sizes), and add its answers to
        the facts. This waits for the whole update, since an interrupted one is sampled again. If a batch is trained on more than
        once, its later updates have sampled nothing new."""
        if self.short:
            self.weights = self.weights.update(sum(self.short) / len(self.short))
        for rows in self.sampled:
            for first in range(0, len(rows), self.settings.group):
                self._count(rows[first : first + self.settings.group])
        self.short, self.sampled = [], []

    def _count(self, group: list[list[float]]) -> None:
        """Add one group to the facts."""
        checks = [*self.job.testbed.checks, None]
        judged = [Judged(total, bool(valid), checks[int(failed)]) for total, _, valid, _, failed, _ in group]
        self.facts.add(self.job.instances[int(group[0][3])], judged, sum(int(tokens) for *_, tokens in group))

    def _check(self, failure: str | None) -> int:
        """The number of a failed check; if none failed, the number after the last check's."""
        return len(self.job.testbed.checks) if failure is None else list(self.job.testbed.checks).index(failure)

    def _device(self) -> Any:
        return self.gather.__self__.device


def read_facts(folder: Path, testbed: AnyTestbed) -> CellFacts:
    """The counts by cell up to a saved update; empty if it has none."""
    path = folder / FACTS_FILE
    if not path.exists():
        return CellFacts(testbed)
    return CellFacts(testbed, schema.check(folders.read_json(path), dict[str, CellRecord], str(path)))
