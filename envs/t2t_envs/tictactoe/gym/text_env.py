"""`TicTacToeText-v0`: the game in turns of text."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from t2t_core.errors import T2TError

from .. import rules
from ..game import advance
from ..generation.configuration import Configuration
from ..instance import Instance
from ..parser import FORMATS, read_move
from ..prompt import make_end, make_prompt, make_reply
from .episode import Games, Play, PoolSource, verdict_info
from .gym_env import action_mask
from .rendering import FPS, RENDER_MODES, check_render_mode, render_board

MAX_ANSWER = 1_000_000  # characters; our choice: more than any model's longest message
MAX_MESSAGE = 10_000


class AnyText(spaces.Text):
    """Text of any characters, because a language model is not limited to an alphabet; `sample` draws printable ASCII."""

    def __init__(self, max_length: int, min_length: int = 0) -> None:
        super().__init__(max_length, min_length=min_length, charset=string.printable)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length


class TicTacToeTextEnv(gym.Env[str, str]):
    """
    Tic-tac-toe as a language model plays it: each observation is a message from the environment, and each action is the policy's
    whole answer to it.

    ```python
    import gymnasium as gym
    import t2t_envs

    env = gym.make("TicTacToeText-v0", p=0.5)
    message, info = env.reset(seed=7)
    message, reward, terminated, truncated, info = env.step("<think>The centre.</think><move>4</move>")
    ```

    ## Action Space
    `Text`: the answer, word for word, up to 1,000,000 characters of any kind. In the format `think`, the form is a thought and
    then a move, literally:
    ```
    <think>The centre is free.</think>
    <move>4</move>
    ```
    In the format `compact`, it is the move alone, `4`. Clear moves in another form are read too, but do not earn the reward for
    the format.

    ## Observation Space
    `Text`: in `think`, first the rules and the board, then what the opponent did and the board; in `compact`, the board alone,
    nine characters. After the last step, it says how the game ended.

    ## Starting State
    As in `TicTacToeEnv`: a fresh game at every reset, or `options={"instance": ...}`, or `options={"pool": ...}`, or the argument
    `pool`.

    ## Rewards
    0 before the end, then the reward of the whole game: 1 for a win, 0.5 for a draw, 0 for a loss; plus 0.2 times the share of
    answers in their form; minus 0.1 if any answer named no free cell. `weights` changes them.

    ## Episode End
    - Termination: somebody has three in a row, or the board is full.
    - Truncation: after 8 answers, which counts as a loss.

    A step after the end raises `T2TError`.

    ## Information
    As in `TicTacToeEnv`; the last `step()` also gives `checks`, the five strict checks by name.

    ## Arguments
    Those of `TicTacToeEnv`; `prompt_format="think"` or `"compact"`; `render_mode=None`, `"human"`, `"ansi"` or
    `"rgb_array"`: the board.

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
        prompt_format: str = "think",
        render_mode: str | None = None,
    ) -> None:
        if prompt_format not in FORMATS:
            raise T2TError("unknown prompt_format", where="option prompt_format", next="use one of " + ", ".join(FORMATS))
        self.render_mode = check_render_mode(render_mode)
        self._format = prompt_format
        self._games = Games(p, first, mid_game, configuration, opponent, pool, weights)
        self._play = Play()
        self.observation_space = AnyText(MAX_MESSAGE, min_length=1)
        self.action_space = AnyText(MAX_ANSWER)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self._play.start(self._games.draw(self.np_random, options))
        self._show()
        return make_prompt(self.instance, self._format), {"instance": self.instance.id, "action_mask": self._mask()}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._play.check_open()
        if not isinstance(action, str):
            raise T2TError(f"an action is a text, not {type(action).__name__}", where="step()")
        game = self._play.game = advance(self.instance, self._play.game, read_move(action, self._format))
        self._show()
        info: dict[str, Any] = {"action_mask": self._mask()}
        if game.result is None:
            return make_reply(game, self._format), 0.0, False, False, info
        info |= verdict_info(game)
        over = rules.is_over(game.policy, game.opponent)
        return make_end(game, self._format), self._games.reward(game), over, not over, info

    def _mask(self) -> Any:
        game = self._play.game
        return action_mask(game.policy | game.opponent)

    @property
    def instance(self) -> Instance:
        """The game being played."""
        return self._play.instance

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def render(self) -> Any:
        return render_board(self._play.game.board, self.render_mode)
