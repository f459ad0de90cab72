"""Where the environments' instances come from: drawn at random with their exact optimum, or from a pool somebody gives."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from t2t_core.errors import T2TError

from ..generation.cells import GridCell, Wanted
from ..generation.sampling import draw_cell
from ..instance import Instance
from ..jsonl import iterate_instances
from .options import EnvOptions

PoolSource = str | PathLike[str] | Iterable[Instance | Mapping[str, Any]]
STALL = 200_000  # our choice: candidates in a row without an instance of the wanted kind before a reset gives up


@dataclass(frozen=True, eq=False)
class Pool:
    """P instances of one size and number of agents, also as the arrays that steppers load: holes (P, N*N) uint8, 1 = hole;
    starts and goals (P, k) int16, cells as row * N + column."""

    instances: Sequence[Instance]
    holes: Any
    starts: Any
    goals: Any

    def __len__(self) -> int:
        return len(self.instances)

    @classmethod
    def of(cls, instances: Sequence[Instance]) -> Pool:
        """The pool of instances that are known to be of one size and number of agents."""
        size = instances[0].size
        holes = np.zeros((len(instances), size * size), np.uint8)
        for row, item in zip(holes, instances, strict=True):
            row[[r * size + c for r, c in item.holes]] = 1
        starts = np.array([[r * size + c for r, c in item.starts] for item in instances], np.int16)
        goals = np.array([[r * size + c for r, c in item.goals] for item in instances], np.int16)
        return cls(instances, holes, starts, goals)


def given_pool(instances: Iterable[Any], options: EnvOptions) -> Pool:
    """The pool of given instances, or their dict forms; T2TError where one is wrong or does not fit the environment."""
    items = [item if isinstance(item, Instance) else Instance.from_dict(item) for item in instances]
    if not items:
        raise T2TError("the pool holds no instance", where="instance pool")
    for item in items:
        for name, has, takes in (("size", item.size, options.size), ("num_agents", item.num_agents, options.num_agents)):
            if has != takes:
                raise T2TError(
                    f"the instance has {name} {has}, the environment was made with {name}={takes}",
                    where=f"instance {item.id}",
                    cause="the spaces of an environment are fixed when it is made",
                    next=f"make the environment with {name}={has}",
                )
    return Pool.of(items)


def read_pool(source: PoolSource, options: EnvOptions) -> Pool:
    """The pool of a JSON Lines file, or of a list of instances (or their dicts).

    Raises:
        T2TError: the file or an instance cannot be read, or does not fit the environment.
    """
    if isinstance(source, (str, PathLike)):
        return given_pool(iterate_instances(source), options)
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise T2TError(f"a pool is a path or a list of instances, not {type(source).__name__}", where="instance pool")
    return given_pool(source, options)


def random_instances(options: EnvOptions, key: int, count: int = 1) -> list[Instance]:
    """`count` independent random instances that fit the options, each solvable and with its exact optimum.

    Drawn as the generator draws (uniform among the solvable instances of the wanted kind), but with repeats; instance i
    depends on the options, the key and i alone. Ids are `<k>agents_<N>x<N>_<key, hexadecimal>_<i>`.

    Raises:
        T2TError: none was found among `STALL` candidates in a row.
    """
    wait = options.require_wait
    wanted = Wanted(wait_free=0 if wait else count, wait=0 if wait is False else count, total=count, distinct=False)
    cell = GridCell(options.size, options.holes, options.num_agents, options.objective)
    draws = draw_cell(cell, key, wanted, stall=STALL)
    if len(draws.instances) < count:
        raise T2TError(
            f"no such instance was found in {draws.drawn} draws ({draws.undecided} of them undecided)",
            where="options size, num_agents, hole_ratio, require_wait",
            cause="instances of this kind are rare, or there are none",
            next="use a larger size, fewer agents, fewer holes or require_wait=None",
        )
    stem = f"{options.num_agents}agents_{options.size}x{options.size}_{key:016x}"
    return [_named(instance, f"{stem}_{index:04d}") for index, instance in enumerate(draws.instances)]


def _named(instance: Instance, name: str) -> Instance:
    """The same instance under another name, without the constructor's checks, which would cost more than the search."""
    twin = copy.copy(instance)
    object.__setattr__(twin, "id", name)
    return twin
