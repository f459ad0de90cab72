"""A separate process for work that may use too much: a fork that the kernel limits, and that ends when its parent does."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from t2t_core.store import folders
from t2t_core.store.paths import SafePath

MAX_FILE = 1 << 30  # bytes of one file (our choice)


def start(function: Callable[[], Any], outcome: SafePath, cpu_seconds: float) -> int:
    """Fork. The child writes the record that `function` returns to `outcome`, as JSON, and ends. Returns the child's process id,
    which is also the id of its process group.

    If `function` raises, the child ends with status 1. If it takes more than `cpu_seconds`, the kernel kills it.
    """
    parent = os.getpid()
    child = os.fork()
    if child:
        with suppress(OSError):
            os.setpgid(child, child)
        return child
    try:
        os.setpgid(0, 0)
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        limit(cpu_seconds)
        folders.write_json(outcome, function())
        os._exit(0)
    finally:
        os._exit(1)


def limit(cpu_seconds: float) -> None:
    """Limit this process, and each process that it starts, separately."""
    seconds = int(cpu_seconds) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = seconds + 1 if hard == resource.RLIM_INFINITY else min(seconds + 1, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (min(seconds, most), most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with(parent: int) -> None:
    """Kill this process group once the parent is gone, since another worker will take over the same job."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os.killpg(0, signal.SIGKILL)


def kill(child: int) -> None:
    """End a child and everything in its group, and wait for it."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)
