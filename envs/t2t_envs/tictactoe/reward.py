"""What a game earns: terms by name, with the talk's weights, which a run may change."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from t2t_core.records import Verdict

RUBRIC: Mapping[str, float] = MappingProxyType({"win": 1.0, "draw": 0.5, "loss": 0.0, "format": 0.2, "invalid": -0.1})
RANGE = (-0.1, 1.2)


def reward_terms(verdict: Verdict) -> dict[str, float]:
    """`win`, `draw`, `loss`: 1 for how the game ended. `format`: the share of the messages in their form (our choice). `invalid`:
    1 if any move was not legal, however many were."""
    figures = verdict.figures
    return {
        **{name: figures[name] for name in ("win", "draw", "loss", "invalid")},
        "format": figures["form"],
    }
