"""One job, from its files to its result: the hidden score of the untrained bases, the run by the closed loop, the hidden score of
what it trained."""

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

BEGUN = "begun.json"  # the outcome as far as it is known before the training


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a job came to, as far as the process that ran it knows; `work/ID/outcome.json`."""

    base: str
    pre: dict[str, float]
    post: float | None = None
    failure: str = ""
    failure_code: str = ""
    tokens: int = 0
    samples: int = 0
    updates: int = 0


def run_job(queue: Queue, order: Order, work: SafePath) -> Outcome:
    """Do a job in the folder `work`, or continue it. A job that cannot be done is an outcome with its failure. Raises T2TError
    if the fault is the machine's (a full disk)."""
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
    """While the block runs, the run in the job's own world where the job brings code."""
    if not job.code:
        yield experiment
        return
    from t2t_jobs import code

    kept = own_set(experiment, job.family.world())
    with code.registered(job.family.testbed, folder, job.code, kept.instances if kept else ()) as world:
        yield replace(experiment, testbed=world)


def trained(experiment: Experiment, folder: SafePath) -> list[Any]:
    """The run, by the closed loop; what each of its rounds trained."""
    with Engines(experiment) as engines:
        loop = Loop(experiment, folder, Reporter(), engines=engines)
        with locks.locked(folder):
            loop.run()
    return [RoundFiles(folder, index).read_training() for index in range(experiment.rounds)]


def free_folder(queue: Queue, order: Order, token: str) -> SafePath:
    """Where the job's run is: that of a worker that died goes on. One whose process lives after all is left alone."""
    place = queue.folder / "work" / order.id
    with suppress(T2TError), locks.locked(place):
        return place
    return queue.folder / "work" / f"{order.id}+{token}"
