"""The training reward: accuracy. Length and adaptive weights are in t2t_core.length_reward (paper section on the reward)."""

from __future__ import annotations

from t2t_core.length_reward import AdaptiveWeights, length_reward, share_short, total_reward
from t2t_core.records import Verdict

from .instance import Instance

__all__ = ["AdaptiveWeights", "accuracy_reward", "length_reward", "reward", "share_short", "total_reward"]

FLOOR = 0.3  # of a valid answer, reached at a gap of twice the optimum
UNKNOWN = 0.5  # of a valid answer if the stored optimum cannot be used


def accuracy_reward(cost: int | None, optimum: object) -> float:
    """0 unless valid; 1.0 at the optimum, falling linearly to 0.3 at a gap of twice the optimum, 0.3 beyond (paper).

    Args:
        cost: the answer's cost in steps, None if it is not valid.
        optimum: the stored optimum in steps. A missing or unreadable one gives 0.5 (paper). So does one above the cost of a
            valid answer, because it cannot be the optimum (our choice). Optimum 0: 1.0 at gap 0, else 0.3 (our choice).
    """
    if cost is None:
        return 0.0
    if isinstance(optimum, bool) or not isinstance(optimum, int) or not 0 <= optimum <= cost:
        return UNKNOWN
    if cost == optimum:
        return 1.0
    return FLOOR if optimum == 0 else max(FLOOR, 1.0 - (1.0 - FLOOR) * (cost - optimum) / (2 * optimum))


def reward(instance: Instance, verdict: Verdict) -> float:
    """The accuracy reward of an answer, for the instance's own objective."""
    return accuracy_reward(verdict.cost, instance.optimum)
