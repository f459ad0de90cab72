"""How a number with its interval reads: the same in terminal, Markdown, pages and charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

DASH = "–"


@dataclass(frozen=True)
class Figure:
    """A number with its 95 % interval, in the unit in which it is shown.

    Args:
        value: None is shown as a dash.
        low, high: None if there is no interval.
        digits: decimals of the value; the interval has one less unless `interval_digits` says otherwise.
        signed: a difference, shown with its sign.
        unit: put before ("$") or behind (" %") the value, where the column does not say it.
        also: a second reading of the same figure, where two disagree.
        changed: it differs from the one before it, which is worth seeing.
        link: where a page leads from it; an address of the suite's own making.
        heat: where it lies between its lowest and highest possible value, as a share; a page colours it so.
        note: a few words that a page says under it.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    digits: int = 2
    interval_digits: int | None = None
    signed: bool = False
    unit: str = ""
    also: float | None = None
    changed: bool = False
    link: str = ""
    heat: float | None = None
    note: str = ""

    def text(self, coarser: int = 0) -> str:
        """The value, with `coarser` decimals less than usual."""
        digits = max(0, self.digits - coarser)
        texts = [self._number(value, digits) for value in (self.value, self.also) if value is not None]
        return " / ".join(texts) or DASH

    def interval(self, coarser: int = 0) -> str:
        """`low–high`, of differences `low to high`; empty if there is none."""
        if self.value is None or self.low is None or self.high is None:
            return ""
        digits = self.digits - 1 if self.interval_digits is None else self.interval_digits
        low, high = (self._number(end, max(0, digits - coarser), unit="") for end in (self.low, self.high))
        return f"{low} to {high}" if self.signed else f"{low}{DASH}{high}"

    def full(self) -> str:
        """Value and interval on one line."""
        between = self.interval()
        return f"{self.text()} [{between}]" if between else self.text()

    def _number(self, value: float, digits: int, unit: str | None = None) -> str:
        unit = self.unit if unit is None else unit
        large = abs(value) >= 10_000
        text = f"{value:{'+' if self.signed else ''}{',' if large else ''}.{0 if large else digits}f}"
        return f"{unit}{text}" if unit in ("$",) else f"{text}{unit}"


class _Rate(Protocol):
    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def share(rate: _Rate, digits: int = 1) -> Figure:
    """A share with its interval, in percent."""
    value, low, high = (None if v is None else 100 * v for v in (rate.value, rate.low, rate.high))
    return Figure(value, low, high, digits, digits)


def percent(value: float | None, digits: int = 1) -> Figure:
    """A share without interval, in percent."""
    return Figure(None if value is None else 100 * value, digits=digits)


def points(value: float, low: float | None, high: float | None) -> Figure:
    """A difference of two shares, in percentage points."""
    low, high = (None if v is None else 100 * v for v in (low, high))
    return Figure(100 * value, low, high, digits=1, interval_digits=1, signed=True)
