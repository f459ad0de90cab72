"""Cells are the finest choices of a curriculum: how well the policy does in each, and how weights on them become a
configuration.

A testbed declares its cells (`Testbed.cells`). If it declares none, every group is one cell that keeps its levels. A validation
has few answers per cell, so a cell's success rate is shrunk towards its group's, and a group's towards the overall rate:

    p_group = (valid_group + K p_all) / (answers_group + K)
    p_cell  = (valid_cell + K p_group) / (answers_cell + K),    K = 8          (our choice)

If the testbed's configurations may hold joint cells, weights w on cells become each group's share and its cells with their
shares of it. Otherwise they become the group's share and, for every other knob, the mean over the group's cells weighted by w.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed, Brief
from t2t_core.records import Cell, Knob, Round

SHRINK = 8.0
SAME = 1e-12  # scores this close count as equal; p (1 - p) of p and of 1 - p differ by rounding
CELLS = "cells"  # the key of a group's joint cells in a configuration
SHARE = "share"  # and of a cell's share of its group
# What a training counts for each cell, and what each mean is taken over.
_MEANS = {"reward": "answers", "advantage": "answers", "valid": "answers", "dead": "groups"}
_COUNTS = dict.fromkeys(("groups", "answers", "tokens"), "") | _MEANS


def share_knob(knobs: Sequence[Knob]) -> str:
    """The name of the knob that is a group's share of the budget."""
    return next(knob.name for knob in knobs if knob.role == "share")


def numbers(group: Mapping[str, Any]) -> dict[str, float]:
    """The knobs of one group of a configuration, without its joint cells."""
    return {name: value for name, value in group.items() if name != CELLS}


@dataclass(frozen=True)
class Cells:
    """The cells that a designer may choose between, in the testbed's order.

    Args:
        testbed: whose cells these are.
        knobs: of the request.
        previous: the configuration in force, {group: {knob: number}}.
        cells: the cells to choose from.
    """

    testbed: AnyTestbed
    knobs: Sequence[Knob]
    previous: Mapping[str, Mapping[str, Any]]
    cells: Sequence[Cell]

    @classmethod
    def of(cls, brief: Brief) -> Cells:
        """The cells for a designer's brief."""
        testbed, previous = brief.state.testbed, brief.previous.to_dict()
        knobs = testbed.knobs(brief.request)
        share = share_knob(knobs)
        whole = [
            Cell(group, group, {k: v for k, v in numbers(values).items() if k != share}) for group, values in previous.items()
        ]
        declared = [cell for cell in testbed.cells(brief.request) if cell.group in previous]
        return cls(testbed, knobs, previous, declared or whole)

    def __len__(self) -> int:
        return len(self.cells)

    def names(self) -> list[str]:
        """The cells' names, in order."""
        return [cell.name for cell in self.cells]

    def success_rates(self, breakdown: Mapping[str, Any]) -> dict[str, float]:
        """The shrunk success rate of every cell from one validation's breakdown (p_all is 0.5 where nothing was answered)."""
        seen = dict.fromkeys(self.names(), (0, 0))
        by_group = {cell.name: cell.group for cell in self.cells}
        declared = any(name not in self.previous for name in seen)
        for key, counts in breakdown["cells" if declared else "groups"].items():
            name = self.testbed.cell_of(key) if declared else key
            if name in seen:
                seen[name] = (seen[name][0] + counts["answers"], seen[name][1] + counts["valid"])
        overall = _shrunk(list(seen.values()), 0.5, 0.0)
        groups = {group: [seen[name] for name in seen if by_group[name] == group] for group in dict.fromkeys(by_group.values())}
        of_group = {group: _shrunk(counts, overall, SHRINK) for group, counts in groups.items()}
        return {name: _shrunk([counts], of_group[by_group[name]], SHRINK) for name, counts in seen.items()}

    def trained(self, past: Round) -> dict[str, dict[str, float]]:
        """What the round's training counted for each cell it sampled: `groups` of answers, `answers` and `tokens`; the means of
        `reward`, `advantage` (absolute) and `valid` over answers, and of `dead` over groups.

        Raises:
            T2TError: the trainer counts nothing by cell.
        """
        facts = past.training.get("cells")
        if not isinstance(facts, Mapping):
            raise T2TError(
                f"the training of round {past.index} left no facts about its cells",
                cause="the run's trainer does not count by cell",
                next="train with grpo or trl-grpo, or choose a designer that reads validations",
            )
        names = set(self.names())
        sums: dict[str, dict[str, float]] = {}
        for key, counts in facts.items():
            cell = key if key in names else str(counts["group"])
            if cell not in names:
                continue
            total = sums.setdefault(cell, dict.fromkeys(_COUNTS, 0.0))
            for name, per in _COUNTS.items():
                total[name] += counts[name] * (counts[per] if per else 1)
        return {
            cell: {name: total[name] / total[per] if per else total[name] for name, per in _COUNTS.items()}
            for cell, total in sums.items()
        }

    def rounds_since_sampled(self, rounds: Sequence[Round]) -> dict[str, int]:
        """For each cell, how many rounds ago a training configuration last contained it (0: the latest; all rounds: never)."""
        ages = dict.fromkeys(self.names(), len(rounds))
        for age, past in enumerate(reversed(rounds)):
            for cell in self.cells:
                if ages[cell.name] == len(rounds) and self.holds(past.configuration, cell):
                    ages[cell.name] = age
        return ages

    def holds(self, configuration: Mapping[str, Any], cell: Cell) -> bool:
        """Whether instances of the cell are drawn under this configuration."""
        group = configuration.get(cell.group, {})
        if not group.get(share_knob(self.knobs), 0.0) > 0:
            return False
        parts = [part for part in group.get(CELLS, ()) if part.get(SHARE, 0.0) > 0] or [group]
        return any(all(self._near(knob, part.get(knob.name), cell) for knob in self._levels()) for part in parts)

    def proposal(self, weights: Mapping[str, float]) -> dict[str, dict[str, Any]]:
        """The configuration that weights on cells stand for. A group without weight keeps its other knobs."""
        share, total = share_knob(self.knobs), sum(weights.values())
        proposed: dict[str, dict[str, Any]] = {}
        for group, before in self.previous.items():
            own = [(cell, weights[cell.name]) for cell in self.cells if cell.group == group and weights.get(cell.name, 0.0) > 0]
            mass = sum(weight for _, weight in own)
            if mass <= 0 or total <= 0:
                proposed[group] = {**before, share: 0.0}
                continue
            means = {knob.name: sum(weight * cell.levels[knob.name] for cell, weight in own) / mass for knob in self._levels()}
            proposed[group] = {share: mass / total, **means}
            if self.testbed.joint_cells:
                proposed[group][CELLS] = [{SHARE: weight / mass, **cell.levels} for cell, weight in own]
        return proposed

    def _levels(self) -> list[Knob]:
        return [knob for knob in self.knobs if knob.role != "share"]

    def _near(self, knob: Knob, value: Any, cell: Cell) -> bool:
        """Whether a configuration's value of the knob draws instances of the cell: some of a mixture, or the nearest level."""
        if value is None:
            return False
        own = cell.levels[knob.name]
        if knob.role == "mixture":
            return bool(value > 0 if own > 0 else value < 1)
        levels = (c.levels[knob.name] for c in self.cells if c.group == cell.group)
        return own == min(levels, key=lambda level: (round(abs(level - value), 9), -level))


def _shrunk(counts: Sequence[tuple[int, int]], towards: float, strength: float) -> float:
    answers, valid = (sum(pair[i] for pair in counts) for i in (0, 1))
    return (valid + strength * towards) / (answers + strength) if answers + strength else towards


def ranked(scores: Mapping[str, float]) -> list[list[str]]:
    """The cells from the highest score to the lowest, grouped by score: a tie says nothing about which of them is better, so no
    caller may take its first cell for the best. Scores that differ only by rounding are equal."""
    ties: list[list[str]] = []
    for cell in sorted(scores, key=lambda cell: -scores[cell]):
        if ties and scores[ties[-1][0]] - scores[cell] <= SAME:
            ties[-1].append(cell)
        else:
            ties.append([cell])
    return ties


def top_shares(scores: Mapping[str, float], part: float) -> dict[str, float]:
    """Equal shares for the cells with the highest scores: a fraction `part` of all cells, at least one. If cells of equal score
    reach beyond the last place, they split the places left."""
    places = number_of_best = max(1, round(part * len(scores)))
    shares = dict.fromkeys(scores, 0.0)
    for tied in ranked(scores):
        taken = min(places, len(tied))
        shares.update(dict.fromkeys(tied, taken / len(tied) / number_of_best))
        places -= taken
    return shares


def levels(rates: Mapping[str, float], count: int) -> dict[str, int]:
    """`count` levels of difficulty with equally many cells, from the highest success rate (level 0) to the lowest. Cells with
    the same rate share a level, that of their middle place."""
    placed, before = {}, 0
    for tied in ranked(rates):
        middle = before + len(tied) / 2
        placed.update(dict.fromkeys(tied, min(count - 1, int(count * middle / len(rates)))))
        before += len(tied)
    return {cell: placed[cell] for cell in rates}


def softmax(scores: Mapping[str, float], temperature: float) -> dict[str, float]:
    """exp(score / temperature), normalised (Boltzmann's distribution)."""
    highest = max(scores.values())
    return normalised({cell: math.exp((score - highest) / temperature) for cell, score in scores.items()})


def normalised(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores as shares; equal shares if all are zero."""
    total = sum(scores.values())
    return {cell: score / total if total > 0 else 1 / len(scores) for cell, score in scores.items()}


def mixed(shares: Mapping[str, float], uniform: float) -> dict[str, float]:
    """(1 - uniform) times the shares plus `uniform` spread over all cells."""
    return {cell: (1 - uniform) * share + uniform / len(shares) for cell, share in shares.items()}
