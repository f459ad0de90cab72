"""The stepping of environments in plain Python, over `rules`: what the native core's `Stepper` and `VectorStepper` do,
call for call. It is their oracle in the tests and takes their place where the core is not built.

Cells are numbered row * size + column here, as in the native core.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from t2t_core.seeding import Stream

from .. import rules
from ..solver import native_core

_KINDS = {None: 0, "vertex": 1, "edge": 2}


class PythonStepper:
    """One environment. Arguments and methods as `_native.Stepper`; a misuse raises ValueError."""

    def __init__(
        self, size: int, agents: int, block_holes: bool, block_conflicts: bool, max_steps: int, planes: bool, view: int
    ) -> None:
        self.size, self.agents, self.max_steps, self.as_planes, self.view = size, agents, max_steps, planes, view
        self.blocks = (block_holes, block_conflicts)
        self.positions: tuple[tuple[int, int], ...] = ()

    def load(self, holes: Any, starts: Sequence[int], goals: Sequence[int]) -> None:
        self._grid = np.array(holes, np.uint8).reshape(self.size, self.size)
        self._holes = {(int(r), int(c)) for r, c in np.argwhere(self._grid)}
        self.positions = tuple(divmod(int(cell), self.size) for cell in starts)
        self.goals = tuple(divmod(int(cell), self.size) for cell in goals)
        self._path = [self.positions]
        self.terminated = self.truncated = False
        self._move = rules.JointMove(self.positions, (), None)

    @property
    def steps(self) -> int:
        return len(self._path) - 1

    @property
    def history(self) -> list[int]:
        return [row * self.size + column for cells in self._path for row, column in cells]

    def step(self, actions: Any) -> tuple[Any, bool, bool]:
        chosen = [_action(action) for action in actions]
        if len(chosen) != self.agents:
            raise ValueError(f"{len(chosen)} actions for {self.agents} agents")
        self.advance(chosen)
        return self.observation(-1), self.terminated, self.truncated

    def step_agents(self, names: Sequence[str], actions: Mapping[str, Any]) -> tuple[Any, bool, bool, Any]:
        if len(actions) != len(names):
            raise ValueError(f"{len(actions)} actions for {len(names)} agents")
        missing = [name for name in names if name not in actions]
        if missing:
            raise ValueError(f"no action for {missing[0]}")
        self.advance([_action(actions[name]) for name in names])
        observations, infos = self.observe_agents(names)
        return observations, self.terminated, self.truncated, infos

    def advance(self, actions: Sequence[int]) -> None:
        self._check_loaded()
        if self.terminated or self.truncated:
            raise ValueError("the episode has ended: call reset() first")
        self._move = rules.move(self.size, self._holes, self.positions, actions, *self.blocks)
        self.positions = self._move.positions
        self._before = self._path[-1]
        self._path.append(self.positions)
        self.terminated = bool(self.positions == self.goals or self._move.fell or self._move.conflict)
        self.truncated = not self.terminated and self.steps >= self.max_steps

    def observe_agents(self, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        masks = self.masks()
        observations = {name: self.observation(agent) for agent, name in enumerate(names)}
        return observations, {name: {"action_mask": masks[agent].copy()} for agent, name in enumerate(names)}

    def observation(self, agent: int = -1) -> Any:
        self._check_loaded()
        if self.as_planes and self.view < 0:
            return self._planes(max(agent, 0))
        if self.view < 0:
            return {"holes": self._grid.copy(), **self._places(self._order(max(agent, 0)))}
        order = list(range(self.agents)) if agent < 0 else [agent]
        windows = np.stack([self._window(i) for i in order])
        if self.as_planes:
            return windows if agent < 0 else windows[0].copy()
        holes, others = (windows[:, i].copy() if agent < 0 else windows[0, i].copy() for i in (0, 1))
        return {"holes": holes, "others": others, **self._places(order)}

    def planes(self) -> Any:
        self._check_loaded()
        return self._planes(0)

    def masks(self) -> Any:
        """(k, 5) int8: 1 where an action is no move off the grid or into a hole; waiting always is."""
        self._check_loaded()
        mask = np.zeros((self.agents, 5), np.int8)
        for agent, (row, column) in enumerate(self.positions):
            for action, (dr, dc) in enumerate(rules.DELTAS):
                target = (row + dr, column + dc)
                mask[agent, action] = rules.in_bounds(self.size, target) and target not in self._holes or action == rules.WAIT
        return mask

    def outcome(self) -> tuple[bool, bool, int, int, int, int]:
        """(valid, fell, conflict, faults, makespan, sum_of_costs); faults is a bit set of agents, costs are -1 unless valid."""
        self._check_loaded()
        fell, conflict = self._move.fell, self._move.conflict
        faults = set(fell)
        if conflict:
            faults |= rules.conflicting_agents(self._before, self.positions)
        valid = self.terminated and not fell and conflict is None
        costs = rules.costs([list(path) for path in zip(*self._path, strict=True)], self.goals) if valid else None
        kind = _KINDS[conflict.kind if conflict else None]
        return valid, bool(fell), kind, sum(1 << agent for agent in faults), *(costs or (-1, -1))

    def _check_loaded(self) -> None:
        if not self.positions:
            raise ValueError("there is no episode yet: call reset() first")

    def _order(self, first: int) -> list[int]:
        return [first, *(agent for agent in range(self.agents) if agent != first)]

    def _places(self, order: Sequence[int]) -> dict[str, Any]:
        both = (("positions", self.positions), ("goals", self.goals))
        places = {name: np.array([cells[agent] for agent in order], np.int32) for name, cells in both}
        return {**places, "step": self.steps}

    def _planes(self, first: int) -> Any:
        planes = np.zeros((1 + 2 * self.agents, self.size, self.size), np.uint8)
        planes[0] = self._grid
        for place, agent in enumerate(self._order(first)):
            planes[(1 + place, *self.positions[agent])] = 1
            planes[(1 + self.agents + place, *self.goals[agent])] = 1
        return planes

    def _window(self, agent: int) -> Any:
        """(3, w, w): holes and what lies off the grid, the other agents, the goal (or the border cell nearest to it)."""
        width = 2 * self.view + 1
        row, column = self.positions[agent]
        window = np.zeros((3, width, width), np.uint8)
        window[0] = np.pad(self._grid, self.view, constant_values=1)[row : row + width, column : column + width]
        for other, (r, c) in enumerate(self.positions):
            if other != agent and max(abs(r - row), abs(c - column)) <= self.view:
                window[1, r - row + self.view, c - column + self.view] = 1
        goal = np.clip(np.subtract(self.goals[agent], self.positions[agent]) + self.view, 0, width - 1)
        window[2, goal[0], goal[1]] = 1
        return window


def _action(value: Any) -> int:
    action = operator.index(value)
    if not 0 <= action <= rules.WAIT:
        raise ValueError(f"an action lies in 0..4 (left, down, right, up, wait), not {str(action)[:40]}")
    return action


class PythonVectorStepper:
    """Many environments. Arguments and methods as `_native.VectorStepper`."""

    def __init__(
        self, *, size: int, agents: int, planes: bool, holes: Any, starts: Any, goals: Any, count: int, **options: Any
    ) -> None:
        self._planes, self._agents = planes, agents
        self._pool = [a.reshape(-1, n) for a, n in ((holes, size * size), (starts, agents), (goals, agents))]
        self._steppers = [PythonStepper(size=size, agents=agents, planes=planes, **options) for _ in range(count)]
        self._streams = [Stream(0) for _ in range(count)]
        self.instances = np.zeros(count, np.int32)
        self.restarted = np.zeros(count, np.uint8)
        self.reset(np.ones(count, bool), np.zeros(0, np.uint64))

    @property
    def positions(self) -> Any:
        return np.array([stepper.history[-self._agents :] for stepper in self._steppers], np.int16)

    @property
    def steps(self) -> Any:
        return np.array([stepper.steps for stepper in self._steppers], np.int64)

    def reset(self, mask: Any, keys: Any) -> None:
        for index in np.flatnonzero(mask).tolist():
            if len(keys):
                self._streams[index] = Stream(int(keys[index]))
            self._restart(index)

    def _restart(self, index: int) -> None:
        instance = self._streams[index].below(len(self._pool[0]))
        self.instances = self.instances.copy()
        self.instances[index] = instance
        self._steppers[index].load(*(part[instance] for part in self._pool))

    def step(self, actions: Any) -> tuple[Any, Any, bool]:
        joint = actions.reshape(len(self._steppers), self._agents)
        done = np.array([stepper.terminated or stepper.truncated for stepper in self._steppers])
        for index, stepper in enumerate(self._steppers):
            if done[index]:
                self._restart(index)
            else:
                stepper.advance([_action(action) for action in joint[index]])
        self.restarted = done.astype(np.uint8)
        flags = np.array([(stepper.terminated, stepper.truncated) for stepper in self._steppers])
        return flags[:, 0].copy(), flags[:, 1].copy(), bool(done.any())

    def observe(self) -> Any:
        single = [stepper.observation() for stepper in self._steppers]
        if self._planes:
            return np.stack(single)
        return {name: np.stack([part[name] for part in single]) for name in single[0]}

    def outcomes(self) -> tuple[Any, ...]:
        rows = [stepper.outcome() for stepper in self._steppers]
        kinds = (bool, bool, np.uint8, None, np.int64, np.int64)
        return tuple(
            np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True) if kind is not None
        )


def make_stepper(**options: Any) -> Any:
    """The native stepper, or the Python one where the core is not built."""
    core = native_core()
    return core.Stepper(**options) if core else PythonStepper(**options)


def make_vector_stepper(**options: Any) -> Any:
    """The native vector stepper, or the Python one where the core is not built."""
    core = native_core()
    return core.VectorStepper(**options) if core else PythonVectorStepper(**options)
