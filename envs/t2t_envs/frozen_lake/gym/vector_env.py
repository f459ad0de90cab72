"""The vector form of `MAPFFrozenLake-v0`: many environments in one call to the native core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from t2t_core.errors import T2TError

from ..instance import Instance
from .episode import Lobby, check_reset_options, episode_reward, no_such_lake, restart, stream_of
from .lakes import ConfigurationSource, GivenLakes, PoolSource
from .observation_spaces import joint_action_space, observation_space
from .options import EnvOptions, with_steps
from .rendering import FPS, RENDER_MODES, check_render_mode, render_frame
from .stepper import stepping_core

Info = dict[str, Any]
REUSE = 32  # our choice: how often a drawn lake is played, each time as another variant


class MAPFFrozenLakeVectorEnv(VectorEnv[Any, Any, Any]):
    """
    Many MAPF-FrozenLake environments in one.

    ```python
    import gymnasium as gym
    import t2t_envs
    envs = gym.make_vec("MAPFFrozenLake-v0", num_envs=1024, vectorization_mode="vector_entry_point", num_agents=5)
    ```

    Each environment does what `MAPFFrozenLakeEnv` does, step for step, with the same arguments. Observations are batched as
    Gymnasium batches them: arrays with one row per environment, all of them fresh at every call. These are the differences:

    ## Starting State
    Every environment has its own stream of fresh lakes. It depends only on (seed, i) for `reset(seed=seed)`, or on the i-th seed
    of a list, not on how many environments there are or when the others end. Without a seed the streams continue; the first
    time, they start from a random seed. Environment 0 plays the same lakes as a single environment with this seed.

    `reuse` is 32: **every drawn lake is played 32 times** in its environment, one after the other, each time under another
    symmetry of the grid and order of the agents, since drawing takes far longer than playing at random. `reuse=1` draws a lake
    for every episode.

    ## Episode End
    `autoreset_mode` is one of Gymnasium's three, given as a member of `AutoresetMode` or its value. `metadata["autoreset_mode"]`
    holds it.

    - `AutoresetMode.NEXT_STEP` (default): the step after the end ignores the action, starts the next episode and returns
      its first observation with reward 0.
    - `AutoresetMode.SAME_STEP`: the step that ends an episode returns the first observation of the next one; the last
      observation and the verdict are in `final_obs` and `final_info`.
    - `AutoresetMode.DISABLED`: nothing restarts by itself. `reset(options={"reset_mask": mask})` restarts where the mask is
      True. A step before all ended episodes have been restarted raises `T2TError`.

    ## Information
    The infos of the single environment as arrays over the environments, each key with its mask `_key`, as Gymnasium returns
    them. `envs.unwrapped.action_masks()` are the masks of all environments, `(num_envs, k, 5)` int8, `envs.unwrapped.instance(i)`
    is the instance that environment i plays, and `set_configuration` changes the configuration that all of them draw from.

    A vector environment can be pickled and copied, even in the middle of episodes.

    Without the native core the same class runs slowly, on the Python rules.

    ## Version History
    * v0: Initial version release
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        pool: PoolSource | None = None,
        desc: Any = None,
        configuration: ConfigurationSource | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        reuse: int = REUSE,
        render_mode: str | None = None,
        **given: Any,
    ) -> None:
        self.num_envs = _positive("num_envs", num_envs)
        self.autoreset_mode = _autoreset(autoreset_mode)
        self.metadata = {"render_modes": RENDER_MODES[1:], "render_fps": FPS, "autoreset_mode": self.autoreset_mode}
        self.render_mode = check_render_mode(render_mode, RENDER_MODES[1:])
        self._lobby = Lobby(given | {"reuse": reuse}, pool, desc, configuration)
        self._options = options = self._lobby.options
        self._verdicts = Verdicts(options, isinstance(self._lobby.lakes, GivenLakes))
        self._stepper = self._make_stepper()
        self._done: Any = None  # before the first reset there is nothing to step
        self._seeded = False
        self._potentials = np.zeros(self.num_envs)
        self._spec: EnvSpec | None = None
        self.single_observation_space = observation_space(options)
        self.single_action_space = joint_action_space(options)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def _make_stepper(self) -> Any:
        return stepping_core().VectorStepper(self._lobby.core_options(), self._lobby.source(), self.num_envs)

    @property
    def spec(self) -> EnvSpec | None:
        """The spec that made the environments; its `max_episode_steps` are the `max_steps` in force."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = None if spec is None else with_steps(spec, self._options.steps)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Info]:
        check_reset_options(options, known=("reset_mask",))
        mask = self._reset_mask((options or {}).get("reset_mask"))
        self._restart(mask, self._keys(seed))
        self._done = np.zeros(self.num_envs, bool) if self._done is None else self._done & ~mask
        return self._stepper.observe(), self._with_masks(self._starts(mask))

    def _restart(self, mask: Any, keys: Any) -> None:
        restart(self._stepper, mask, keys)
        self._potentials[mask] = 0.0

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Info]:
        if self._done is None:
            raise T2TError("there is no episode yet", where="step()", next="call reset() first")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._done.any():
            raise T2TError(
                f"environment {int(self._done.argmax())} has ended",
                where="step()",
                cause="autoreset_mode is DISABLED",
                next='call reset(options={"reset_mask": terminations | truncations}) first',
            )
        observation, terminated, truncated, self._done, outcomes, restarted = self._advance(self._actions(actions))
        rewards, infos = np.zeros(self.num_envs), {}
        if restarted and self._tells:
            infos = self._starts(self._stepper.restarted.astype(bool))
        verdict = self._verdicts.ends(rewards, self._done, outcomes, self._stepper) if outcomes else {}
        if self._options.reward == "shaped":
            self._shape(rewards)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and verdict:
            observation, infos = self._renew(observation, verdict)
        else:
            infos |= verdict
        return observation, rewards, terminated, truncated, self._with_masks(infos)

    def _advance(self, actions: Any) -> tuple[Any, Any, Any, Any, Any, bool]:
        try:
            turn: tuple[Any, Any, Any, Any, Any, bool] = self._stepper.step(actions)
        except stepping_core().NoSuchLake as error:
            raise no_such_lake(error) from None
        except ValueError:
            bad = actions[(actions < 0) | (actions > 4)][0]
            raise T2TError(f"an action lies in 0..4 (left, down, right, up, wait), not {bad}", where="step()") from None
        return turn

    def _shape(self, rewards: Any) -> None:
        """Add the gain of the potentials, except where this step began an episode."""
        begun = self._stepper.restarted.astype(bool)
        now = np.where(self._done | begun, 0.0, self._stepper.potentials())
        rewards += np.where(begun, 0.0, self._options.gamma * now - self._potentials)
        self._potentials = now

    def _renew(self, last: Any, verdict: Info) -> tuple[Any, Info]:
        """Restart the environments that have just ended, within the same step; `last` is the observation of that step."""
        mask, final = self._done, np.full(self.num_envs, None, dtype=object)
        for index in np.flatnonzero(mask).tolist():
            final[index] = _row(last, index)
        self._restart(mask, np.zeros(0, np.uint64))
        self._done = np.zeros(self.num_envs, bool)
        infos = self._starts(mask)
        infos |= {"final_obs": final, "_final_obs": mask, "final_info": verdict, "_final_info": mask.copy()}
        return self._stepper.observe(), infos

    @property
    def _tells(self) -> bool:
        """Whether the start of an episode has any info."""
        return self._options.names or self._options.labels is True

    def _starts(self, mask: Any) -> Info:
        """The reset infos of the environments in `mask`."""
        infos: Info = {}
        if self._options.names:
            names = np.full(self.num_envs, None, dtype=object)
            for index in np.flatnonzero(mask).tolist():
                names[index] = self.instance(index).id
            infos |= {"instance": names, "_instance": mask.copy()}
        if self._options.labels is True:
            optima = self._stepper.optima(mask)
            known = mask & (optima >= 0)
            if known.any():
                infos |= {"optimum": optima * known, "_optimum": known}
        return infos

    def _with_masks(self, infos: Info) -> Info:
        if self._options.action_masks:
            infos |= {"action_mask": self._stepper.masks(), "_action_mask": np.ones(self.num_envs, bool)}
        return infos

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.int8]]:
        """(num_envs, k, 5) int8, 0 if an action moves off the grid or into a hole, otherwise 1."""
        if self._done is None:
            raise T2TError("there is no episode yet", where="action_masks()", next="call reset() first")
        masks: np.ndarray[Any, np.dtype[np.int8]] = self._stepper.masks()
        return masks

    def set_configuration(self, configuration: ConfigurationSource) -> None:
        """Draw lakes of this configuration from each next reset on; its sizes must fit the spaces (see `max_size`)."""
        self._stepper.set_source(self._lobby.configure(configuration))

    def instance(self, index: int) -> Instance:
        """The instance that environment `index` plays, with its known labels."""
        return self._lobby.instance(self._stepper.lake(index))

    def _actions(self, actions: Any) -> Any:
        array = np.asarray(actions)
        shape = (self.num_envs, self._options.num_agents)
        if array.shape != shape or array.dtype.kind not in "iu":
            raise T2TError(
                f"actions must be integers of shape {shape}, not {array.dtype} of shape {array.shape}", where="step()"
            )
        return array

    def _reset_mask(self, mask: Any) -> Any:
        if mask is None:
            return np.ones(self.num_envs, bool)
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise T2TError(
                f"reset_mask must be a boolean array of shape ({self.num_envs},) with at least one True", where="reset options"
            )
        return mask

    def _keys(self, seed: int | Sequence[int] | None) -> Any:
        """One stream key per environment; none if the streams continue."""
        if seed is None and self._seeded:
            return np.zeros(0, np.uint64)
        self._seeded = True
        if seed is None or isinstance(seed, (int, np.integer)):
            super().reset(seed=None if seed is None else int(seed))
            parent = stream_of(seed)
            return np.array([parent.fork(index).next() for index in range(self.num_envs)], np.uint64)
        if len(seed) != self.num_envs or not all(isinstance(value, (int, np.integer)) and value >= 0 for value in seed):
            raise T2TError(f"seed must be an integer, or {self.num_envs} non-negative integers", where="reset()")
        return np.array([stream_of(int(value)).fork(0).next() for value in seed], np.uint64)

    def render(self) -> tuple[Any, ...] | None:
        """One frame per environment, of its current positions."""
        frames = []
        for index, (step, cells) in enumerate(zip(self._stepper.steps.tolist(), self._stepper.positions.tolist(), strict=True)):
            instance = self.instance(index)
            recent = [[divmod(cell, instance.size)] for cell in cells]
            frames.append(render_frame(instance, recent, step, self.render_mode))
        return tuple(frames)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, in the middle of episodes too."""
        return {name: value for name, value in self.__dict__.items() if name != "_stepper"} | {"state": self._stepper.save()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("state")
        self.__dict__.update(state)
        self._stepper = self._make_stepper()
        self._stepper.load(saved)


class Verdicts:
    """The verdicts of many episodes at a time. Most episodes fail, so the values that only solved ones have are computed only
    for those."""

    def __init__(self, options: EnvOptions, given: bool) -> None:
        self.kind, self.hidden = options.reward, options.labels is False and not given
        self.objective = options.objective

    def ends(self, rewards: Any, done: Any, outcomes: Any, stepper: Any) -> Info:
        """The verdicts of the environments in `done`; writes their rewards into `rewards`."""
        any_valid, any_failed, (valid, failed, failure, conflict, *costs) = outcomes
        infos: Info = {"valid": valid, "_valid": done.copy()}
        if any_failed:
            infos |= {"failure": failure, "_failure": failed, "conflict": conflict, "_conflict": failed.copy()}
            infos |= {"optimal": np.zeros(len(done), bool), "_optimal": failed.copy()}
        if any_valid:
            infos |= self._solved(rewards, valid, dict(zip(_COSTS, costs, strict=True)), failed, stepper)
        return infos

    def _solved(self, rewards: Any, solved: Any, costs: dict[str, Any], failed: Any, stepper: Any) -> Info:
        cost = costs[self.objective]
        optima = np.full(len(solved), -1) if self.hidden else stepper.optima(solved)
        known = solved & (optima >= 0)
        rewards[solved] = [
            episode_reward(self.kind, c, o if o >= 0 else None)
            for c, o in zip(cost[solved].tolist(), optima[solved].tolist(), strict=True)
        ]
        infos: Info = {}
        for name, values in {"cost": cost, **costs}.items():
            infos |= {name: values * solved, f"_{name}": solved.copy()}
        if (known | failed).any():
            infos |= {"optimal": known & (cost == optima), "_optimal": known | failed}
        if known.any():
            infos |= {"gap": (cost - optima) * known, "_gap": known}
        return infos


_COSTS = ("makespan", "sum_of_costs")


def _row(batch: Any, index: int) -> Any:
    """One environment's observation, taken from a batch."""
    if not isinstance(batch, dict):
        return batch[index].copy()
    return {name: int(part[index]) if name == "step" else part[index].copy() for name, part in batch.items()}


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value < 1 << 31:
        raise T2TError(f"{name} must be a positive integer", where=f"option {name}")
    return int(value)


def _autoreset(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(repr(choice.value) for choice in AutoresetMode)
        raise T2TError("unknown autoreset_mode", where="option autoreset_mode", next=f"use one of {known}") from None
