"""The validation probe: what `submit_job` starts. It finds everything wrong with a job at once, before any worker takes it."""

from __future__ import annotations

from pathlib import Path

from t2t_core.store.paths import SafePath
from t2t_jobs.family import Family
from t2t_jobs.job import FILE, Failure, Job, read_job


def probe(folder: Path | SafePath, family: Family) -> tuple[Job | None, list[Failure]]:
    """The job in a folder, and all that is wrong with it; it may be queued where nothing is.

    Args:
        folder: the job's, e.g. an agent's workspace.
        family: what it is to teach.
    """
    job, failures = read_job(folder, family)
    if job is not None:
        failures += _budget(job)
    return job, failures


def _budget(job: Job) -> list[Failure]:
    allowed, wanted = job.family.budget.conversations, job.conversations
    if wanted <= allowed:
        return []
    what = f"the job would play {wanted} conversations in training, and {allowed} is the budget"
    return [Failure(what, where=FILE, cause="rounds x generation.samples x training.epochs x training.group",
                    next="lower one of them")]  # fmt: skip
