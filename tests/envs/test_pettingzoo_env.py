"""The PettingZoo twins: conformance of both, whole-episode determinism, and agreement with the joint environment."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test, seed_test, state_test
from play import TINY, instances, joint_actions

import t2t_envs  # noqa: F401
from t2t_core.errors import T2TError
from t2t_envs.frozen_lake.generation.configuration import Configuration
from t2t_envs.frozen_lake.instance import Instance

OPTIONS: list[dict[str, Any]] = [
    {"observation": "planes"},
    {"observation": "padded", "size": 3, "max_size": 4},
    {"observation": "flat", "reward": "shaped", "rewards": "individual", "view": 1},
    {"observation": "image", "configuration": Configuration.uniform(), "num_agents": 3},
    {"size": 4, "num_agents": 3, "on_hole": "block", "on_conflict": "block"},
    {"size": 4, "view": 1, "rewards": "individual"},
    {"size": 3, "view": 2, "observation": "planes", "max_steps": 5},
]


def parallel(**options: Any) -> Any:
    return pettingzoo.make("parallel", "MAPFFrozenLake-v0", **options)


def aec(**options: Any) -> Any:
    return pettingzoo.make("aec", "MAPFFrozenLake-v0", **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_pettingzoos_suites_pass(options: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if options.get("observation", "dict") == "dict":  # it would rather have arrays than dicts of arrays
            warnings.filterwarnings("ignore", message="Observation is not a NumPy array")
            warnings.filterwarnings("ignore", message="Observation space for each agent probably should be")
        parallel_api_test(parallel(**options), num_cycles=50)
        api_test(aec(**options), num_cycles=50)
        parallel_seed_test(lambda: parallel(**options), num_cycles=10)
        seed_test(lambda: aec(**options), num_cycles=10)
        state_test(aec(**options), parallel(**options))
        render_test(lambda **mode: aec(**options, **mode))


def episodes(env: Any, seed: int, count: int = 4) -> list[Any]:
    """Whole episodes of random play within the action masks: everything the environment returned."""
    seen = [env.reset(seed=seed)]
    for index, name in enumerate(env.possible_agents):
        env.action_space(name).seed(seed + index)
    for _ in range(count):
        infos = seen[-1][-1]
        while env.agents:
            masks = {name: infos[name]["action_mask"] for name in env.agents}
            seen.append(env.step({name: env.action_space(name).sample(mask) for name, mask in masks.items()}))
            infos = seen[-1][-1]
        seen.append(env.reset())
    return seen


@pytest.mark.parametrize("options", OPTIONS)
def test_whole_episodes_follow_from_the_seed(options: dict[str, Any]) -> None:
    first, second = episodes(parallel(**options), 3), episodes(parallel(**options), 3)
    assert data_equivalence(first, second, exact=True)
    assert not data_equivalence(first, episodes(parallel(**options), 4))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_parallel_the_aec_and_the_joint_environment_agree(data: st.DataObject) -> None:
    instance = data.draw(instances())
    options: dict[str, Any] = {"size": instance.size, "num_agents": instance.num_agents, "hole_ratio": 0.0, "max_steps": 8}
    options |= {name: data.draw(st.sampled_from(["terminate", "block"])) for name in ("on_hole", "on_conflict")}
    joint, together, turns = gym.make("MAPFFrozenLake-v0", **options), parallel(**options), aec(**options)
    for env in (joint, together, turns):
        env.reset(options={"instance": instance})
    for actions in data.draw(joint_actions(instance.num_agents)):
        observation, reward, terminated, truncated, info = joint.step(actions)
        named = dict(zip(together.possible_agents, actions, strict=True))
        seen, rewards, ends, cuts, infos = together.step(named)
        for name, action in named.items():
            assert turns.agent_selection == name
            turns.step(action)
        for index, name in enumerate(named):
            order = [index, *(i for i in range(len(actions)) if i != index)]
            assert seen[name]["positions"].tolist() == observation["positions"][order].tolist()
            assert seen[name]["goals"].tolist() == observation["goals"][order].tolist()
            assert (rewards[name], ends[name], cuts[name]) == (reward, terminated, truncated)
            assert {key: value for key, value in infos[name].items() if key != "action_mask"} == info
            assert data_equivalence(turns.observe(name), seen[name], exact=True)
            assert (turns.terminations[name], turns.truncations[name]) == (terminated, truncated)
            assert turns.rewards[name] == reward
        if terminated or truncated:
            assert together.agents == [] and together.paths == joint.unwrapped.paths
            break


def test_individual_rewards_go_to_those_who_arrived_without_fault() -> None:
    line = Instance(3, holes=[(2, 0)], starts=[(0, 0), (1, 0), (0, 2)], goals=[(0, 1), (1, 1), (1, 2)], optimal_makespan=1)
    for actions, expected in (([2, 2, 1], [1, 1, 1]), ([2, 1, 1], [1, 0, 1]), ([2, 3, 0], [0, 0, 0])):
        env = parallel(size=3, num_agents=3, rewards="individual")
        env.reset(options={"instance": line})
        _, rewards, *_ = env.step(dict(zip(env.possible_agents, actions, strict=True)))
        assert list(rewards.values()) == expected, actions


def test_masks_state_and_errors() -> None:
    env = parallel(size=3)
    _, infos = env.reset(options={"instance": TINY})
    assert infos["agent_0"]["action_mask"].tolist() == [0, 0, 1, 0, 1] and env.optimum == 1 and env.action_masks().shape == (2, 5)
    assert np.argwhere(env.state()).tolist() == [[0, 1, 0], [1, 0, 0], [2, 0, 1], [3, 0, 1], [4, 0, 2]]
    for actions in ({"agent_0": 2}, {"agent_0": 2, "agent_9": 2}, {"agent_0": 2, "agent_1": 7}, {"agent_0": 2, "agent_1": None}):
        with pytest.raises(T2TError):
            env.step(actions)
    env.step({"agent_0": 2, "agent_1": 2})
    for actions in ({}, {"agent_0": 2, "agent_1": 2}):
        with pytest.raises(T2TError, match="the episode has ended"):
            env.step(actions)
    with pytest.raises(T2TError, match="there is no episode yet"):
        parallel().step({})
    assert parallel(action_masks=False).reset(seed=0)[1] == {"agent_0": {}, "agent_1": {}}
    with pytest.raises(T2TError, match="rewards"):
        parallel(rewards="none")
    with pytest.raises(T2TError, match="reset"):
        parallel().step({"agent_0": 0, "agent_1": 0})
    with pytest.raises(T2TError, match="reset"):
        parallel().state()
