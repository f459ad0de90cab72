"""A stratum of the generator: all instances of one size, hole count, agent count and objective; and what to draw from it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import comb, perm

from ..instance import Instance

ENUMERABLE = 60_000_000  # our choice: a stratum with so many candidates (agents unlabelled) is listed in seconds
STALL = 10_000_000  # our choice: give up a large stratum after so many candidates in a row without a new instance


@dataclass(frozen=True)
class Stratum:
    """All instances of size N with so many holes and agents, under one objective."""

    size: int
    holes: int
    num_agents: int
    objective: str = "makespan"

    def __str__(self) -> str:
        return f"{self.size}x{self.size} with {max(self.holes, 0)} holes and {self.num_agents} agents"

    @property
    def free(self) -> int:
        """How many cells of a map are no holes."""
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
        """After so many candidates without a new instance, list the stratum, or give up if it is too large to list."""
        return max(2000, self.candidates // 32) if self.enumerable else STALL


@dataclass(frozen=True)
class Quota:
    """What to draw from a stratum.

    Args:
        wait_free, wait: at most so many instances that do not, and do, require a wait.
        total: at most so many of both kinds together; None means no further limit.
        both: also label the other objective.
        one_per_form: the instances have distinct canonical forms; otherwise they are distinct up to relabelling agents.
        distinct: False makes the draws independent, so they may repeat.
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
    """Labelled instances in candidate order, the number of candidates tried and of those left out as undecided, whether the
    drawing gave up, its steps of work, and whether it gave up because the order would take too many steps."""

    instances: list[Instance] = field(default_factory=list)
    drawn: int = 0
    undecided: int = 0
    stalled: bool = False
    work: int = 0
    hopeless: bool = False


@dataclass(frozen=True)
class Forms:
    """The number of canonical forms of each kind and of undecided ones, and the forms of the requested kind in rising order."""

    wait_free: int
    wait: int
    undecided: int
    listed: tuple[bytes, ...] = ()
