"""One episode of MAPF-FrozenLake, shared by the environments: which lake is played, and how the episode ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from t2t_core.errors import T2TError
from t2t_core.seeding import Stream

from ..instance import Cell, Instance
from ..reward import accuracy_reward
from .lakes import (
    ConfigurationSource,
    GivenLakes,
    PoolSource,
    check_fit,
    choose_lakes,
    configured_lakes,
    flat_lake,
    read_configuration,
    read_pool,
)
from .stepper import stepping_core

FAILURES = ("", "hole_free", "conflict_free", "goal_reached")  # an info holds the index
CONFLICTS = ("", "vertex", "edge")
RESET_OPTIONS = ("instance", "pool")


def stream_of(seed: int | None) -> Stream:
    """The stream for a seed, or a random one for None. Environment i of a vector draws its lakes with the key of fork i."""
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    return Stream.of(int(seed), "lakes")


class Lobby:
    """What environments are made from: their options, the source of their lakes, and the instances behind the lakes."""

    def __init__(
        self, given: Mapping[str, Any], pool: PoolSource | None, desc: Any, configuration: ConfigurationSource | None
    ) -> None:
        self.options, self.lakes = choose_lakes(given, pool, desc, configuration)
        self.changed = False  # whether a configuration has been set since

    def configure(self, configuration: ConfigurationSource) -> Any:
        """Draw lakes from this configuration from now on; returns the core's source of them."""
        self.lakes = configured_lakes(read_configuration(configuration), self.options)
        self.changed = True
        return self.source()

    def source(self) -> Any:
        """The core's source of the lakes."""
        return self.lakes.source(self.options)

    def core_options(self) -> Any:
        """The options in the form that the stepping core takes."""
        return stepping_core().EnvOptions(**self.options.stepper())

    def instance(self, lake: tuple[Any, ...]) -> Instance:
        """The instance behind a lake of the core, if the lake was not given to `reset`."""
        size, holes, starts, goals, name, guise, optimum, _ = lake
        if isinstance(self.lakes, GivenLakes):
            return self.lakes.instances[int(name)]
        objective = self.options.objective
        parts = (np.flatnonzero(holes), starts, goals)
        holes, starts, goals = ([divmod(cell, size) for cell in part.tolist()] for part in parts)
        identity = f"{self.options.num_agents}agents_{size}x{size}_{name:016x}" + (f"_{guise}" if guise else "")
        labels = {f"optimal_{objective}": optimum if optimum >= 0 else None, "requires_wait": self._wait(size)}
        return Instance(size, holes, starts, goals, objective, identity, **labels)

    def _wait(self, size: int) -> bool | None:
        """Whether all drawn lakes of this size require a wait (True) or none does (False); None if both kinds are drawn."""
        waits = {part[3] for part in self.lakes.parts if part[0] == size} if not isinstance(self.lakes, GivenLakes) else set()
        return waits == {1 << 32} if waits in ({0}, {1 << 32}) else None


class Episode:
    """The state behind one environment.

    Args:
        lobby: options and lakes.
    """

    def __init__(self, lobby: Lobby) -> None:
        self.lobby, self.options = lobby, lobby.options
        self.stepper = stepping_core().Stepper(lobby.core_options(), lobby.source())
        self.shaped = self.options.reward == "shaped"
        self._given: Instance | None = None
        self._drawn: Instance | None = None  # the instance behind the current lake, once somebody has asked for it
        self._choices: Stream | None = None  # chooses from a pool that is given to `reset`
        self._potential = 0.0
        self._potentials: list[float] = []

    def seed(self, seed: int | None) -> None:
        """Start the stream of lakes. None starts it from a random seed, unless it has already begun."""
        if seed is None and self._choices is not None:
            return
        stream = stream_of(seed)
        self.stepper.seed(stream.fork(0).next())
        self._choices = stream.fork(1 << 62)

    def set_configuration(self, configuration: ConfigurationSource) -> None:
        """Draw lakes of this configuration from the next reset on."""
        self._drawn = self.instance if self.started else None  # while its source is still known
        self.stepper.set_source(self.lobby.configure(configuration))

    def start(self, options: Mapping[str, Any] | None) -> dict[str, Any]:
        """Begin the next lake of the stream, or the one that `options` give, and return the info for `reset`."""
        self._given = self._instance_of(options) if options else None
        self._drawn = None
        if self._given is not None:
            self.stepper.play(*flat_lake(self._given))
        else:
            restart(self.stepper)
        if self.shaped:
            self._potential, self._potentials = 0.0, [0.0] * self.options.num_agents
        return self._start_info()

    def _start_info(self) -> dict[str, Any]:
        info: dict[str, Any] = {}
        if self.options.names:
            info["instance"] = self.instance.id
        if self.options.labels is True and (optimum := self.stepper.optimum()) >= 0:
            info["optimum"] = optimum
        return info

    def _instance_of(self, options: Mapping[str, Any]) -> Instance | None:
        instance: Any = options.get("instance")
        source: PoolSource | None = options.get("pool")
        if instance is not None and source is not None:
            raise T2TError("give either an instance or a pool", where="reset options")
        if instance is None and source is None:
            return None
        instances = read_pool([instance] if source is None else source, self.options.num_agents)
        check_fit(instances, self.options)
        if self._choices is None:
            self._choices = stream_of(None)
        return instances[self._choices.below(len(instances))]

    def reward(self, ended: bool) -> tuple[float, dict[str, Any]]:
        """The reward of the step just taken and, at the end, the verdict."""
        reward, info = self._verdict() if ended else (0.0, {})
        if self.shaped:
            before, self._potential = self._potential, 0.0 if ended else self.stepper.potential()
            reward += self.options.gamma * self._potential - before
        return reward, info

    def _verdict(self) -> tuple[float, dict[str, Any]]:
        valid, fell, conflict, _, makespan, sum_of_costs = self.stepper.outcome()
        if not valid:
            return 0.0, {"valid": False, "optimal": False, "failure": failure(fell, conflict), "conflict": conflict}
        objective = self.options.objective if self._given is None else self._given.objective
        cost, optimum = (makespan if objective == "makespan" else sum_of_costs), self.known_optimum()
        info = {"valid": True, "cost": cost, "makespan": makespan, "sum_of_costs": sum_of_costs}
        if optimum is not None:
            info |= {"optimal": cost == optimum, "gap": cost - optimum}
        return episode_reward(self.options.reward, cost, optimum), info

    def known_optimum(self) -> int | None:
        """The optimum of a solved lake: stored with a given instance, otherwise searched for if `labels` allows it."""
        if self._given is not None:
            return self._given.optimum
        if self.options.labels is False and not isinstance(self.lobby.lakes, GivenLakes):
            return None
        optimum = int(self.stepper.optimum())
        return optimum if optimum >= 0 else None

    def individual_rewards(self, ended: bool) -> list[float]:
        """At the end, per agent: 1.0 if it stands on its goal and neither fell nor took part in a conflict, else 0.0 (ours). If
        rewards are shaped, each agent's reward follows its own progress."""
        agents = range(self.options.num_agents)
        rewards = [0.0 for _ in agents]
        if ended:
            faults, history = self.stepper.outcome()[3], self.stepper.history[-len(agents) :]
            goals = self.stepper.lake()[3].tolist()
            rewards = [float(history[i] == goals[i] and not faults >> i & 1) for i in agents]
        if self.shaped:
            before, self._potentials = self._potentials, [0.0 if ended else self.stepper.potential(i) for i in agents]
            rewards = [r + self.options.gamma * now - was for r, now, was in zip(rewards, self._potentials, before, strict=True)]
        return rewards

    def misuse(self, error: Exception) -> T2TError:
        """The user's error for an error of the stepper."""
        told = str(error) if isinstance(error, ValueError) else f"the action cannot be read: {error}"
        if "call reset() first" in told:
            return T2TError(told.partition(":")[0], where="step()", next="call reset() first")
        return T2TError(
            told,
            where="step()",
            cause=f"a joint action is {self.options.num_agents} integers, one per agent, in 0..4 (left, down, right, up, wait)",
        )

    @property
    def instance(self) -> Instance:
        """The instance being played, with the known labels; T2TError before the first episode."""
        self.check_started()
        if self._given is not None:
            return self._given
        if self._drawn is None:
            self._drawn = self.lobby.instance(self.stepper.lake())
        elif self._drawn.optimum is None and (optimum := self.stepper.lake()[6]) >= 0:  # found in the meantime
            self._drawn = replace(self._drawn, **{f"optimal_{self.options.objective}": optimum})
        return self._drawn

    def optimum(self) -> int | None:
        """The exact optimum of the current lake, searched for if necessary; None if it isn't found within `max_nodes`."""
        self.check_started()
        if self._given is not None:
            return self._given.optimum
        optimum = int(self.stepper.optimum())
        return None if optimum < 0 else optimum

    @property
    def started(self) -> bool:
        """Whether there was a reset."""
        return bool(self.stepper.history)

    def check_started(self) -> None:
        """T2TError before the first episode."""
        if not self.stepper.history:
            raise T2TError("there is no episode yet", where="environment", next="call reset() first")

    @property
    def paths(self) -> list[list[Cell]]:
        """Each agent's cells so far, from its start."""
        self.check_started()
        size = self.stepper.lake()[0]
        cells = [divmod(cell, size) for cell in self.stepper.history]
        return [cells[agent :: self.options.num_agents] for agent in range(self.options.num_agents)]

    @property
    def recent(self) -> list[list[Cell]]:
        """Each agent's last two cells (at the start, its only one)."""
        return [path[-2:] for path in self.paths]

    def __getstate__(self) -> dict[str, Any]:
        """For pickles, and for copies such as a search makes to try moves."""
        state = {name: value for name, value in self.__dict__.items() if name != "stepper"}
        return state | {"state": self.stepper.save()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("state")
        self.__dict__.update(state)
        self.stepper = stepping_core().Stepper(self.lobby.core_options(), self.lobby.source())
        self.stepper.load(*saved)


def restart(stepper: Any, *masks: Any) -> None:
    """Begin the next lake, or those in the mask of a vector. Raises T2TError if no lake of the requested kind is found."""
    try:
        stepper.reset(*masks) if masks else stepper.restart()
    except stepping_core().NoSuchLake as error:
        raise no_such_lake(error) from None


def no_such_lake(error: Exception) -> T2TError:
    """The user's error for an error of the core."""
    drawn, undecided = error.args
    return T2TError(
        f"no such lake was found in {drawn} draws ({undecided} of them undecided)",
        where="options size, num_agents, hole_ratio, require_wait",
        cause="lakes of this kind are rare, or there are none",
        next="use a larger size, fewer agents, fewer holes or require_wait=None",
    )


def check_reset_options(options: Mapping[str, Any] | None, known: Collection[str] = RESET_OPTIONS) -> None:
    """Refuse unknown options, so that a typing error does not silently play a random instance."""
    unknown = [name for name in options or {} if name not in known]
    if unknown:
        raise T2TError(f"unknown reset option {unknown[0]!r}", where="reset options", next="use one of " + ", ".join(known))


def failure(fell: bool, conflict: int) -> int:
    """The number of the check that failed first, an index of `FAILURES`."""
    return 1 if fell else 2 if conflict else 3


def episode_reward(kind: str, cost: int, optimum: int | None) -> float:
    """The reward of a solved episode."""
    return 1.0 if kind == "success" else accuracy_reward(cost, optimum)
