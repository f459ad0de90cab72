"""How much better an episode is than the others of its group: GRPO's advantage (Shao et al., 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean

_EPSILON = 1e-6


def advantages(rewards: Sequence[float]) -> list[float]:
    """Each reward minus the group's mean, divided by the group's standard deviation; zeros if all rewards are equal."""
    mean = fmean(rewards)
    spread = sqrt(fmean([(reward - mean) ** 2 for reward in rewards]))
    return [(reward - mean) / (spread + _EPSILON) if spread > _EPSILON else 0.0 for reward in rewards]
