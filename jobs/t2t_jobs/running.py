"""Runs one job, from its files to its result: the hidden scores of the untrained bases, the run of the closed loop, and the
hidden score of the trained model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.loop.rounds import Loop
from t2t_core.run.engines import Engines
from t2t_core.run.experiment import Experiment
from t2t_core.run.progress import Reporter
from t2t_core.run.round_files import RoundFiles
from t2t_core.run.sets import own_set
from t2t_core.store import folders, locks
from t2t_core.store.paths import SafePath
from t2t_jobs import hidden
from t2t_jobs.job import Job, read_job, to_experiment
from t2t_jobs.queue import Order, Queue

BEGUN = "begun.json"  # what is known of the outcome before the training


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The part of a job's result that the process that ran it knows: `work/ID/outcome.json`."""

    base: str
    pre: dict[str, float]
    post: float | None = None
    failure: str = ""
    failure_code: str = ""
    tokens: int = 0
    samples: int = 0
    updates: int = 0


def run_job(queue: Queue, order: Order, work: SafePath) -> Outcome:
    """Run a job in the folder `work`, or continue it. If the job is at fault, the outcome says so in `failure`. If the machine is
    (a full disk, say), raises T2TError."""
    family = hidden.make_family(order.family)
    pre = hidden.baseline_scores(family, order.hidden_seed, queue.baselines)
    folder = queue.job_folder(order.id)
    job, failures = read_job(folder, family, order.allow_code)
    if job is None or failures:
        return Outcome(base=job.base if job else "", pre=pre, failure=str(failures[0]), failure_code="invalid")
    folders.write_json(work / BEGUN, Outcome(base=job.base, pre=pre))
    try:
        experiment = to_experiment(job, order.seed, work, queue.hidden_instances(family, order.episode))
        with with_code(experiment, job, folder) as run:
            records = trained(run, work / "run")
        checkpoint = RoundFiles(work / "run", experiment.rounds - 1).trained_checkpoint()
    except T2TError as error:
        return Outcome(base=job.base, pre=pre, failure=str(error)[:2000], failure_code="training")
    post = hidden.score(family, order.hidden_seed, experiment, checkpoint, work / "hidden")
    counts = {name: sum(getattr(record, name) for record in records) for name in ("tokens", "samples", "updates")}
    return Outcome(base=job.base, pre=pre, post=post, **counts)


@contextmanager
def with_code(experiment: Experiment, job: Job, folder: SafePath) -> Iterator[Experiment]:
    """Yield the run; if the job brings code, with the code's world, which is registered for as long as the block runs."""
    if not job.code:
        yield experiment
        return
    from t2t_jobs import code

    kept = own_set(experiment, job.family.world())
    with code.registered(job.family.testbed, folder, job.code, kept.instances if kept else ()) as world:
        yield replace(experiment, testbed=world)


def trained(experiment: Experiment, folder: SafePath) -> list[Any]:
    """Run the closed loop. Returns the training record of each round."""
    with Engines(experiment) as engines:
        loop = Loop(experiment, folder, Reporter(), engines=engines)
        with locks.locked(folder):
            loop.run()
    return [RoundFiles(folder, index).read_training() for index in range(experiment.rounds)]


def free_folder(queue: Queue, order: Order, token: str) -> SafePath:
    """The folder for a job's run. This is where the last worker left it, so that its run continues; but if that worker's process
    turns out to be alive, it is a new folder."""
    folder = queue.folder / "work" / order.id
    with suppress(T2TError), locks.locked(folder):
        return folder
    return queue.folder / "work" / f"{order.id}+{token}"
