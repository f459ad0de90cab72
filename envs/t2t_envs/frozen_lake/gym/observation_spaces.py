"""The spaces that follow from an environment's options. `observations` and the native core make observations that fit them."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
from gymnasium import spaces

from .options import EnvOptions

WINDOW_PLANES, PADDED_PLANES = 3, 6


def _bits(*shape: int) -> spaces.Box:
    return spaces.Box(0, 1, shape, np.uint8)


@cache
def _observation_template(options: EnvOptions, joint: bool) -> spaces.Space[Any]:
    frame, agents, windowed = options.frame, options.num_agents, options.view is not None
    width = frame if options.view is None else 2 * options.view + 1
    lead = (agents,) if joint and (windowed or options.observation == "padded") else ()
    channels = WINDOW_PLANES if windowed else 1 + 2 * agents
    match options.observation:
        case "planes":
            return _bits(*lead, channels, width, width)
        case "padded":
            return _bits(*lead, PADDED_PLANES, width, width)
        case "image":
            return spaces.Box(0, 255, (*lead, options.image_size, options.image_size, 3), np.uint8)
        case "flat":
            return _flat(options, (agents if joint else 1) if windowed else 1, channels * width**2, 1 if windowed else agents)
    rows = agents if joint or not windowed else 1
    cells = spaces.Box(0, frame - 1, (rows, 2), np.int32)
    goals = spaces.Box(1 - frame, frame - 1, (rows, 2), np.int32) if options.relative_goals else copy.copy(cells)
    parts: dict[str, spaces.Space[Any]] = {"holes": _bits(*lead, width, width)}
    if windowed:
        parts["others"] = _bits(*lead, width, width)
    parts |= {"positions": cells, "goals": goals, "step": spaces.Discrete(options.steps + 1)}
    return spaces.Dict(parts)


def _flat(options: EnvOptions, parts: int, bits: int, goals: int) -> spaces.Box:
    """`parts` times (`bits` bits and the steps to `goals` goals), then the time."""
    low = np.concatenate([np.zeros(bits), np.full(2 * goals, -1.0)] * parts + [np.zeros(1)]).astype(np.float32)
    return spaces.Box(low, np.ones(len(low), np.float32), dtype=np.float32)


def _fresh(space: Any) -> Any:
    """An unseeded copy that shares the constant bounds, because making a Box takes longer than making a whole environment
    should."""
    twin = copy.copy(space)
    if isinstance(space, spaces.Dict):
        twin.spaces = {name: _fresh(part) for name, part in space.spaces.items()}
    return twin


def observation_space(options: EnvOptions, joint: bool = True) -> spaces.Space[Any]:
    """The space of the joint observation, or of one agent's observation."""
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
    """The whole grid as planes, independent of the observation."""
    return _bits(1 + 2 * options.num_agents, options.frame, options.frame)
