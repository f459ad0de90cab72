"""A pool: where the workers of a queue run."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from t2t_core.settings import no_argument, read_settings


class Submitted:
    """One worker, started as a command. A pool for a scheduler would submit `t2t worker` to it, and ask it which workers live."""

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        no_argument(argument, "pool submitted")
        read_settings(settings, "pool submitted", {})
        self._worker: subprocess.Popen[bytes] | None = None

    def start(self, queue: Path) -> None:
        if self._worker is None or self._worker.poll() is not None:  # this method is called again and again
            command = ["t2t", "worker", "--queue", str(queue), "--idle-exit", "10"]
            self._worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        if self._worker is not None:
            self._worker.terminate()  # its job goes back into the queue
            self._worker.wait()
