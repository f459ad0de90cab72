"""Progress of a long command on standard error: one line, rewritten, on a terminal; otherwise a new line now and then."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

EVERY_ON_TERMINAL = 0.2  # seconds between two lines
EVERY = 10.0
WARN_AFTER, LONG = 10.0, 1800.0  # our choice: after ten seconds, warn if half an hour or more is still to go
_ERASE = "\r\x1b[K"


class Display:
    """Shows lines about progress. As a context manager, it erases the last line at the end.

    Args:
        clock: seconds, from any start.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._terminal = sys.stderr.isatty()
        self._begun = self._last = clock()
        self._shown = self._warned = False

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: Any) -> None:
        self.erase()

    @contextmanager
    def interruptible(self, note: str) -> Iterator[None]:
        """Ctrl-C ends the command with this note and status 130."""
        try:
            yield
        except KeyboardInterrupt:
            self.erase()
            click.echo(f"interrupted; {note}", err=True)
            raise SystemExit(130) from None

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return self._clock() - self._begun

    def begin(self, line: str) -> None:
        """Show this at once on a terminal."""
        if self._terminal:
            self._write(line)

    def show(self, line: Callable[[], str]) -> None:
        """Show this line if the last one is old enough."""
        now = self._clock()
        if now - self._last < (EVERY_ON_TERMINAL if self._terminal else EVERY):
            return
        self._last = now
        self._write(line())

    def warn(self, to_go: float, line: Callable[[], str]) -> None:
        """Show this line once, early, if the seconds to go are many."""
        if self._warned or self.seconds < WARN_AFTER or to_go < LONG:
            return
        self._warned = True
        self.erase()
        click.echo(line(), err=True)

    def erase(self) -> None:
        """Make room for other lines."""
        if self._shown:
            click.echo(_ERASE, err=True, nl=False)
        self._shown = False

    def _write(self, line: str) -> None:
        if self._terminal:
            click.echo(_ERASE + line[: _columns() - 1], err=True, nl=False)  # a line that wraps could not be erased
            self._shown = True
        else:
            click.echo(line, err=True)


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):  # standard error is not a terminal, as in a test
        return 80
