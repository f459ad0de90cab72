"""What a run prints while it works: a line per stage and, now and then, its progress with rate and remaining time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from t2t_core import guard
from t2t_core.evaluation.answers import Progress
from t2t_core.text import one_line

EVERY = 10.0  # seconds between two lines of progress


class Reporter:
    """Turns events into lines; `say` prints one (default: discard it)."""

    def __init__(self, say: Callable[[str], None] = lambda line: None) -> None:
        self._say = say
        self._last = 0.0
        self._started = 0.0
        self._figures: dict[str, Any] = {}

    def say(self, line: str) -> None:
        """Print a line."""
        with guard.ours():  # a trainer reports from within its own code
            self._say(line)

    def round(self, index: int, rounds: int) -> None:
        """Say which round begins; rounds count from 0."""
        self.say(f"round {index} of 0..{rounds - 1}")

    def stage(self, name: str) -> None:
        """A stage begins: time and figures start anew."""
        self._last = self._started = time.monotonic()
        self._figures = {}

    def figures(self, **figures: Any) -> None:
        """Figures for the line that ends the stage."""
        self._figures.update(figures)

    def done(self, name: str, seconds: float) -> None:
        self.say(f"  {name:<9} {seconds:8.1f} s  {_facts(self._figures)}".rstrip())

    def note(self, note: str) -> None:
        self.say(f"  note: {one_line(note, 1000)}")

    def answers(self, progress: Progress) -> None:
        """The progress of an evaluation, at most every ten seconds."""
        if self._due():
            eta = f", {progress.eta:.0f} s to go" if progress.eta is not None else ""
            self.say(f"    {progress.done}/{progress.total} answers, {progress.rate:.1f}/s{eta}, {progress.errors} errors")

    def tick(self, figures: Mapping[str, Any]) -> None:
        """Figures of a training step, at most every ten seconds: `update` of `updates`, reward, entropy, KL, ... A trainer that
        reports `eta_seconds` knows better than the stage's clock, which includes its loading time."""
        if not self._due():
            return
        done, total = figures.get("update"), figures.get("updates")
        line = _facts({k: v for k, v in figures.items() if k not in ("update", "updates", "eta_seconds", "warnings")})
        if isinstance(done, (int, float)) and done > 0:
            left = figures.get("eta_seconds")
            if left is None and isinstance(total, (int, float)):
                left = (total - done) * (time.monotonic() - self._started) / done
            eta = f", {left:.0f} s to go" if isinstance(left, (int, float)) else ""
            line = f"update {done}{f'/{total}' if total else ''}{eta}  {line}"
        self.say(f"    {line}")

    def _due(self) -> bool:
        now = time.monotonic()
        if now - self._last < EVERY:
            return False
        self._last = now
        return True


def _facts(figures: Mapping[str, Any]) -> str:
    shown = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in figures.items() if v is not None}
    return "  ".join(f"{name} {value}" for name, value in shown.items() if not isinstance(value, (dict, list)))
