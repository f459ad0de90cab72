"""What a round's training taught and cost, cell by cell: facts for designers that look at the training side (our choice)."""

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
    """What one answer earned, whether it is valid, and the first check that it failed."""

    reward: float
    valid: bool
    failure: str | None


@dataclass(frozen=True, kw_only=True)
class CellRecord:
    """A cell's sums as a saved state holds them (`CellFacts.state`)."""

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
    """Counts over the groups of answers that a trainer has sampled, per curriculum cell of their instance.

    Args:
        testbed: whose cells these are.
        state: what `state` gave, as it was read, to continue from there.
    """

    def __init__(self, testbed: AnyTestbed, state: Mapping[str, CellRecord] | None = None) -> None:
        self._testbed = testbed
        self._cells: dict[str, dict[str, Any]] = {cell: schema.plain(sums) for cell, sums in (state or {}).items()}

    def add(self, instance: Any, answers: Sequence[Judged], tokens: int) -> None:
        """One group: the answers to one instance, and the tokens of all."""
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
        """The sums as JSON."""
        return self._cells

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Per cell: its group, groups and answers sampled, mean reward, mean |advantage| (in standard deviations of the
        group), share of dead groups (all answers earned the same), share of valid answers, tokens, and counts of the first
        failed checks; cells in order of their names."""
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
