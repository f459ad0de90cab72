"""A stand-in for one GPU that records who has it. A holder takes it in a process of its own, as an engine does, and releases it
some time after it was told to. Every take and release is a line of the log."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

SLOW = 0.2  # seconds from being told until the memory is free


def _hold(name: str, folder: str, told: Any, ready: Any) -> None:
    def log(what: str) -> None:
        with open(Path(folder) / "log.txt", "a") as file:
            file.write(f"{what} {name}\n")

    with open(Path(folder) / "gpu", "a") as gpu:
        try:
            fcntl.flock(gpu, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log("out-of-memory")
            ready.send(False)
            return
        log("start")
        ready.send(True)
        ready.close()
        try:
            told.recv()
            time.sleep(SLOW)
        except EOFError:  # the one it worked for is gone
            pass
        log("stop")


class Holder:
    """Has the GPU until it is told to release it; RuntimeError if another holder has it."""

    def __init__(self, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        told, self._tell = context.Pipe(duplex=False)
        answer, ready = context.Pipe(duplex=False)
        self.process = context.Process(target=_hold, args=(name, os.environ["T2T_TEST_GPU"], told, ready))
        self.process.start()
        told.close()
        ready.close()
        if not answer.recv():
            raise RuntimeError("CUDA out of memory")

    def tell(self) -> None:
        """Begin to release the GPU; returns at once."""
        self._tell.send(None)
