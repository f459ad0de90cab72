"""Streams of lakes, each lake played in several variants, in plain Python: the native core's `LakeSource` and `Seat`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2t_core.seeding import Stream

from .. import solver
from ..generation.reference_sampler import candidate_of
from ..generation.strata import Stratum
from ..instance import OBJECTIVES, SYMMETRIES, Cell, Instance

UNKNOWN, UNDECIDED = -1, -2  # values of an optimum that are not a number of steps


class NoSuchLake(Exception):
    """(drawn, undecided): how many candidates in a row were not a lake of the requested kind, and how many of them undecided."""


@dataclass(frozen=True)
class Drawn:
    """A lake: its holes (N, N), the agents' cells, the optimum of the source's objective, what it was drawn with, and the order
    of its variants."""

    holes: Any
    starts: tuple[Cell, ...]
    goals: tuple[Cell, ...]
    optimum: int
    name: int = 0
    turn: int = 0

    def instance(self, objective: str = OBJECTIVES[0]) -> Instance:
        """The lake as an instance, without labels."""
        return Instance(len(self.holes), [tuple(cell) for cell in np.argwhere(self.holes)], self.starts, self.goals, objective)

    def distances(self, agent: int) -> dict[Cell, int]:
        """The steps to the agent's goal, without other agents, from every cell that can reach it."""
        holes, goal = self.holes, self.goals[agent]
        reached, queue = {goal: 0}, [goal]
        for row, column in queue:
            for cell in ((row, column - 1), (row + 1, column), (row, column + 1), (row - 1, column)):
                inside = 0 <= cell[0] < len(holes) and 0 <= cell[1] < len(holes)
                if inside and not holes[cell] and cell not in reached:
                    reached[cell] = reached[row, column] + 1
                    queue.append(cell)
        return reached


class LakeSource:
    """The same as `_native.LakeSource`."""

    pooled = False

    @staticmethod
    def random(
        parts: Sequence[tuple[int, int, int, int]], hole: Any, agents: int, objective: int, max_nodes: int, stall: int
    ) -> LakeSource:
        """A source that draws: `parts` are (size, holes, up to which of 2^32, which part of 2^32 must wait or -1)."""
        return RandomLakes(tuple(parts), np.asarray(hole), agents, OBJECTIVES[objective], max_nodes, stall)

    @staticmethod
    def pool(sizes: Any, holes: Any, starts: Any, goals: Any, optima: Any, agents: int) -> LakeSource:
        """A source of given lakes, each cell a number row * size + column, one array for all lakes."""
        lakes, at = [], 0
        for index, size in enumerate(sizes.tolist()):
            cells = [[divmod(c, size) for c in a[index * agents : (index + 1) * agents].tolist()] for a in (starts, goals)]
            grid = holes[at : at + size * size].reshape(size, size)
            lakes.append(given_lake(grid, cells[0], cells[1], int(optima[index]), index))
            at += size * size
        return LakePool(lakes)

    def draw(self, stream: Stream) -> Drawn:
        """The next lake of the stream."""
        raise NotImplementedError


def given_lake(holes: Any, starts: Sequence[Cell], goals: Sequence[Cell], optimum: int, name: int = 0) -> Drawn:
    """A lake from outside. If it comes without its optimum, the optimum is not searched for."""
    return Drawn(holes, tuple(starts), tuple(goals), UNDECIDED if optimum < 0 else optimum, name)


class LakePool(LakeSource):
    """A source of given lakes, each as likely at every draw."""

    pooled = True

    def __init__(self, lakes: Sequence[Drawn]) -> None:
        self.lakes = lakes

    def draw(self, stream: Stream) -> Drawn:
        """One of the lakes."""
        return self.lakes[stream.below(len(self.lakes))]


@dataclass(frozen=True, eq=False)
class RandomLakes(LakeSource):
    """A source that draws a solvable lake from the parts' sizes and hole counts; see `LakeSource.random`."""

    parts: tuple[tuple[int, int, int, int], ...]
    hole: Any
    agents: int
    objective: str
    max_nodes: int
    stall: int

    def draw(self, stream: Stream) -> Drawn:
        """A new lake. Raises NoSuchLake if `stall` candidates in a row are of no use."""
        name, turn, which, wait = stream.next(), stream.next() | 1, stream.next() >> 32, stream.next() >> 32
        size, holes, _, waits = next((part for part in self.parts if which < part[2]), self.parts[-1])
        must_wait = None if waits < 0 else wait < waits
        given = set(np.flatnonzero(self.hole).tolist()) if len(self.hole) else None
        candidates, undecided = Stream(name), 0
        for index in range(self.stall):
            candidate = candidate_of(Stratum(size, holes, self.agents, self.objective), candidates.fork(index), given)
            if candidate is None:
                continue
            label = solver.solve_many([candidate], max_nodes=self.max_nodes, wait=must_wait is not None)[0]
            kind = None if must_wait is None else label.requires_wait
            if label.status == "solved" and kind is must_wait:
                return Drawn(_grid(candidate), tuple(candidate.starts), tuple(candidate.goals), int(label.cost or 0), name, turn)
            undecided += label.status == "undecided" or label.status == "solved" and must_wait is not None and kind is None
        raise NoSuchLake(self.stall, undecided)


def _grid(instance: Instance) -> Any:
    grid = np.zeros((instance.size, instance.size), np.uint8)
    if instance.holes:
        grid[tuple(zip(*instance.holes, strict=True))] = 1
    return grid


class Seat:
    """One environment's stream of lakes, each played `plays` times: every time under another symmetry of the grid, with the
    agents in another order and, if `reversible`, perhaps from the goals to the starts."""

    def __init__(self, source: LakeSource, plays: int, reversible: bool, agents: int) -> None:
        self.source, self.plays, self.reversible, self.agents = source, plays, reversible, agents
        self.key = self.drawn = self.left = self.guise = self.variant = self.turn = 0
        self.base: Drawn | None = None
        self.given: Drawn | None = None
        self.optimum = UNKNOWN
        self.played: Drawn | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "source"}

    def set_source(self, source: LakeSource) -> None:
        """Take the next lake from another source."""
        self.source, self.left = source, 0

    def seed(self, key: int) -> None:
        """Start the stream of lakes anew."""
        self.key, self.drawn, self.left = key, 0, 0

    @property
    def variants(self) -> int:
        """How many variants a lake has: the grid's 8 symmetries, the agents' orders and, if reversible, start and goal exchanged.
        """
        return 8 * math.factorial(self.agents) * (2 if self.reversible else 1)

    def restart(self) -> None:
        """Go on to the next variant of the lake, or to a new lake once this one was played as often as it should be."""
        if self.base is None or self.left == 0:
            self.base = self.source.draw(Stream(self.key).fork(self.drawn))
            self.drawn += 1
            variants = self.variants if self.plays > 1 and not self.source.pooled else 1
            self.left = min(self.plays, variants)
            self.variant = self.guise = 0
            self.turn = self.base.turn % variants | 1
            while math.gcd(self.turn, variants) != 1:
                self.turn = (self.turn + 2) % variants | 1
            self.optimum, self.played = self.base.optimum, self.base
        else:
            self.variant = (self.variant + self.turn) % self.variants
            self.guise += 1
            self.played = self._disguised(self.base)
        self.left -= 1
        self.given = None

    def play(self, lake: Drawn) -> None:
        """Play this lake next, whatever the source gives."""
        self.given = self.played = lake
        self.optimum, self.left, self.guise = lake.optimum, 0, 0

    def _disguised(self, base: Drawn) -> Drawn:
        size, rest = len(base.holes), self.variant
        move = SYMMETRIES[rest % 8]
        rest //= 8
        reversed_ = rest // math.factorial(self.agents) % 2 != 0
        order, left = [], list(range(self.agents))
        for index in range(self.agents):
            order.append(left.pop(rest % (self.agents - index)))
            rest //= self.agents - index
        holes = np.zeros_like(base.holes)
        for row, column in np.argwhere(base.holes).tolist():
            holes[move(row, column, size - 1)] = 1
        starts, goals = (tuple(move(*cells[i], size - 1) for i in order) for cells in (base.starts, base.goals))
        return Drawn(holes, *((goals, starts) if reversed_ else (starts, goals)), base.optimum, base.name)

    def find_optimum(self, objective: str, max_nodes: int) -> int:
        """The optimum, searched for if it isn't known, and kept for the lake's other variants."""
        if self.optimum == UNKNOWN and self.played is not None:
            label = solver.solve_many([self.played.instance(objective)], max_nodes=max_nodes)[0]
            self.optimum = UNDECIDED if label.cost is None else label.cost
        return self.optimum
