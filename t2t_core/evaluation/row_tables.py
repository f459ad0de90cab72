"""The figures of one policy's answers as records: `tables.tabulate` makes them of scored answers, a submission claims them and
a leaderboard shows them. What does not apply is left out of a file (`UNSET`)."""

from __future__ import annotations

import math

from msgspec import UNSET, Struct, UnsetType, field

from t2t_core.evaluation.stats import Estimate
from t2t_core.store.schema import Amount, Count

MOST_ERRORS = 0.01  # a row with a larger share of errors is marked incomplete


def rounded(value: float) -> float | None:
    """To four decimals, so that a figure does not depend on the machine; None where it is not known."""
    return None if math.isnan(value) else round(float(value), 4)


class Interval(Struct, frozen=True, kw_only=True):
    """A figure with its 95 % interval; None where it is not known."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, estimate: Estimate, lowest: float = 0.0, highest: float = 100.0) -> Interval:
        """An estimate of a share, where 0 reads `lowest` and 1 `highest`."""
        value, low, high = (
            rounded(lowest + (highest - lowest) * share) for share in (estimate.value, estimate.low, estimate.high)
        )
        return cls(value=value, low=low, high=high)


class MetricFigure(Struct, frozen=True, kw_only=True):
    """One metric over the answers of a column, or of all columns: a rate in percent with its 95 % interval, or a mean, which
    has none.

    `n`: the instances of a rate, the answers of a mean. `unknown`: answers of which nobody can say whether they count; any
    rate would be a guess, and `value` is None.
    """

    value: float | None
    low: float | None | UnsetType = UNSET
    high: float | None | UnsetType = UNSET
    n: Count
    unknown: Count | UnsetType = UNSET

    @property
    def is_rate(self) -> bool:
        """Whether it is a rate; only rates have an interval."""
        return self.low is not UNSET


class AnswerCounts(Struct, frozen=True, kw_only=True):
    """How many answers came and what they took; `cost_usd` is None where no answer says its price."""

    asked: Count
    errors: Count
    truncated: Count
    refused: Count
    tokens: Count
    hidden_tokens: Count
    cost_usd: Amount | None

    @property
    def erring(self) -> bool:
        """Whether more of them are errors than a row that counts may have."""
        return self.errors > MOST_ERRORS * self.asked


class Partial(Struct, frozen=True, kw_only=True):
    """Of a row that was not asked everything yet: how many answers it has, of how many."""

    asked: Count
    of: Count


class WrongInstances(Struct, frozen=True, kw_only=True):
    """How many answers show a fault of the instance itself (a stored optimum that is none), and the first of them."""

    answers: Count
    first: str


class Worth(Struct, frozen=True, kw_only=True):
    """What k of several answers are worth (`evaluation.repeated`), over the instances of a column or of all columns: pass@k and
    the majority's plan by metric, in percent; the best reward of k; and how many different plans an instance got. k is text."""

    passes: dict[str, dict[str, Interval]] = field(name="pass")
    majority: dict[str, Interval]
    best: dict[str, Interval]
    plans: float | None


class RepeatedTable(Struct, frozen=True, kw_only=True):
    """The worth of `answers` answers to each instance, by column and in total."""

    answers: Count
    cells: dict[str, Worth]
    total: Worth


class RowTable(Struct, frozen=True, kw_only=True):
    """One policy in one table: its figures by column and metric, the totals, and what became of the answers.

    `failures`: answers by the first check that they failed. `incomplete`: too many answers are errors, or questions were not
    asked yet (`partial` says how many were). `repeated` is there where an instance has several answers.
    """

    cells: dict[str, dict[str, MetricFigure]]
    total: dict[str, MetricFigure]
    answers: AnswerCounts
    failures: dict[str, Count]
    incomplete: bool
    partial: Partial | UnsetType = UNSET
    wrong_instances: WrongInstances | UnsetType = UNSET
    repeated: RepeatedTable | UnsetType = UNSET
