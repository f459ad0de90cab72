"""Prioritised planning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from math import factorial

from t2t_core.seeding import Stream
from t2t_core.settings import integer
from t2t_envs.frozen_lake.instance import Instance

from .board import Board
from .solver_policy import Paths, SolverPolicy

Path = list[int]


class _SpaceTime:
    """The earliest arrival of one agent among moving obstacles: breadth-first search over (cell, time).

    Every step costs one, so a layer per step finds what space-time A* finds. A layer is one integer with a bit per cell.
    Rows are size + 1 bits apart, so that a shift past the row's end falls into a gap that is never free.
    """

    def __init__(self, board: Board) -> None:
        self.size, self.width = board.size, board.size + 1
        self.free = sum(1 << self._bit(cell) for cell, free in enumerate(board.free) if free)
        self.deltas = (-1, self.width, 1, -self.width)  # left, down, right, up

    def _bit(self, cell: int) -> int:
        return cell // self.size * self.width + cell % self.size

    def search(self, start: int, goal: int, earlier: Sequence[Path]) -> Path | None:
        """A path from `start` that reaches `goal` for good as early as possible and meets none of the `earlier` paths,
        which stay on their last cells; None if there is none."""
        horizon = max((len(path) - 1 for path in earlier), default=0)
        occupied, swaps = self._obstacles(earlier, horizon)
        target = 1 << self._bit(goal)
        free_from = max((step + 1 for step, mask in enumerate(occupied) if mask & target), default=0)
        layers = [1 << self._bit(start)]
        while not (layers[-1] & target and len(layers) > free_from):
            step = len(layers)
            if step > horizon + 1 and layers[-1] == layers[-2]:
                return None  # nothing moves any more and nothing new was reached
            reached = self._spread(layers[-1], swaps[step] if step <= horizon else {})
            layers.append(reached & self.free & ~occupied[min(step, horizon)])
            if not layers[-1]:
                return None
        return self._trace(layers, swaps, self._bit(goal))

    def _obstacles(self, earlier: Sequence[Path], horizon: int) -> tuple[list[int], list[dict[int, int]]]:
        """Per step: the cells occupied, and per move (a difference of bits) the cells it must not leave, or it would swap."""
        occupied = [0] * (horizon + 1)
        swaps: list[dict[int, int]] = [{} for _ in occupied]
        for path in earlier:
            bits = [self._bit(path[min(step, len(path) - 1)]) for step in range(horizon + 1)]
            for step, bit in enumerate(bits):
                occupied[step] |= 1 << bit
                if step and bit != bits[step - 1]:
                    delta = bits[step - 1] - bit
                    swaps[step][delta] = swaps[step].get(delta, 0) | 1 << bit
        return occupied, swaps

    def _spread(self, layer: int, swaps: dict[int, int]) -> int:
        reached = layer
        for delta in self.deltas:
            movers = layer & ~swaps[delta] if delta in swaps else layer
            reached |= movers << delta if delta > 0 else movers >> -delta
        return reached

    def _trace(self, layers: list[int], swaps: list[dict[int, int]], bit: int) -> Path:
        """Walk back from the goal. If several ways lead here, take the wait, so that the agent leaves early and waits late."""
        bits = [bit]
        for step in range(len(layers) - 1, 0, -1):
            before, banned = layers[step - 1], swaps[step] if step < len(swaps) else {}
            if not before >> bit & 1:
                bit = next(
                    bit - delta
                    for delta in self.deltas
                    if bit >= delta and before & ~banned.get(delta, 0) & 1 << (bit - delta)
                )
            bits.append(bit)
        return [b // self.width * self.size + b % self.width for b in reversed(bits)]


class Prioritized(SolverPolicy):
    """Prioritised planning (Erdmann and Lozano-Perez 1987; Silver, "Cooperative Pathfinding", AIIDE 2005).

    Agents plan one after the other in space-time; the paths of those before, including their stay on the goal for good,
    are obstacles. An agent counts as arrived only when nobody before it still has to pass its goal. Agents after it are
    ignored: nobody makes room for a later one. Up to `orders` (default 10) different random orders are tried and the best
    plan by the instance's objective is kept; a plan as good as if every agent were alone ends it early.

    Where no order works, the answer is the one that planned most agents, the others stay on their starts. Expected to be
    bad at: instances where somebody must leave its shortest way for another (it is incomplete and not optimal), narrow
    passages, goals that block them.
    """

    name = "prioritized"
    readers = {"orders": integer(1, 10_000)}

    def plan(self, instance: Instance, stream: Stream) -> Paths:
        board = Board(instance)
        search = _SpaceTime(board)
        total = max if instance.objective == "makespan" else sum
        best: list[Path] = []
        best_rank = (len(board.starts) + 1, 0)
        alone = None
        for order in self._orders(len(board.starts), stream):
            paths = self._plan_in(order, board, search)
            rank = (paths.count([]), total(max(len(path) - 1, 0) for path in paths))
            if rank < best_rank:
                best, best_rank = paths, rank
            if alone is None:
                alone = total(board.distances(g)[s] for s, g in zip(board.starts, board.goals, strict=True))
            if best_rank == (0, alone):
                break
        return [board.cells(path or [start]) for path, start in zip(best, board.starts, strict=True)]

    def _orders(self, agents: int, stream: Stream) -> Iterator[list[int]]:
        """Random orders of the agents; none occurs twice if all of them can be listed."""
        count = self.settings.get("orders", 10)
        if agents <= 5:
            orders = [list(order) for order in permutations(range(agents))]
            stream.shuffle(orders)
            yield from orders[:count]
            return
        for _ in range(min(count, factorial(agents))):
            order = list(range(agents))
            stream.shuffle(order)
            yield order

    def _plan_in(self, order: list[int], board: Board, search: _SpaceTime) -> list[Path]:
        """The paths by agent; [] for agents that found none (the agents after them still try)."""
        paths: list[Path] = [[] for _ in order]
        for agent in order:
            done = [path for path in paths if path]
            paths[agent] = search.search(board.starts[agent], board.goals[agent], done) or []
        return paths
