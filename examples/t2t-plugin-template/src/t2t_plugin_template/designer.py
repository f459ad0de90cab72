"""A designer: the facts of the rounds so far in, the next configuration out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import no_argument, number, read_settings


class Focus:
    """Moves a part of the instances to the groups whose valid rate is nearest to a half, and keeps all else. It works on every
    testbed: which knob is a group's share is declared.

    Args:
        settings: `strength` in 0..1 (default 0.5), the part that moves: `focus:strength=0.3`.
    """

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        no_argument(argument, "designer focus")
        values = read_settings(settings, "designer focus", {"strength": number(0, 1)})
        self.strength: float = values.get("strength", 0.5)

    def propose(self, brief: Brief) -> Proposal:
        configuration: dict[str, dict[str, Any]] = {group: dict(knobs) for group, knobs in brief.previous.to_dict().items()}
        share = next(knob.name for knob in brief.state.knobs if knob.role == "share")
        counts = brief.state.rounds[-1].breakdown["groups"]
        weights = {group: _worth(counts.get(group, {})) for group in configuration}
        total = sum(weights.values())
        for group, knobs in configuration.items():
            knobs[share] = (1 - self.strength) * knobs[share] + self.strength * weights[group] / total
        best = max(weights, key=weights.__getitem__)
        return Proposal(raw="", parsed=configuration, summary=f"more of {best}, where about half of the answers are valid")


def _worth(counts: Mapping[str, Any]) -> float:
    """1 at a valid rate of a half, falling to 0.1 at 0 and 1; 0.1 if nothing is known."""
    answers = counts.get("answers", 0)
    return 0.1 + 0.9 * (1 - 2 * abs(counts["valid"] / answers - 0.5)) if answers else 0.1
