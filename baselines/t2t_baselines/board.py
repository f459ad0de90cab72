"""A lake as numbered cells, for planners: cell = row * size + column."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_envs.frozen_lake.instance import Cell, Instance
from t2t_envs.frozen_lake.rules import DELTAS, WAIT, in_bounds

UNREACHABLE = 1 << 30


class Board:
    """One instance with cells as numbers.

    starts, goals: k cell numbers. steps[cell]: the legal moves from a free cell in the order of the actions (left, down,
    right, up), without waiting; empty for a hole.
    """

    def __init__(self, instance: Instance) -> None:
        self.size = size = instance.size
        self.starts = [self.number(cell) for cell in instance.starts]
        self.goals = [self.number(cell) for cell in instance.goals]
        self.free = [True] * (size * size)
        for cell in instance.holes:
            self.free[self.number(cell)] = False
        self.steps: list[list[int]] = [
            self._moves(row, column) if self.free[row * size + column] else [] for row in range(size) for column in range(size)
        ]

    def _moves(self, row: int, column: int) -> list[int]:
        around = [(row + dr, column + dc) for dr, dc in DELTAS[:WAIT]]
        return [n for cell in around if in_bounds(self.size, cell) and self.free[n := self.number(cell)]]

    def number(self, cell: Cell) -> int:
        """A cell's number, row * size + column."""
        return cell[0] * self.size + cell[1]

    def cells(self, path: Sequence[int]) -> list[Cell]:
        """A path of numbers as (row, column) cells, without waiting at its end."""
        end = len(path)
        while end > 1 and path[end - 1] == path[end - 2]:
            end -= 1
        return [divmod(n, self.size) for n in path[:end]]

    def distances(self, goal: int) -> list[int]:
        """Steps from every cell to `goal`, ignoring other agents; UNREACHABLE if there is no path."""
        steps_to = [UNREACHABLE] * len(self.free)
        steps_to[goal] = 0
        frontier = [goal]
        step = 0
        while frontier:
            step += 1
            reached = []
            for cell in frontier:
                for other in self.steps[cell]:
                    if steps_to[other] == UNREACHABLE:
                        steps_to[other] = step
                        reached.append(other)
            frontier = reached
        return steps_to
