"""Shares of a whole: which sums count as 1, how shares divide a number of instances, and how random ones are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import floor

from t2t_core.errors import T2TError
from t2t_core.seeding import Stream

SUM_TOLERANCE = 1e-6  # a configuration's shares must sum to 1 this closely (our choice)
# Project leaves shares that sum to 1 this closely as they are. It is stricter than the check, so that they pass it.
EXACT_SUM = SUM_TOLERANCE / 10


def is_exact(total: float) -> bool:
    """Whether shares with this sum stay as they are, because they differ from 1 by rounding alone."""
    return abs(total - 1) <= EXACT_SUM


def check_sum(shares: Iterable[float], knob: str, meaning: str) -> None:
    """Check that a configuration's shares sum to 1, within `SUM_TOLERANCE`.

    Args:
        shares: one for each group.
        knob: the name of the share ("group_share").
        meaning: what it is ("each group's share of the instances"), for the message.

    Raises:
        T2TError: they do not.
    """
    total = sum(shares)
    if abs(total - 1) > SUM_TOLERANCE:
        raise T2TError(
            f"the {in_words(knob)} sum to {total:.6g}, not 1",
            where=knob,
            cause=f"{knob} is {meaning}",
            next="scale them so that they sum to 1",
        )


def in_words(knob: str) -> str:
    """Several shares of this knob, as text: "group_share" -> "group shares"."""
    return knob.replace("_", " ") + "s"


def apportion(weights: Sequence[float], count: int) -> list[int]:
    """Divide `count` in proportion to the weights by largest remainder; ties (within 1e-9) go to the earlier one (our choice)."""
    total = sum(weights)
    return round_quotas([weight / total * count for weight in weights], count)


def round_quotas(quotas: Sequence[float], total: int) -> list[int]:
    """Round quotas to whole numbers that sum to `total`: those with the largest remainders are rounded up."""
    counts = [floor(quota + 1e-9) for quota in quotas]
    by_remainder = sorted(range(len(quotas)), key=lambda i: (-round(quotas[i] - counts[i], 9), i))
    for i in by_remainder[: total - sum(counts)]:
        counts[i] += 1
    return counts


def random_shares(stream: Stream, number: int) -> list[float]:
    """Shares from a flat Dirichlet distribution (the spacings of uniform cuts), to four places."""
    cuts = sorted(round(stream.uniform(), 4) for _ in range(number - 1))
    return [round(high - low, 4) for low, high in pairwise([0.0, *cuts, 1.0])]
