"""The process that tries jobs for the probe: `python -m t2t_jobs.trying` reads one request per line and answers with one line.

Like a worker, it imports what training needs once, and forks for each trial. It ends when its standard input does.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.run.experiment import Experiment
from t2t_core.run.round_files import RoundFiles
from t2t_core.run.sets import own_set, protected
from t2t_core.store import folders, jsonlines
from t2t_core.store.paths import SafePath
from t2t_jobs import children
from t2t_jobs.family import Family
from t2t_jobs.hidden import make_family
from t2t_jobs.job import FILE, Failure, Job, to_experiment
from t2t_jobs.running import trained, with_code
from t2t_jobs.worker import POLL, WALL, warm

HANDFUL = 8  # instances of a trial (our choice)
_LIKE_PROMPTS = ("prompts", "batch")  # trainers' names for the number of instances in an update


@dataclass(frozen=True, kw_only=True)
class Tried:
    """`tried.json`: the failures, each as the fields of a `Failure`."""

    failures: list[dict[str, str]]


def small(experiment: Experiment) -> Experiment:
    """The same run, cut to one update on a handful of instances."""
    training = dict(experiment.training)
    known = {**getattr(installed().trainers.make(experiment.trainer), "defaults", {}), **training}
    training |= {name: min(int(known[name]), HANDFUL) for name in _LIKE_PROMPTS if name in known}
    training |= {name: 1 for name in ("epochs", "max_updates", "steps") if name in known}
    samples = {**experiment.generation, "samples": HANDFUL}
    return replace(experiment, rounds=1, designer="fixed", generation=samples, training=training)


def trial(job: Job, folder: SafePath, seed: int, hidden: Path, work: SafePath) -> list[Failure]:
    """Run one round on a handful of instances, with the loop that runs jobs. Returns what is wrong with the job."""
    experiment = small(to_experiment(job, seed, work, hidden))
    try:
        with with_code(experiment, job, folder) as run:
            trained(run, work / "run")
    except T2TError as error:
        where = f"one update on {HANDFUL} instances" + f", {error.where}" * bool(error.where)
        return [Failure(error.what, where=where, cause=error.cause, next=error.next or "another learning rate, say")]
    return [*_overlap(experiment, job.family, work), *_figures(work)]


def _overlap(experiment: Experiment, family: Family, work: SafePath) -> Iterator[Failure]:
    """A failure if an evaluation asks one of the training instances."""
    testbed = family.world()
    own = own_set(experiment, testbed)
    kept = protected(testbed, own.instances if own else ())
    drawn = RoundFiles(work / "run", 0).read_instances(testbed)
    shared = sum(testbed.identity(instance) in kept for instance in drawn)
    if shared:
        what = f"{shared} of {len(drawn)} training instances are asked in an evaluation"
        yield Failure(what, where=f"{FILE}, [configuration]", next="leave the generator more to draw from")


def _figures(work: SafePath) -> Iterator[Failure]:
    """Failures of the update: figures that are not finite, or rewards from which nothing can be learnt."""
    for line in jsonlines.read(RoundFiles(work / "run", 0).metrics):
        figures = line.value
        odd = [name for name, value in figures.items() if isinstance(value, float) and not math.isfinite(value)]
        if odd or figures.get("loss", 0) is None:
            yield Failure("the update came to no finite number", where="one update", next="lower training.learning_rate")
        if figures.get("zero_variance") == 1:
            yield Failure(
                f"the rewards do not vary: all answers to each of {HANDFUL} instances earned the same",
                where=f"{FILE}, [configuration], [reward], training.temperature",
                cause="what is compared within a group is all that is learnt from",
                next="draw instances that are neither too easy nor too hard for the base, weigh another reward, or sample warmer",
            )


def answer(request: Mapping[str, Any]) -> list[dict[str, str]]:
    """Run one trial in a child process. Returns its failures."""
    work = SafePath(Path(str(request["work"])))

    def run() -> Tried:
        job = Job(make_family(str(request["family"])), request["values"], tuple(request["code"]))
        failures = trial(job, SafePath(Path(str(request["job"]))), int(request["seed"]), Path(str(request["hidden"])), work)
        return Tried(failures=[told(failure) for failure in failures])

    child = children.start(run, work / "tried.json", float(request["seconds"]))
    try:
        status = _waited(child, WALL * float(request["seconds"]))
    finally:
        children.kill(child)
    if status == 0:
        return folders.read_record(work / "tried.json", Tried).failures
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {os.WEXITSTATUS(status)}"
    cause = f"{how}; it may take {request['seconds']:g} CPU seconds"
    return [told(Failure(f"the trial on {HANDFUL} instances died", where="one update", cause=cause, next="make the job smaller"))]


def _waited(child: int, seconds: float) -> int:
    """Wait for a child, and kill it if it takes too long. Returns its status."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(POLL)
    os.killpg(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def told(failure: Failure) -> dict[str, str]:
    """A failure as texts."""
    return {name: getattr(failure, name) for name in ("what", "where", "cause", "next")}


def main() -> None:
    """Answer requests until standard input ends. What a trial prints goes to standard error."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the asking process was interrupted: end the trial too
    warm()
    for line in sys.stdin.buffer:
        reply = jsonlines.dumps({"failures": answer(jsonlines.loads(line))}).encode() + b"\n"
        try:
            replies.write(reply)
            replies.flush()
        except BrokenPipeError:  # the asking process is gone
            os._exit(0)


if __name__ == "__main__":
    main()
