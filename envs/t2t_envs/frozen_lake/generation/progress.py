"""The progress of an order of instances, and the limit at which it is given up. The limit counts steps of work, so the result
does not depend on the machine; seconds are only reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import isinf, sqrt

from t2t_core.errors import T2TError

DEFAULT_MAX_WORK = 10**12  # our choice: steps of about ten nanoseconds, so hours on one core


@dataclass(frozen=True)
class Progress:
    """How far `generate` is.

    Args:
        size, holes: the stratum that is being filled.
        found, ordered: instances made and asked for, of the whole order.
        drawn, undecided: candidates tried so far, and how many of them were left out because a node limit ended the search.
        seconds: since the order began.
    """

    size: int
    holes: int
    kept: int
    ordered: int
    drawn: int
    undecided: int
    seconds: float

    @property
    def rate(self) -> float:
        """Instances per second so far."""
        return self.kept / self.seconds if self.seconds > 0 else 0.0

    @property
    def to_go(self) -> float:
        """Seconds until the order is filled if the rest comes at the rate so far; infinite before the first instance."""
        return (self.ordered - self.kept) / self.rate if self.kept and self.seconds > 0 else float("inf")


Tell = Callable[[Progress], None]


class Watcher:
    """Follows one order through its strata: adds up the work so far and reports progress.

    Args:
        ordered: instances asked for.
        max_work: steps of work that may be spent on drawing.
        tell: called about ten times a second.
    """

    def __init__(self, ordered: int, max_work: int = DEFAULT_MAX_WORK, tell: Tell | None = None) -> None:
        self.ordered, self.max_work, self._tell = ordered, max_work, tell
        self.work = self.kept = self.drawn = self.undecided = 0
        self._begun = time.monotonic()

    def of_stratum(self, size: int, holes: int) -> Callable[[int, int, int, int], None] | None:
        """The callback for `sampling.draw_stratum` while it draws from a stratum; None if nobody wants progress."""
        if self._tell is None:
            return None

        def seen(drawn: int, wait_free: int, wait: int, undecided: int) -> None:
            self._say(size, holes, wait_free + wait, drawn, undecided)

        return seen

    def filled(self, size: int, holes: int, kept: int, drawn: int, undecided: int, work: int) -> None:
        """Record that a stratum is filled."""
        self.kept += kept
        self.drawn += drawn
        self.undecided += undecided
        self.work += work
        self._say(size, holes, 0, 0, 0)

    def _say(self, size: int, holes: int, kept: int, drawn: int, undecided: int) -> None:
        if self._tell is None:
            return
        seconds = time.monotonic() - self._begun
        total = (self.kept + kept, self.ordered, self.drawn + drawn, self.undecided + undecided)
        self._tell(Progress(size, holes, *total, seconds))

    @property
    def left(self) -> int:
        """Steps of work that are left, at least 1."""
        return max(1, self.max_work - self.work)


def too_slow(kept: dict[bool, int], ordered: dict[bool, int], drawn: int, undecided: int, seconds: float) -> T2TError:
    """The error of a stratum that would take more work than is allowed; `found` and `ordered` are per kind (True: wait)."""
    wait = max(ordered, key=lambda kind: ordered[kind] - kept[kind])
    likely = max(kept[wait] + 2 * sqrt(kept[wait]) + 3, 1)  # the core's own bound, see Sampling::is_hopeless
    hours = seconds * ordered[wait] / likely
    kind = "wait" if wait else "wait-free"
    return T2TError(
        "the order can't be filled in reasonable time",
        cause=f"{kept[wait]} of {ordered[wait]} {kind} instances among {drawn} candidates in {duration(seconds)}"
        + (f", {undecided} candidates undecided" if undecided else "")
        + f": the order would take at least {duration(hours)} at this rate",
        next="ask for fewer agents, fewer instances or another hole or wait ratio; lower max_nodes, so that hopeless candidates "
        "are left sooner; or raise max_work",
    )


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 hours`, `8 days`."""
    if isinf(seconds):
        return "for ever"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} hours" if seconds < 72 * 3600 else f"{seconds / 86400:.0f} days"
