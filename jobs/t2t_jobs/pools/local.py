"""`local:N`: up to N workers on this machine. They are started while jobs wait, and exit once none has come for a while."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from t2t_core.errors import T2TError
from t2t_core.settings import integer, read_settings
from t2t_core.store import folders
from t2t_jobs.queue import Queue

WHERE = "pool local"
IDLE = 60  # seconds (our choice)
BROKEN = 3  # after so many workers in a row have failed, the pool gives up (our choice)
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}  # a default, since several workers share the machine
GRACE = 20.0  # seconds that a worker has to put its job back into the queue
COMMAND = (sys.executable, "-m", "t2t_core", "worker")


@dataclass(frozen=True)
class _Begun:
    process: subprocess.Popen[bytes]
    errors: BinaryIO
    at: float


class LocalPool:
    """Workers as processes of this machine.

    Args:
        argument: the most workers; "" is one.
        settings: `idle`, the seconds after which a worker without a job ends.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        read = read_settings({"workers": argument or "1", **(settings or {})}, WHERE,
                             {"workers": integer(1, 1024), "idle": integer(0, 86_400)})  # fmt: skip
        self.size, self.idle = read["workers"], read.get("idle", IDLE)
        self._workers: list[_Begun] = []
        self._broken = 0

    def start(self, queue: Path) -> None:
        """Start workers until there is one for each unfinished job, up to the pool's size. Raises T2TError if workers keep
        failing."""
        counts = Queue(queue).counts()
        self._look()
        workers = min(self.size, counts["queued"] + counts["running"])
        for _ in range(workers - len(self._workers)):
            errors = folders.scratch()
            command = [*COMMAND, "--queue", str(queue), "--idle-exit", str(self.idle)]
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=ENVIRONMENT | dict(os.environ)
            )
            self._workers.append(_Begun(process, errors, time.monotonic()))

    def _look(self) -> None:
        """Drop workers that have ended. Raises T2TError if several in a row failed."""
        for begun in [worker for worker in self._workers if worker.process.poll() is not None]:
            self._workers.remove(begun)
            self._broken = self._broken + 1 if begun.process.returncode > 0 else 0
            said = _end_of(begun.errors)
            if self._broken >= BROKEN:
                cause = f"the last one said: {said}" if said else f"it ended with status {begun.process.returncode}"
                raise T2TError(f"{BROKEN} workers failed one after another", where=WHERE, cause=cause,
                               next="t2t worker --queue FOLDER shows its full output")  # fmt: skip

    def stop(self) -> None:
        """Stop the workers; their jobs go back into the queue."""
        for begun in self._workers:
            begun.process.terminate()
        until = time.monotonic() + GRACE
        for begun in self._workers:
            with suppress(subprocess.TimeoutExpired):
                begun.process.wait(max(0.0, until - time.monotonic()))
            begun.process.kill()
            begun.process.wait()
            begun.errors.close()
        self._workers.clear()


def _end_of(errors: BinaryIO) -> str:
    with errors:
        size = errors.seek(0, 2)
        errors.seek(max(0, size - 500))
        return errors.read().decode("utf-8", "replace").strip()
