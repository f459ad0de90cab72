"""The cells that curricula reason about, size x hole level x wait, and how weights on them become a configuration.

A hole level is a fifth of the range 0..0.5 of the hole ratio. A validation has few answers per cell (about 400 in 80 cells),
so a cell's success rate is shrunk towards its size's, and a size's towards the whole:

    p_size = (valid_size + K p_all) / (answers_size + K)
    p_cell = (valid_cell + K p_size) / (answers_cell + K),    K = 8          (our choice)

Weights w on cells are marginalised to the knobs (our choice):

    data ratio of a size = sum of w over its cells / sum of all w
    hole ratio of a size = mean over its cells, weighted by w, of the level's middle (0.05, 0.15, .. 0.45)
    wait ratio of a size = share of its w on wait cells
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_core.records import Brief, Round

LEVELS = 5
WIDTH = 0.1
SHRINK = 8.0
SAME = 1e-12  # scores no further apart are equal; p (1 - p) of p and of 1 - p differ by rounding
_NAME = re.compile(r"(\d+)x\1 holes=(\d+)( wait| no-wait|)")


@dataclass(frozen=True, order=True)
class Cell:
    """One cell; `level` 0..4 is a fifth of the hole ratio's range."""

    size: int
    level: int
    wait: bool


def level_of(hole_ratio: float) -> int:
    return min(LEVELS - 1, max(0, int(hole_ratio / WIDTH + 1e-9)))


def all_cells(configuration: Mapping[str, Any]) -> list[Cell]:
    """Every cell of the sizes of a configuration, in order."""
    return [Cell(int(size), level, wait) for size in configuration for level in range(LEVELS) for wait in (False, True)]


def success_rates(cells: Sequence[Cell], breakdown: Mapping[str, Any]) -> dict[Cell, float]:
    """The shrunk success rate of every cell from one validation's breakdown (p_all is 0.5 where nothing was answered)."""
    seen = dict.fromkeys(cells, (0, 0))
    for name, counts in breakdown["cells"].items():
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        cell = Cell(int(match[1]), level_of(int(match[2]) / int(match[1]) ** 2), match[3] == " wait")
        if cell in seen:
            seen[cell] = (seen[cell][0] + counts["answers"], seen[cell][1] + counts["valid"])
    overall = _shrunk([seen[cell] for cell in cells], 0.5, 0.0)
    sizes = {cell.size for cell in cells}
    of_size = {size: _shrunk([seen[c] for c in cells if c.size == size], overall, SHRINK) for size in sizes}
    return {cell: _shrunk([seen[cell]], of_size[cell.size], SHRINK) for cell in cells}


def _shrunk(counts: Sequence[tuple[int, int]], towards: float, strength: float) -> float:
    answers, valid = (sum(pair[i] for pair in counts) for i in (0, 1))
    return (valid + strength * towards) / (answers + strength) if answers + strength else towards


def marginal(weights: Mapping[Cell, float], previous: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The configuration that weights on cells stand for; a size without weight keeps its hole and wait ratio."""
    total = sum(weights.values())
    knobs = {}
    for size, before in previous.items():
        own = {cell: w for cell, w in weights.items() if cell.size == int(size)}
        mass = sum(own.values())
        if mass <= 0:
            knobs[size] = {**before, "data_ratio": 0.0}
            continue
        hole_ratio = sum(w * (cell.level + 0.5) * WIDTH for cell, w in own.items()) / mass
        wait_ratio = sum(w for cell, w in own.items() if cell.wait) / mass
        knobs[size] = {"data_ratio": mass / total, "hole_ratio": hole_ratio, "wait_ratio": wait_ratio}
    return knobs


def rounds_since_sampled(cells: Sequence[Cell], rounds: Sequence[Round]) -> dict[Cell, int]:
    """For each cell, how many rounds ago a training configuration last held it (0: the latest; all rounds: never)."""
    ages = dict.fromkeys(cells, len(rounds))
    for age, past in enumerate(reversed(rounds)):
        for cell in cells:
            knobs = past.configuration.get(str(cell.size), {})
            share = knobs.get("wait_ratio", 0.0) if cell.wait else 1 - knobs.get("wait_ratio", 0.0)
            held = knobs.get("data_ratio", 0.0) * share > 0 and level_of(knobs.get("hole_ratio", 0.0)) == cell.level
            if held and ages[cell] == len(rounds):
                ages[cell] = age
    return ages


def ranked(scores: Mapping[Cell, float]) -> list[list[Cell]]:
    """The cells from the highest score to the lowest, those of one score together: a tie says nothing about which of them is
    better, so nobody may take its first for the best. Scores that differ by rounding alone are one."""
    ties: list[list[Cell]] = []
    for cell in sorted(scores, key=lambda cell: -scores[cell]):
        if ties and scores[ties[-1][0]] - scores[cell] <= SAME:
            ties[-1].append(cell)
        else:
            ties.append([cell])
    return ties


def normalised(scores: Mapping[Cell, float]) -> dict[Cell, float]:
    """Scores as shares; equal shares where all are zero."""
    total = sum(scores.values())
    return {cell: score / total if total > 0 else 1 / len(scores) for cell, score in scores.items()}


def mixed(shares: Mapping[Cell, float], uniform: float) -> dict[Cell, float]:
    """(1 - uniform) times the shares plus `uniform` spread over all cells."""
    return {cell: (1 - uniform) * share + uniform / len(shares) for cell, share in shares.items()}


def facts(brief: Brief) -> tuple[dict[str, Any], list[Cell]]:
    """The configuration in force and its cells."""
    previous = brief.previous.to_dict()
    return previous, all_cells(previous)
