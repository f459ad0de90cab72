"""Pairs of brief and proposal that teach the toy policy the form of a design (our choice).

The teacher is the rule of the designer `rule` at its defaults, with noise on every number: the policy learns the form and a
tendency, not a diagnosis. The texts are those of the compact briefs (a test holds them against the context modules).
"""

from __future__ import annotations

from dataclasses import dataclass

from t2t_core.seeding import Stream

from .model import CHECKS

SIZES = range(3, 11)
FLOOR, STEP, HIGH, LOW = 0.1, 5, 80, 20  # the rule's defaults, the last three in percent
NOISE = 0.1  # each weight is scaled by 1 +- this; a knob moves when it should not, or stays, with this probability


@dataclass(frozen=True)
class Row:
    """One map size: its knobs and the validation's figures, all in whole percent; `failure` is the most frequent check."""

    size: int
    data: int
    hole: int
    wait: int
    valid: int
    optimal: int
    failure: str


def random_rows(stream: Stream) -> list[Row]:
    """A configuration as the generator may have it, and a validation that mostly gets worse with size."""
    weights = [stream.uniform() ** 2 for _ in SIZES]
    level, slope = 20 + 80 * stream.uniform(), 14 * stream.uniform() - 2
    rows = []
    for size, weight in zip(SIZES, weights, strict=True):
        valid = _clip(level - slope * (size - 3) + 16 * (stream.uniform() - 0.5))
        optimal = min(valid, _clip(valid * (0.7 + 0.35 * stream.uniform())))
        failure = "none" if valid == 100 else stream.choice(CHECKS[4:])
        data = _clip(100 * weight / sum(weights))
        rows.append(Row(size, data, stream.below(51), stream.below(101), valid, optimal, failure))
    return rows


def brief(rows: list[Row]) -> str:
    """The compact brief of the context F."""
    config = [f"{r.size} {r.data} {r.hole} {r.wait}" for r in rows]
    failures = [f"{r.size} {r.valid} {r.optimal} {r.failure}" for r in rows]
    return "\n".join(["design", "config", *config, "failures", *failures, "answer"])


def proposal(rows: list[Row], stream: Stream | None = None) -> str:
    """The teacher's compact proposal; without a stream it makes no noise."""
    weights = [FLOOR + r.valid / 100 * (1 - r.valid / 100) for r in rows]
    if stream is not None:
        weights = [w * (1 + NOISE * (2 * stream.uniform() - 1)) for w in weights]
    entries = []
    for row, weight in zip(rows, weights, strict=True):
        data = _clip(100 * weight / sum(weights))
        hole, wait = (_moved(value, row.valid, limit, stream) for value, limit in ((row.hole, 50), (row.wait, 100)))
        entries.append(f'"{row.size}":[ {data} , {hole} , {wait} ]')
    return "{ " + " , ".join(entries) + " }"


def _moved(value: int, valid: int, limit: int, stream: Stream | None) -> int:
    move = STEP if valid >= HIGH else -STEP if valid < LOW else 0
    if stream is not None and stream.uniform() < NOISE:
        move = (-STEP, 0, STEP)[stream.below(3)]
    return max(0, min(limit, value + move))


def _clip(value: float) -> int:
    return max(0, min(100, int(value + 0.5)))
