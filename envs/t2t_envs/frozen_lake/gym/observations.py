"""An environment's observations of a lake, in all forms, in plain Python. They equal those of the native core's `Observer`,
number for number.

Arrays are as large as the frame, F x F. A smaller lake is in the upper left corner, and cells off the lake look like holes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..instance import Cell
from .observation_spaces import PADDED_PLANES
from .options import FORMS

FULL, HALF, LEAST = 255, 128, 64


@dataclass(frozen=True)
class Sight:
    """The lake at one moment: holes (N, N), positions and goals (row, column), steps taken."""

    holes: Any
    positions: Sequence[Cell]
    goals: Sequence[Cell]
    step: int


class Observer:
    """Makes observations; its arguments are the native core's options."""

    def __init__(
        self, *, frame: int, agents: int, max_steps: int, form: int, view: int, relative_goals: bool, pixels: int, **_: Any
    ) -> None:
        self.frame, self.agents, self.max_steps, self.view = frame, agents, max_steps, view
        self.form, self.relative_goals, self.pixels = FORMS[form], relative_goals, pixels

    def observe(self, sight: Sight, agent: int) -> Any:
        """The joint observation (agent = -1), or that of one agent, with itself first and then the others in order."""
        first, joint = max(agent, 0), agent < 0
        each = range(self.agents) if joint else range(agent, agent + 1)
        match self.form:
            case "padded":
                padded = np.stack([self._padded(sight, i) for i in each])
                return padded if joint else padded[0]
            case "dict":
                return self._dict(sight, agent, each)
        if self.view < 0:
            return self._encode(sight, self.planes(sight, first), self._order(first), joint)
        windows = [self._encode(sight, self._window(sight, i), [i], False) for i in each]
        if self.form == "flat":
            return np.concatenate([*(window[:-1] for window in windows), windows[0][-1:]])
        return np.stack(windows) if joint else windows[0]

    def planes(self, sight: Sight, first: int = 0) -> Any:
        """(1 + 2k, F, F): holes, one plane per position, one per goal."""
        planes = np.zeros((1 + 2 * self.agents, self.frame, self.frame), np.uint8)
        planes[0] = self._grid(sight)
        for rank, agent in enumerate(self._order(first)):
            planes[(1 + rank, *sight.positions[agent])] = 1
            planes[(1 + self.agents + rank, *sight.goals[agent])] = 1
        return planes

    def _order(self, first: int) -> list[int]:
        return [first, *(agent for agent in range(self.agents) if agent != first)]

    def _grid(self, sight: Sight) -> Any:
        grid = np.ones((self.frame, self.frame), np.uint8)
        size = len(sight.holes)
        grid[:size, :size] = sight.holes
        return grid

    def _dict(self, sight: Sight, agent: int, each: Sequence[int]) -> dict[str, Any]:
        if self.view < 0:
            order, grids = self._order(max(agent, 0)), {"holes": self._grid(sight)}
        else:
            order, windows = list(each), np.stack([self._window(sight, i) for i in each])
            holes, others = (windows[:, i].copy() if agent < 0 else windows[0, i].copy() for i in (0, 1))
            grids = {"holes": holes, "others": others}
        positions, goals = (np.array([cells[i] for i in order], np.int32) for cells in (sight.positions, sight.goals))
        if self.relative_goals:
            goals -= positions
        return {**grids, "positions": positions, "goals": goals, "step": sight.step}

    def _window(self, sight: Sight, agent: int) -> Any:
        """(3, w, w): holes and cells off the grid; the other agents; the goal (or the border cell nearest to it)."""
        width = 2 * self.view + 1
        row, column = sight.positions[agent]
        window = np.zeros((3, width, width), np.uint8)
        window[0] = np.pad(sight.holes, self.view, constant_values=1)[row : row + width, column : column + width]
        for other, (r, c) in enumerate(sight.positions):
            if other != agent and max(abs(r - row), abs(c - column)) <= self.view:
                window[1, r - row + self.view, c - column + self.view] = 1
        goal = np.clip(np.subtract(sight.goals[agent], sight.positions[agent]) + self.view, 0, width - 1)
        window[2, goal[0], goal[1]] = 1
        return window

    def _padded(self, sight: Sight, agent: int) -> Any:
        """(6, F, F): where the lake is, its holes, the agent, its goal, the other agents, their goals."""
        planes = np.zeros((PADDED_PLANES, self.frame, self.frame), np.uint8)
        size = len(sight.holes)
        planes[0, :size, :size] = 1
        planes[1, :size, :size] = sight.holes
        for other in range(self.agents):
            plane = 2 if other == agent else 4
            planes[(plane, *sight.positions[other])] = 1
            planes[(plane + 1, *sight.goals[other])] = 1
        return planes

    def _encode(self, sight: Sight, planes: Any, order: Sequence[int], joint: bool) -> Any:
        """The planes unchanged, as a flat array with the steps to the goals and the time, or as an image."""
        match self.form:
            case "planes":
                return planes
            case "image":
                return self._image(planes, len(order), joint)
        steps = np.subtract([sight.goals[i] for i in order], [sight.positions[i] for i in order]).astype(np.float32)
        time = np.float32(sight.step) / np.float32(self.max_steps)
        return np.concatenate([planes.ravel().astype(np.float32), (steps / np.float32(self.frame - 1)).ravel(), [time]])

    def _image(self, planes: Any, agents: int, joint: bool) -> Any:
        """(S, S, 3): every cell as a square of pixels, from the upper left corner; left-over pixels look like a hole. Holes are
        red, agents green and goals blue. The first agent is brightest; the others all look alike or, in a joint observation,
        each is a little darker than the one before."""
        width, windowed = planes.shape[-1], self.view >= 0
        cells = np.zeros((width, width, 3), np.uint8)
        cells[..., 0] = planes[0] * FULL
        for channel in (1, 2):
            for i in reversed(range(agents)):
                shade = FULL - (FULL - LEAST) * i // max(agents - 1, 1) if joint else FULL if i == 0 else HALF
                if windowed:
                    shade = HALF if channel == 1 else FULL
                cells[planes[(1 if channel == 1 else 1 + agents) + i] > 0, channel] = shade
        if windowed:
            cells[self.view, self.view, 1] = FULL  # the agent itself
        image = np.zeros((self.pixels, self.pixels, 3), np.uint8)
        image[..., 0] = FULL
        unit = self.pixels // width
        image[: unit * width, : unit * width] = cells.repeat(unit, axis=0).repeat(unit, axis=1)
        return image
