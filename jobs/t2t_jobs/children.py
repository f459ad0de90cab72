"""A process of its own for what may take too much: a fork, with bounds of the kernel, that ends with its parent."""

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
    """Fork; the child writes what `function` returns, a record, as JSON to `outcome` and ends. Its process id, which is that of a
    process group of its own.

    A child that raises ends with status 1. One that takes more than `cpu_seconds` is killed by the kernel.
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
    """Bound this process and those it starts, each for itself."""
    seconds = int(cpu_seconds) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = seconds + 1 if hard == resource.RLIM_INFINITY else min(seconds + 1, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (min(seconds, most), most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with(parent: int) -> None:
    """What goes on after its parent is gone would run beside whoever takes its place."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os.killpg(0, signal.SIGKILL)


def kill(child: int) -> None:
    """End a child and everything in its group, and wait for it."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)
