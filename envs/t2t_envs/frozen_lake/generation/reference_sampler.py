"""The generator's sampler and enumeration in plain Python. It makes the same draws as the native core, so it is both the fallback
without that core and the test of it.

It is short and slow: every candidate that survives the flood fill goes through the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations

from t2t_core.seeding import Stream

from .. import solver
from ..instance import OBJECTIVES, Cell, Instance
from .strata import Draws, Forms, Quota, Stratum


def draw_stratum(
    stratum: Stratum,
    key: int,
    quota: Quota,
    stall: int,
    max_nodes: int,
    progress: Callable[[int, int, int, int], None] | None = None,
) -> Draws:
    """`sampling.draw_stratum` without the native core."""
    left = {False: quota.wait_free, True: quota.wait}
    total = sum(left.values()) if quota.total is None else quota.total
    stream, seen, exclude = Stream(key), set(), set(quota.exclude)
    instances: list[Instance] = []
    drawn = last = undecided = 0
    while len(instances) < total and any(left.values()):
        if drawn - last >= stall:
            return Draws(instances, drawn, undecided, stalled=True)
        candidate = candidate_of(stratum, stream.fork(drawn))
        drawn += 1
        if progress is not None:
            progress(drawn, quota.wait_free - left[False], quota.wait - left[True], undecided)
        if candidate is None:
            continue
        instance, decided = _label(candidate, max_nodes, left, quota.both)
        undecided += not decided
        if instance is None or not left[bool(instance.requires_wait)]:
            continue
        form = instance.canonical() if exclude or quota.one_per_form else b""
        name = form if quota.one_per_form else variant(instance)
        if form in exclude or (quota.distinct and name in seen):
            continue
        seen.add(name)
        instances.append(instance)
        left[bool(instance.requires_wait)] -= 1
        last = drawn
    return Draws(instances, drawn, undecided)


def variant(instance: Instance) -> object:
    """A key that two instances share if they differ only in the labels of their agents."""
    return instance.holes, frozenset(zip(instance.starts, instance.goals, strict=True))


def candidate_of(stratum: Stratum, stream: Stream, given: set[int] | None = None) -> Instance | None:
    """One uniform candidate, with the `given` holes if any; None if an agent starts on its goal or is cut off from it."""
    n = stratum.size * stratum.size
    holes: set[int] = set() if given is None else given
    for j in range(n - stratum.holes, n) if given is None else ():  # Floyd's algorithm: a uniform subset
        drawn = stream.below(j + 1)
        holes.add(j if drawn in holes else drawn)
    starts: list[int] = []
    goals: list[int] = []
    for _ in range(stratum.num_agents):
        starts.append(_draw_free(n, holes, starts, stream))
        goals.append(_draw_free(n, holes, goals, stream))
        if starts[-1] == goals[-1] or goals[-1] not in _flood(stratum.size, holes, starts[-1]):
            return None
    return _instance(stratum, holes, starts, goals)


def _draw_free(n: int, holes: set[int], taken: list[int], stream: Stream) -> int:
    while True:
        drawn = stream.below(n)
        if drawn not in holes and drawn not in taken:
            return drawn


def _flood(size: int, holes: set[int] | frozenset[int], start: int) -> set[int]:
    """The cells that can be reached from `start`."""
    reached, frontier = {start}, [start]
    while frontier:
        row, column = divmod(frontier.pop(), size)
        for r, c in ((row, column - 1), (row + 1, column), (row, column + 1), (row - 1, column)):
            to = r * size + c
            if 0 <= r < size and 0 <= c < size and to not in holes and to not in reached:
                reached.add(to)
                frontier.append(to)
    return reached


def _instance(stratum: Stratum, holes: set[int] | frozenset[int], starts: list[int], goals: list[int]) -> Instance:
    def at(cells: list[int]) -> list[Cell]:
        return [divmod(c, stratum.size) for c in cells]

    return Instance(stratum.size, at(sorted(holes)), at(starts), at(goals), stratum.objective)


def _label(
    instance: Instance, max_nodes: int, left: dict[bool, int], both: bool
) -> tuple[Instance | None, bool]:
    """The instance with its labels (None if it has no solution or is undecided), and whether the solver decided it."""
    label = solver.solve_many([instance], max_nodes=max_nodes, wait=True)[0]
    if label.status == "infeasible":
        return None, True
    if label.requires_wait is None:
        return None, False
    optima = {instance.objective: label.cost}
    if both and left[label.requires_wait]:
        other = next(name for name in OBJECTIVES if name != instance.objective)
        optima[other] = solver.solve_many([instance], other, max_nodes)[0].cost
        if optima[other] is None:
            return None, False
    data = instance.to_dict() | {f"optimal_{name}": cost for name, cost in optima.items()}
    return Instance.from_dict(data | {"requires_wait": label.requires_wait}), True


def list_forms(stratum: Stratum, wait: bool | None, max_nodes: int) -> Forms:
    """`sampling.list_forms` without the native core."""
    kind_of: dict[bytes, bool | None] = {}
    for instance in _all_candidates(stratum):
        form = instance.canonical()
        if form not in kind_of:
            labelled, decided = _label(instance, max_nodes, {False: 0, True: 0}, False)
            if labelled is not None or not decided:
                kind_of[form] = labelled.requires_wait if labelled is not None else None
    kinds = list(kind_of.values())
    listed = sorted(form for form, kind in kind_of.items() if wait is not None and kind is wait)
    return Forms(kinds.count(False), kinds.count(True), kinds.count(None), tuple(listed))


def _all_candidates(stratum: Stratum) -> Iterator[Instance]:
    n = stratum.size * stratum.size
    for positions in combinations(range(n), stratum.holes):
        holes = frozenset(positions)
        reach = {c: _flood(stratum.size, holes, c) for c in range(n) if c not in holes}
        for starts in combinations(reach, stratum.num_agents):
            for goals in permutations(reach, stratum.num_agents):
                if all(s != g and g in reach[s] for s, g in zip(starts, goals, strict=True)):
                    yield _instance(stratum, holes, list(starts), list(goals))
