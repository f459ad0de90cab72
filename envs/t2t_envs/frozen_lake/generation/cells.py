"""One cell of the generator: all instances of one size, hole count, agent count and objective, and what is asked of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import comb, perm

from ..instance import Instance

ENUMERABLE = 60_000_000  # our choice: candidates of a cell, agents unlabelled, that are listed in seconds
STALL = 10_000_000  # our choice: candidates in a row without a new instance before a large cell is given up


@dataclass(frozen=True)
class GridCell:
    """Size N, number of holes, number of agents, objective."""

    size: int
    holes: int
    num_agents: int
    objective: str = "makespan"

    @property
    def free(self) -> int:
        return self.size**2 - self.holes

    @property
    def candidates(self) -> int:
        """How many (hole set, starts, goals) there are up to relabelling agents, solvable or not."""
        return comb(self.size**2, self.holes) * comb(self.free, self.num_agents) * perm(self.free, self.num_agents)

    @property
    def enumerable(self) -> bool:
        """Whether all canonical forms can be listed in seconds."""
        return self.candidates <= ENUMERABLE

    @property
    def stall(self) -> int:
        """After so many candidates without a new instance, list the cell (or give up where it is too large)."""
        return max(2000, self.candidates // 32) if self.enumerable else STALL


@dataclass(frozen=True)
class Quota:
    """What to draw of a cell.

    Args:
        wait_free, wait: at most so many instances that do not, and do, require a wait.
        total: at most so many of both; None: all.
        both: label the other objective too.
        one_per_form: distinct canonical forms; else distinct up to relabelling agents.
        distinct: off: independent draws, which may repeat.
        exclude: canonical forms that are never drawn.
    """

    wait_free: int = 0
    wait: int = 0
    total: int | None = None
    both: bool = False
    one_per_form: bool = False
    distinct: bool = True
    exclude: Collection[bytes] = ()


@dataclass
class Draws:
    """Labelled instances in candidate order, the candidates looked at, those left out as undecided, whether it gave up, the
    steps of work that they took, and whether it gave up because the order would take too many."""

    instances: list[Instance] = field(default_factory=list)
    drawn: int = 0
    undecided: int = 0
    stalled: bool = False
    work: int = 0
    hopeless: bool = False


@dataclass(frozen=True)
class Forms:
    """Number of canonical forms of each kind, of undecided ones, and the forms of the kind that was asked for, rising."""

    wait_free: int
    wait: int
    undecided: int
    listed: tuple[bytes, ...] = ()
