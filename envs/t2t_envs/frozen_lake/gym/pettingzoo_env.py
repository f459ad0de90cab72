"""`MAPFFrozenLake-v0` for PettingZoo: the parallel environment and its agent-by-agent (AEC) twin."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import parallel_to_aec

from t2t_core.errors import T2TError

from ..instance import Cell, Instance
from ..rules import ACTION_NAMES
from .episode import Episode, Lobby
from .lakes import ConfigurationSource, PoolSource
from .observation_spaces import observation_space, state_space
from .rendering import FPS, RENDER_MODES, check_render_mode, render_frame


class MAPFFrozenLakeParallelEnv(ParallelEnv[str, Any, Any]):  # type: ignore[misc]  # PettingZoo ships no types
    """
    MAPF-FrozenLake with one policy per agent. The rules, the arguments and the starting state are those of the joint
    environment (`MAPFFrozenLakeEnv`). Only the differences are described here.

    ```python
    import pettingzoo, t2t_envs
    env = pettingzoo.make("parallel", "MAPFFrozenLake-v0", size=5, num_agents=3, rewards="shared")
    env = pettingzoo.make("aec", "MAPFFrozenLake-v0", size=5, num_agents=3)
    ```

    ## Agents
    `agent_0` ... `agent_<k-1>`. All of them take part until the episode ends. In the AEC twin the agents choose one after the
    other without seeing the choices of the others, and all move once the last has chosen.

    ## Action Space
    `Discrete(5)` per agent: 0 left, 1 down, 2 right, 3 up, 4 wait. `infos[agent]["action_mask"]` (int8, 5) is 0 for actions
    that move off the grid or into a hole, otherwise 1; `env.action_space(agent).sample(mask)` takes it, and
    `env.action_masks()` has a row for each agent.

    ## Observation Space
    As in the joint environment, with the agent itself first and the others after it in order: `positions[0]` and `goals[0]` are
    its own, and so are the first position plane and the first goal plane. With `view=r` an agent sees only its own window:
    `holes` and `others` are `(w, w)`, `positions` and `goals` `(1, 2)`, planes `(3, w, w)`. A padded observation is `(6, N, N)`.
    An image shows the agent itself brightest and all others in the same shade.

    `env.state()` returns the whole grid as planes, `(1 + 2k, N, N)` uint8, for every form of observation.

    ## Rewards
    - `rewards="shared"` (default): every agent gets the reward of the joint environment.
    - `rewards="individual"` (ours): when the episode ends, for whatever reason, each agent gets 1.0 if it stands on its goal and
      has neither fallen nor taken part in a conflict; the others get 0. The argument `reward` then has an effect only if it is
      `"shaped"`: each agent's own progress shapes its own reward.

    ## Information
    At the end every agent's info also holds the verdict of the episode (see `MAPFFrozenLakeEnv`). `reset` takes the options
    `instance` and `pool`, and ignores others, as PettingZoo's own tests require. `action_masks=False` leaves the masks out.

    ## Version History
    * v0: Initial version release
    """

    metadata: dict[str, Any] = {
        "name": "MAPFFrozenLake-v0",
        "render_modes": RENDER_MODES,
        "render_fps": FPS,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        *,
        pool: PoolSource | None = None,
        desc: Any = None,
        configuration: ConfigurationSource | None = None,
        rewards: str = "shared",
        render_mode: str | None = None,
        action_masks: bool = True,
        **given: Any,
    ) -> None:
        if rewards not in ("shared", "individual"):
            raise T2TError("unknown rewards", where="option rewards", next='use "shared" or "individual"')
        self._individual = rewards == "individual"
        self.render_mode = check_render_mode(render_mode)
        self._episode = Episode(Lobby(given | {"action_masks": action_masks}, pool, desc, configuration))
        options = self._episode.options
        self._names = tuple(f"agent_{agent}" for agent in range(options.num_agents))
        self.possible_agents = list(self._names)
        self.agents: list[str] = []
        self.state_space = state_space(options)
        self._observation_spaces = {name: observation_space(options, joint=False) for name in self._names}
        self._action_spaces = {name: spaces.Discrete(len(ACTION_NAMES)) for name in self._names}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        self._episode.seed(seed)
        start = self._episode.start(options)
        self.agents = list(self._names)
        observations, infos = self._episode.stepper.observe_agents(self._names, self._episode.options.action_masks)
        if start:
            for info in infos.values():
                info.update(start)
        if self.render_mode == "human":
            self.render()
        return observations, infos

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        names, episode = self._names, self._episode
        try:
            observations, terminated, truncated, infos = episode.stepper.step_agents(names, actions, episode.options.action_masks)
        except (TypeError, ValueError) as error:
            raise episode.misuse(error) from None
        ended = terminated or truncated
        rewards = self._rewards(infos, ended) if ended or episode.shaped else dict.fromkeys(names, 0.0)
        if ended:
            self.agents = []
        if self.render_mode == "human":
            self.render()
        return observations, rewards, dict.fromkeys(names, terminated), dict.fromkeys(names, truncated), infos

    def _rewards(self, infos: dict[str, dict[str, Any]], ended: bool) -> dict[str, float]:
        reward, verdict = self._episode.reward(ended)
        if ended:
            for info in infos.values():
                info.update(verdict)
        if not self._individual:
            return dict.fromkeys(self._names, reward)
        return dict(zip(self._names, self._episode.individual_rewards(ended), strict=True))

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.int8]]:
        """(k, 5) int8, a row per agent in the order of `possible_agents`. As in the infos, 0 marks an action that moves off the
        grid or into a hole."""
        self._episode.check_started()
        masks: np.ndarray[Any, np.dtype[np.int8]] = self._episode.stepper.masks()
        return masks

    def set_configuration(self, configuration: ConfigurationSource) -> None:
        """Draw lakes of this configuration from the next reset on; its sizes must fit the spaces (see `max_size`)."""
        self._episode.set_configuration(configuration)

    def state(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        self._episode.check_started()
        planes: np.ndarray[Any, np.dtype[np.uint8]] = self._episode.stepper.planes()
        return planes

    @property
    def instance(self) -> Instance:
        """The instance being played, with its known labels."""
        return self._episode.instance

    @property
    def optimum(self) -> int | None:
        """The exact optimum of the instance being played, searched for on first use; None if it isn't found in `max_nodes`."""
        return self._episode.optimum()

    @property
    def paths(self) -> list[list[Cell]]:
        """Each agent's cells (row, column) so far, from its start."""
        return self._episode.paths

    def render(self) -> Any:
        return render_frame(self.instance, self._episode.recent, self._episode.stepper.steps, self.render_mode)

    def close(self) -> None:
        """Does nothing, because the environment holds nothing open."""


def parallel_env(**options: Any) -> ParallelEnv[str, Any, Any]:
    """The parallel environment; `options` are those of `MAPFFrozenLakeParallelEnv`."""
    return MAPFFrozenLakeParallelEnv(**options)


def env(**options: Any) -> AECEnv[str, Any, Any]:
    """The AEC twin of the parallel environment, with PettingZoo's check of the order of calls."""
    return parallel_to_aec(parallel_env(**options))
