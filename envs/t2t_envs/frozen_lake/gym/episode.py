"""One episode of MAPF-FrozenLake, as the environments share it: which lake, and how it ended."""

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

FAILURES = ("", "hole_free", "conflict_free", "goal_reached")  # what the number in an info says
CONFLICTS = ("", "vertex", "edge")
RESET_OPTIONS = ("instance", "pool")


def stream_of(seed: int | None) -> Stream:
    """The stream that a seed starts, or a random one; environment i of a vector draws its lakes with the key of fork i."""
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    return Stream.of(int(seed), "lakes")


class Lobby:
    """What environments are made of: their options, where their lakes come from, and the instances behind the lakes."""

    def __init__(
        self, given: Mapping[str, Any], pool: PoolSource | None, desc: Any, configuration: ConfigurationSource | None
    ) -> None:
        self.options, self.lakes = choose_lakes(given, pool, desc, configuration)
        self.changed = False  # whether a configuration has been set since

    def configure(self, configuration: ConfigurationSource) -> Any:
        """From now on lakes come from this configuration: the core's source of them."""
        self.lakes = configured_lakes(read_configuration(configuration), self.options)
        self.changed = True
        return self.source()

    def source(self) -> Any:
        """The core's source of the lakes."""
        return self.lakes.source(self.options)

    def core_options(self) -> Any:
        return stepping_core().EnvOptions(**self.options.stepper())

    def instance(self, lake: tuple[Any, ...]) -> Instance:
        """The instance behind a lake of the core that was not given to `reset`."""
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
        """Whether the drawn lakes of this size all require a wait, or none does; None if nobody asked."""
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
        self._drawn: Instance | None = None  # the instance behind the present lake, once somebody has asked for it
        self._choices: Stream | None = None  # which instance of a pool that a reset names
        self._potential = 0.0
        self._potentials: list[float] = []

    def seed(self, seed: int | None) -> None:
        """Start the stream of lakes; None: from a random seed, unless it has begun."""
        if seed is None and self._choices is not None:
            return
        stream = stream_of(seed)
        self.stepper.seed(stream.fork(0).next())
        self._choices = stream.fork(1 << 62)

    def set_configuration(self, configuration: ConfigurationSource) -> None:
        """Lakes of this configuration from the next reset on."""
        self._drawn = self.instance if self.started else None  # while what it was drawn of is known
        self.stepper.set_source(self.lobby.configure(configuration))

    def start(self, options: Mapping[str, Any] | None) -> dict[str, Any]:
        """Begin the next lake of the stream, or one that `options` give, and return reset's info."""
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
        """The optimum of a lake that was solved: stored with what was given, else as `labels` says."""
        if self._given is not None:
            return self._given.optimum
        if self.options.labels is False and not isinstance(self.lobby.lakes, GivenLakes):
            return None
        optimum = int(self.stepper.optimum())
        return optimum if optimum >= 0 else None

    def individual_rewards(self, ended: bool) -> list[float]:
        """At the end, per agent: 1.0 if it stands on its goal and neither fell nor took part in a conflict, else 0.0 (ours);
        shaped, each by how far it is itself."""
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
        """What a stepper's complaint means to the user."""
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
        """The instance being played, with the labels that are known; T2TError before the first."""
        self.check_started()
        if self._given is not None:
            return self._given
        if self._drawn is None:
            self._drawn = self.lobby.instance(self.stepper.lake())
        elif self._drawn.optimum is None and (optimum := self.stepper.lake()[6]) >= 0:  # found since
            self._drawn = replace(self._drawn, **{f"optimal_{self.options.objective}": optimum})
        return self._drawn

    def optimum(self) -> int | None:
        """The exact optimum of the present lake, searched for if need be; None if `max_nodes` doesn't decide it."""
        self.check_started()
        if self._given is not None:
            return self._given.optimum
        optimum = int(self.stepper.optimum())
        return None if optimum < 0 else optimum

    @property
    def started(self) -> bool:
        return bool(self.stepper.history)

    def check_started(self) -> None:
        """T2TError before the first episode."""
        if not self.stepper.history:
            raise T2TError("there is no episode yet", where="environment", next="call reset() first")

    @property
    def paths(self) -> list[list[Cell]]:
        """Per agent its cells so far, the start first."""
        self.check_started()
        size = self.stepper.lake()[0]
        cells = [divmod(cell, size) for cell in self.stepper.history]
        return [cells[agent :: self.options.num_agents] for agent in range(self.options.num_agents)]

    @property
    def recent(self) -> list[list[Cell]]:
        """Per agent the last two of its cells (at the start: the only one)."""
        return [path[-2:] for path in self.paths]

    def __getstate__(self) -> dict[str, Any]:
        """For copies (a search that tries moves out) and pickles."""
        state = {name: value for name, value in self.__dict__.items() if name != "stepper"}
        return state | {"state": self.stepper.save()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("state")
        self.__dict__.update(state)
        self.stepper = stepping_core().Stepper(self.lobby.core_options(), self.lobby.source())
        self.stepper.load(*saved)


def restart(stepper: Any, *masks: Any) -> None:
    """Begin the next lake, or of a vector those of the mask. Raises T2TError if there is no such lake."""
    try:
        stepper.reset(*masks) if masks else stepper.restart()
    except stepping_core().NoSuchLake as error:
        raise no_such_lake(error) from None


def no_such_lake(error: Exception) -> T2TError:
    """What the core's complaint means to the user."""
    drawn, undecided = error.args
    return T2TError(
        f"no such lake was found in {drawn} draws ({undecided} of them undecided)",
        where="options size, num_agents, hole_ratio, require_wait",
        cause="lakes of this kind are rare, or there are none",
        next="use a larger size, fewer agents, fewer holes or require_wait=None",
    )


def check_reset_options(options: Mapping[str, Any] | None, known: Collection[str] = RESET_OPTIONS) -> None:
    """Refuse what no reset understands, so that a typing error does not play a random instance in silence."""
    unknown = [name for name in options or {} if name not in known]
    if unknown:
        raise T2TError(f"unknown reset option {unknown[0]!r}", where="reset options", next="use one of " + ", ".join(known))


def failure(fell: bool, conflict: int) -> int:
    """The number of the check that failed first, a place in `FAILURES`."""
    return 1 if fell else 2 if conflict else 3


def episode_reward(kind: str, cost: int, optimum: int | None) -> float:
    """The reward of a solved episode."""
    return 1.0 if kind == "success" else accuracy_reward(cost, optimum)
