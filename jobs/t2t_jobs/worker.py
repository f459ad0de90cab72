"""A worker: a warm process that takes jobs from a queue, one after another, for as long as there are any.

Importing what training needs is slow, so a worker does it once and forks a child for each job. The child has its own memory,
files and processes; the kernel limits and counts its CPU time, whatever the child does; and if the job dies, the worker survives.
The worker itself only supervises: it sends heartbeats, kills a child that runs too long or fills the disk, and stores the result.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from t2t_core.errors import NotReady, T2TError
from t2t_core.run.gpus import gpus_here
from t2t_core.store import folders, locks, paths
from t2t_core.store.interrupts import Interrupts
from t2t_core.store.paths import SafePath
from t2t_jobs import children
from t2t_jobs.hidden import make_family
from t2t_jobs.job import require_ready
from t2t_jobs.queue import ATTEMPTS, Claim, JobResult, Queue
from t2t_jobs.running import BEGUN, Outcome, free_folder, run_job

WARM = (
    ("transformers", "Qwen3ForCausalLM"),
    ("transformers", "AutoModelForCausalLM"),
    ("transformers", "AutoTokenizer"),
    ("t2t_plugins.trainers.grpo", "Grpo"),
    ("trl", "SFTTrainer"),
)
OUTCOME = "outcome.json"
POLL = 0.05  # seconds between two checks of a child
BEAT = 2.0  # seconds between two heartbeats
WALL = 15.0  # wall-clock seconds allowed per CPU second of the budget, since other jobs run beside this one (our choice)
MAX_DISK = 1 << 30  # bytes in a job's folder (our choice)
MOST_WORKERS = 25  # once so many workers have died while they ran a job, the job itself gets the blame (our choice)


@dataclass(frozen=True)
class Ending:
    """How a child ended: its outcome, or why it has none. `lost`: the process died, and the job may not be to blame."""

    outcome: Outcome | None
    cpu_seconds: float
    failure: str = ""
    code: str = ""
    lost: bool = False


def warm() -> None:
    """Import what most jobs need, once: the network of the toy policies and what trains it. transformers and TRL import their
    parts lazily; if each child did so again, that would take most of a small job's time."""
    for module, name in WARM:
        with suppress(ImportError):
            getattr(import_module(module), name)
    with suppress(ImportError):
        import torch

        torch.set_num_threads(1)  # a pool of threads does not survive a fork
    gc.collect()
    gc.freeze()  # so that no child's garbage collector scans these objects again


def work(
    queue: Queue,
    idle_seconds: float = 0.0,
    say: Callable[[str], None] = lambda line: None,
    name: str = "",
    keep: bool = False,
) -> int:
    """Run jobs until none has come for `idle_seconds`. Returns how many results this worker stored. With `keep`, the jobs' runs
    stay in `work/`.

    On SIGTERM or Ctrl-C, the job in hand goes back into the queue.
    """
    name = name or f"{socket.gethostname()}-{os.getpid()}"
    warm()
    done, idle_since, gpus = 0, time.monotonic(), gpus_held()
    with Interrupts() as interrupts:
        while True:
            interrupts.check()
            for job_id in queue.requeue_dead():
                say(f"{job_id}: its worker died; it goes back into the queue")
            claim = queue.claim(name)
            if claim is None:
                if time.monotonic() - idle_since >= idle_seconds:
                    return done
                time.sleep(min(0.5, max(idle_seconds, POLL)))
                continue
            _require_ready(queue, claim)
            result = attend(queue, claim, interrupts.check, gpus, keep)
            if result is not None:
                done += 1
                say(f"{claim.order.id}: {_in_short(result)}, {result.cpu_seconds:.1f} CPU seconds")
            idle_since = time.monotonic()


def gpus_held() -> int:
    """How many GPUs this worker holds for its job, whether the job uses them or not."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return sum(bool(piece.strip()) and piece.strip() != "-1" for piece in named.split(","))
    here = gpus_here()
    return here.count if here else 0


def attend(
    queue: Queue, claim: Claim, check: Callable[[], None] = lambda: None, gpus: int = 0, keep: bool = False
) -> JobResult | None:
    """Run one job. Returns None if the job is no longer ours, or goes back into the queue."""
    began, work_folder = time.monotonic(), free_folder(queue, claim.order, claim.token)
    try:
        allowed = _allowed(claim)
    except T2TError as error:
        result = _result(queue, claim, Ending(None, 0.0, str(error), "worker"), work_folder, 0.0)
        return result if queue.finish(claim, result) else None
    folders.make_folder(work_folder)
    folders.remove(work_folder / OUTCOME)  # left by an attempt whose worker died before it stored the result
    child = children.start(lambda: _outcome(queue, claim, work_folder), work_folder / OUTCOME, allowed)
    try:
        ending = _watched(queue, claim, work_folder, child, allowed, check, gpus)
    except BaseException:
        children.kill(child)
        queue.give_back(claim)
        raise
    if ending is None:
        return None
    queue.heartbeat(claim, ending.cpu_seconds, gpus * (time.monotonic() - began))
    attempts = queue.attempts(claim.order.id)
    if ending.lost and sum(attempt.lost for attempt in attempts) + 1 < ATTEMPTS and len(attempts) < MOST_WORKERS:
        queue.lost(claim)
        return None
    result = _result(queue, claim, ending, work_folder, time.monotonic() - began)
    if not queue.finish(claim, result):
        return None
    if not (keep and result.succeeded):
        for folder in {work_folder.name: work_folder, claim.order.id: queue.folder / "work" / claim.order.id}.values():
            folders.remove_folder(folder)
    return result


def _require_ready(queue: Queue, claim: Claim) -> None:
    """Put the job back and raise NotReady if this machine lacks something that the job needs. The job is not to blame, and a
    worker elsewhere may have it. Whatever else is wrong becomes the job's result."""
    try:
        require_ready(make_family(claim.order.family))
    except NotReady:
        queue.give_back(claim)
        raise
    except T2TError:
        return


def _allowed(claim: Claim) -> float:
    return make_family(claim.order.family).budget.cpu_seconds


def _in_short(result: JobResult) -> str:
    if result.post is None:
        return result.failure_code
    return f"hidden score {result.post:.3f}, best untrained base {max(result.pre.values()):.3f}"


def _result(queue: Queue, claim: Claim, ending: Ending, work_folder: SafePath, seconds: float) -> JobResult:
    outcome = ending.outcome or replace(_begun(work_folder), failure=ending.failure, failure_code=ending.code)
    attempts = queue.attempts(claim.order.id)
    facts: dict[str, Any] = dict(vars(outcome))
    return JobResult(
        job_id=claim.order.id,
        family=claim.order.family,
        episode=claim.order.episode,
        succeeded=outcome.post is not None,
        cpu_seconds=round(sum(attempt.cpu_seconds for attempt in attempts), 3),
        gpu_seconds=round(sum(attempt.gpu_seconds for attempt in attempts), 3),
        wall_seconds=round(seconds, 3),
        attempts=len(attempts),
        versions=folders.environment(),
        **facts,
    )


def _begun(work_folder: SafePath) -> Outcome:
    """What was known of a job that died: its base and the untrained bases' scores, written before training began."""
    path = work_folder / BEGUN
    return folders.read_record(path, Outcome) if path.exists() else Outcome(base="", pre={})


# --- the child


def _outcome(queue: Queue, claim: Claim, work_folder: SafePath) -> Outcome:
    try:
        with locks.locked(work_folder):  # tells whoever takes the job next whether this process is still alive
            return run_job(queue, claim.order, work_folder)
    except T2TError as error:
        return Outcome(base="", pre={}, failure=str(error)[:2000], failure_code="worker")
    except Exception as error:  # noqa: BLE001 - whatever went wrong, the job gets a result that says so
        trace = "".join(traceback.format_exception(error))[-2000:]
        return Outcome(base="", pre={}, failure=trace, failure_code="fault")


# --- the supervisor


def _watched(
    queue: Queue, claim: Claim, work_folder: SafePath, child: int, allowed: float, check: Callable[[], None], gpus: int
) -> Ending | None:
    """How the child ended; None if the job was taken from us in the meantime."""
    began = beat = time.monotonic()
    stopped: tuple[str, str] | None = None
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            return _ending(status, usage, work_folder, stopped, allowed)
        now = time.monotonic()
        if now - beat > BEAT:
            beat = now
            if not queue.heartbeat(claim, _cpu_seconds(child), gpus * (now - began)):
                children.kill(child)
                return None
            if now - began > WALL * allowed:
                stopped = (f"it took more than {WALL * allowed:.0f} seconds", "time")
            elif _size(work_folder) > MAX_DISK:
                stopped = (f"it wrote more than {MAX_DISK >> 20} MiB", "disk")
            if stopped:
                with suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)  # wait4 above collects its status
        check()
        time.sleep(POLL)


def _ending(status: int, usage: Any, work_folder: SafePath, stopped: tuple[str, str] | None, allowed: float) -> Ending:
    seconds = round(usage.ru_utime + usage.ru_stime, 3)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        outcome = folders.read_record(work_folder / OUTCOME, Outcome)
        return Ending(outcome, seconds)
    if stopped:
        return Ending(None, seconds, f"the job was ended: {stopped[0]}", stopped[1])
    if seconds >= allowed:
        return Ending(None, seconds, f"the job took more than its {allowed:g} CPU seconds", "budget")
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {os.WEXITSTATUS(status)}"
    return Ending(None, seconds, f"the job's process died ({how}) {ATTEMPTS} times", "died", lost=True)


def _cpu_seconds(child: int) -> float:
    """CPU seconds that a process has taken so far, on systems with /proc (Linux). Elsewhere 0: they are known once it ends."""
    try:
        text = folders.read_text(Path(f"/proc/{child}/stat"))
    except T2TError:
        return 0.0
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _size(folder: SafePath) -> int:
    """Bytes below a folder. Files that vanish while we count are left out."""
    with suppress(OSError, T2TError):
        return sum(status.st_size for _, status in paths.walk(folder))
    return 0
