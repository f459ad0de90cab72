"""The contents of a run's JSON files; `round_files` says where those of a round lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from t2t_core.store.schema import Amount, Count

# group -> knob -> number, and perhaps, under "cells", joint cells (`t2t_core.cells.numbers` leaves them out)
Configuration = dict[str, dict[str, float | list[dict[str, float]]]]


@dataclass(frozen=True, kw_only=True)
class Generation:
    """`generation.json`: how the round's instances were drawn. `shared`: by set kept for measuring, what they share with it
    (absent where the testbed, or an earlier version, did not count)."""

    seed: int = 0
    instances: Count
    report: dict[str, Any] = field(default_factory=dict)
    shared: dict[str, dict[str, Count]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Training:
    """`training.json`: the new checkpoint, relative to the run where it lies inside, and what training consumed. `keep_updates`:
    the next round continues from the trainer's saved states."""

    checkpoint: str | None
    samples: Count
    updates: Count
    tokens: Count
    metrics: dict[str, Any] = field(default_factory=dict)
    keep_updates: bool = False


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The outcomes of a group's answers, as far as every testbed reports them."""

    answers: Count
    valid: Count
    optimal: Count


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """`breakdown.json`, as far as the core reads it; testbeds add more. `reader` is the version of the reader of answers."""

    groups: dict[str, Counts]
    reader: int = 1


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a design's calls."""

    calls: Count
    prompt_tokens: Count
    completion_tokens: Count
    usd: Amount


@dataclass(frozen=True, kw_only=True)
class TriedOut:
    """A trial run of a design: the configuration, the share of valid answers, and its cost in updates and tokens."""

    configuration: Configuration
    valid: float | None
    updates: Count
    tokens: Count


@dataclass(frozen=True, kw_only=True)
class TriedAll:
    """`trials.json`, which is there where the designer made trial runs: all of them, in their order."""

    trials: list[TriedOut]


@dataclass(frozen=True, kw_only=True)
class Design:
    """`proposal.json`: the designer's reply word for word (both, if it was asked again), what was read from the last one, what
    was repaired, and its cost.

    `outcome` is "proposed", "unchanged" (Project made of it the configuration in force), "unreadable" (no configuration in the
    reply), "failed" or "timed out".
    """

    designer: str
    outcome: str
    parsed: dict[str, Any] | None
    summary: str | None
    notes: list[str]
    raw: str
    cost: Cost
    calls: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Correction:
    """What Project changed in a proposal, and why."""

    knob: str
    proposed: Any
    used: Any
    reason: str


@dataclass(frozen=True, kw_only=True)
class Projected:
    """`projection.json`: the next configuration and every correction; `note` says why the previous one stays."""

    configuration: Configuration
    changes: list[Correction]
    note: str | None


@dataclass(frozen=True, kw_only=True)
class RateRow:
    """A rate as shares, with its 95 % interval and the share of every column; None if it is not known."""

    value: float | None
    low: float | None
    high: float | None
    columns: Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class ArmRow:
    """An arm on one set: its rates, and the mean of every other metric over the answers that have it."""

    arm: str
    rates: dict[str, RateRow]
    means: dict[str, float | None]


@dataclass(frozen=True, kw_only=True)
class DifferenceRow:
    """The first arm minus the second, paired on the instances, as shares."""

    arms: Annotated[list[str], Meta(min_length=2, max_length=2)]
    metric: str
    value: float
    low: float
    high: float
    instances: Count
    higher: Count
    lower: Count
    p: Amount
    test: str


@dataclass(frozen=True, kw_only=True)
class BenchSet:
    """One evaluation set of a closing bench; `reader` is the version of the reader of answers."""

    name: str
    sha256: str
    instances: Count
    rows: list[ArmRow]
    differences: list[DifferenceRow]
    reader: int = 1


@dataclass(frozen=True, kw_only=True)
class BenchTable:
    """`bench/table.json`."""

    sets: list[BenchSet]
