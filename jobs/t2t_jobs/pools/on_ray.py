"""`ray:N`: up to N workers as tasks of a Ray cluster. All its nodes must see the queue's folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from t2t_core import advice
from t2t_core.errors import NotReady
from t2t_core.loop.on_ray import connect
from t2t_core.settings import Reader, integer, number, read_settings
from t2t_jobs.queue import Queue

WHERE = "pool ray"
IDLE = 60


class RayPool:
    """Workers as tasks of Ray.

    Args:
        argument: the most workers; "" is one.
        settings: `address` of the cluster ("local", the default, starts one here), `cpus` (1) and `gpus` (0) of each worker, and
            `idle`, the seconds after which a worker without a job ends.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        readers: dict[str, Reader] = {"workers": integer(1, 1024), "idle": integer(0, 86_400), "address": str}
        readers |= {"cpus": number(0, 1024), "gpus": number(0, 64)}
        read = read_settings({"workers": argument or "1", **(settings or {})}, WHERE, readers)
        self.size, self.idle = read["workers"], read.get("idle", IDLE)
        self._address = read.get("address", "local")
        self._resources = {"num_cpus": read.get("cpus", 1.0), "num_gpus": read.get("gpus", 0.0)}
        self._tasks: list[Any] = []
        self._began = False

    def start(self, queue: Path) -> None:
        """Start workers until there is one for each unfinished job, up to the pool's size."""
        ray, counts = self._ray(), Queue(queue).counts()
        if self._tasks:
            done, self._tasks = ray.wait(self._tasks, num_returns=len(self._tasks), timeout=0)
            ray.get(done)  # raises what a task raised
        workers = min(self.size, counts["queued"] + counts["running"])
        task = ray.remote(max_retries=0, **self._resources)(_work)
        self._tasks += [task.remote(str(queue), self.idle) for _ in range(workers - len(self._tasks))]

    def stop(self) -> None:
        """Stop the workers; their jobs go back once the queue notices that they are gone."""
        if not self._tasks and not self._began:
            return
        ray = self._ray()
        for task in self._tasks:
            with suppress(Exception):  # a task that has finished cannot be cancelled
                ray.cancel(task, force=True)
        self._tasks.clear()
        if self._began:
            ray.shutdown()
            self._began = False

    def _ray(self) -> Any:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError:
            raise NotReady("Ray is not installed", where=WHERE, next=advice.extra("ray")) from None
        if not ray.is_initialized():
            connect(ray, self._address, WHERE)
            self._began = True
        return ray


def _work(queue: str, idle: float) -> int:
    """Run a worker inside a task of Ray. A worker forks, and forking is unsafe in a process with threads, which Ray's may have;
    so the worker gets a process of its own."""
    import subprocess

    from t2t_jobs.pools.local import COMMAND

    done = subprocess.run([*COMMAND, "--queue", queue, "--idle-exit", str(idle)], stdin=subprocess.DEVNULL, check=False)
    return done.returncode
