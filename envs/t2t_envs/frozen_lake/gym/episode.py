"""One episode of MAPF-FrozenLake, as the Gymnasium and the PettingZoo environment share it: which instance, and how it ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from t2t_core.errors import T2TError

from ..instance import Cell, Instance
from ..reward import accuracy_reward
from ..rules import DELTAS
from .options import EnvOptions
from .pools import Pool, PoolSource, given_pool, random_instances, read_pool
from .stepper import make_stepper

CONFLICTS = ("", "vertex", "edge")
RESET_OPTIONS = ("instance", "pool")


class Episode:
    """The state behind one environment.

    Args:
        options: checked options.
        pool: instances that every reset draws from; None: a fresh random instance each time.
    """

    def __init__(self, options: EnvOptions, pool: PoolSource | None = None) -> None:
        self.options = options
        self.stepper = make_stepper(**options.stepper())
        self._pool = None if pool is None else read_pool(pool, options)
        self._instance: Instance | None = None

    def start(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> dict[str, Any]:
        """Choose the next instance, with random numbers from `rng`, and return reset's info."""
        pool, index = choose(self.options, self._pool, rng, options)
        self._load(pool, index)
        return start_info(self.instance)

    def _load(self, pool: Pool, index: int) -> None:
        self.stepper.load(pool.holes[index], pool.starts[index], pool.goals[index])
        self._instance = pool.instances[index]

    def __getstate__(self) -> dict[str, Any]:
        """For copies (a search that tries moves out) and pickles: the paths stand for the stepper's state."""
        state = {name: value for name, value in self.__dict__.items() if name != "stepper"}
        return state | {"paths": self.paths if self._instance else []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Play the moves that the paths show: a blocked move shows as a wait, and has the same effect."""
        paths = state.pop("paths")
        self.__dict__.update(state)
        self.stepper = make_stepper(**self.options.stepper())
        if self._instance is None:
            return
        self._load(Pool.of([self._instance]), 0)
        for before, after in pairwise(zip(*paths, strict=True)):
            moves = [(to[0] - at[0], to[1] - at[1]) for at, to in zip(before, after, strict=True)]
            self.stepper.step([DELTAS.index(move) for move in moves])

    def end(self) -> tuple[float, dict[str, Any]]:
        """The reward and the verdict of an episode that has ended."""
        valid, fell, conflict, _, makespan, sum_of_costs = self.stepper.outcome()
        if not valid:
            return 0.0, failure(fell, conflict)
        cost = makespan if self.instance.objective == "makespan" else sum_of_costs
        optimum = self.instance.optimum
        info = {"valid": True, "cost": cost, "makespan": makespan, "sum_of_costs": sum_of_costs}
        if optimum is not None:
            info |= {"optimal": cost == optimum, "gap": cost - optimum}
        return episode_reward(self.options.reward, cost, optimum), info

    def individual_rewards(self) -> list[float]:
        """At the end, per agent: 1.0 if it stands on its goal and neither fell nor took part in a conflict, else 0.0 (ours)."""
        _, _, _, faults, _, _ = self.stepper.outcome()
        arrived = [path[-1] == goal for path, goal in zip(self.paths, self.instance.goals, strict=True)]
        return [float(home and not faults >> agent & 1) for agent, home in enumerate(arrived)]

    def misuse(self, error: Exception) -> T2TError:
        """What a stepper's complaint means to the user."""
        told = str(error) if isinstance(error, ValueError) else f"the action cannot be read: {error}"
        return T2TError(
            told,
            where="step()",
            cause=f"a joint action is {self.options.num_agents} integers, one per agent, in 0..4 (left, down, right, up, wait)",
        )

    @property
    def instance(self) -> Instance:
        """The instance being played; T2TError before the first."""
        if self._instance is None:
            raise T2TError("there is no episode yet", where="environment", next="call reset() first")
        return self._instance

    def check_started(self) -> None:
        """T2TError before the first episode."""
        _ = self.instance

    @property
    def paths(self) -> list[list[Cell]]:
        """Per agent its cells so far, the start first."""
        cells = [divmod(cell, self.instance.size) for cell in self.stepper.history]
        return [cells[agent :: self.options.num_agents] for agent in range(self.options.num_agents)]

    @property
    def recent(self) -> list[list[Cell]]:
        """Per agent the last two of its cells (at the start: the only one)."""
        return [path[-2:] for path in self.paths]


def check_reset_options(options: Mapping[str, Any] | None, known: Collection[str] = RESET_OPTIONS) -> None:
    """Refuse what no reset understands, so that a typing error does not play a random instance in silence."""
    unknown = [name for name in options or {} if name not in known]
    if unknown:
        raise T2TError(f"unknown reset option {unknown[0]!r}", where="reset options", next="use one of " + ", ".join(known))


def choose(
    env: EnvOptions, pool: Pool | None, rng: np.random.Generator, options: Mapping[str, Any] | None
) -> tuple[Pool, int]:
    """The instance of a reset, as a pool and a place in it: the one of `options`, else one of the pool, else a fresh one."""
    instance, source = (options or {}).get("instance"), (options or {}).get("pool")
    if instance is not None and source is not None:
        raise T2TError("give either an instance or a pool", where="reset options")
    if instance is not None:
        return given_pool([instance], env), 0
    if source is not None:
        pool = read_pool(source, env)
    if pool is not None:
        return pool, int(rng.integers(len(pool)))
    return Pool.of(random_instances(env, key=int(rng.integers(1 << 63)))), 0


def start_info(instance: Instance) -> dict[str, Any]:
    """What `reset` says of the instance."""
    optimum = instance.optimum
    return {"instance": instance.id} if optimum is None else {"instance": instance.id, "optimum": optimum}


def failure(fell: bool, conflict: int) -> dict[str, Any]:
    """The verdict of an episode that was not solved."""
    check = "hole_free" if fell else "conflict_free" if conflict else "goal_reached"
    info: dict[str, Any] = {"valid": False, "optimal": False, "failure": check}
    if conflict:
        info["conflict"] = CONFLICTS[conflict]
    return info


def episode_reward(kind: str, cost: int, optimum: int | None) -> float:
    """The reward of a solved episode."""
    return 1.0 if kind == "success" else accuracy_reward(cost, optimum)
