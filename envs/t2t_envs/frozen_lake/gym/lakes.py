"""The sources of the environments' lakes: drawn at random and proven solvable, or given by the user.

Lake n of a stream depends only on the stream's key, n and the source, not on when it is drawn or what else runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from t2t_core.errors import T2TError
from t2t_core.store import folders

from ..generation.configuration import SIZES, Configuration, hole_count
from ..generation.forms import capacity
from ..instance import OBJECTIVES, Instance
from ..jsonl import iterate_instances
from ..maps import Layout, parse_desc, read_map, read_scenario
from ..solver import MAX_SIZE as MAX_DRAWN_SIZE
from ..solver import solve_many
from .options import EnvOptions
from .stepper import stepping_core

PoolSource = str | PathLike[str] | Iterable[Instance | Mapping[str, Any]]
ConfigurationSource = str | PathLike[str] | Mapping[str, Any] | Configuration
STALL = 200_000  # our choice: a reset gives up after so many candidates in a row without a lake of the requested kind
UNKNOWN = -1
_ALL, _EITHER = 1 << 32, -1  # a share, in parts of 2^32; a lake that requires a wait, or doesn't


@dataclass(frozen=True)
class DrawnLakes:
    """Solvable random lakes.

    Args:
        parts: for each kind of lake its size, hole count, the sum of the shares so far (of 2^32) and the share of the lakes that
            require a wait (of 2^32; -1 takes lakes of both kinds as they are drawn).
        layout: the holes that all lakes have; None draws them too.
    """

    parts: tuple[tuple[int, int, int, int], ...]
    layout: Layout | None = None

    @property
    def largest(self) -> int:
        """The largest size that is drawn."""
        return max(size for size, *_ in self.parts)

    def source(self, options: EnvOptions) -> Any:
        """The core's source of these lakes."""
        holes = np.zeros(0, np.uint8) if self.layout is None else self.layout.grid.ravel()
        objective = OBJECTIVES.index(options.objective)
        return stepping_core().LakeSource.random(list(self.parts), holes, options.num_agents, objective, options.max_nodes, STALL)


@dataclass(frozen=True, eq=False)
class GivenLakes:
    """A pool of instances, all equally likely."""

    instances: tuple[Instance, ...]

    @property
    def largest(self) -> int:
        """The size of the largest instance."""
        return max(instance.size for instance in self.instances)

    def source(self, options: EnvOptions) -> Any:
        """The core's source of these lakes."""
        lakes = [flat_lake(instance) for instance in self.instances]
        sizes = np.array([lake.size for lake in lakes], np.int32)
        holes, starts, goals = (np.concatenate(part) for part in zip(*(lake[1:4] for lake in lakes), strict=True))
        optima = np.array([lake.optimum for lake in lakes], np.int32)
        return stepping_core().LakeSource.pool(sizes, holes, starts, goals, optima, options.num_agents)


class FlatLake(NamedTuple):
    """A lake as the core takes it: holes (N*N) uint8, starts and goals (k) int32 as row * N + column; optimum -1 if unknown."""

    size: int
    holes: Any
    starts: Any
    goals: Any
    optimum: int


def flat_lake(instance: Instance) -> FlatLake:
    """An instance as arrays of cells' numbers, row * size + column."""
    size = instance.size
    holes = np.zeros(size * size, np.uint8)
    holes[[r * size + c for r, c in instance.holes]] = 1
    starts, goals = (np.array([r * size + c for r, c in cells], np.int32) for cells in (instance.starts, instance.goals))
    return FlatLake(size, holes, starts, goals, UNKNOWN if instance.optimum is None else instance.optimum)


Lakes = DrawnLakes | GivenLakes


def choose_lakes(
    given: Mapping[str, Any], pool: PoolSource | None, desc: Any, configuration: ConfigurationSource | None
) -> tuple[EnvOptions, Lakes]:
    """The options and the lakes of an environment made with these arguments. The size and the numbers of agents and holes need
    not be given if the lakes determine them; if given, they must agree with the lakes.

    Raises:
        T2TError: an argument is wrong, or contradicts another.
    """
    named = [name for name, value in (("pool", pool), ("desc", desc), ("configuration", configuration)) if value is not None]
    if len(named) > 1:
        cause = "each determines where the lakes come from"
        raise T2TError(f"give {named[0]} or {named[1]}, not both", where="environment", cause=cause)
    settled = {name: value for name, value in given.items() if name not in _DRAWN or value is not None}
    if configuration is not None:
        return _from_configuration(settled, read_configuration(configuration))
    if pool is not None:
        return _from_pool(settled, pool)
    if desc is not None:
        return _from_desc(settled, desc)
    options = EnvOptions.of(settled)
    return options, drawn_lakes(options)


_DRAWN = ("size", "num_agents", "hole_ratio")  # None stands for the default, or for the value that the lakes determine


def drawn_lakes(options: EnvOptions) -> DrawnLakes:
    """Random lakes of one size and hole count."""
    if options.size > MAX_DRAWN_SIZE:
        cause = f"the solver must prove them solvable, and it takes sizes up to {MAX_DRAWN_SIZE}"
        told = f"random lakes have sizes up to {MAX_DRAWN_SIZE}"
        raise T2TError(told, where="option size", cause=cause, next="give desc= or pool=")
    if options.num_agents > options.free_cells:
        raise T2TError(
            f"{options.num_agents} agents do not fit on the {options.free_cells} free cells",
            where="options size, num_agents, hole_ratio",
            next="use a larger size, fewer agents or fewer holes",
        )
    wait = _EITHER if options.require_wait is None else _ALL * options.require_wait
    return DrawnLakes(((options.size, options.holes, _ALL, wait),))


def configured_lakes(configuration: Configuration, options: EnvOptions) -> DrawnLakes:
    """The lakes of a configuration: a size comes with its data ratio, a lake that requires a wait with the size's wait ratio. A
    hole count is capped at what the size can hold."""
    sizes = [size for size in SIZES if configuration[size].data_ratio]
    if sizes[-1] > options.frame:
        raise T2TError(
            f"the configuration draws {sizes[-1]}x{sizes[-1]} lakes, but the environment shows at most "
            f"{options.frame}x{options.frame}",
            where="configuration",
            cause="the spaces of an environment are fixed when it is made",
            next=f"make the environment with max_size={sizes[-1]}",
        )
    shares: list[tuple[float, int, int, float]] = []
    for size in sizes:
        knobs, most = configuration[size], capacity(size, options.num_agents)
        if most < 0:
            told = f"{options.num_agents} agents cannot move on a {size}x{size} lake"
            raise T2TError(told, where=f"configuration, size {size}")
        for cell in knobs.drawn():
            holes = min(hole_count(cell.hole_ratio, size), most)
            shares.append((knobs.data_ratio * cell.share, size, holes, 0.0 if options.num_agents == 1 else cell.wait_ratio))
    total, so_far = sum(share for share, *_ in shares), 0.0
    parts = []
    for share, size, holes, wait in shares:
        so_far += share
        parts.append((size, holes, round(so_far / total * _ALL), round(wait * _ALL)))
    return DrawnLakes(tuple(parts))


def read_configuration(source: ConfigurationSource) -> Configuration:
    """A configuration, given as such, in its dict form or as a JSON file. Raises T2TError if it is not a configuration."""
    if isinstance(source, Configuration):
        return source
    if isinstance(source, Mapping):
        return Configuration.from_dict(source)
    if not isinstance(source, (str, PathLike)):
        told = f"a configuration is a Configuration, a dict or a path, not {type(source).__name__}"
        raise T2TError(told, where="configuration")
    return Configuration.from_dict(folders.read_json(Path(source)))


def read_pool(source: PoolSource, num_agents: int | None = None) -> list[Instance]:
    """The instances of a JSON Lines file, a MovingAI `.scen` file, or a list of instances or their dicts. Raises T2TError if one
    is wrong or the pool is empty."""
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        if path.suffix == ".scen":
            return read_scenario(path, 2 if num_agents is None else num_agents)
        items: Iterable[Any] = iterate_instances(path)
    elif isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise T2TError(f"a pool is a path or a list of instances, not {type(source).__name__}", where="instance pool")
    else:
        items = source
    instances = [item if isinstance(item, Instance) else Instance.from_dict(item) for item in items]
    if not instances:
        raise T2TError("the pool holds no instance", where="instance pool")
    return instances


def check_fit(instances: Sequence[Instance], options: EnvOptions) -> None:
    """Raise T2TError if an instance doesn't fit the spaces of the environment."""
    for item in instances:
        fits = item.size <= options.frame if options.max_size is not None else item.size == options.size
        if fits and item.num_agents == options.num_agents:
            continue
        name, has, takes = ("num_agents", item.num_agents, options.num_agents) if fits else ("size", item.size, options.frame)
        raise T2TError(
            f"the instance has {name} {has}, but the environment was made with {name}={takes}",
            where=f"instance {item.id}",
            cause="the spaces of an environment are fixed when it is made",
            next=f"make the environment with {name}={has}" + ("" if fits else ", or with max_size for lakes of several sizes"),
        )


def _from_configuration(given: dict[str, Any], configuration: Configuration) -> tuple[EnvOptions, Lakes]:
    for name in ("size", "hole_ratio", "require_wait"):
        if given.get(name) is not None:
            raise T2TError(f"{name} and configuration contradict each other", where=f"option {name}", next=f"leave {name} out")
    largest = max(size for size in SIZES if configuration[size].data_ratio)
    options = EnvOptions.of(given | {"size": largest, "max_size": given.get("max_size") or largest})
    return options, configured_lakes(configuration, options)


def _from_pool(given: dict[str, Any], pool: PoolSource) -> tuple[EnvOptions, Lakes]:
    instances = read_pool(pool, given.get("num_agents"))
    sizes = {item.size for item in instances}
    settled: dict[str, Any] = {"size": max(sizes), "num_agents": instances[0].num_agents, "objective": instances[0].objective}
    if len(sizes) > 1:
        settled["max_size"] = max(sizes)
    options = EnvOptions.of(settled | {name: value for name, value in given.items() if value is not None})
    check_fit(instances, options)
    odd = [item for item in instances if item.objective != options.objective]
    if odd:
        raise T2TError(
            f"the instance has the objective {odd[0].objective}, but the environment has {options.objective}",
            where=f"instance {odd[0].id}",
            next="give a pool whose instances have the same objective, and make the environment with that objective",
        )
    return options, GivenLakes(tuple(instances))


def _labelled(instance: Instance, options: EnvOptions) -> Instance:
    """The only lake of a map with its optimum, because every solved episode is judged by it. The optimum is left out if labels
    are off, the map is too large for the solver, or the search does not finish within `max_nodes`."""
    if options.labels is False or instance.size > MAX_DRAWN_SIZE:
        return instance
    (label,) = solve_many([instance], max_nodes=options.max_nodes)
    optimum: dict[str, Any] = {f"optimal_{options.objective}": label.cost}
    return replace(instance, **optimum)


def _from_desc(given: dict[str, Any], desc: Any) -> tuple[EnvOptions, Lakes]:
    is_file = isinstance(desc, PathLike) or isinstance(desc, str) and desc.endswith(".map") and "\n" not in desc
    layout = read_map(Path(desc)) if is_file else parse_desc(desc)
    if given.get("hole_ratio") is not None:
        raise T2TError("hole_ratio and desc contradict each other", where="option hole_ratio", next="leave hole_ratio out")
    settled: dict[str, Any] = {"size": layout.size}
    if layout.starts:
        settled["num_agents"] = len(layout.starts)
    for name, value in settled.items():
        if given.get(name) not in (None, value):
            told = f"the map has {name} {value}, not {str(given[name])[:20]}"
            raise T2TError(told, where=f"option {name}", next=f"leave {name} out")
    options = EnvOptions.of(given | settled)
    if layout.starts:
        instance = layout.instance(options.objective)
        check_fit([instance], options)
        return options, GivenLakes((_labelled(instance, options),))
    if layout.size > MAX_DRAWN_SIZE:
        raise T2TError(
            f"agents are drawn on maps of up to {MAX_DRAWN_SIZE} cells a side, but this one has {layout.size}",
            where="option desc",
            next="mark starts and goals in the map, or give a .scen file as pool",
        )
    if options.num_agents > layout.size**2 - len(layout.holes):
        raise T2TError(f"{options.num_agents} agents do not fit on the map", where="options desc, num_agents")
    wait = _EITHER if options.require_wait is None else _ALL * options.require_wait
    return options, DrawnLakes(((layout.size, len(layout.holes), _ALL, wait),), layout)
