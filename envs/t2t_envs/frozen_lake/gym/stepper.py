"""The stepping of environments in plain Python, built on `rules`. It does the same as the native core's `Stepper` and
`VectorStepper`, call for call: it is their oracle in the tests and replaces them if the core is not built.

Cells are numbered row * size + column, as in the native core.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from .. import rules
from ..instance import OBJECTIVES, Cell
from ..solver import native_core
from .observations import Observer, Sight
from .seats import LakeSource, NoSuchLake, Seat, given_lake

__all__ = ["EnvOptions", "LakeSource", "NoSuchLake", "Stepper", "VectorStepper", "stepping_core"]
_KINDS = {None: 0, "vertex": 1, "edge": 2}


def stepping_core() -> ModuleType:
    """The native core, or this module if the core is not built."""
    return native_core() or sys.modules[__name__]


class EnvOptions:
    """The same as `_native.EnvOptions`."""

    def __init__(
        self, *, block_holes: bool, block_conflicts: bool, reuse: int, reversible: bool, objective: int, **look: Any
    ) -> None:
        self.blocks = (block_holes, block_conflicts)
        self.reuse, self.reversible, self.max_nodes = reuse, reversible, look["max_nodes"]
        self.objective = OBJECTIVES[objective]
        self.frame, self.agents, self.max_steps, self.form = look["frame"], look["agents"], look["max_steps"], look["form"]
        self.observer = Observer(**look)


class Stepper:
    """One environment, with the arguments and methods of `_native.Stepper`; wrong use raises ValueError."""

    def __init__(self, options: EnvOptions, source: LakeSource) -> None:
        self.options = options
        self.seat = Seat(source, options.reuse, options.reversible, options.agents)
        self._path: list[tuple[Cell, ...]] = []
        self.terminated = self.truncated = False

    def set_source(self, source: LakeSource) -> None:
        """Take the next lake from another source."""
        self.seat.set_source(source)

    def seed(self, key: int) -> None:
        """Start the stream of lakes anew."""
        self.seat.seed(key)

    def restart(self) -> None:
        """Begin an episode on the next lake."""
        self.seat.restart()
        self._begin()

    def play(self, size: int, holes: Any, starts: Sequence[int], goals: Sequence[int], optimum: int) -> None:
        """Begin an episode on this lake; `holes` has size * size flags, a cell is row * size + column. ValueError if it is too
        large."""
        if not 3 <= size <= self.options.frame:
            raise ValueError("the lake is larger than the frame")
        cells = [[divmod(int(cell), size) for cell in part] for part in (starts, goals)]
        self.seat.play(given_lake(np.array(holes, np.uint8).reshape(size, size), cells[0], cells[1], optimum))
        self._begin()

    def _begin(self) -> None:
        lake = self._lake
        self._holes = {(int(r), int(c)) for r, c in np.argwhere(lake.holes)}
        self._path = [lake.starts]
        self.terminated = self.truncated = False
        self._move = rules.JointMove(lake.starts, (), None)

    @property
    def _lake(self) -> Any:
        if self.seat.played is None:
            raise ValueError("there is no episode yet: call reset() first")
        return self.seat.played

    @property
    def steps(self) -> int:
        """Moves made in this episode."""
        return max(len(self._path) - 1, 0)

    @property
    def positions(self) -> tuple[Cell, ...]:
        """Where the agents are, (row, column) each."""
        return self._path[-1]

    @property
    def history(self) -> list[int]:
        """Where the agents were at every step, row * size + column, agent by agent and step by step."""
        size = len(self._lake.holes)
        return [row * size + column for cells in self._path for row, column in cells]

    def step(self, actions: Any) -> tuple[Any, bool, bool]:
        moves = [_action(action) for action in actions]
        if len(moves) != self.options.agents:
            raise ValueError(f"{len(moves)} actions for {self.options.agents} agents")
        self.advance(moves)
        return self.observation(-1), self.terminated, self.truncated

    def step_agents(self, names: Sequence[str], actions: Mapping[str, Any], masks: bool) -> tuple[Any, bool, bool, Any]:
        """`step` for agents by name: observations, terminated, truncated and infos. ValueError if one has no action."""
        self._check_going()
        if len(actions) != len(names):
            raise ValueError(f"{len(actions)} actions for {len(names)} agents")
        missing = [name for name in names if name not in actions]
        if missing:
            raise ValueError(f"no action for {missing[0]}")
        self.advance([_action(actions[name]) for name in names])
        observations, infos = self.observe_agents(names, masks)
        return observations, self.terminated, self.truncated, infos

    def _check_going(self) -> None:
        _ = self._lake
        if self.terminated or self.truncated:
            raise ValueError("the episode has ended: call reset() first")

    def advance(self, actions: Sequence[int]) -> None:
        """Move all agents at once, one action 0..4 for each."""
        self._check_going()
        lake = self._lake
        self._move = rules.move(len(lake.holes), self._holes, self.positions, actions, *self.options.blocks)
        self._path.append(self._move.positions)
        self.terminated = bool(self.positions == lake.goals or self._move.fell or self._move.conflict)
        self.truncated = not self.terminated and self.steps >= self.options.max_steps

    def observe_agents(self, names: Sequence[str], masks: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Observations and infos by the agents' names; infos have action masks if `masks`."""
        flags = self.masks()
        observations = {name: self.observation(agent) for agent, name in enumerate(names)}
        infos = {name: {"action_mask": flags[agent].copy()} if masks else {} for agent, name in enumerate(names)}
        return observations, infos

    @property
    def sight(self) -> Sight:
        """What observations are made of."""
        lake = self._lake
        return Sight(lake.holes, self.positions, lake.goals, self.steps)

    def observation(self, agent: int = -1) -> Any:
        return self.options.observer.observe(self.sight, agent)

    def planes(self) -> Any:
        """The whole lake as flags (1 + 2 * agents, frame, frame): holes, positions, goals."""
        return self.options.observer.planes(self.sight)

    def masks(self) -> Any:
        """(k, 5) int8: 0 if an action moves off the grid or into a hole, otherwise 1; waiting is always 1."""
        size = len(self._lake.holes)
        mask = np.zeros((self.options.agents, 5), np.int8)
        for agent, (row, column) in enumerate(self.positions):
            for action, (dr, dc) in enumerate(rules.DELTAS):
                target = (row + dr, column + dc)
                mask[agent, action] = rules.in_bounds(size, target) and target not in self._holes or action == rules.WAIT
        return mask

    def outcome(self) -> tuple[bool, bool, int, int, int, int]:
        """(valid, fell, conflict, faults, makespan, sum_of_costs); faults is a bit set of agents, costs are -1 unless valid."""
        goals = self._lake.goals
        fell, conflict = self._move.fell, self._move.conflict
        faults = set(fell)
        if conflict:
            faults |= rules.conflicting_agents(self._path[-2], self.positions)
        valid = self.terminated and not fell and conflict is None
        costs = rules.costs([list(path) for path in zip(*self._path, strict=True)], goals) if valid else None
        kind = _KINDS[conflict.kind if conflict else None]
        return valid, bool(fell), kind, sum(1 << agent for agent in faults), *(costs or (-1, -1))

    def optimum(self) -> int:
        """The lake's optimum under the objective, solved for if need be; -1 if it is not known."""
        _ = self._lake
        return self.seat.find_optimum(self.options.objective, self.options.max_nodes)

    def potential(self, agent: int = -1) -> float:
        """Which part of the agents' (or one agent's) shortest ways is behind them, 0..1; for the shaped reward."""
        lake, left, whole = self._lake, 0, 0
        for i in range(self.options.agents) if agent < 0 else (agent,):
            distances = lake.distances(i)
            if lake.starts[i] in distances and self.positions[i] in distances:
                left += distances[self.positions[i]]
                whole += distances[lake.starts[i]]
        return (whole - left) / max(whole, 1)

    def lake(self) -> tuple[Any, ...]:
        """Size, holes, starts, goals, the lake's name, which variant it is, its optimum, and whether it was given."""
        lake, size = self._lake, len(self._lake.holes)
        starts, goals = (np.array([r * size + c for r, c in cells], np.int32) for cells in (lake.starts, lake.goals))
        given = self.seat.given is not None
        guise = 0 if given else self.seat.guise
        return size, lake.holes.ravel().copy(), starts, goals, lake.name, guise, self.seat.optimum, given

    def save(self) -> tuple[Any, Any]:
        """The state, for `load`."""
        return self.seat.__getstate__(), (self._path, self.terminated, self.truncated, self._move)

    def load(self, state: Any, path: Any) -> None:
        """Go on from what `save` returned."""
        self.seat.__dict__.update(state)
        if self.seat.played is not None:
            self._begin()
        played, self.terminated, self.truncated, self._move = path
        self._path = list(played)


def _action(value: Any) -> int:
    action = operator.index(value)
    if not 0 <= action <= rules.WAIT:
        raise ValueError(f"an action lies in 0..4 (left, down, right, up, wait), not {str(action)[:40]}")
    return action


class VectorStepper:
    """Many environments, with the arguments and methods of `_native.VectorStepper`."""

    def __init__(self, options: EnvOptions, source: LakeSource, count: int) -> None:
        self._options = options
        self._steppers = [Stepper(options, source) for _ in range(count)]
        self.restarted = np.zeros(count, np.uint8)

    def set_source(self, source: LakeSource) -> None:
        """Take the next lakes from another source."""
        for stepper in self._steppers:
            stepper.set_source(source)

    @property
    def positions(self) -> Any:
        """Where all agents are, row * size + column: (environments, agents), int32."""
        return np.array([stepper.history[-self._options.agents :] for stepper in self._steppers], np.int32)

    @property
    def steps(self) -> Any:
        """Moves made in each episode: (environments,), int64."""
        return np.array([stepper.steps for stepper in self._steppers], np.int64)

    def reset(self, mask: Any, keys: Any) -> None:
        for index in np.flatnonzero(mask).tolist():
            if len(keys):
                self._steppers[index].seed(int(keys[index]))
            self._steppers[index].restart()

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Any, bool]:
        joint = actions.reshape(len(self._steppers), self._options.agents)
        if ((joint < 0) | (joint > rules.WAIT)).any():
            raise ValueError("an action lies in 0..4 (left, down, right, up, wait)")
        done = np.array([stepper.terminated or stepper.truncated for stepper in self._steppers])
        for index, stepper in enumerate(self._steppers):
            if done[index]:
                stepper.restart()
            else:
                stepper.advance([_action(action) for action in joint[index]])
        self.restarted = done.astype(np.uint8)
        flags = np.array([(stepper.terminated, stepper.truncated) for stepper in self._steppers])
        terminated, truncated = flags[:, 0].copy(), flags[:, 1].copy()
        ended = terminated | truncated
        outcomes = self._outcomes() if ended.any() else None
        return self.observe(), terminated, truncated, ended, outcomes, bool(done.any())

    def observe(self) -> Any:
        single = [stepper.observation() for stepper in self._steppers]
        if not isinstance(single[0], dict):
            return np.stack(single)
        return {name: np.stack([part[name] for part in single]) for name in single[0]}

    def masks(self) -> Any:
        """Which actions are legal: (environments, agents, 5), bool."""
        return np.stack([stepper.masks() for stepper in self._steppers])

    def _outcomes(self) -> tuple[bool, bool, tuple[Any, ...]]:
        rows = []
        for stepper in self._steppers:
            valid, fell, conflict, _, *costs = stepper.outcome()
            failed = not valid and (stepper.terminated or stepper.truncated)
            rows.append((valid, failed, (1 if fell else 2 if conflict else 3) if failed else 0, conflict, *costs))
        kinds = (bool, bool, np.int64, np.int64, np.int64, np.int64)
        arrays = tuple(np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True))
        return bool(arrays[0].any()), bool(arrays[1].any()), arrays

    def optima(self, mask: Any) -> Any:
        """The optima of the environments in the mask, -1 elsewhere and where it is not known: (environments,), int64."""
        costs = [stepper.optimum() if asked else -1 for asked, stepper in zip(mask.tolist(), self._steppers, strict=True)]
        return np.array(costs, np.int64)

    def potentials(self) -> Any:
        """`Stepper.potential` of each environment: (environments,)."""
        return np.array([stepper.potential() for stepper in self._steppers])

    def lake(self, index: int) -> tuple[Any, ...]:
        """`Stepper.lake` of one environment."""
        return self._steppers[index].lake()

    def save(self) -> list[Any]:
        """The state of every environment, for `load`."""
        return [stepper.save() for stepper in self._steppers]

    def load(self, states: Sequence[Any]) -> None:
        """Go on from what `save` returned."""
        for stepper, state in zip(self._steppers, states, strict=True):
            stepper.load(*state)
