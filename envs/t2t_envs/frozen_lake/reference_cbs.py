"""Conflict-Based Search in plain Python: the readable reference, and the fallback if the native core is not built.

Sharon, Stern, Felner, Sturtevant, "Conflict-based search for optimal multi-agent pathfinding", Artificial Intelligence
2015. The high level branches on the first conflict of the agents' single shortest paths; the low level is A* over
(cell, time). CBS alone never proves that an instance has no solution, so small joint spaces are searched exhaustively first.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from itertools import count, product
from typing import NamedTuple

from . import rules
from .instance import Cell, Instance

Path = tuple[Cell, ...]
# (agent, step, from, to): the agent must not make this move to arrive at `step`; from None forbids the cell `to` itself.
Constraint = tuple[int, int, Cell | None, Cell]
MAX_JOINT_STATES = 6_000  # joint spaces up to this size are searched for a proof of infeasibility


class SearchResult(NamedTuple):
    """`status` is "solved", "infeasible" (proven) or "undecided" (a limit came first); `nodes` counts high-level nodes."""

    status: str
    cost: int | None
    paths: tuple[Path, ...]
    nodes: int


class Grid:
    """The free cells of an instance, its moves, and each agent's distances to its goal."""

    def __init__(self, instance: Instance) -> None:
        size, holes = instance.size, set(instance.holes)
        free = [cell for cell in product(range(size), repeat=2) if cell not in holes]
        self.moves: dict[Cell, list[Cell]] = {}
        for row, column in free:
            targets = [(row + dr, column + dc) for dr, dc in rules.DELTAS[: rules.WAIT]]
            self.moves[row, column] = [t for t in targets if rules.in_bounds(size, t) and t not in holes]
        self.distances = [self._distances_to(goal) for goal in instance.goals]

    def _distances_to(self, goal: Cell) -> dict[Cell, int]:
        distances, queue = {goal: 0}, deque([goal])
        while queue:
            cell = queue.popleft()
            for target in self.moves[cell]:
                if target not in distances:
                    distances[target] = distances[cell] + 1
                    queue.append(target)
        return distances


def search(instance: Instance, objective: str, max_nodes: int, waits: bool = True, bound: int | None = None) -> SearchResult:
    """The optimum and one optimal solution, by CBS.

    Args:
        objective: "makespan" or "sum_of_costs".
        max_nodes: at most this many high-level nodes are expanded.
        waits: False removes the wait action: an agent then moves at every step before its final arrival.
        bound: consider only solutions of at most this cost, in steps; "infeasible" then means that there is no such solution.
    """
    grid = Grid(instance)
    if any(start not in grid.distances[agent] for agent, start in enumerate(instance.starts)):
        return SearchResult("infeasible", None, (), 0)
    if bound is None and _provably_infeasible(grid, instance):
        return SearchResult("infeasible", None, (), 0)
    total = max if objective == "makespan" else sum
    serial = count()
    open_nodes: list[tuple[int, int, int, frozenset[Constraint], tuple[Path, ...]]] = []

    def push(constraints: frozenset[Constraint], paths: tuple[Path, ...]) -> None:
        cost = total(len(path) - 1 for path in paths)
        if bound is None or cost <= bound:
            conflicts = sum(1 for _ in _conflicts(paths))
            heapq.heappush(open_nodes, (cost, conflicts, next(serial), constraints, paths))

    roots = [_shortest_path(grid, instance, agent, frozenset(), waits, bound) for agent in range(instance.num_agents)]
    if None not in roots:
        push(frozenset(), tuple(path for path in roots if path is not None))
    nodes = 0
    while open_nodes:
        cost, _, _, constraints, paths = heapq.heappop(open_nodes)
        conflict = next(_conflicts(paths), None)
        if conflict is None:
            return SearchResult("solved", cost, paths, nodes)
        if nodes == max_nodes:
            return SearchResult("undecided", None, (), nodes)
        nodes += 1
        for constraint in conflict:
            tightened = constraints | {constraint}
            path = _shortest_path(grid, instance, constraint[0], tightened, waits, bound)
            if path is not None:
                push(tightened, (*paths[: constraint[0]], path, *paths[constraint[0] + 1 :]))
    return SearchResult("infeasible", None, (), nodes)


def requires_wait(instance: Instance, objective: str, cost: int, max_nodes: int) -> bool | None:
    """Whether every solution of the optimal `cost` waits: search again without waits. None if a limit came first."""
    status = search(instance, objective, max_nodes, waits=False, bound=cost).status
    return {"solved": False, "infeasible": True}.get(status)


def _conflicts(paths: tuple[Path, ...]) -> Iterator[tuple[Constraint, Constraint]]:
    """All conflicts in order of time, each as two constraints; any solution obeys at least one of the two."""
    for step in range(1, max(map(len, paths))):
        before = [rules.position_at(path, step - 1) for path in paths]
        after = [rules.position_at(path, step) for path in paths]
        for i in range(len(paths)):
            for j in range(i + 1, len(paths)):
                conflict = rules.first_conflict((before[i], before[j]), (after[i], after[j]))
                if conflict is not None and conflict.kind == "vertex":
                    yield (i, step, None, after[i]), (j, step, None, after[j])
                elif conflict is not None:
                    yield (i, step, before[i], after[i]), (j, step, before[j], after[j])


def _shortest_path(
    grid: Grid, instance: Instance, agent: int, constraints: frozenset[Constraint], waits: bool, bound: int | None
) -> Path | None:
    """The agent's path with the earliest final arrival that obeys its constraints, by A* over (cell, time)."""
    start, goal, distances = instance.starts[agent], instance.goals[agent], grid.distances[agent]
    own = {constraint[1:] for constraint in constraints if constraint[0] == agent}
    last = max((step for step, _, _ in own), default=0)
    leave_by = max((step for step, source, cell in own if source is None and cell == goal), default=-1)
    # After the last constraint nothing is forbidden, so no shortest path is longer than this.
    latest = last + len(grid.moves) if bound is None else bound
    parents: dict[tuple[int, Cell], Cell | None] = {(0, start): None}
    queue = [(distances[start], 0, start)]
    while queue:
        estimate, negative_step, cell = heapq.heappop(queue)
        step = -negative_step
        if cell == goal and step > leave_by:
            return _walk_back(parents, step, cell)
        for target in (*grid.moves[cell], cell) if waits else grid.moves[cell]:
            key = (step + 1, target)
            if key in parents or (step + 1, None, target) in own or (step + 1, cell, target) in own:
                continue
            if step + 1 + distances[target] <= latest:
                parents[key] = cell
                heapq.heappush(queue, (step + 1 + distances[target], -(step + 1), target))
    return None


def _walk_back(parents: dict[tuple[int, Cell], Cell | None], step: int, cell: Cell) -> Path:
    path = [cell]
    while (parent := parents[step, path[-1]]) is not None:
        path.append(parent)
        step -= 1
    return tuple(reversed(path))


def _provably_infeasible(grid: Grid, instance: Instance) -> bool:
    """Whether a search through all joint placements shows that the goals cannot be reached. Skipped if they are too many."""
    placements = 1
    for agent in range(instance.num_agents):
        placements *= len(grid.moves) - agent
    if placements > MAX_JOINT_STATES:
        return False
    start, goal = tuple(instance.starts), tuple(instance.goals)
    seen, stack = {start}, [start]
    while stack:
        before = stack.pop()
        if before == goal:
            return False
        for after in _joint_moves(grid, before, ()):
            if after not in seen:
                seen.add(after)
                stack.append(after)
    return True


def _joint_moves(grid: Grid, before: Path, after: Path) -> Iterator[Path]:
    """All legal joint moves in which the first agents go to the cells `after`."""
    if len(after) == len(before):
        yield after
        return
    cell = before[len(after)]
    for target in (*grid.moves[cell], cell):
        moved = (*after, target)
        if rules.first_conflict(before[: len(moved)], moved) is None:
            yield from _joint_moves(grid, before, moved)
