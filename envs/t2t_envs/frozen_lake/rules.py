"""The rules of MAPF-FrozenLake: the single implementation that environments, verifier and solver tests share.

At every step all agents move at once: left, down, right, up (numbered as in Gymnasium's FrozenLake) or wait. Forbidden:
leaving the grid, entering a hole, two agents on one cell at one time (vertex conflict), two agents swapping cells (edge
conflict) (paper section on the environment). Following into a cell that is being vacated is allowed, rotations included;
an agent on its goal still occupies it and may leave and come back (our choice: the MAPF literature's standard).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from .instance import Cell

LEFT, DOWN, RIGHT, UP, WAIT = range(5)
ACTION_NAMES = ("left", "down", "right", "up", "wait")
DELTAS: tuple[Cell, ...] = ((0, -1), (1, 0), (0, 1), (-1, 0), (0, 0))


class Conflict(NamedTuple):
    """A conflict of two agents. `kind` is "vertex" or "edge"; `cell` is the shared cell or, for an edge, the cell that
    `agents[0]` moves into; `agents` are in rising order."""

    kind: str
    agents: tuple[int, int]
    cell: Cell


class Costs(NamedTuple):
    """Both costs of a solution, in steps. The sum of costs is also its total trajectory length."""

    makespan: int
    sum_of_costs: int


def in_bounds(size: int, cell: Cell) -> bool:
    """Whether a (row, column) is on a map of this size."""
    return 0 <= cell[0] < size and 0 <= cell[1] < size


def is_legal_move(before: Cell, after: Cell) -> bool:
    """A move goes to a neighbouring cell or stays: Manhattan distance at most 1."""
    return abs(before[0] - after[0]) + abs(before[1] - after[1]) <= 1


def first_conflict(before: Sequence[Cell], after: Sequence[Cell]) -> Conflict | None:
    """The first conflict of one joint move, by lowest pair of agents; a pair's vertex conflict comes before its edge conflict."""
    if len(set(after)) == len(after) and not (set(after) & set(before)):
        return None
    for i in range(len(after)):
        for j in range(i + 1, len(after)):
            if after[i] == after[j]:
                return Conflict("vertex", (i, j), after[i])
            if after[i] == before[j] and after[j] == before[i] and after[i] != before[i]:
                return Conflict("edge", (i, j), after[i])
    return None


def first_path_conflict(paths: Sequence[Sequence[Cell]]) -> tuple[int, Conflict] | None:
    """The first conflict of whole paths and the step at which it happens (both agents are there, or have swapped, at that
    step); a shorter path stays on its last cell. None if there is no conflict. The work is linear in the paths' total length,
    so one very long path beside many short ones costs no more than its cells."""
    start = [path[0] for path in paths]
    if conflict := first_conflict(start, start):
        return 0, conflict
    parked: set[Cell] = set()  # cells of the agents whose paths have ended
    begin = 1
    for length in sorted({len(path) for path in paths}):  # between two such lengths the same agents move
        columns = zip(*[path[begin - 1 : length] for path in paths if len(path) >= length], strict=True)
        before = next(columns)
        occupied = set(before)
        for step, after in enumerate(columns, begin):
            cells = set(after)
            apart = cells.isdisjoint(occupied) and len(cells) == len(after) or first_conflict(before, after) is None
            if not (apart and cells.isdisjoint(parked)):
                joint = [[position_at(path, time) for path in paths] for time in (step - 1, step)]
                if conflict := first_conflict(*joint):
                    return step, conflict
            before, occupied = after, cells
        parked.update(path[-1] for path in paths if len(path) == length)
        begin = length
    return None


def conflicting_agents(before: Sequence[Cell], after: Sequence[Cell]) -> set[int]:
    """Every agent that takes part in a conflict of one joint move."""
    agents: set[int] = set()
    for i in range(len(after)):
        for j in range(i + 1, len(after)):
            if after[i] == after[j] or (after[i] == before[j] and after[j] == before[i]):
                agents.update((i, j))
    return agents


class JointMove(NamedTuple):
    """What one joint action does. `positions` are the cells after the move (where the agents end up even if the move is
    fatal), `fell` the agents that entered a hole, and `conflict` the first conflict (None if there is none or it was
    blocked)."""

    positions: tuple[Cell, ...]
    fell: tuple[int, ...]
    conflict: Conflict | None


def move(
    size: int,
    holes: Collection[Cell],
    positions: Sequence[Cell],
    actions: Sequence[int],
    block_holes: bool = False,
    block_conflicts: bool = False,
) -> JointMove:
    """Apply one joint action (our choice of step semantics).

    A move off the grid leaves the agent where it is. With `block_holes` so does a move into a hole; otherwise the agent
    falls. With `block_conflicts` the agents of a conflict stay where they are; this is repeated until no conflict is left.
    """
    after: list[Cell] = []
    fell: list[int] = []
    for agent, (cell, action) in enumerate(zip(positions, actions, strict=True)):
        dr, dc = DELTAS[action]
        target = (cell[0] + dr, cell[1] + dc)
        if not in_bounds(size, target):
            target = cell
        elif target in holes:
            if block_holes:
                target = cell
            else:
                fell.append(agent)
        after.append(target)
    if block_conflicts:
        while conflict := conflicting_agents(positions, after):
            for agent in conflict:
                after[agent] = positions[agent]
        fell = [agent for agent in fell if after[agent] != positions[agent]]
    return JointMove(tuple(after), tuple(fell), first_conflict(positions, after))


def position_at(path: Sequence[Cell], step: int) -> Cell:
    """Where an agent is at `step`; after its path ends it stays on the last cell."""
    return path[step] if step < len(path) else path[-1]


def arrival(path: Sequence[Cell], goal: Cell) -> int | None:
    """The step at which the agent arrives on its goal for good; None if its path does not end there."""
    if not path or path[-1] != goal:
        return None
    step = len(path) - 1
    while step > 0 and path[step - 1] == goal:
        step -= 1
    return step


def costs(paths: Sequence[Sequence[Cell]], goals: Sequence[Cell]) -> Costs | None:
    """Both costs of paths that end on the goals, else None. Staying on one's goal for good is free."""
    arrivals = [arrival(path, goal) for path, goal in zip(paths, goals, strict=True)]
    if not arrivals or any(a is None for a in arrivals):
        return None
    steps = [a for a in arrivals if a is not None]
    return Costs(max(steps), sum(steps))


def waits(path: Sequence[Cell], goal: Cell) -> bool:
    """Whether the agent waits before its final arrival (waiting on its goal before leaving it is a wait)."""
    last = arrival(path, goal)
    end = len(path) - 1 if last is None else last
    return any(path[step] == path[step + 1] for step in range(end))
