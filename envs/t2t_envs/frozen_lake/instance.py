"""One MAPF-FrozenLake instance: a grid with holes, and k agents with starts and goals."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hostile import check_fields, shown

Cell = tuple[int, int]
OBJECTIVES = ("makespan", "sum_of_costs")
MIN_SIZE, MAX_SIZE = 3, 256  # of a lake; the solver and the generator stop at 32 (solver.MAX_SIZE)
MAX_AGENTS = 16
MAX_COST = 1_000_000  # no optimum of a 32x32 grid with 16 agents comes near this, so a larger stored one must be wrong
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+-]{0,199}|")
# Where the 8 symmetries of the square take the cell (row, column) of an n x n grid.
SYMMETRIES: tuple[Callable[[int, int, int], Cell], ...] = (
    lambda r, c, m: (r, c),
    lambda r, c, m: (r, m - c),
    lambda r, c, m: (m - r, c),
    lambda r, c, m: (m - r, m - c),
    lambda r, c, m: (c, r),
    lambda r, c, m: (c, m - r),
    lambda r, c, m: (m - c, r),
    lambda r, c, m: (m - c, m - r),
)


@functools.cache
def images(size: int) -> tuple[tuple[int, ...], ...]:
    """Where each of the 8 symmetries of an N x N grid takes each cell; cells are numbered row * N + column."""
    moved = [[move(row, column, size - 1) for row in range(size) for column in range(size)] for move in SYMMETRIES]
    return tuple(tuple(row * size + column for row, column in cells) for cells in moved)


def _integer(value: object, what: str, low: int, high: int, where: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise T2TError(f"{what} must be an integer, not {shown(value)}", where=where)
    number = int(value.__index__())
    if not low <= number <= high:
        raise T2TError(f"{what} must lie in {low}..{high}, not {shown(number)}", where=where)
    return number


def _cells(value: object, what: str, size: int, where: str) -> tuple[Cell, ...]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise T2TError(f"{what} must be a list of (row, column) cells, not {shown(value)}", where=where)
    cells: list[Cell] = []
    for item in value:
        if isinstance(item, (str, bytes, Mapping)) or not isinstance(item, Iterable):
            raise T2TError(f"{what} holds {shown(item)}, not a (row, column) cell", where=where)
        pair = list(item)
        if len(pair) != 2:
            raise T2TError(f"{what} holds a cell of {len(pair)} numbers; a cell is (row, column)", where=where)
        row, column = (_integer(x, f"a coordinate of {what}", 0, size - 1, where) for x in pair)
        cells.append((row, column))
    if len(set(cells)) != len(cells):
        twice = next(c for c in cells if cells.count(c) > 1)
        raise T2TError(f"{what} holds the cell {twice} twice", where=where, cause="all cells of a list are distinct")
    return tuple(cells)


@dataclass(frozen=True)
class Instance:
    """A MAPF-FrozenLake instance. The constructor checks it.

    Args:
        size: N, the grid has N x N cells, 3..256 (the paper uses 3..10; the solver takes up to 32).
        holes, starts, goals: cells (row, column), zero-based from the top left. Starts are distinct, goals are distinct,
            both lie on free cells; an agent may start on its own goal (generated ones never do, our choice).
        objective: "makespan" (default) or "sum_of_costs"; `optimal` and the reward refer to it.
        id: as on the paper's project page, e.g. "2agents_3x3_0236"; letters, digits and `_.:+-`.
        optimal_makespan, optimal_sum_of_costs: exact optima in steps, None if not known.
        requires_wait: whether every optimal solution (of `objective`) contains a wait; None if not known.

    Raises:
        T2TError: a field is invalid; the error names the field.
    """

    size: int
    holes: Sequence[Cell]
    starts: Sequence[Cell]
    goals: Sequence[Cell]
    objective: str = "makespan"
    id: str = ""
    optimal_makespan: int | None = None
    optimal_sum_of_costs: int | None = None
    requires_wait: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not _ID.fullmatch(self.id):
            raise T2TError(
                f"the instance id {shown(self.id)} is not usable",
                cause="an id has at most 200 letters, digits and _ . : + - and starts with a letter or digit",
            )
        where = f"instance {self.id}" if self.id else ""
        size = _integer(self.size, "size", MIN_SIZE, MAX_SIZE, where)
        put = object.__setattr__
        put(self, "size", size)
        put(self, "holes", tuple(sorted(_cells(self.holes, "holes", size, where))))
        put(self, "starts", _cells(self.starts, "starts", size, where))
        put(self, "goals", _cells(self.goals, "goals", size, where))
        self._check_agents(where)
        if self.objective not in OBJECTIVES:
            raise T2TError(f"unknown objective {shown(self.objective)}", where=where, next='use "makespan" or "sum_of_costs"')
        for name in ("optimal_makespan", "optimal_sum_of_costs"):
            value = getattr(self, name)
            if value is not None:
                put(self, name, _integer(value, name, 0, MAX_COST, where))
        if self.requires_wait is not None and not isinstance(self.requires_wait, bool):
            raise T2TError(f"requires_wait must be true, false or null, not {shown(self.requires_wait)}", where=where)

    def _check_agents(self, where: str) -> None:
        if len(self.starts) != len(self.goals):
            raise T2TError(f"{len(self.starts)} starts but {len(self.goals)} goals; every agent has one of each", where=where)
        if not 1 <= len(self.starts) <= MAX_AGENTS:
            raise T2TError(f"an instance has 1..{MAX_AGENTS} agents, not {len(self.starts)}", where=where)
        holes = set(self.holes)
        for name, cells in (("start", self.starts), ("goal", self.goals)):
            for agent, cell in enumerate(cells):
                if cell in holes:
                    raise T2TError(f"agent {agent}'s {name} {cell} is a hole", where=where)

    @property
    def num_agents(self) -> int:
        """How many agents there are, 1..16."""
        return len(self.starts)

    @property
    def optimum(self) -> int | None:
        """The stored optimum of the instance's own objective, in steps."""
        return self.optimal_makespan if self.objective == "makespan" else self.optimal_sum_of_costs

    def unlabelled(self) -> Instance:
        """The same instance as a policy may see it, without optima and wait flag."""
        bare = dict.fromkeys(("optimal_makespan", "optimal_sum_of_costs", "requires_wait"))
        if bare.items() <= vars(self).items():
            return self
        twin = object.__new__(type(self))  # no checks: the cells were checked already, and every question makes a copy
        vars(twin).update(vars(self), **bare)
        return twin

    def canonical(self) -> bytes:
        """The instance up to relabelling its agents and the 8 grid symmetries, as bytes to compare and store.

        Big-endian 16-bit numbers: size, number of holes, number of agents, the holes' cells (row * size + column) in
        rising order, then each agent's start and goal cell in rising order; the smallest of the 8 symmetric forms.
        Labels, objective and id do not matter. (Our choice; the native core computes the same bytes.)
        """
        n, forms = self.size, []
        for image in images(n):
            holes = sorted(image[r * n + c] for r, c in self.holes)
            agents = sorted((image[a * n + b], image[c * n + d]) for (a, b), (c, d) in zip(self.starts, self.goals, strict=True))
            forms.append([n, len(holes), len(agents), *holes, *(x for pair in agents for x in pair)])
        return b"".join(x.to_bytes(2, "big") for x in min(forms))

    def to_dict(self) -> dict[str, Any]:
        """The instance as one JSON object. It holds no solution paths, so that a better solver cannot change frozen files."""
        return {
            "id": self.id,
            "size": self.size,
            "holes": [list(c) for c in self.holes],
            "starts": [list(c) for c in self.starts],
            "goals": [list(c) for c in self.goals],
            "objective": self.objective,
            "optimal_makespan": self.optimal_makespan,
            "optimal_sum_of_costs": self.optimal_sum_of_costs,
            "requires_wait": self.requires_wait,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Instance:
        """The inverse of `to_dict`; T2TError on a missing, unknown or invalid field."""
        check_fields(data, [field.name for field in fields(cls)], ("size", "holes", "starts", "goals"))
        return cls(**data)
