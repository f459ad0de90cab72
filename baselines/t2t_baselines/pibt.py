"""Priority inheritance with backtracking."""

from __future__ import annotations

from t2t_core.seeding import Stream
from t2t_core.settings import integer
from t2t_envs.frozen_lake.instance import Instance

from .board import Board
from .solver_policy import Paths, SolverPolicy

UNSET = -1


class _Step:
    """One joint move: where each agent is, where it goes, and the recursion that decides it."""

    def __init__(self, board: Board, distances: list[list[int]], now: list[int], stream: Stream) -> None:
        self.board, self.distances, self.now, self.stream = board, distances, now, stream
        self.next = [UNSET] * len(now)
        self.here = {cell: agent for agent, cell in enumerate(now)}
        self.taken: dict[int, int] = {}

    def decide(self, agent: int) -> bool:
        """Find the next cell for `agent`; agents in the way inherit its priority and move first. False if it is stuck: it
        stays, and the caller must look elsewhere (backtracking)."""
        here = self.now[agent]
        cells = [here, *self.board.steps[here]]
        self.stream.shuffle(cells)
        cells.sort(key=self.distances[agent].__getitem__)
        for cell in cells:
            if cell in self.taken:
                continue
            other = self.here.get(cell, agent)
            if other != agent and self.next[other] == here:
                continue  # they would swap
            self._take(agent, cell)
            if other != agent and self.next[other] == UNSET and not self.decide(other):
                continue  # `other` stays on the cell, which is now its own
            return True
        self._take(agent, here)
        return False

    def _take(self, agent: int, cell: int) -> None:
        if self.next[agent] != UNSET and self.taken.get(self.next[agent]) == agent:
            del self.taken[self.next[agent]]
        self.next[agent] = cell
        self.taken[cell] = agent


class Pibt(SolverPolicy):
    """Priority inheritance with backtracking: Okumura, Machida, Defago, Tamura, "Priority Inheritance with Backtracking for
    Iterative Multi-agent Path Finding", Artificial Intelligence 310 (2022), algorithm 1.

    Step by step, agents choose their next cell in order of priority, nearest to the goal first; who stands in the way
    inherits the priority and moves first, and if it cannot, the chooser looks elsewhere. A priority grows by one per step
    away from the goal and falls back to the agent's own small distinct number on it. As in the authors' code, ties between
    cells are random, here from the task's own stream, so the same task gives the same answer.

    It answers with its trajectory when all agents stand on their goals at once, or when `max_steps` (default 8 * N, as the
    step environment) have passed. Expected to be bad at: optimality (one step of foresight, agents on their goals are
    pushed away), and dead ends and one-lane corridors, where it may never finish: its guarantee needs every pair of neighbouring
    cells on a cycle, which holes destroy.
    """

    name = "pibt"
    readers = {"max_steps": integer(0, 10_000)}

    def plan(self, instance: Instance, stream: Stream) -> Paths:
        board = Board(instance)
        distances = [board.distances(goal) for goal in board.goals]
        agents = list(range(len(board.starts)))
        rank = agents.copy()
        stream.shuffle(rank)
        own = [r / len(rank) for r in rank]  # distinct, in [0, 1)
        priority = own.copy()
        paths = [[cell] for cell in board.starts]
        now = board.starts
        for _ in range(self.settings.get("max_steps", 8 * board.size)):
            if now == board.goals:
                break
            priority = [own[a] if now[a] == board.goals[a] else priority[a] + 1 for a in agents]
            step = _Step(board, distances, now, stream)
            for agent in sorted(agents, key=lambda a: -priority[a]):
                if step.next[agent] == UNSET:
                    step.decide(agent)
            now = step.next
            for path, cell in zip(paths, now, strict=True):
                path.append(cell)
        return [board.cells(path) for path in paths]
