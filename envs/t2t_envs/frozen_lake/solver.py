"""Exact optimal solutions, from the native core or, if that is not built, from the plain-Python search.

A label depends only on the instance's geometry and objective, never on stored labels. Limits count search nodes, not seconds,
so a label does not depend on the machine or the number of threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType

import numpy as np

from t2t_core import advice
from t2t_core.errors import T2TError

from . import reference_cbs
from .instance import OBJECTIVES, Cell, Instance

MAX_SIZE = 32  # the largest grid that the solver takes
DEFAULT_MAX_NODES = 2_000_000  # our choice: on grids up to 10x10 with 5 agents it left two of 180,000 candidates undecided
_STATUS = ("solved", "infeasible", "undecided")
_ANSWER = (False, True, None)


class UnsolvableError(T2TError):
    """Proven: the agents cannot all reach their goals."""


class SearchLimitError(T2TError):
    """Undecided: the node limit ended the search before an answer was certain."""


@dataclass(frozen=True)
class Solution:
    """One optimal solution.

    Args:
        cost: the optimum of `objective`, in steps.
        paths: per agent its cells (row, column) from the start to its final arrival on the goal.
        objective: "makespan" or "sum_of_costs".
        nodes: search nodes expanded.
    """

    cost: int
    paths: tuple[tuple[Cell, ...], ...]
    objective: str
    nodes: int = 0


@dataclass(frozen=True)
class Label:
    """The result of `solve_many` for one instance.

    Args:
        status: "solved", "infeasible" (proven) or "undecided" (the node limit came first).
        cost: the optimum in steps, None unless solved.
        requires_wait: whether every optimal solution waits; None if not asked for or not decided.
        nodes: search nodes stored and expanded, the unit of `max_nodes`.
        work: all work done, in steps of about ten nanoseconds; 0 without the native core.
    """

    status: str
    cost: int | None
    requires_wait: bool | None
    nodes: int
    work: int = field(default=0, compare=False)


@cache
def native_core() -> ModuleType | None:
    """The native core, or None if it was not built, with a warning the first time."""
    try:
        return import_module(f"{__package__}._native")
    except ImportError as error:
        warnings.warn(
            f"the native core is not available ({error}); plain Python is used and is far slower. "
            f"To have it: {advice.native_core()}.",
            RuntimeWarning,
            stacklevel=3,
        )
        return None


def solve(instance: Instance, objective: str | None = None, max_nodes: int = DEFAULT_MAX_NODES) -> Solution:
    """The optimum of `objective` (None: the instance's own) and one optimal solution.

    Raises:
        UnsolvableError: there is provably no solution.
        SearchLimitError: `max_nodes` search nodes did not decide it.
        T2TError: unknown objective or a limit that is not a positive integer.
    """
    objective, max_nodes = _objective_of(instance, objective), _limit(max_nodes)
    _check_size(instance)
    core = native_core()
    if core is None:
        result = reference_cbs.search(instance, objective, max_nodes)
        status, cost, nodes, paths = result.status, result.cost, result.nodes, result.paths
    else:
        _, _, holes, starts, goals = flat_arrays([instance])
        code, cost, nodes, cells = core.solve(instance.size, holes, starts, goals, OBJECTIVES.index(objective), max_nodes)
        status = _STATUS[code]
        paths = tuple(tuple(divmod(cell, instance.size) for cell in path) for path in cells)
    _raise_unless_solved(instance, status, max_nodes)
    return Solution(int(cost or 0), paths, objective, nodes)


def requires_wait(instance: Instance, objective: str | None = None, max_nodes: int = DEFAULT_MAX_NODES) -> bool:
    """Whether every optimal solution contains a wait by some agent before its final arrival. Raises as `solve`."""
    label = solve_many([instance], objective, max_nodes, wait=True)[0]
    _raise_unless_solved(instance, label.status, max_nodes)
    if label.requires_wait is None:
        _raise_unless_solved(instance, "undecided", max_nodes)
    return bool(label.requires_wait)


def solve_many(
    instances: Sequence[Instance],
    objective: str | None = None,
    max_nodes: int = DEFAULT_MAX_NODES,
    wait: bool = False,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[Label]:
    """Labels of many instances, of any mix of sizes and agent counts, from one call into the native core.

    Args:
        objective: None means each instance's own.
        max_nodes: the limit of each single search, in nodes.
        wait: also decide `requires_wait`.
        threads: worker threads; the labels do not depend on it.
        progress: called about ten times a second with the number of instances done; an exception from it ends the work.

    Raises:
        T2TError: unknown objective, or a limit or thread count that is not a positive integer.
    """
    max_nodes, threads = _limit(max_nodes), _limit(threads, "threads", 1024)
    objectives = [_objective_of(instance, objective) for instance in instances]
    for instance in instances:
        _check_size(instance)
    core = native_core()
    if core is None:
        labels = []
        for pair in zip(instances, objectives, strict=True):
            labels.append(_reference_label(*pair, max_nodes, wait))
            if progress is not None:
                progress(len(labels))
        return labels
    codes = np.array([OBJECTIVES.index(name) for name in objectives], dtype=np.uint8)
    columns = core.solve_many(*flat_arrays(instances), codes, max_nodes, wait, threads, progress=progress)
    return [
        Label(_STATUS[status], cost if status == 0 else None, _ANSWER[answer] if wait else None, nodes, work)
        for status, cost, answer, nodes, work in zip(*(column.tolist() for column in columns), strict=True)
    ]


def flat_arrays(instances: Sequence[Instance]) -> tuple[np.ndarray, ...]:
    """The instances as arguments for the native core: sizes and agent counts per instance, then the holes (one byte per cell),
    starts and goals of all instances, end to end."""
    holes, starts, goals = bytearray(), [], []
    for instance in instances:
        size = instance.size
        cells = bytearray(size * size)
        for row, column in instance.holes:
            cells[row * size + column] = 1
        holes += cells
        starts += [row * size + column for row, column in instance.starts]
        goals += [row * size + column for row, column in instance.goals]
    sizes = np.array([instance.size for instance in instances], dtype=np.int32)
    agents = np.array([len(instance.starts) for instance in instances], dtype=np.int32)
    flat = np.frombuffer(bytes(holes), dtype=np.uint8)
    return sizes, agents, flat, np.array(starts, dtype=np.int16), np.array(goals, dtype=np.int16)


def _reference_label(instance: Instance, objective: str, max_nodes: int, wait: bool) -> Label:
    result = reference_cbs.search(instance, objective, max_nodes)
    answer = None
    if wait and result.cost is not None:
        answer = reference_cbs.requires_wait(instance, objective, result.cost, max_nodes)
    return Label(result.status, result.cost, answer, result.nodes)


def _objective_of(instance: Instance, objective: str | None) -> str:
    name = instance.objective if objective is None else objective
    if name not in OBJECTIVES:
        raise T2TError(f"unknown objective {ascii(name)[:60]}", next='use "makespan" or "sum_of_costs"')
    return name


def _check_size(instance: Instance) -> None:
    if instance.size > MAX_SIZE:
        raise T2TError(
            f"the solver takes grids of up to {MAX_SIZE}x{MAX_SIZE}, this one has {instance.size}x{instance.size}",
            where=f"instance {instance.id}",
            cause="larger lakes can be played and verified, but not solved",
        )


def _limit(value: int, name: str = "max_nodes", high: int = 2**62) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 1 <= value.__index__() <= high:
        raise T2TError(f"{name} must be a positive integer of at most {high}")
    return value.__index__()


def _raise_unless_solved(instance: Instance, status: str, max_nodes: int) -> None:
    where = f"instance {instance.id}" if instance.id else ""
    if status == "infeasible":
        raise UnsolvableError("the agents cannot all reach their goals", where=where, cause="proven by exhausting the search")
    if status == "undecided":
        raise SearchLimitError(
            f"{max_nodes} search nodes did not decide this instance", where=where, next="raise max_nodes, or drop the instance"
        )
