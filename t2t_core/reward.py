"""The reward of an answer: the testbed's terms under the weights of its rubric, some of which a run may change."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Verdict


def reward(testbed: AnyTestbed, instance: Any, verdict: Verdict, weights: Mapping[str, float] | None = None) -> float:
    """The weighted sum of the answer's reward terms; `weights` go before those of the testbed's rubric."""
    rubric = {**testbed.rubric, **(weights or {})}
    return float(sum(rubric[name] * value for name, value in testbed.reward_terms(instance, verdict).items()))


def check_weights(testbed: AnyTestbed, weights: Mapping[str, Any], where: str) -> None:
    """T2TError for a weight of a term that the testbed does not have, or that is no finite number."""
    for name, weight in weights.items():
        if name not in testbed.rubric:
            near = difflib.get_close_matches(name, testbed.rubric, n=1)
            cause = f"did you mean {near[0]}?" if near else f"terms of {testbed.name}: {', '.join(testbed.rubric)}"
            raise T2TError(f"the reward has no term {ascii(name)[:60]}", where=where, cause=cause)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) <= 1e6:
            raise T2TError(f"the weight of {name} must be a number, not {ascii(weight)[:60]}", where=where)
