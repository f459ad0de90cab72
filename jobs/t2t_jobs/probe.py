"""The validation probe that `submit_job` runs. It finds everything that is wrong with a job at once, before a worker takes it.

Some checks need only the job's values: whether the file can be read, bounds, whether the generator accepts the configurations,
the trainer's own checks, the weights of the reward, the budget. For the rest, the probe tries one round of the closed loop on a
handful of instances, in a process that has torch loaded and forks for each trial (`t2t_jobs.trying`). The trial shows whether the
training instances stay apart from every evaluation set, whether an update works, and whether answers to one question earn
different rewards.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingOrder
from t2t_core.loop.preparation import check_plays
from t2t_core.plugins import installed
from t2t_core.reward import check_weights
from t2t_core.store import folders, fresh, jsonlines
from t2t_core.store.paths import SafePath
from t2t_jobs.family import Family
from t2t_jobs.job import FILE, Failure, Job, read_job, to_experiment
from t2t_jobs.queue import Queue

TRIAL_CPU = 30.0  # CPU seconds that a trial may take (our choice)


def probe(
    folder: Path | SafePath,
    family: Family,
    queue: Queue | None = None,
    twin: str = "",
    seed: int = 0,
    allow_code: Sequence[str] = (),
) -> tuple[Job | None, list[Failure]]:
    """Read the job in a folder and find all that is wrong with it. A job without failures may be queued.

    Args:
        folder: the job's folder, e.g. an agent's workspace.
        family: the task family that it is for.
        queue: the queue that it is meant for; without one, there is no trial.
        twin, seed: what the hidden evaluation and the job draw from, as for `Queue.submit`.
        allow_code: files of code that the job may bring.
    """
    job, failures = read_job(folder, family, allow_code)
    if job is None:
        return None, failures
    seen = [*_configurations(job), *_training(job), *_budget(job)]
    failures += seen
    if queue is not None and not seen:
        kept = queue.hidden_instances(family, twin)
        failures += tried(job, SafePath.absolute(folder), seed, kept, queue.folder / "trials")
    return job, failures


def _configurations(job: Job) -> Iterator[Failure]:
    """Failures of the generator's configurations: those that cannot be read, or that the generator would have to change."""
    testbed, values = job.family.world(), job.values
    options = {name: value for name, value in values["generation"].items() if name != "samples"}
    steps = job.configurations()
    for number, step in enumerate(steps):
        table = f"{FILE}, [configuration]" + f", round {number}" * (len(steps) > 1)
        try:
            request = testbed.request(values["generation"]["samples"], **options)
            read = testbed.read_configuration(step)
            changes = testbed.project(read.to_dict(), read, request).changes
        except T2TError as error:
            where = ", ".join(filter(None, [table, error.where]))
            yield Failure(error.what, where=where, cause=error.cause, next=error.next or "mend that value")
            continue
        for change in changes:
            what = f"{change.knob}: {change.proposed} cannot stand: {change.reason}"
            yield Failure(what, where=table, next=f"write {change.used}")


def _training(job: Job) -> Iterator[Failure]:
    """The trainer's complaints about its settings, and the world's about the weights of its reward."""
    testbed = job.family.world()
    try:
        run = to_experiment(job, 0)
        trainer = installed().trainers.make(run.trainer)
        check_plays(run, trainer)
        if getattr(trainer, "check", None) is not None:
            trainer.check(TrainingOrder(run.start(), testbed, run.training, run.samples, run.rounds))
    except T2TError as error:
        yield _of(error, "[training]")
    try:
        check_weights(testbed, job.values.get("reward", {}), f"{FILE}, [reward]")
    except T2TError as error:
        yield _of(error, "[reward]")


def _of(error: T2TError, table: str) -> Failure:
    return Failure(error.what, where=f"{FILE}, {error.where or table}", cause=error.cause, next=error.next)


def _budget(job: Job) -> Iterator[Failure]:
    allowed, asked = job.family.budget.conversations, job.conversations
    if asked > allowed:
        what = f"the job would play {asked} conversations in training, and {allowed} is the budget"
        cause = "rounds x generation.samples x training.epochs x training.group, where it has one"
        yield Failure(what, where=FILE, cause=cause, next="lower one of them")


# --- the trial


@dataclass
class _Helper:
    """The process that tries jobs. It ends when its input pipe closes, so at the latest when this process ends."""

    owner: int
    process: subprocess.Popen[bytes]


_helper: list[_Helper] = []


def tried(job: Job, job_folder: SafePath, seed: int, kept: Path, folder: SafePath) -> list[Failure]:
    """Try the job in `job_folder` on a handful of instances. Returns what went wrong; the trial's files lie below `folder`."""
    request = {"family": job.family.name, "values": job.values, "seed": seed, "hidden": str(kept), "seconds": TRIAL_CPU}
    request |= {"job": str(job_folder.path), "code": list(job.code)}
    folders.make_folder(folder)
    with fresh.folder_beside(folder / "trial") as work:
        reply = _ask({**request, "work": str(work.path)})
    return [Failure(told["what"], where=told["where"], cause=told["cause"], next=told["next"]) for told in reply]


def _ask(request: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    for _ in range(2):  # if the process was killed, start it again, once
        process = _running().process
        if process.stdin is None or process.stdout is None:
            continue
        try:
            process.stdin.write(jsonlines.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if line:
                return list(jsonlines.loads(line)["failures"])
        except OSError:
            pass
        except BaseException:  # Ctrl-C: nobody waits for this trial any more, so end it too
            process.terminate()
            raise
        process.kill()
        process.wait()
    raise T2TError("the process that tries jobs died", cause="memory, or somebody killed it", next="submit the job again")


def _running() -> _Helper:
    if not _helper or _helper[0].owner != os.getpid() or _helper[0].process.poll() is not None:
        process = subprocess.Popen(
            [sys.executable, "-m", "t2t_jobs.trying"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        _helper[:] = [_Helper(os.getpid(), process)]
    return _helper[0]
