"""The options that every MAPF-FrozenLake environment takes, checked once."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import floor
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec

from t2t_core.errors import T2TError

from ..instance import MAX_AGENTS, MAX_SIZE, MIN_SIZE, OBJECTIVES
from ..solver import DEFAULT_MAX_NODES
from ..solver import MAX_SIZE as MAX_SOLVED_SIZE

MAX_STEPS = 1_000_000
MAX_HOLE_RATIO = 0.5  # the paper's hardest setting
MAX_PIXELS = 1024
FORMS = ("dict", "planes", "flat", "image", "padded")
_CHOICES: dict[str, tuple[Any, ...]] = {
    "objective": OBJECTIVES,
    "on_hole": ("terminate", "block"),
    "on_conflict": ("terminate", "block"),
    "reward": ("accuracy", "success", "shaped"),
    "observation": FORMS,
    "labels": ("lazy", True, False),
}


@dataclass(frozen=True)
class EnvOptions:
    """Checked options; `MAPFFrozenLakeEnv` documents each. T2TError names the first invalid one."""

    size: int = 5
    num_agents: int = 2
    hole_ratio: float = 0.2
    require_wait: bool | None = None
    objective: str = "makespan"
    max_steps: int | None = None
    on_hole: str = "terminate"
    on_conflict: str = "terminate"
    reward: str = "accuracy"
    gamma: float = 0.99
    observation: str = "dict"
    view: int | None = None
    relative_goals: bool = False
    max_size: int | None = None
    image_size: int = 42
    action_masks: bool = False
    names: bool = False
    labels: str | bool = "lazy"
    max_nodes: int = DEFAULT_MAX_NODES
    reuse: int = 1

    def __post_init__(self) -> None:
        self._whole("size", MIN_SIZE, MAX_SIZE)
        self._whole("num_agents", 1, MAX_AGENTS)
        self._number("hole_ratio", 0, MAX_HOLE_RATIO)
        self._number("gamma", 0, 1)
        for name in ("relative_goals", "action_masks", "names"):
            self._put(name, _flag(name, getattr(self, name)))
        if self.require_wait is not None:
            self._put("require_wait", _flag("require_wait", self.require_wait, "True, False or None (either)"))
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
                raise T2TError(f"unknown {name}", where=f"option {name}", next="use one of " + ", ".join(map(repr, choices)))
        self._whole("max_steps", 1, MAX_STEPS, optional=True)
        self._whole("max_size", self.size, MAX_SIZE, optional=True)
        self._whole("view", 0, self.frame - 1, optional=True)
        self._whole("image_size", 1, MAX_PIXELS)
        self._whole("max_nodes", 1, 2**62)
        self._whole("reuse", 1, 2**31)
        self._check_form()

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _whole(self, name: str, low: int, high: int, optional: bool = False) -> None:
        value = getattr(self, name)
        if value is None and optional:
            return
        self._put(name, _integer(name, value, low, high))

    def _number(self, name: str, low: float, high: float) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not low <= value <= high:
            raise T2TError(f"{name} must be a number in {low}..{high}", where=f"option {name}", cause=f"it is {str(value)[:40]}")
        self._put(name, float(value))

    def _check_form(self) -> None:
        cells = self.frame if self.view is None else 2 * self.view + 1
        if self.observation == "image" and self.image_size < cells:
            told = f"an image {self.image_size} pixels wide has less than one pixel for each of {cells} cells"
            raise T2TError(told, where="option image_size")
        if self.observation == "padded" and self.view is not None:
            raise T2TError(
                'observation="padded" shows the whole lake',
                where="options observation, view",
                next='use observation="planes": with a view, it has the same shape for every size',
            )
        if self.relative_goals and self.observation != "dict":
            cause = '"flat" always holds the steps to the goals, and planes and images show where the goals are'
            raise T2TError('relative_goals requires observation="dict"', where="option relative_goals", cause=cause)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> EnvOptions:
        """The options with these keyword arguments; T2TError for an unknown one."""
        known = [field.name for field in fields(cls)]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise T2TError(f"unknown option {unknown[0]!r}", where="environment", next="use one of " + ", ".join(known))
        return cls(**given)

    @property
    def holes(self) -> int:
        """How many holes a random lake has: floor(ratio * N^2 + 1/2)."""
        return floor(self.hole_ratio * self.size**2 + 0.5)

    @property
    def free_cells(self) -> int:
        """How many cells of a map are no holes."""
        return self.size**2 - self.holes

    @property
    def frame(self) -> int:
        """The side of the observed square: `max_size`, or the size."""
        return self.size if self.max_size is None else self.max_size

    @property
    def steps(self) -> int:
        """`max_steps`, or its default 8 * N."""
        return 8 * self.frame if self.max_steps is None else self.max_steps

    @property
    def solvable_frame(self) -> bool:
        """Whether the solver takes the environment's largest lakes."""
        return self.frame <= MAX_SOLVED_SIZE

    def stepper(self) -> dict[str, Any]:
        """The keyword arguments of a stepper's options."""
        return {
            "frame": self.frame,
            "agents": self.num_agents,
            "block_holes": self.on_hole == "block",
            "block_conflicts": self.on_conflict == "block",
            "max_steps": self.steps,
            "form": FORMS.index(self.observation),
            "view": -1 if self.view is None else self.view,
            "relative_goals": self.relative_goals,
            "pixels": self.image_size,
            "reuse": self.reuse,
            # Played backwards, a lake keeps its optimal makespan, but not its optimal sum of costs, nor whether it needs a wait.
            "reversible": self.objective == "makespan" and self.require_wait is None,
            "objective": OBJECTIVES.index(self.objective),
            "max_nodes": self.max_nodes,
        }


def _integer(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise T2TError(f"{name} must be an integer, not {type(value).__name__}", where=f"option {name}")
    number = int(value.__index__())
    if not low <= number <= high:
        raise T2TError(f"{name} must lie in {low}..{high}", where=f"option {name}", cause=f"it is {str(number)[:40]}")
    return number


def with_steps(spec: EnvSpec, steps: int) -> EnvSpec:
    """The spec with the step limit that the environment itself enforces, so that wrappers and libraries can read it."""
    spec = copy.deepcopy(spec)
    spec.max_episode_steps = steps
    return spec


def _flag(name: str, value: Any, choices: str = "True or False") -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise T2TError(f"{name} must be {choices}", where=f"option {name}")
    return bool(value)
