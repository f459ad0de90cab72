"""What a round's training taught and cost, by curriculum cell, for designers that also look at the training (our choice)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_core.hookspecs import AnyTestbed
from t2t_core.store import schema
from t2t_core.store.schema import Count

_SUMS = ("groups", "answers", "reward", "advantage", "dead", "valid", "tokens")


@dataclass(frozen=True)
class Judged:
    """One answer's reward, whether it is valid, and the first check that it failed."""

    reward: float
    valid: bool
    failure: str | None


@dataclass(frozen=True, kw_only=True)
class CellRecord:
    """A cell's sums in a saved state (`CellFacts.state`)."""

    group: str
    groups: Count
    answers: Count
    reward: int | float
    advantage: int | float
    dead: Count
    valid: Count
    tokens: Count
    first_failures: dict[str, Count]


class CellFacts:
    """Counts the groups of answers that a trainer has sampled, by the curriculum cell of their instance.

    Args:
        testbed: the testbed that has these cells.
        state: a saved `state` to continue from.
    """

    def __init__(self, testbed: AnyTestbed, state: Mapping[str, CellRecord] | None = None) -> None:
        self._testbed = testbed
        self._cells: dict[str, dict[str, Any]] = {cell: schema.plain(sums) for cell, sums in (state or {}).items()}

    def add(self, instance: Any, answers: Sequence[Judged], tokens: int) -> None:
        """Add one group: the answers to one instance, and how many tokens they have together."""
        rewards = [answer.reward for answer in answers]
        place = self._testbed.place(instance)
        cell = self._testbed.cell_of(place.cell) or place.group
        sums = self._cells.setdefault(cell, {"group": place.group, **dict.fromkeys(_SUMS, 0), "first_failures": {}})
        mean = sum(rewards) / len(rewards)
        spread = (sum((r - mean) ** 2 for r in rewards) / len(rewards)) ** 0.5
        away = sum(abs(r - mean) for r in rewards) / spread if spread > 1e-6 else 0.0
        figures = (1, len(rewards), sum(rewards), away, spread <= 1e-6, sum(answer.valid for answer in answers), tokens)
        for name, value in zip(_SUMS, figures, strict=True):
            sums[name] += value
        for answer in answers:
            if answer.failure is not None:
                sums["first_failures"][answer.failure] = sums["first_failures"].get(answer.failure, 0) + 1

    def state(self) -> dict[str, dict[str, Any]]:
        """The sums, ready to be written as JSON."""
        return self._cells

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """For each cell, in the order of names: its group, the groups and answers sampled, the mean reward, the mean |advantage|
        (in standard deviations of the group), the share of dead groups (in which all answers earned the same), the share of
        valid answers, tokens, and counts of the first failed checks."""
        facts = {}
        for cell, sums in sorted(self._cells.items()):
            answers, groups = sums["answers"], sums["groups"]
            facts[cell] = {
                "group": sums["group"],
                "groups": groups,
                "answers": answers,
                "reward": sums["reward"] / answers,
                "advantage": sums["advantage"] / answers,
                "dead": sums["dead"] / groups,
                "valid": sums["valid"] / answers,
                "tokens": sums["tokens"],
                "first_failures": dict(sorted(sums["first_failures"].items())),
            }
        return facts
