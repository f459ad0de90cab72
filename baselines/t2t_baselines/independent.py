"""Independent planning: every agent for itself."""

from __future__ import annotations

from t2t_core.seeding import Stream
from t2t_envs.frozen_lake.instance import Instance

from .board import UNREACHABLE, Board
from .solver_policy import Paths, SolverPolicy


def shortest_path(board: Board, start: int, goal: int) -> list[int]:
    """A shortest path, with ties to the first action (left, down, right, up); only the start if there is no path."""
    distance = board.distances(goal)
    path = [start]
    if distance[start] == UNREACHABLE:
        return path
    while path[-1] != goal:
        path.append(min(board.steps[path[-1]], key=distance.__getitem__))
    return path


class Independent(SolverPolicy):
    """Each agent takes a shortest path and ignores the others.

    What it measures: how many instances need no coordination at all; its valid answers are always optimal. Expected to be
    bad at everything that makes the task multi-agent: it never waits and never makes room, so it never solves an instance
    that requires a wait. (The usual straw man of the literature, e.g. the root node of Conflict-Based Search, Sharon et
    al. 2015.)
    """

    name = "independent"

    def plan(self, instance: Instance, stream: Stream) -> Paths:
        board = Board(instance)
        return [board.cells(shortest_path(board, s, g)) for s, g in zip(board.starts, board.goals, strict=True)]
