"""Pairs of brief and proposal that teach the toy policy the form of a design (our choice).

A teacher is a rule with noise on every number. The warm-up's teacher, `proposal`, is the designer `rule` with its defaults, which
reads only rates: the policy learns the form and a tendency, not a diagnosis. `by_failures` is `rule:failures`, which reads what
failed. The texts are those of the compact briefs (a test compares them with the context modules).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2t_core.seeding import Stream

from .model import CHECKS

SIZES = range(3, 11)
FLOOR, STEP, HIGH, LOW = 0.1, 5, 80, 20  # the rule's defaults, the last three in percent
REMEDY = 20  # how far `rule:failures` moves a knob, in percent: four moderate steps
WAIT_HELPS, FEWER_HOLES_HELP = ("conflict_free",), ("hole_free", "legal_move")  # `Testbed.remedies` of the lakes
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


def brief(rows: list[Row], earlier: Sequence[list[Row]] = (), first: int = 0) -> str:
    """The compact brief of the context F, or of F,H if it shows `earlier` rounds, numbered from `first`."""
    history = [line for at, old in enumerate(earlier, first) for line in (str(at), *_configuration(old), *_failures(old))]
    return "\n".join(["design", *_configuration(rows), *_failures(rows), *["history"] * bool(history), *history, "answer"])


def _configuration(rows: list[Row]) -> list[str]:
    return ["config", *(f"{r.size} {r.data} {r.hole} {r.wait}" for r in rows)]


def _failures(rows: list[Row]) -> list[str]:
    return ["failures", *(f"{r.size} {r.valid} {r.optimal} {r.failure}" for r in rows)]


def proposal(rows: list[Row], stream: Stream | None = None) -> str:
    """What `rule` would propose, in the compact form; without a stream there is no noise."""
    shares = _shares(rows, stream)
    return _written(rows, shares, [(_by_rate(row, stream), _by_rate(row, stream)) for row in rows])


def by_failures(rows: list[Row], stream: Stream | None = None) -> str:
    """What `rule:failures` would propose, in the compact form; without a stream there is no noise."""
    shares = _shares(rows, stream)
    moves = []
    for row in rows:
        hole = -REMEDY if row.failure in FEWER_HOLES_HELP else 0
        wait = REMEDY if row.failure in WAIT_HELPS else 0
        moves.append((_shaken(hole, REMEDY, stream), _shaken(wait, REMEDY, stream)))
    return _written(rows, shares, moves)


def _by_rate(row: Row, stream: Stream | None) -> int:
    return _shaken(STEP if row.valid >= HIGH else -STEP if row.valid < LOW else 0, STEP, stream)


def _shaken(move: int, step: int, stream: Stream | None) -> int:
    """The move, or with probability NOISE any of the three moves."""
    return (-step, 0, step)[stream.below(3)] if stream is not None and stream.uniform() < NOISE else move


def _shares(rows: Sequence[Row], stream: Stream | None) -> list[float]:
    """Shares that add up to 1: most for sizes where about half succeeds, and some for every size."""
    weights = [FLOOR + r.valid / 100 * (1 - r.valid / 100) for r in rows]
    if stream is not None:
        weights = [w * (1 + NOISE * (2 * stream.uniform() - 1)) for w in weights]
    return [weight / sum(weights) for weight in weights]


def _written(rows: Sequence[Row], shares: Sequence[float], moves: Sequence[tuple[int, int]]) -> str:
    """The proposal's text: the shares, and every row's hole and wait ratio after its move, within their bounds."""
    entries = []
    for row, share, (hole, wait) in zip(rows, shares, moves, strict=True):
        numbers = _clip(100 * share), _clip(row.hole + hole, 50), _clip(row.wait + wait)
        entries.append('"{}":[ {} , {} , {} ]'.format(row.size, *numbers))
    return "{ " + " , ".join(entries) + " }"


def _clip(value: float, limit: int = 100) -> int:
    return max(0, min(limit, int(value + 0.5)))


Teacher = Callable[[list[Row], Stream | None], str]
TEACHERS: dict[str, Teacher] = {"rates": proposal, "failures": by_failures}
