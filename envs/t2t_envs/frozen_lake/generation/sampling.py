"""Draws and lists the instances of one stratum of the generator (`strata`).

Candidate i of a stratum is drawn from `Stream(key).fork(i)`: a uniform hole set, then for each agent a start and a goal,
uniform over the free cells that no earlier agent starts or ends on. It is rejected if an agent starts on its goal or cannot
reach it, or if there is no solution. The others are labelled exactly and taken, in candidate order, if they are new and their
kind (wait or wait-free) is still needed. So the instances of a kind are a uniform sample, without replacement, of all
labelled instances of that kind. The native core does this; `reference_sampler` does the same in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import numpy as np

from .. import solver
from ..instance import OBJECTIVES, Cell, Instance
from . import reference_sampler
from .strata import Draws, Forms, Quota, Stratum


def draw_stratum(
    stratum: Stratum,
    key: int,
    quota: Quota,
    *,
    stall: int | None = None,
    max_nodes: int = solver.DEFAULT_MAX_NODES,
    threads: int = 1,
    max_work: int = 0,
    progress: Callable[[int, int, int, int], None] | None = None,
) -> Draws:
    """Draw labelled instances (without ids); the result does not depend on `threads`.

    Drawing stops as soon as it is unlikely to finish within `max_work` steps of work (0: no limit). `progress(drawn, wait_free,
    wait, undecided)` is called now and then; an exception from it ends the drawing.
    """
    stall = stratum.stall if stall is None else stall
    core = solver.native_core()
    if core is None:
        return reference_sampler.draw_stratum(stratum, key, quota, stall, max_nodes, progress)
    result = core.sample_cell(
        stratum.size, stratum.holes, stratum.num_agents, OBJECTIVES.index(stratum.objective), key, quota.wait_free, quota.wait,
        quota.wait_free + quota.wait if quota.total is None else quota.total, stall, max_nodes,
        both=quota.both, one_per_form=quota.one_per_form, distinct=quota.distinct, threads=threads,
        exclude=list(of_stratum(quota.exclude, stratum)), max_steps=max_work, progress=progress,
    )  # fmt: skip
    counts = (result[name] for name in ("drawn", "undecided", "stalled", "steps", "hopeless"))
    return Draws(_instances(stratum, result), *counts)


def list_forms(stratum: Stratum, wait: bool | None = None, max_nodes: int = solver.DEFAULT_MAX_NODES) -> Forms:
    """Count all canonical forms of an enumerable stratum, and list those that do (or do not) require a wait."""
    core = solver.native_core()
    if core is None:
        return reference_sampler.list_forms(stratum, wait, max_nodes)
    kind = -1 if wait is None else int(wait)
    wait_free, waiting, undecided, listed = core.enumerate_cell(
        stratum.size, stratum.holes, stratum.num_agents, OBJECTIVES.index(stratum.objective), max_nodes, kind
    )
    return Forms(wait_free, waiting, undecided, tuple(listed))


def of_stratum(forms: Collection[bytes], stratum: Stratum) -> list[bytes]:
    """The canonical forms that belong to the stratum, which their first three numbers tell."""
    head = b"".join(x.to_bytes(2, "big") for x in (stratum.size, stratum.holes, stratum.num_agents))
    return [form for form in forms if form.startswith(head)]


def from_form(form: bytes, objective: str) -> Instance:
    """The instance that a canonical form encodes."""
    size, holes, agents, *cells = (int.from_bytes(form[i : i + 2], "big") for i in range(0, len(form), 2))
    where = [divmod(cell, size) for cell in cells]
    pairs = where[holes : holes + 2 * agents]
    return Instance(size, where[:holes], pairs[0::2], pairs[1::2], objective)


@cache
def _cells(size: int) -> list[Cell]:
    return [divmod(cell, size) for cell in range(size * size)]


def _instances(stratum: Stratum, result: dict[str, Any]) -> list[Instance]:
    """Instances from the core's arrays. They are built without the constructor's checks, which cost ten times the search."""
    at = _cells(stratum.size).__getitem__
    columns = (result["holes"], result["starts"], result["goals"], result["costs"], result["wait"])
    rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    instances = []
    for holes, starts, goals, (makespan, sum_of_costs), (wait,) in rows:
        instance = object.__new__(Instance)
        instance.__dict__.update(
            size=stratum.size,
            holes=tuple(map(at, holes)),
            starts=tuple(map(at, starts)),
            goals=tuple(map(at, goals)),
            objective=stratum.objective,
            id="",
            optimal_makespan=makespan if makespan >= 0 else None,
            optimal_sum_of_costs=sum_of_costs if sum_of_costs >= 0 else None,
            requires_wait=bool(wait),
        )
        instances.append(instance)
    return instances
