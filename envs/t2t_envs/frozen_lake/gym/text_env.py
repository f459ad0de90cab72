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
from ..verifier import verify
from .episode import check_reset_options, choose, start_info
from .options import EnvOptions
from .pools import PoolSource, read_pool
from .rendering import FPS, check_render_mode, render_frame

MAX_ANSWER = 1_000_000  # characters; our choice: more than any model's longest response
MAX_PROMPT = 100_000  # the longest prompt format at 32 x 32 with 16 agents is a tenth of it
_RENDER_MODES = ["ansi", "rgb_array"]


class AnyText(spaces.Text):
    """Text of any characters. What a language model writes keeps to no alphabet; `sample` draws printable ASCII."""

    def __init__(self, max_length: int, min_length: int = 0) -> None:
        super().__init__(max_length, min_length=min_length, charset=string.printable)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length


class MAPFFrozenLakeTextEnv(gym.Env[str, str]):
    """
    MAPF-FrozenLake as a language model plays it: the observation is a prompt that describes an instance, the action is the
    whole answer, and the episode ends with its one step.

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
    As in `MAPFFrozenLakeEnv`: a fresh random instance with its exact optimum at every reset, or `options={"instance": ...}`,
    or `options={"pool": ...}`, or the argument `pool`.

    ## Rewards
    The accuracy reward of the paper: 0 unless the answer is valid; 1.0 at the optimum, falling linearly to 0.3 at a cost gap
    of twice the optimum, 0.3 beyond; 0.5 where the instance stores no optimum.

    ## Episode End
    Terminated after one step, always. A second step raises `T2TError`.

    ## Information
    `reset()` gives `instance` (its id) and, where known, `optimum`. `step()` gives the verdict: `valid`; `optimal` (absent for
    a valid answer to an instance without optimum); `checks`, the eight strict checks by name; for an answer that is not valid
    `failure`, the first failed check, and `faults`, what was wrong where, as text by check; for a valid one `cost`,
    `makespan`, `sum_of_costs` and, where the optimum is stored, `gap`.

    ## Arguments
    `size=5, num_agents=2, hole_ratio=0.2, require_wait=None, objective="makespan", pool=None` as in `MAPFFrozenLakeEnv`;
    `prompt_format="board"` (`board`, `coordinates`, `compact`, or one that was added to `t2t_envs.frozen_lake.prompt.FORMATS`);
    `render_mode=None`, `"ansi"` or `"rgb_array"`: the instance.

    ## Version History
    * v0: Initial version release
    """

    metadata: dict[str, Any] = {"render_modes": _RENDER_MODES, "render_fps": FPS}

    def __init__(
        self,
        size: int = 5,
        num_agents: int = 2,
        hole_ratio: float = 0.2,
        require_wait: bool | None = None,
        objective: str = "makespan",
        prompt_format: str = "board",
        pool: PoolSource | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._options = EnvOptions(size, num_agents, hole_ratio, require_wait, objective)
        if prompt_format not in FORMATS:
            raise T2TError("unknown prompt_format", where="option prompt_format", next="use one of " + ", ".join(FORMATS))
        self.render_mode = check_render_mode(render_mode, _RENDER_MODES)
        self._format = prompt_format
        self._pool = None if pool is None else read_pool(pool, self._options)
        self._instance: Instance | None = None
        self._answered = False
        self.observation_space = AnyText(MAX_PROMPT, min_length=1)
        self.action_space = AnyText(MAX_ANSWER)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        check_reset_options(options)
        pool, index = choose(self._options, self._pool, self.np_random, options)
        self._instance, self._answered = pool.instances[index], False
        return make_prompt(self._instance, self._format), start_info(self._instance)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._answered:
            raise T2TError("the episode has ended", where="step()", cause="it has one step", next="call reset() first")
        instance = self.instance
        verdict = verify(instance, action)
        self._answered = True
        info: dict[str, Any] = {"valid": verdict.valid, "checks": dict(verdict.checks)}
        if verdict.optimal is not None:
            info["optimal"] = verdict.optimal
        if verdict.valid:
            info |= {"cost": verdict.cost, **verdict.costs}
        else:
            info |= {"failure": verdict.failure, "faults": {name: fault.message for name, fault in verdict.faults.items()}}
        if verdict.gap is not None:
            info["gap"] = verdict.gap
        return make_prompt(instance, self._format), accuracy_reward(verdict.cost, instance.optimum), True, False, info

    @property
    def instance(self) -> Instance:
        """The instance being asked, with its labels."""
        if self._instance is None:
            raise T2TError("there is no episode yet", where="environment", next="call reset() first")
        return self._instance

    def render(self) -> Any:
        return render_frame(self.instance, [[cell] for cell in self.instance.starts], 0, self.render_mode)
