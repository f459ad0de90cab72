"""Ctrl-C and SIGTERM while a folder is written: they wait until what is being recorded is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """SIGINT and SIGTERM become KeyboardInterrupt, and wait while something is being recorded.

    with Interrupts() as interrupts:
        for response in responses:
            with interrupts.held():
                record(response)      # whole, whatever the user presses
    """

    def __init__(self) -> None:
        self._holding = 0
        self._pending = self._asking = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _handle(self, number: int, frame: object) -> None:
        first = number == signal.SIGTERM and not self._pending
        if self._holding or (self._asking and first):
            self._pending = True
        else:
            raise KeyboardInterrupt

    @contextmanager
    def asking(self) -> Iterator[Callable[[], bool]]:
        """In this block a first SIGTERM only asks: what is handed out tells whether it came, and whoever works there saves what
        it has and raises KeyboardInterrupt. Ctrl-C, and a second SIGTERM, stop it at once. Where the work ended meanwhile,
        `check` stops what comes after it."""
        self._asking = True
        try:
            yield lambda: self._pending
        finally:
            self._asking = False

    def check(self) -> None:
        """KeyboardInterrupt where a stop was asked for."""
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold back Ctrl-C and SIGTERM until the block ends, so that it is done whole."""
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1
            if self._pending and not self._holding:
                self._pending = False
                raise KeyboardInterrupt
