"""How many canonical forms a stratum (size, holes, agents, objective, kind) has, and so what each size can produce.

Small strata are enumerated. For larger ones the count is a safe lower bound: half of (share of this kind among
random candidates) x (number of candidates) / (8 x agents!), where the share is estimated from 64 hits. A kind that shows up
less than once in 500,000 candidates counts as absent, since rejection sampling could not fill it. (Our choices.)
`sets/forms.json` holds the counts for 1 to 5 agents; `python -m t2t_envs.frozen_lake.generation.forms > forms.json` remakes it
in a few minutes. For more agents the counts are estimated on demand with far less effort, so a kind that does not show up soon
counts as absent.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from importlib.resources import files
from math import factorial
from typing import NamedTuple

from t2t_core import seeding

from .. import solver
from ..instance import MAX_AGENTS, OBJECTIVES
from .configuration import MAX_HOLE_RATIO, SIZES, hole_count
from .sampling import draw_stratum, from_form, list_forms, of_stratum
from .strata import Draws, Quota, Stratum

TABLE_AGENTS = (1, 2, 3, 4, 5)
HITS = 64
RAREST = 500_000
ALWAYS_LIST = 100_000  # strata with at most so many candidates are enumerated at once
FEW = 5_000  # larger strata are enumerated if the lower bound is below this
CAP = 10**9  # more than anybody asks for
QUICK_STALL = 20_000  # used if there are more agents than the table covers
QUICK_NODES = 20_000  # the solver's limit while estimating; undecided candidates only lower the bound


class Count(NamedTuple):
    """Canonical forms of a stratum that do not, and that do, require a wait; a lower bound unless `exact`."""

    wait_free: int
    wait: int
    exact: bool

    @property
    def total(self) -> int:
        """The forms of both kinds."""
        return self.wait_free + self.wait


def most_holes(size: int) -> int:
    """floor(N^2 / 2 + 1/2): the hole count of the highest hole ratio."""
    return hole_count(MAX_HOLE_RATIO, size)


def capacity(size: int, num_agents: int) -> int:
    """The largest hole count (up to `most_holes`) with which an instance exists; -1 if there is none even without holes."""
    top = min(most_holes(size), size * size - num_agents)
    low, high, middle = -1, top, top
    while low < high:  # bisection is right because removing a hole never makes an instance unsolvable
        if _holds(Stratum(size, middle, num_agents)):
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low


@lru_cache(maxsize=4096)
def _holds(stratum: Stratum) -> bool:
    """Whether the stratum has any instance, of either kind."""
    if counted_at_once(stratum):
        return count_forms(stratum).total > 0
    return bool(_draw(stratum, Quota(wait_free=1, wait=1, total=1)).instances)


def count_forms(stratum: Stratum) -> Count:
    """The number of forms of a stratum, from the table if it covers the stratum."""
    if not 1 <= stratum.num_agents <= min(stratum.free, MAX_AGENTS):
        return Count(0, 0, True)
    row = _row(stratum)
    return measure(stratum) if row is None else Count(row[0], row[1], bool(row[2]))


def counted_at_once(stratum: Stratum) -> bool:
    """Whether the forms of a stratum are known, or can be counted at once."""
    return _row(stratum) is not None or stratum.candidates <= ALWAYS_LIST


def available(stratum: Stratum, exclude: Collection[bytes] = frozenset()) -> Count:
    """The number of forms of a stratum that are not excluded."""
    count = count_forms(stratum)
    excluded = _by_kind(frozenset(of_stratum(exclude, stratum)), stratum.objective)
    return Count(max(0, count.wait_free - excluded[0]), max(0, count.wait - excluded[1]), count.exact)


@lru_cache(maxsize=4096)
def _by_kind(forms: frozenset[bytes], objective: str) -> tuple[int, int]:
    """How many of these forms are wait-free and how many require a wait; undecided ones count as both."""
    if not forms:
        return 0, 0
    instances = [from_form(form, objective) for form in sorted(forms)]
    drawable = [x for x in instances if not any(s == g for s, g in zip(x.starts, x.goals, strict=True))]
    kinds = [x.requires_wait for x in solver.solve_many(drawable, wait=True) if x.status != "infeasible"]
    return sum(kind is not True for kind in kinds), sum(kind is not False for kind in kinds)


@lru_cache(maxsize=4096)
def measure(stratum: Stratum) -> Count:
    """Count the forms of a stratum, by enumeration if it is small and by sampling otherwise."""
    if stratum.candidates <= ALWAYS_LIST:
        return _enumerated(stratum)
    wait_free, wait = _estimate(stratum, False), _estimate(stratum, True)
    if stratum.enumerable and min(wait_free, wait) < FEW and stratum.num_agents in TABLE_AGENTS:
        return _enumerated(stratum)
    return Count(wait_free, wait, False)


def _enumerated(stratum: Stratum) -> Count:
    forms = list_forms(stratum)
    return Count(forms.wait_free, forms.wait, forms.undecided == 0)


def _estimate(stratum: Stratum, wait: bool) -> int:
    """A safe lower bound on the forms of one kind (see above); 0 if the kind is too rare to sample."""
    if wait and stratum.num_agents == 1:
        return 0  # a single agent has nobody in its way
    quota = Quota(wait=HITS if wait else 0, wait_free=0 if wait else HITS, distinct=False)
    draws = _draw(stratum, quota)
    hits = len(draws.instances)
    if hits < HITS or hits * RAREST < draws.drawn:
        return 0
    ordered = stratum.candidates * factorial(stratum.num_agents)  # starts and goals per agent; symmetries are divided out below
    return min(CAP, ordered * hits // (draws.drawn * 2 * 8 * factorial(stratum.num_agents)))


def _draw(stratum: Stratum, quota: Quota) -> Draws:
    key = seeding.key(0, "count forms", OBJECTIVES.index(stratum.objective), stratum.num_agents, stratum.size, stratum.holes)
    stall = 5 * RAREST if stratum.num_agents in TABLE_AGENTS else QUICK_STALL
    return draw_stratum(stratum, key, quota, stall=stall, max_nodes=QUICK_NODES)


def _row(stratum: Stratum) -> list[int] | None:
    """The table's row for a stratum, or None."""
    column = _table().get(stratum.objective, {}).get(str(stratum.num_agents), {}).get(str(stratum.size), [])
    return column[stratum.holes] if stratum.holes < len(column) else None


@cache
def _table() -> dict[str, dict[str, dict[str, list[list[int]]]]]:
    file = files("t2t_envs.frozen_lake.sets") / "forms.json"
    return dict(json.loads(file.read_text())) if file.is_file() else {}


def make_table(threads: int = 1) -> str:
    """The text of `sets/forms.json`: objective, agents, size, then per hole count [wait_free, wait, exact]."""
    strata = [
        Stratum(size, holes, agents, objective)
        for objective in OBJECTIVES
        for agents in TABLE_AGENTS
        for size in SIZES
        for holes in range(min(most_holes(size), size * size - agents) + 1)
    ]
    with ThreadPoolExecutor(threads) as pool:
        counts = dict(zip(strata, pool.map(measure, strata), strict=True))
    table: dict[str, dict[str, dict[str, list[list[int]]]]] = {}
    for stratum, count in counts.items():
        sizes = table.setdefault(stratum.objective, {}).setdefault(str(stratum.num_agents), {})
        sizes.setdefault(str(stratum.size), []).append([count.wait_free, count.wait, int(count.exact)])
    return json.dumps(table, separators=(",", ":")).replace("]],", "]],\n") + "\n"


if __name__ == "__main__":
    sys.stdout.write(make_table(threads=2))
