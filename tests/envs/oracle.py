"""An exhaustive search over the joint states of all agents, in numpy, which shares no code with the solvers.

Legality of joint moves comes from `rules.py`, pair by pair (a joint move is legal iff every pair of agents moves legally).
States are searched in the order of their cost; a state is cut only where even agents that ignore each other would end
above the cost tried, so the first cost that reaches the goals is the optimum.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import product

import numpy as np

from t2t_envs.frozen_lake import rules
from t2t_envs.frozen_lake.instance import Instance

INFINITY = 10**6
SURPLUS = 8  # after so many costs above the lower bound, everything reachable is searched without a cut


@cache
def _legal_pairs(size: int) -> np.ndarray:
    """[move, move] -> whether two agents may make these moves at once; a move is cell * 5 + action, off the grid or not."""
    moves = []
    for row, column in product(range(size), repeat=2):
        moves += [((row, column), (row + dr, column + dc)) for dr, dc in rules.DELTAS]
    table = np.zeros((len(moves), len(moves)), dtype=bool)
    for a, (before_a, after_a) in enumerate(moves):
        for b, (before_b, after_b) in enumerate(moves):
            table[a, b] = before_a != before_b and rules.first_conflict((before_a, before_b), (after_a, after_b)) is None
    return table


class Oracle:
    """The joint search of one instance. An agent's state is its cell, or `done` once it has arrived for good."""

    def __init__(self, instance: Instance) -> None:
        size = self.size = instance.size
        self.done = size * size
        self.legal = _legal_pairs(size)
        self.starts = [row * size + column for row, column in instance.starts]
        self.goals = [row * size + column for row, column in instance.goals]
        free = np.zeros((size + 2, size + 2), dtype=bool)
        free[1:-1, 1:-1] = True
        for row, column in instance.holes:
            free[row + 1, column + 1] = False
        # targets[cell, action] is the cell after the action, -1 where it leaves the grid or falls into a hole.
        self.targets = np.full((size * size, 5), -1)
        for row, column in product(range(size), repeat=2):
            for action, (dr, dc) in enumerate(rules.DELTAS):
                if free[row + 1, column + 1] and free[row + 1 + dr, column + 1 + dc]:
                    self.targets[row * size + column, action] = (row + dr) * size + column + dc
        self.distances = [self._distances_to(goal) for goal in self.goals]
        self.options = {waits: [self._options(agent, waits) for agent in range(len(self.goals))] for waits in (True, False)}

    def _distances_to(self, goal: int) -> np.ndarray:
        distances = np.full(self.done + 1, INFINITY)
        distances[[goal, self.done]] = 0
        for _ in range(self.done):
            reached = np.where(self.targets >= 0, distances[self.targets], INFINITY).min(axis=1) + 1
            distances[:-1] = np.minimum(distances[:-1], reached)
        return distances

    def _options(self, agent: int, waits: bool) -> tuple[np.ndarray, np.ndarray]:
        """(new state, move) of each of the six options per state, -1 if there is none: five actions, and arriving for good."""
        new, move, goal = np.full((self.done + 1, 6), -1), np.full((self.done + 1, 6), -1), self.goals[agent]
        last = 5 if waits else 4
        new[: self.done, :last] = self.targets[:, :last]
        move[: self.done, :5] = np.arange(self.done * 5).reshape(self.done, 5)
        for cell, action in product(range(self.done), range(4)):
            if self.targets[cell, action] == goal:
                new[cell, 5], move[cell, 5] = self.done, cell * 5 + action
        new[self.done, 0], move[self.done, 0] = self.done, goal * 5 + rules.WAIT
        return new, move

    def within(self, objective: str, bound: int, waits: bool, cut: bool = True) -> int | None:
        """The least cost of a solution that costs at most `bound`; None if there is none."""
        agents, base = len(self.goals), self.done + 1
        open_states: dict[int, list[np.ndarray]] = defaultdict(list)
        choices = [(s, self.done) if s == g else (s,) for s, g in zip(self.starts, self.goals, strict=True)]
        open_states[0].append(np.array(list(product(*choices))))
        seen = np.zeros(base**agents, dtype=bool)
        weights = base ** np.arange(agents)
        cost = 0
        while open_states and cost <= bound:
            states = np.concatenate(open_states.pop(cost, [np.empty((0, agents), dtype=int)]))
            keys, first = np.unique(states @ weights, return_index=True)
            states = states[first[~seen[keys]]]
            seen[keys] = True
            if (states == self.done).all(axis=1).any():
                return cost
            successors = self._successors(states, waits)
            active = (states != self.done).sum(axis=1)
            for step in range(1, agents + 1):
                rows = successors[0][active[successors[1]] == step]
                new_cost = cost + (1 if objective == "makespan" else step)
                rest = np.stack([self.distances[i][rows[:, i]] for i in range(agents)])
                estimate = new_cost + (rest.max(axis=0) if objective == "makespan" else rest.sum(axis=0))
                if cut:
                    rows = rows[estimate <= bound]
                if len(rows):
                    open_states[new_cost].append(rows)
            cost += 1
        return None

    def _successors(self, states: np.ndarray, waits: bool) -> tuple[np.ndarray, np.ndarray]:
        """All legal joint successors, (n, agents), and the row of `states` each comes from."""
        parents, after, moves = np.arange(len(states)), np.empty((len(states), 0), dtype=int), []
        for agent in range(states.shape[1]):
            new_table, move_table = self.options[waits][agent]
            new, move = new_table[states[parents, agent]], move_table[states[parents, agent]]
            allowed = new >= 0
            for earlier in moves:
                allowed &= self.legal[earlier[:, None], move]
            row, option = np.nonzero(allowed)
            parents, after = parents[row], np.column_stack([after[row], new[row, option]])
            moves = [earlier[row] for earlier in moves] + [move[row, option]]
        return after, parents

    def optimum(self, objective: str) -> int | None:
        """The exact optimum; None if the instance has no solution."""
        each = [int(self.distances[agent][start]) for agent, start in enumerate(self.starts)]
        lowest = max(each) if objective == "makespan" else sum(each)
        if max(each) >= INFINITY:
            return None
        for bound in range(lowest, lowest + SURPLUS):
            cost = self.within(objective, bound, waits=True)
            if cost is not None:
                return cost
        return self.within(objective, INFINITY, waits=True, cut=False)

    def requires_wait(self, objective: str, optimum: int) -> bool:
        return self.within(objective, optimum, waits=False) is None
