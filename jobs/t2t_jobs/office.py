"""The room of jobs as an episode sees it: baseline scores, the probe, a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_core.store.paths import SafePath
from t2t_jobs import hidden
from t2t_jobs.episode import Done, Probed
from t2t_jobs.family import Family, value_at, values_of
from t2t_jobs.job import Job
from t2t_jobs.probe import probe
from t2t_jobs.queue import Queue


@dataclass(frozen=True)
class Office:
    """Serves the episodes of one family; implements `t2t_jobs.episode.Desk`.

    Args:
        queue: where jobs go.
        family: the task family of the jobs.
        twin: names the hidden evaluation; episodes with the same name are scored on the same instances.
        seed: what the jobs draw from.
        allow_code: files of code that a job may bring.
    """

    queue: Queue
    family: Family
    twin: str
    seed: int = 0
    allow_code: Sequence[str] = ()

    def baselines(self) -> Mapping[str, float]:
        return hidden.baseline_scores(self.family, self.queue.hidden_seed(self.twin), self.queue.baselines)

    def probe(self, folder: SafePath) -> Probed:
        job, failures = probe(folder, self.family, self.queue, self.twin, self.seed, self.allow_code)
        return Probed(changes_of(job) if job is not None else None, failures)

    def submit(self, folder: SafePath, job: str) -> None:
        self.queue.submit(job, folder, self.family.name, self.twin, self.seed, tuple(self.allow_code))

    def done(self, job: str) -> Done | None:
        result = self.queue.result(job)
        if result is None:
            return None
        return Done(dict(result.pre), result.post, result.cpu_seconds, result.failure)


def changes_of(job: Job) -> dict[str, Any]:
    """The values of a job that differ from the job it started from, by dotted key; always with its base."""
    start = job.family.start
    return {key: value for key, value in values_of(job.values).items() if key == "base" or value != value_at(start, key)}
