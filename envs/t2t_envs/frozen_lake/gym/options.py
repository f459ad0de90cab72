"""The options that every MAPF-FrozenLake environment takes, checked once, and the spaces that follow from them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from math import floor
from typing import Any

import numpy as np
from gymnasium import spaces

from t2t_core.errors import T2TError

from ..instance import MAX_AGENTS, MAX_SIZE, MIN_SIZE, OBJECTIVES

MAX_STEPS = 1_000_000
MAX_HOLE_RATIO = 0.5  # the paper's hardest setting
_CHOICES = {
    "objective": OBJECTIVES,
    "on_hole": ("terminate", "block"),
    "on_conflict": ("terminate", "block"),
    "reward": ("accuracy", "success"),
    "observation": ("dict", "planes"),
}


def _integer(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise T2TError(f"{name} must be an integer, not {type(value).__name__}", where=f"option {name}")
    number = int(value.__index__())
    if not low <= number <= high:
        raise T2TError(f"{name} must lie in {low}..{high}", where=f"option {name}", cause=f"it is {str(number)[:40]}")
    return number


@dataclass(frozen=True)
class EnvOptions:
    """Checked options; `MAPFFrozenLakeEnv` documents each. T2TError names the first wrong one."""

    size: int = 5
    num_agents: int = 2
    hole_ratio: float = 0.2
    require_wait: bool | None = None
    objective: str = "makespan"
    max_steps: int | None = None
    on_hole: str = "terminate"
    on_conflict: str = "terminate"
    reward: str = "accuracy"
    observation: str = "dict"
    view: int | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "size", _integer("size", self.size, MIN_SIZE, MAX_SIZE))
        put(self, "num_agents", _integer("num_agents", self.num_agents, 1, MAX_AGENTS))
        ratio = self.hole_ratio
        if isinstance(ratio, bool) or not isinstance(ratio, (int, float, np.number)) or not 0 <= ratio <= MAX_HOLE_RATIO:
            cause = f"it is {str(ratio)[:40]}"
            raise T2TError(f"hole_ratio must be a number in 0..{MAX_HOLE_RATIO}", where="option hole_ratio", cause=cause)
        put(self, "hole_ratio", float(ratio))
        if self.require_wait is not None and not isinstance(self.require_wait, bool):
            raise T2TError("require_wait must be True, False or None (either)", where="option require_wait")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise T2TError(f"unknown {name}", where=f"option {name}", next="use one of " + ", ".join(map(repr, choices)))
        if self.max_steps is not None:
            put(self, "max_steps", _integer("max_steps", self.max_steps, 1, MAX_STEPS))
        if self.view is not None:
            put(self, "view", _integer("view", self.view, 0, self.size - 1))
        if self.num_agents > self.free_cells:
            raise T2TError(
                f"{self.num_agents} agents do not fit on the {self.free_cells} free cells",
                where="options size, num_agents, hole_ratio",
                next="use a larger size, fewer agents or fewer holes",
            )

    @property
    def holes(self) -> int:
        """How many holes a random instance has: floor(ratio * N^2 + 1/2)."""
        return floor(self.hole_ratio * self.size**2 + 0.5)

    @property
    def free_cells(self) -> int:
        return self.size**2 - self.holes

    @property
    def steps(self) -> int:
        """`max_steps`, or its default 8 * N."""
        return 8 * self.size if self.max_steps is None else self.max_steps

    def stepper(self) -> dict[str, Any]:
        """The keyword arguments of a stepper."""
        return {
            "size": self.size,
            "agents": self.num_agents,
            "block_holes": self.on_hole == "block",
            "block_conflicts": self.on_conflict == "block",
            "max_steps": self.steps,
            "planes": self.observation == "planes",
            "view": -1 if self.view is None else self.view,
        }


def _bits(*shape: int) -> spaces.Box:
    return spaces.Box(0, 1, shape, np.uint8)


@cache
def _observation_template(options: EnvOptions, joint: bool) -> spaces.Space[Any]:
    size, agents = options.size, options.num_agents
    if options.view is None:
        lead: tuple[int, ...] = ()
        width, channels = size, 1 + 2 * agents
    else:
        lead = (agents,) if joint else ()
        width, channels = 2 * options.view + 1, 3
    if options.observation == "planes":
        return _bits(*lead, channels, width, width)
    rows = agents if joint or options.view is None else 1
    cells = spaces.Box(0, size - 1, (rows, 2), np.int32)
    parts: dict[str, spaces.Space[Any]] = {"holes": _bits(*lead, width, width)}
    if options.view is not None:
        parts["others"] = _bits(*lead, width, width)
    parts |= {"positions": cells, "goals": copy.copy(cells), "step": spaces.Discrete(options.steps + 1)}
    return spaces.Dict(parts)


def _fresh(space: Any) -> Any:
    """An unseeded copy that shares the constant bounds: making a Box takes longer than making a whole environment should."""
    twin = copy.copy(space)
    if isinstance(space, spaces.Dict):
        twin.spaces = {name: _fresh(part) for name, part in space.spaces.items()}
    return twin


def observation_space(options: EnvOptions, joint: bool = True) -> spaces.Space[Any]:
    """The space of the joint observation, or of one agent's."""
    space: spaces.Space[Any] = _fresh(_observation_template(options, joint))
    return space


@cache
def _actions_template(agents: int) -> spaces.MultiDiscrete:
    return spaces.MultiDiscrete([5] * agents)


def joint_action_space(options: EnvOptions) -> spaces.MultiDiscrete:
    """One of the five actions per agent."""
    space: spaces.MultiDiscrete = _fresh(_actions_template(options.num_agents))
    return space


def state_space(options: EnvOptions) -> spaces.Box:
    """The whole grid as planes, whatever the observation is."""
    return _bits(1 + 2 * options.num_agents, options.size, options.size)
