"""The floor: a random walk."""

from __future__ import annotations

from t2t_core.seeding import Stream
from t2t_core.settings import integer
from t2t_envs.frozen_lake.instance import Instance

from .board import Board
from .solver_policy import Paths, SolverPolicy


class RandomWalk(SolverPolicy):
    """Every agent draws uniformly among its legal actions (waiting included; never off the grid or into a hole) until all
    stand on their goals at once or `max_steps` (default 8 * N, as the step environment) have passed.

    What it measures: what legal answers without any plan are worth. Agents ignore each other. Expected to be bad at
    everything but tiny maps. (Our choice; no paper.)
    """

    name = "random"
    readers = {"max_steps": integer(0, 10_000)}

    def plan(self, instance: Instance, stream: Stream) -> Paths:
        board = Board(instance)
        options = [[*steps, cell] for cell, steps in enumerate(board.steps)]
        paths = [[cell] for cell in board.starts]
        for _ in range(self.settings.get("max_steps", 8 * board.size)):
            if all(path[-1] == goal for path, goal in zip(paths, board.goals, strict=True)):
                break
            for path in paths:
                path.append(stream.choice(options[path[-1]]))
        return [board.cells(path) for path in paths]
