"""`MAPFFrozenLakeText-v0`: one prompt in, one answer out."""

from __future__ import annotations

import string
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from t2t_core.errors import T2TError

from ..instance import Instance
from ..prompt import FORMATS, make_prompt
from ..reward import accuracy_reward
from ..solver import MAX_SIZE
from ..verifier import CHECKS, verify
from .episode import Episode, Lobby, check_reset_options
from .lakes import ConfigurationSource, PoolSource
from .rendering import FPS, RENDER_MODES, check_render_mode, render_frame

MAX_ANSWER = 1_000_000  # characters; our choice: more than any model's longest response
MAX_PROMPT = 100_000  # ten times the longest prompt format at 32 x 32 with 16 agents
_OPTIONS = ("size", "num_agents", "hole_ratio", "require_wait", "objective", "max_size", "names", "labels", "max_nodes", "reuse")


class AnyText(spaces.Text):
    """Text of any characters, since a language model may write any. `sample` draws printable ASCII."""

    def __init__(self, max_length: int, min_length: int = 0) -> None:
        super().__init__(max_length, min_length=min_length, charset=string.printable)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length


class MAPFFrozenLakeTextEnv(gym.Env[str, str]):
    """
    MAPF-FrozenLake as a language model plays it: the observation is a prompt that describes an instance, the action is the
    whole answer, and the episode ends after this one step.

    ```python
    import gymnasium as gym
    import t2t_envs

    env = gym.make("MAPFFrozenLakeText-v0", num_agents=3)
    prompt, info = env.reset(seed=7)
    _, reward, terminated, truncated, verdict = env.step(answer)
    ```

    ## Action Space
    `Text`: the response, word for word, up to 1,000,000 characters of any kind. The documented answer, literally:
    ```
    <answer>
    Agent 0: (2,0) -> (2,1) -> (2,2) -> (1,2)
    Agent 1: (1,0) -> (1,1) -> (2,1) -> (2,2)
    </answer>
    ```

    ## Observation Space
    `Text`: the prompt. After the step it is the same prompt again.

    ## Starting State
    As in `MAPFFrozenLakeEnv`: a fresh random instance at every reset, or `options={"instance": ...}`, or
    `options={"pool": ...}`, or the arguments `pool`, `desc` and `configuration`.

    ## Rewards
    The accuracy reward of the paper: 0 unless the answer is valid; 1.0 at the optimum, falling linearly to 0.3 at a cost gap
    of twice the optimum, 0.3 beyond; 0.5 if the instance stores no optimum.

    ## Episode End
    The episode always terminates after one step. A second step raises `T2TError`.

    ## Information
    As in `MAPFFrozenLakeEnv`. `checks` holds the results of the eight strict checks by name, and `failure` the position of the
    first failed check among them, counted from 1. With `names=True` there is also `faults`: for each failed check, a text that
    says what was wrong where.

    ## Arguments
    `size=5, num_agents=2, hole_ratio=0.2, require_wait=None, objective="makespan", max_size=None, names=False, labels="lazy",
    max_nodes=2_000_000, reuse=1, pool=None, desc=None, configuration=None` as in `MAPFFrozenLakeEnv`;
    `prompt_format="board"` (`board`, `coordinates`, `compact`, or one that you added to `t2t_envs.frozen_lake.prompt.FORMATS`);
    `render_mode=None`, `"human"`, `"ansi"` or `"rgb_array"`, which draw the instance.

    ## Version History
    * v0: Initial version release
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": FPS}

    def __init__(
        self,
        *,
        pool: PoolSource | None = None,
        desc: Any = None,
        configuration: ConfigurationSource | None = None,
        prompt_format: str = "board",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        odd = [name for name in options if name not in _OPTIONS]
        if odd:
            raise T2TError(f"unknown option {odd[0]!r}", where="environment", next="use one of " + ", ".join(_OPTIONS))
        if prompt_format not in FORMATS:
            raise T2TError("unknown prompt_format", where="option prompt_format", next="use one of " + ", ".join(FORMATS))
        self.render_mode = check_render_mode(render_mode)
        self._format = prompt_format
        lobby = Lobby(options, pool, desc, configuration)
        if lobby.options.frame > MAX_SIZE:
            raise T2TError(f"a prompt describes lakes of up to {MAX_SIZE}x{MAX_SIZE}", where="option size")
        self._episode = Episode(lobby)
        self._answered = False
        self.observation_space = AnyText(MAX_PROMPT, min_length=1)
        self.action_space = AnyText(MAX_ANSWER)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        check_reset_options(options)
        self._episode.seed(seed)
        info = self._episode.start(options)
        self._answered = False
        if self.render_mode == "human":
            self.render()
        return make_prompt(self.instance, self._format), info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._answered:
            raise T2TError("the episode has ended", where="step()", cause="it has only one step", next="call reset() first")
        instance = self.instance
        verdict = verify(instance, action)
        self._answered = True
        info: dict[str, Any] = {"valid": verdict.valid, "checks": dict(verdict.checks)}
        if not verdict.valid:
            info |= {"optimal": False, "failure": 1 + CHECKS.index(str(verdict.failure))}
            if self._episode.options.names:
                info["faults"] = {name: fault.message for name, fault in verdict.faults.items()}
            return make_prompt(instance, self._format), 0.0, True, False, info
        cost, optimum = verdict.cost, self._episode.known_optimum()
        info |= {"cost": cost, **verdict.costs}
        if optimum is not None and cost is not None:
            info |= {"optimal": cost == optimum, "gap": cost - optimum}
        return make_prompt(instance, self._format), accuracy_reward(cost, optimum), True, False, info

    @property
    def instance(self) -> Instance:
        """The instance being asked, with its known labels."""
        return self._episode.instance

    @property
    def optimum(self) -> int | None:
        """The exact optimum of the instance being asked, searched for on first use; None if it isn't found in `max_nodes`."""
        return self._episode.optimum()

    def set_configuration(self, configuration: ConfigurationSource) -> None:
        """Draw lakes of this configuration from the next reset on; its sizes must fit (see `max_size`)."""
        self._episode.set_configuration(configuration)

    def render(self) -> Any:
        return render_frame(self.instance, [[cell] for cell in self.instance.starts], 0, self.render_mode)
