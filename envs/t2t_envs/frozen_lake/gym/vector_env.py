"""The vector form of `MAPFFrozenLake-v0`: many environments in one call to the native core."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from t2t_core.errors import T2TError
from t2t_core.seeding import Stream, key

from .episode import CONFLICTS, check_reset_options, episode_reward
from .options import EnvOptions, joint_action_space, observation_space
from .pools import Pool, PoolSource, random_instances, read_pool
from .rendering import FPS, RENDER_MODES, check_render_mode, render_frame
from .stepper import make_vector_stepper

Info = dict[str, Any]
_UNKNOWN = -1
_CONFLICTS = np.array(CONFLICTS, dtype=object)
_FAILURES = np.array(["goal_reached", "conflict_free", "hole_free"], dtype=object)


class MAPFFrozenLakeVectorEnv(VectorEnv[Any, Any, Any]):
    """
    Many MAPF-FrozenLake environments in one.

    ```python
    import gymnasium as gym
    import t2t_envs
    envs = gym.make_vec("MAPFFrozenLake-v0", num_envs=1024, vectorization_mode="vector_entry_point", num_agents=5)
    ```

    Each environment does what `MAPFFrozenLakeEnv` does, step for step, with the same arguments. Observations are batched as
    Gymnasium batches them: arrays with one row per environment, all of them fresh at every call. What differs:

    ## Starting State
    Instances come from a pool that is made at construction: `pool_size` random instances (default 1,024) drawn with
    `pool_seed` (default 0), or `pool`, a path or a list of instances. Every reset draws one of it, uniformly. The draws of
    environment i depend on (seed, i) for `reset(seed=seed)`, or on the i-th seed of a list, and on nothing else; without a
    seed the streams go on, the first time from a random one.

    ## Episode End
    `autoreset_mode` is one of Gymnasium's three, as a member of `AutoresetMode` or its value; `metadata["autoreset_mode"]` says
    which:

    - `AutoresetMode.NEXT_STEP` (default): the step after the end ignores the action, starts the next episode and returns
      its first observation with reward 0.
    - `AutoresetMode.SAME_STEP`: the step that ends an episode returns the first observation of the next one; the last
      observation and the verdict are in `final_obs` and `final_info`.
    - `AutoresetMode.DISABLED`: nothing restarts by itself; `reset(options={"reset_mask": mask})` restarts where the mask is
      True, and a step while an ended episode has not been restarted raises `T2TError`.

    ## Information
    The infos of the single environment as arrays over the environments, each key with its mask `_key`, as Gymnasium gives
    them.

    Without the native core the same class runs on the Python rules, slowly.

    ## Version History
    * v0: Initial version release
    """

    def __init__(
        self,
        num_envs: int = 1,
        size: int = 5,
        num_agents: int = 2,
        hole_ratio: float = 0.2,
        require_wait: bool | None = None,
        objective: str = "makespan",
        max_steps: int | None = None,
        on_hole: str = "terminate",
        on_conflict: str = "terminate",
        reward: str = "accuracy",
        observation: str = "dict",
        view: int | None = None,
        pool: PoolSource | None = None,
        pool_size: int = 1024,
        pool_seed: int = 0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
    ) -> None:
        options = EnvOptions(
            size, num_agents, hole_ratio, require_wait, objective, max_steps, on_hole, on_conflict, reward, observation, view
        )
        self.num_envs = _positive("num_envs", num_envs)
        self.autoreset_mode = _autoreset(autoreset_mode)
        self.metadata = {"render_modes": RENDER_MODES[1:], "render_fps": FPS, "autoreset_mode": self.autoreset_mode}
        self.render_mode = check_render_mode(render_mode, RENDER_MODES[1:])
        self._options = options
        self._pool = _pool(options, pool, pool_size, pool_seed)
        self._labels = _Labels(self._pool, reward)
        self._stepper = make_vector_stepper(
            **options.stepper(), holes=self._pool.holes, starts=self._pool.starts, goals=self._pool.goals, count=self.num_envs
        )
        self._done: Any = None  # before the first reset there is nothing to step
        self.single_observation_space = observation_space(options)
        self.single_action_space = joint_action_space(options)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Info]:
        check_reset_options(options, known=("reset_mask",))
        mask = self._reset_mask((options or {}).get("reset_mask"))
        keys = self._keys(seed)
        if keys is None and self._done is None:
            keys = self._keys(int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 1))
        self._stepper.reset(mask, np.zeros(0, np.uint64) if keys is None else keys)
        self._done = np.zeros(self.num_envs, bool) if self._done is None else self._done & ~mask
        return self._stepper.observe(), self._labels.starts(self._stepper.instances, mask)

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
        terminated, truncated, restarted = self._stepper.step(self._actions(actions))
        rewards, infos = np.zeros(self.num_envs), {}
        if restarted:
            infos = self._labels.starts(self._stepper.instances, self._stepper.restarted.astype(bool))
        self._done = terminated | truncated
        if not self._done.any():
            return self._stepper.observe(), rewards, terminated, truncated, infos
        verdict = self._labels.ends(rewards, self._stepper.instances, self._done, self._stepper.outcomes())
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos = self._restart(verdict)
        else:
            infos |= verdict
        return self._stepper.observe(), rewards, terminated, truncated, infos

    def _restart(self, verdict: Info) -> Info:
        """Restart what has ended within the step that ended it."""
        mask = self._done
        last, final = self._stepper.observe(), np.full(self.num_envs, None, dtype=object)
        for index in np.flatnonzero(mask).tolist():
            final[index] = _row(last, index)
        self._stepper.reset(mask, np.zeros(0, np.uint64))
        self._done = np.zeros(self.num_envs, bool)
        infos = self._labels.starts(self._stepper.instances, mask)
        return infos | {"final_obs": final, "_final_obs": mask, "final_info": verdict, "_final_info": mask.copy()}

    def _actions(self, actions: Any) -> Any:
        array = np.asarray(actions)
        shape = (self.num_envs, self._options.num_agents)
        if array.shape != shape or array.dtype.kind not in "iu":
            raise T2TError(
                f"actions must be integers of shape {shape}, not {array.dtype} of shape {array.shape}", where="step()"
            )
        if array.min() < 0 or array.max() > 4:
            bad = array[(array < 0) | (array > 4)][0]
            raise T2TError(f"an action lies in 0..4 (left, down, right, up, wait), not {bad}", where="step()")
        return array

    def _reset_mask(self, mask: Any) -> Any:
        if mask is None:
            return np.ones(self.num_envs, bool)
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise T2TError(
                f"reset_mask must be a boolean array of shape ({self.num_envs},) with a True in it", where="reset options"
            )
        return mask

    def _keys(self, seed: int | Sequence[int] | None) -> Any:
        """One stream key per environment, or None to let the streams go on."""
        if seed is None:
            return None
        if isinstance(seed, (int, np.integer)):
            super().reset(seed=int(seed))
            parent = Stream.of(int(seed), "vector environment")
            return np.array([parent.fork(index).next() for index in range(self.num_envs)], np.uint64)
        if len(seed) != self.num_envs or not all(isinstance(one, (int, np.integer)) and one >= 0 for one in seed):
            raise T2TError(f"seed must be an integer, or {self.num_envs} integers that are not negative", where="reset()")
        return np.array([Stream.of(int(one), "vector environment").next() for one in seed], np.uint64)

    def render(self) -> tuple[Any, ...] | None:
        """One frame per environment, of its current positions."""
        frames = []
        for place, step, cells in zip(self._stepper.instances, self._stepper.steps, self._stepper.positions, strict=True):
            recent = [[divmod(int(cell), self._options.size)] for cell in cells]
            frames.append(render_frame(self._pool.instances[place], recent, int(step), self.render_mode))
        return tuple(frames)


class _Labels:
    """The infos of a batch, from the labels of the pool."""

    def __init__(self, pool: Pool, reward: str) -> None:
        self.reward = lru_cache(maxsize=1 << 16)(partial(episode_reward, reward))
        self.ids = np.array([instance.id for instance in pool.instances], dtype=object)
        self.optima = np.array([_UNKNOWN if i.optimum is None else i.optimum for i in pool.instances], np.int64)
        self.by_makespan = np.array([instance.objective == "makespan" for instance in pool.instances])

    def starts(self, instances: Any, mask: Any) -> Info:
        """What reset says of the instances of the environments in `mask`."""
        optima = self.optima[instances]
        infos: Info = {}
        _add(infos, "instance", self.ids[instances], mask)
        _add(infos, "optimum", optima, mask & (optima != _UNKNOWN))
        return infos

    def ends(self, rewards: Any, instances: Any, done: Any, outcomes: tuple[Any, ...]) -> Info:
        """The verdicts of the environments in `done`; their rewards go into `rewards`."""
        valid, fell, conflict, makespan, sum_of_costs = outcomes
        optima = self.optima[instances]
        cost = np.where(self.by_makespan[instances], makespan, sum_of_costs)
        solved, known = done & valid, optima != _UNKNOWN
        rewards[solved] = [
            self.reward(c, None if o == _UNKNOWN else o)
            for c, o in zip(cost[solved].tolist(), optima[solved].tolist(), strict=True)
        ]
        infos: Info = {}
        _add(infos, "valid", valid, done)
        _add(infos, "optimal", valid & (cost == optima), done & (known | ~valid))
        _add(infos, "failure", _FAILURES[np.where(fell, 2, conflict > 0)], done & ~valid)
        _add(infos, "conflict", _CONFLICTS[conflict], done & (conflict > 0))
        for name, values in (("cost", cost), ("makespan", makespan), ("sum_of_costs", sum_of_costs)):
            _add(infos, name, values, solved)
        _add(infos, "gap", cost - optima, solved & known)
        return infos


def _add(infos: Info, name: str, values: Any, mask: Any) -> None:
    """Add a key as Gymnasium does: absent where it holds for no environment, else the values and the mask of those it holds
    for; the other entries are zero, False or None."""
    if mask.any():
        infos[name] = np.where(mask, values, None if values.dtype == object else values.dtype.type(0))
        infos[f"_{name}"] = mask.copy()


def _row(batch: Any, index: int) -> Any:
    """One environment's observation out of a batch."""
    if not isinstance(batch, dict):
        return batch[index].copy()
    return {name: int(part[index]) if name == "step" else part[index].copy() for name, part in batch.items()}


def _pool(options: EnvOptions, source: PoolSource | None, size: int, seed: int) -> Pool:
    if source is not None:
        return read_pool(source, options)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise T2TError("pool_seed must be an integer that is not negative", where="option pool_seed")
    return Pool.of(random_instances(options, key(int(seed), "instance pool"), _positive("pool_size", size)))


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value < 1 << 31:
        raise T2TError(f"{name} must be a positive integer", where=f"option {name}")
    return int(value)


def _autoreset(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(repr(one.value) for one in AutoresetMode)
        raise T2TError("unknown autoreset_mode", where="option autoreset_mode", next=f"use one of {known}") from None
