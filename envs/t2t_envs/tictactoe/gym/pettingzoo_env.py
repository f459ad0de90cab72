"""`TicTacToe-v0` for PettingZoo: two players, turn by turn (AEC)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

from t2t_core.errors import T2TError

from .. import rules
from ..game import TURNS
from ..instance import EMPTY, Instance, board_text, stones
from ..reward import RUBRIC
from .episode import read_pool
from .gym_env import action_mask, read_action
from .rendering import FPS, RENDER_MODES, check_render_mode, render_board

X, O = "player_0", "player_1"  # noqa: E741
_OTHER = {X: O, O: X}
_REWARDS = {"rubric": (RUBRIC["win"], RUBRIC["draw"], RUBRIC["loss"]), "zero-sum": (1.0, 0.0, -1.0)}


class TicTacToeAECEnv(AECEnv[str, Any, Any]):  # type: ignore[misc]  # PettingZoo ships no types
    """
    Tic-tac-toe with one policy for each player.

    ```python
    import pettingzoo, t2t_envs
    env = pettingzoo.make("aec", "TicTacToe-v0")
    ```

    ## Agents
    `player_0` (X), who moves first, and `player_1` (O).

    ## Action Space
    `Discrete(9)`: the cell, from the top left, row by row. If the cell is not free, the board stays as it is and the same player
    moves again. `infos[agent]["action_mask"]` (int8, 9) is 1 for the free cells of the player to move, and 0 everywhere for the
    other player; `env.action_space(agent).sample(mask)` takes it.

    ## Observation Space
    A `Dict` of `observation`, `Box(0, 1, (3, 3, 2), int8)`: the player's own stones, then the other's; and `action_mask`.

    ## Starting State
    The empty board. With `reset(options={"instance": instance})`, it is the position of an `Instance`: its policy is `player_0`,
    and its mover moves first.

    ## Rewards
    When the game ends, 1 for a win, 0.5 for a draw and 0 for a loss (`rewards="rubric"`, the default), or 1, 0 and -1
    (`rewards="zero-sum"`); -0.1 at a player's first move on a cell that is not free, once per game.

    ## Episode End
    - Termination: somebody has three in a row, or the board is full.
    - Truncation: a player has had 8 turns and the game is not over; that player has lost.

    ## Information
    `action_mask` is always there. When the game is over, `result` is "win", "draw" or "loss" from the player's side.

    ## Version History
    * v0: Initial version release
    """

    metadata: dict[str, Any] = {
        "name": "TicTacToe-v0",
        "render_modes": RENDER_MODES,
        "render_fps": FPS,
        "is_parallelizable": False,
    }

    def __init__(self, rewards: str = "rubric", render_mode: str | None = None) -> None:
        super().__init__()
        if rewards not in _REWARDS:
            raise T2TError("unknown rewards", where="option rewards", next="use one of " + ", ".join(_REWARDS))
        self.render_mode = check_render_mode(render_mode)
        self._win, self._draw, self._loss = _REWARDS[rewards]
        self.possible_agents = [X, O]
        self.agents: list[str] = []
        planes = {"observation": spaces.Box(0, 1, (3, 3, 2), np.int8), "action_mask": spaces.Box(0, 1, (9,), np.int8)}
        self._observation_spaces = {agent: spaces.Dict(dict(planes)) for agent in self.possible_agents}
        self._action_spaces = {agent: spaces.Discrete(9) for agent in self.possible_agents}
        self._stones = dict.fromkeys(self.possible_agents, 0)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game. Nothing is drawn, so `seed` has no effect."""
        start = _start(options)
        self.agents = list(self.possible_agents)
        self._stones = {X: stones(start.board, "X"), O: stones(start.board, "O")}
        self._turns, self._fined = dict.fromkeys(self.agents, 0), set[str]()
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
        self.agent_selection = X if start.mover == "policy" else O
        self.infos: dict[str, dict[str, Any]] = {agent: {"action_mask": self._mask(agent)} for agent in self.agents}
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> dict[str, Any]:
        pair = [[self._stones[who] >> cell & 1 for who in (agent, _OTHER[agent])] for cell in rules.CELLS]
        return {"observation": np.array(pair, np.int8).reshape(3, 3, 2), "action_mask": self._mask(agent)}

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        cell, other = read_action(action), _OTHER[agent]
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._turns[agent] += 1
        if cell in rules.free_cells(self._stones[X] | self._stones[O]):
            self._stones[agent] |= 1 << cell
            self.agent_selection = other
        elif agent not in self._fined:
            self._fined.add(agent)
            self.rewards[agent] += RUBRIC["invalid"]
        self._end(agent, other)
        for name in self.agents:
            self.infos[name]["action_mask"] = self._mask(name)
        self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()

    def _end(self, agent: str, other: str) -> None:
        """Settle the game if `agent` has just ended it or has no turn left."""
        won, over = rules.has_line(self._stones[agent]), rules.is_over(self._stones[X], self._stones[O])
        if not over and self._turns[agent] < TURNS:
            return
        results = {agent: "win", other: "loss"} if won else {agent: "loss", other: "win"}
        if over and not won:
            results = dict.fromkeys(results, "draw")
        for name, result in results.items():
            self.rewards[name] += {"win": self._win, "draw": self._draw, "loss": self._loss}[result]
            self.infos[name]["result"] = result
        ended = self.terminations if over else self.truncations
        ended.update(dict.fromkeys(self.agents, True))
        self.agent_selection = other

    def _mask(self, agent: str) -> Any:
        free = agent == self.agent_selection and not any([*self.terminations.values(), *self.truncations.values()])
        return action_mask(self._stones[X] | self._stones[O]) if free else np.zeros(9, np.int8)

    @property
    def board(self) -> str:
        """Nine characters, as in `Instance.board`."""
        return board_text(self._stones[X], self._stones[O])

    def render(self) -> Any:
        return render_board(self.board, self.render_mode)

    def close(self) -> None:
        """Nothing to do: nothing is open."""


def _start(options: Mapping[str, Any] | None) -> Instance:
    """The given instance, else the empty board. Other options are ignored, as PettingZoo's own tests require."""
    instance = (options or {}).get("instance")
    return Instance(EMPTY) if instance is None else read_pool([instance])[0]


def env(**options: Any) -> AECEnv[str, Any, Any]:
    """The environment wrapped in PettingZoo's check of the order of calls. `options` are those of `TicTacToeAECEnv`."""
    from pettingzoo.utils import OrderEnforcingWrapper

    return OrderEnforcingWrapper(TicTacToeAECEnv(**options))
