"""A queue of jobs in a folder. A job moves `queued/` -> `running/` -> `done/` by atomic renames, so any number of workers, on any
machines that see the folder, can share the queue, and every job gets exactly one result, whatever is killed:

queue/
  secret.json              what the hidden evaluations are drawn from; only workers may read it
  jobs/ID/                 the job's files, as submitted
  queued/ID.json           an order; the worker that renames it has claimed it
  running/ID+CLAIM.json    the order while a worker runs it; the file's time is the worker's last heartbeat
  attempts/ID+CLAIM.json   which worker runs it, and the CPU seconds taken so far
  work/ID/                 the run; if its worker dies, the next one continues it
  done/ID.json             the result, made by a hard link, which succeeds only once
  baselines/, hidden/      scores of untrained bases; instances that no run may train on
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.seeding import key
from t2t_core.store import folders, schema
from t2t_core.store.paths import SafePath
from t2t_core.store.schema import Amount, Count
from t2t_jobs import hidden
from t2t_jobs.family import Family
from t2t_jobs.job import copy_job

ATTEMPTS = 3  # a job whose process has died so many times has failed (our choice)
PATIENCE = 60.0  # seconds without a heartbeat after which a worker on another machine counts as dead
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, kw_only=True)
class Order:
    """A job to run: `queued/ID.json`, `running/ID+CLAIM.json`.

    The hidden evaluation is drawn from `hidden_seed`, everything that the job draws comes from `seed`, and `allow_code` lists the
    files of code that may run.
    """

    id: str
    family: str
    episode: str
    hidden_seed: Count
    seed: Count
    submitted: str
    allow_code: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """A job's result: `done/ID.json`.

    `pre` holds the hidden scores of the untrained bases and `post` that of the trained model, or None if the job died; `failure`
    then says why, and `failure_code` says it in one word. `cpu_seconds` covers all attempts, and so does `gpu_seconds`, the time
    for which GPUs were held. `tokens`, `samples` and `updates` count the training.
    """

    job_id: str
    family: str
    episode: str
    succeeded: bool
    base: str
    pre: Mapping[str, float]
    post: float | None
    failure: str = ""
    failure_code: str = ""
    cpu_seconds: Amount = 0.0
    gpu_seconds: Amount = 0.0
    wall_seconds: Amount = 0.0
    tokens: Count = 0
    samples: Count = 0
    updates: Count = 0
    attempts: Count = 1
    versions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """`attempts/ID+CLAIM.json`: which worker runs a job, and what it has taken so far. `lost`: the job's process died, but its
    worker did not."""

    worker: str
    host: str
    pid: Count
    began: str
    cpu_seconds: Amount = 0.0
    gpu_seconds: Amount = 0.0
    lost: bool = False


@dataclass(frozen=True)
class Claim:
    """A job that a worker has claimed."""

    order: Order
    token: str

    @property
    def name(self) -> str:
        """The name of the claim's files: the job's id and this worker's token."""
        return f"{self.order.id}+{self.token}.json"


@dataclass(frozen=True, kw_only=True)
class Secret:
    """`secret.json`."""

    seed: Count


class Queue:
    """A queue in its folder, which is created if it does not exist.

    Args:
        folder: the queue's folder. It must not contain an agent's workspace, nor lie in one.
        secret: what a new queue draws its hidden evaluations from; the same secret gives the same evaluations. None draws one at
            random.
    """

    def __init__(self, folder: Path | SafePath, secret: int | None = None) -> None:
        self.folder = SafePath.absolute(folder)
        for name in ("queued", "running", "done", "attempts", "jobs", "work"):
            folders.make_folder(self.folder / name)
        made = Secret(seed=secrets.randbits(52) if secret is None else secret)
        folders.write_once(self.folder / "secret.json", folders.document({"seed": made.seed}))
        self._secret = folders.read_record(self.folder / "secret.json", Secret).seed
        if secret is not None and secret != self._secret:
            raise T2TError("the queue was made with another secret", where=str(self.folder), next="give another folder")

    @property
    def baselines(self) -> SafePath:
        """Where the scores of untrained bases are kept."""
        return self.folder / "baselines"

    def hidden_seed(self, episode: str) -> int:
        """What the hidden evaluation of an episode is drawn from."""
        return key(self._secret, "hidden", episode) & hidden.MAX_SEED

    def hidden_instances(self, family: Family, episode: str) -> Path:
        """A file with every instance of an episode's hidden evaluation. The episode's jobs may draw none of them."""
        path = self.folder / "hidden" / f"{family.name}-{self.hidden_seed(episode)}.jsonl"
        if not path.exists():
            hidden.write_instances(family, self.hidden_seed(episode), path)
        return path.path

    def job_folder(self, job_id: str) -> SafePath:
        """The job's files as submitted."""
        return self.folder / "jobs" / job_id

    # --- submitting

    def submit(
        self, job_id: str, job: Path | SafePath, family: str, episode: str, seed: int = 0, allow_code: tuple[str, ...] = ()
    ) -> str:
        """Copy the job's files from its folder and queue it; returns its id. If the id is known, this does nothing: the submitter
        chooses the ids, so that one that died half-way can simply submit again."""
        if not _ID.fullmatch(job_id):
            raise T2TError(f"{ascii(job_id)[:80]} is no id of a job", where=str(self.folder))
        if self._known(job_id):
            return job_id
        if not self.job_folder(job_id).exists():
            copy_job(job, self.job_folder(job_id))
        order = Order(
            id=job_id, family=family, episode=episode, hidden_seed=self.hidden_seed(episode), seed=seed,
            submitted=folders.now(), allow_code=list(allow_code),
        )  # fmt: skip
        folders.write_json(self.folder / "queued" / f"{job_id}.json", order)
        return job_id

    def result(self, job_id: str) -> JobResult | None:
        """The job's result; None until there is one."""
        path = self.folder / "done" / f"{job_id}.json"
        return folders.read_record(path, JobResult) if path.exists() else None

    def state(self, job_id: str) -> str:
        """ "queued", "running", "done" or "unknown"."""
        if (self.folder / "done" / f"{job_id}.json").exists():
            return "done"
        if (self.folder / "queued" / f"{job_id}.json").exists():
            return "queued"
        return "running" if any(order_id == job_id for order_id, _ in self._running()) else "unknown"

    def _known(self, job_id: str) -> bool:
        return self.state(job_id) != "unknown"

    # --- workers

    def claim(self, worker: str) -> Claim | None:
        """Claim the oldest waiting job for this worker; None if no job is waiting."""
        for path in sorted((self.folder / "queued").entries(), key=_age):
            token, job_id = secrets.token_hex(8), path.name.removesuffix(".json")
            if not _ID.fullmatch(job_id) or path.name == job_id:  # a file that is still being written
                continue
            target = self.folder / "running" / f"{job_id}+{token}.json"
            me = Attempt(worker=worker, host=socket.gethostname(), pid=os.getpid(), began=folders.now())
            folders.write_json(self.folder / "attempts" / target.name, me)
            try:
                folders.rename(path, target)
            except T2TError:  # another worker was faster
                folders.remove(self.folder / "attempts" / target.name)
                continue
            if self.result(job_id) is not None:  # it was requeued, but its first worker was alive after all and finished it
                folders.remove(target)
                continue
            try:
                claim = Claim(folders.read_record(target, Order), token)
            except T2TError as error:  # edited by hand; if it went back into the queue, it would fail for ever
                self.finish(_unreadable(job_id, token), _fault(job_id, str(error)))
                continue
            self.heartbeat(claim)
            return claim
        return None

    def heartbeat(self, claim: Claim, cpu_seconds: float = 0.0, gpu_seconds: float = 0.0) -> bool:
        """Show that the worker is alive, and record what the job has taken so far. Returns False if the job is no longer this
        worker's."""
        marker = self.folder / "running" / claim.name
        with contextlib.suppress(OSError):
            os.utime(marker.path)
        if cpu_seconds or gpu_seconds:
            self._note(claim, cpu_seconds, gpu_seconds)
        return marker.exists()

    def _note(self, claim: Claim, cpu_seconds: float, gpu_seconds: float) -> None:
        path = self.folder / "attempts" / claim.name
        told = folders.read_record(path, Attempt)
        taken = {"cpu_seconds": cpu_seconds, "gpu_seconds": gpu_seconds}
        folders.write_json(path, {**vars(told), **{name: round(max(n, getattr(told, name)), 3) for name, n in taken.items()}})

    def finish(self, claim: Claim, result: JobResult) -> bool:
        """Store the result. Returns False and changes nothing if there is one already: the first one counts."""
        first = folders.write_once(self.folder / "done" / f"{claim.order.id}.json", _document(result))
        folders.remove(self.folder / "running" / claim.name)
        return first

    def give_back(self, claim: Claim) -> None:
        """Put the job back into the queue, for another worker."""
        self._requeue(claim.order.id, claim.token)

    def lost(self, claim: Claim) -> None:
        """The job's process died, and nobody knows why: let another worker try."""
        path = self.folder / "attempts" / claim.name
        folders.write_json(path, {**vars(folders.read_record(path, Attempt)), "lost": True})
        self.give_back(claim)

    def attempts(self, job_id: str) -> list[Attempt]:
        """Every attempt at this job so far."""
        attempts = self.folder / "attempts"
        return [folders.read_record(path, Attempt) for path in attempts.entries() if path.name.startswith(f"{job_id}+")]

    def requeue_dead(self, older_than: float = PATIENCE) -> list[str]:
        """Put jobs of dead workers back into the queue; returns their ids. A worker on this machine counts as dead as soon as its
        process is gone, and any worker once it has sent no heartbeat for `older_than` seconds, by the file system's clock."""
        back: list[str] = []
        running = list(self._running())
        now = self._clock() if running else 0.0
        for job_id, token in running:
            marker = self.folder / "running" / f"{job_id}+{token}.json"
            with contextlib.suppress(OSError, T2TError):
                silent = now - os.stat(marker.path).st_mtime
                if silent > older_than or self._gone(job_id, token):
                    self._requeue(job_id, token)
                    back.append(job_id)
        return back

    def _requeue(self, job_id: str, token: str) -> None:
        marker = self.folder / "running" / f"{job_id}+{token}.json"
        if (self.folder / "done" / f"{job_id}.json").exists():
            folders.remove(marker)
        elif marker.exists():
            folders.rename(marker, self.folder / "queued" / f"{job_id}.json")

    def _gone(self, job_id: str, token: str) -> bool:
        told = folders.read_record(self.folder / "attempts" / f"{job_id}+{token}.json", Attempt)
        if told.host != socket.gethostname():
            return False
        try:
            os.kill(told.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False

    def _clock(self) -> float:
        path = self.folder / "clock"
        folders.write_atomic(path, b"")
        return os.stat(path.path).st_mtime

    def _running(self) -> Iterator[tuple[str, str]]:
        for path in (self.folder / "running").entries():
            job_id, plus, token = path.name.removesuffix(".json").partition("+")
            if plus and path.name.endswith(".json"):
                yield job_id, token

    def counts(self) -> dict[str, int]:
        """How many jobs are queued, running and done."""
        names = {name: (self.folder / name).entries() for name in ("queued", "running", "done")}
        return {name: sum(path.name.endswith(".json") for path in entries) for name, entries in names.items()}


def _unreadable(job_id: str, token: str) -> Claim:
    return Claim(Order(id=job_id, family="", episode="", hidden_seed=0, seed=0, submitted=""), token)


def _fault(job_id: str, failure: str) -> JobResult:
    return JobResult(
        job_id=job_id, family="", episode="", succeeded=False, base="", pre={}, post=None, failure=failure, failure_code="order"
    )  # fmt: skip


def _age(path: SafePath) -> tuple[int, str]:
    try:
        return os.stat(path.path).st_mtime_ns, path.name
    except OSError:
        return 0, path.name


def _document(result: JobResult) -> str:
    return folders.document(schema.plain(result))
