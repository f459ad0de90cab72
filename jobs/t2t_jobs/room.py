"""Where episodes run: a folder with a queue of jobs and a ledger of all costs, and a pool of workers.

OUT/queue/                  the jobs (`t2t_jobs.queue`)
OUT/costs.jsonl             what every answer and every job cost (`t2t_jobs.ledger`)
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from types import TracebackType
from typing import Any

from t2t_core.errors import BudgetSpent
from t2t_core.plugins import installed
from t2t_core.store.paths import SafePath
from t2t_jobs.episode import RESULT, Charge, Done, Episode, EpisodeResult, Probed, Setup
from t2t_jobs.job import require_ready
from t2t_jobs.ledger import Cost, Ledger, Limits
from t2t_jobs.office import Office
from t2t_jobs.queue import Queue

POLL = 0.1  # seconds between two checks of running jobs


class Room:
    """Opens episodes in a folder, and makes sure that their jobs are run and charged.

    Args:
        folder: the folder OUT; the caller holds its lock.
        pool: the pool of workers, as `t2t plugins` lists them. With "none", somebody else starts workers on OUT/queue.
        budget: a hard limit for everything together.
        secret: what hidden evaluations are drawn from; the same secret gives the same evaluations.
        allow_code: files of code that a job may bring.
    """

    def __init__(
        self,
        folder: SafePath,
        pool: str,
        budget: Limits | None = None,
        secret: int | None = None,
        allow_code: Sequence[str] = (),
    ) -> None:
        self.folder, self.budget, self._allow_code = folder, budget or Limits(), tuple(allow_code)
        self.queue = Queue(folder / "queue", secret)
        self.ledger = Ledger(folder, overall=self.budget)
        self._pool = installed().pools.make(pool) if pool != "none" else None

    def __enter__(self) -> Room:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.stop()

    def begin(self, folder: SafePath, setup: Setup, twin: str) -> Episode:
        """Begin an episode in `folder`, or continue it. Episodes with the same `twin` share a hidden evaluation.
        Raises T2TError if there is something left to do and this machine lacks what the family's jobs need."""
        if not (folder / RESULT).exists():
            require_ready(setup.family)
        office = Office(self.queue, setup.family, twin, setup.seed, self._allow_code)
        setup = replace(setup, allow_code=self._allow_code)
        return Episode(folder, setup, _Charged(office, self, setup.name), self._charge(setup.name))

    def usd_left(self) -> float:
        """What is left of the budget for everything."""
        return inf if self.budget.usd is None else max(0.0, self.budget.usd - self.ledger.total().usd)

    def _charge(self, episode: str) -> Charge:
        def charge(call: str, prompt: int, completion: int, usd: float) -> None:
            self.ledger.charge(call, "call", episode, Cost(tokens_in=prompt, tokens_out=completion, usd=usd))
            if why := self.ledger.left(episode):
                raise BudgetSpent(f"the budget for everything is spent: {why}")

        return charge

    def reserve(self, job: str, episode: str, cpu_seconds: float) -> None:
        """Set aside what a job may take. Raises BudgetSpent if that exceeds the budget."""
        self.ledger.reserve(job, "job", episode, Cost(cpu_seconds=cpu_seconds), job)

    def charge_job(self, job: str, episode: str) -> None:
        """Charge what a finished job took, in place of its reservation."""
        result = self.queue.result(job)
        if result is not None:
            cost = Cost(cpu_seconds=result.cpu_seconds, gpu_seconds=result.gpu_seconds)
            self.ledger.charge(job, "job", episode, cost, job)

    def keep_going(self) -> None:
        """Make sure that the pool has workers while jobs wait."""
        if self._pool is not None:
            self._pool.start(self.queue.folder.path)

    def results(self, episodes: Sequence[Episode]) -> Iterator[tuple[Episode, EpisodeResult]]:
        """Wait for the episodes' jobs, and yield each episode with its result as soon as its job has ended."""
        waiting = list(episodes)
        while waiting:
            for episode in list(waiting):
                result = episode.result()
                if result is not None:
                    waiting.remove(episode)
                    yield episode, result
            if waiting:
                self.keep_going()
                time.sleep(POLL)


class _Charged:
    """An office that charges its jobs: it reserves their limit before they are queued, and charges their cost once they end."""

    def __init__(self, office: Office, room: Room, episode: str) -> None:
        self._office, self._room, self._episode = office, room, episode
        self.baselines = office.baselines

    def probe(self, folder: SafePath) -> Probed:
        return self._office.probe(folder)

    def submit(self, folder: SafePath, job: str) -> None:
        self._room.reserve(job, self._episode, self._office.family.budget.cpu_seconds)
        self._office.submit(folder, job)

    def done(self, job: str) -> Done | None:
        done = self._office.done(job)
        if done is not None:
            self._room.charge_job(job, self._episode)
        return done


def close_all(episodes: Sequence[Any]) -> None:
    """Close the episodes' logs."""
    for episode in episodes:
        with suppress(OSError):
            episode.close()
