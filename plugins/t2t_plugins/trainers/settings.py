"""A trainer's settings: a dataclass with defaults, read from a configuration's values or a spec's texts, and checked."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingOrder

T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """What a number may be: `low`..`high`, `low` itself left out where `above`, `high` where `below`."""

    low: float = 0
    high: float = math.inf
    above: bool = False
    below: bool = False

    def __contains__(self, value: float) -> bool:
        low = value > self.low if self.above else value >= self.low
        high = value < self.high if self.below or self.high == math.inf else value <= self.high
        return low and high

    def __str__(self) -> str:
        low = f"above {self.low:g}" if self.above else f"at least {self.low:g}"
        high = "" if self.high == math.inf else f" and {'below' if self.below else 'at most'} {self.high:g}"
        return low + high


AT_LEAST_ONE, POSITIVE = Range(1), Range(0, above=True)
TEMPERATURES = Range(0, 10)


def check_settings(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """A dataclass of settings from a configuration's values or a spec's texts.

    Its class attribute CHOICES has the words that a setting may be, RANGES the numbers (from 0 up, where it has none).

    Raises:
        T2TError: an unknown setting (with the nearest name), a value of another type, out of range, or no choice.
    """
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    values = {}
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            cause = f"did you mean {near[0]}?" if near else "known: " + ", ".join(known)
            raise T2TError(f"there is no setting {ascii(name)[:60]}", where=where, cause=cause)
        if known[name].default is MISSING:
            values[name] = _table(name, value, where)
            continue
        values[name] = _as(known[name].default, name, value, where)
        range_ = getattr(kind, "RANGES", {}).get(name, Range())
        if isinstance(values[name], int | float) and values[name] not in range_:
            raise T2TError(f"{name} must be {range_}, not {ascii(value)[:60]}", where=where)
    for name, choices in getattr(kind, "CHOICES", {}).items():
        if values.get(name, choices[0]) not in choices:
            raise T2TError(f"{name} must be one of {', '.join(choices)}, not {ascii(values[name])[:60]}", where=where)
    return kind(**values)


def _as(default: Any, name: str, value: Any, where: str) -> Any:
    """`value` in the type of `default`, text converted."""
    wanted = type(default)
    try:
        if wanted is bool:
            return {"true": True, "false": False}[str(value).lower()]
        if wanted is int:
            return value if isinstance(value, int) and not isinstance(value, bool) else int(str(value))
        if wanted is float:
            return float(value) if not isinstance(value, bool) else float("nan")  # which lies in no range
        return str(value)
    except (KeyError, ValueError, TypeError):
        raise T2TError(f"{name} must be {_KINDS[wanted]}, not {ascii(value)[:60]}", where=where) from None


def _table(name: str, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise T2TError(f"{name} must be a table, not {ascii(value)[:60]}", where=where, next=f"write it as [training.{name}]")
    return dict(value)


_KINDS: Mapping[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def check_formats(order: TrainingOrder, where: str, **formats: str) -> None:
    """T2TError for a prompt format that the testbed does not have ("" takes the default)."""
    for setting, name in formats.items():
        if name and name not in order.testbed.prompt_formats:
            known = ", ".join(order.testbed.prompt_formats)
            raise T2TError(f"there is no prompt format {ascii(name)[:60]}", where=f"{where}, {setting}", cause=f"known: {known}")


def check_start(order: TrainingOrder, where: str) -> None:
    """T2TError where there is nothing to train."""
    if order.checkpoint is None:
        raise T2TError(
            f"{where} has nothing to train", cause="the run's policy has no checkpoint", next="set checkpoint = FOLDER_OR_ID"
        )
