"""`T2TTicTacToe-v0`: the board and an action mask, against an opponent of chosen strength, for Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from t2t_core.errors import T2TError
from t2t_core.hostile import shown

from .. import rules
from ..game import advance
from ..generation.configuration import Configuration
from ..instance import Instance
from ..parser import Move
from .episode import Games, Play, PoolSource, verdict_info
from .rendering import FPS, RENDER_MODES, check_render_mode, render_board


def board_array(own: int, other: int) -> np.ndarray[Any, np.dtype[np.int8]]:
    """(3, 3) int8: 1 if `own` has a stone, -1 if `other` has one."""
    flat = [(own >> cell & 1) - (other >> cell & 1) for cell in rules.CELLS]
    return np.array(flat, np.int8).reshape(3, 3)


def action_mask(stones: int) -> np.ndarray[Any, np.dtype[np.int8]]:
    """(9,) int8: 1 for every free cell."""
    return np.array([1 - (stones >> cell & 1) for cell in rules.CELLS], np.int8)


def read_action(action: Any) -> int:
    """The cell of an action; raises T2TError for anything that is not an action of `Discrete(9)`."""
    try:
        cell = int(action.__index__()) if not isinstance(action, np.ndarray) else int(action.item())
    except (AttributeError, TypeError, ValueError):
        cell = -1
    if not 0 <= cell < 9:
        raise T2TError(f"the action {shown(action)} is no cell", where="step()", cause="an action is an integer in 0..8")
    return cell


class TicTacToeEnv(gym.Env[Any, Any]):
    """
    Tic-tac-toe against an opponent that moves at random with probability p and else plays an optimal move.

    ## Description
    Two players take turns putting stones on a board of 3 x 3 cells. Three in a row, column or diagonal win; a full board without
    such a line is a draw. The agent plays an opponent of chosen strength, which moves within the same step. Against perfect play
    nobody wins from the empty board; against random moves, a careful agent wins nine games out of ten.

    The task comes from S. Fiorucci's talk on environments for language models (`TicTacToeText-v0` is played in text). Playing it
    with a board and a mask is our addition.

    ## Action Space
    `Discrete(9)`: the cell, from the top left, row by row. If the cell is not free, the board stays as it is and the agent moves
    again.

    ## Observation Space
    A `Dict` of

    | key | space | meaning |
    |---|---|---|
    | `board` | `Box(-1, 1, (3, 3), int8)` | 1 the agent's stones, -1 the opponent's, 0 free |
    | `action_mask` | `Box(0, 1, (9,), int8)` | 1 for every free cell |

    ## Starting State
    Every `reset()` draws a game: p evenly from its range, who moves first, and whether it starts from a random position in
    mid-game. If the opponent moves first, it has already moved. The game depends on the seed given to `reset` and on the number
    of resets since. Everything that the opponent does follows from the game's own seed and the board. Instead of a drawn game,

    - `reset(options={"instance": instance})` starts an `Instance`, or its dict form,
    - `reset(options={"pool": pool})` draws from a JSON Lines file of instances, or from a list of them (for this reset only),
    - the argument `pool` does so for every reset.

    ## Rewards
    When the game ends, 1 for a win, 0.5 for a draw and 0 for a loss; -0.1 at the first move on a cell that is not free, once per
    game. `weights` changes them.

    ## Episode End
    - Termination: somebody has three in a row, or the board is full.
    - Truncation: after 8 turns of the agent, which counts as a loss.

    A step after the end raises `T2TError`.

    ## Information
    `action_mask` is always there. `reset()` gives `instance` (its id). The last `step()` gives `result` ("win", "draw" or
    "loss"), `valid`, `optimal` and, if the game is not valid, `failure` (the first failed check) and `faults` (what was wrong and
    where, as text by check).

    `env.unwrapped.instance` is the game with its p, and `env.unwrapped.action_masks()` is the mask as flags.

    ## Arguments
    ```python
    import gymnasium as gym
    import t2t_envs

    gym.make(
        "T2TTicTacToe-v0",
        p=(0.0, 1.0),        # how likely a move of the opponent is random: a number, or the ends of a range
        first=0.5,           # how likely the agent is to move first
        mid_game=0.0,        # how likely a game is to start in mid-game
        configuration=None,  # instead of these: a configuration of the generator, by opponent band
        opponent="mixed",    # between optimal moves: "mixed" at random, "second" and "first" by a rule
        pool=None,           # path or list of instances to draw from
        weights=None,        # of the reward's terms, e.g. {"draw": 0.2}
        render_mode=None,    # "ansi", "rgb_array" or "human"
    )
    ```

    Wrong arguments raise `T2TError`. `human` prints the board to the terminal and opens no window.

    ## Version History
    * v0: Initial version release
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": FPS}

    def __init__(
        self,
        p: float | Sequence[float] = (0.0, 1.0),
        first: float = 0.5,
        mid_game: float = 0.0,
        configuration: Configuration | Mapping[str, Any] | None = None,
        opponent: str = "mixed",
        pool: PoolSource | None = None,
        weights: Mapping[str, float] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = check_render_mode(render_mode)
        self._games = Games(p, first, mid_game, configuration, opponent, pool, weights)
        self._play = Play()
        self.action_space = spaces.Discrete(9)
        self.observation_space = spaces.Dict(
            {"board": spaces.Box(-1, 1, (3, 3), np.int8), "action_mask": spaces.Box(0, 1, (9,), np.int8)}
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._play.start(self._games.draw(self.np_random, options))
        if self.render_mode == "human":
            self.render()
        observation = self._observation()
        return observation, {"instance": self.instance.id, "action_mask": observation["action_mask"].copy()}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._play.check_open()
        before = self._play.game
        game = self._play.game = advance(self.instance, before, Move(read_action(action), True))
        if self.render_mode == "human":
            self.render()
        observation = self._observation()
        info: dict[str, Any] = {"action_mask": observation["action_mask"].copy()}
        reward = 0.0
        if not game.turns[-1].legal and all(turn.legal for turn in before.turns):
            reward += self._games.weights["invalid"]
        if game.result is not None:
            reward += self._games.weights[game.result]
            info |= verdict_info(game)
        over = rules.is_over(game.policy, game.opponent)
        return observation, reward, over, game.result is not None and not over, info

    def _observation(self) -> dict[str, Any]:
        game = self._play.game
        return {"board": board_array(game.policy, game.opponent), "action_mask": action_mask(game.policy | game.opponent)}

    @property
    def instance(self) -> Instance:
        """The game being played."""
        return self._play.instance

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """(9,) flags, True for every free cell (the form sb3-contrib's MaskablePPO takes)."""
        game = self._play.game
        return action_mask(game.policy | game.opponent).astype(bool)

    def render(self) -> Any:
        return render_board(self._play.game.board, self.render_mode)
