"""`reward="shaped"` changes no episode's return, so it does not change which policies are optimal."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pettingzoo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from play import TINY, instances, joint_actions

import t2t_envs  # noqa: F401
from t2t_envs.frozen_lake.instance import Instance

ENV = "MAPFFrozenLake-v0"
modes = st.sampled_from(["terminate", "block"])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_episodes_discounted_return_is_what_it_was(data: st.DataObject) -> None:
    """Every one: ended by success, a fall, a conflict or the clock."""
    instance = data.draw(instances())
    gamma = data.draw(st.sampled_from([0.0, 0.5, 0.99, 1.0]))
    options: dict[str, Any] = {"size": instance.size, "num_agents": instance.num_agents, "max_steps": 8, "hole_ratio": 0}
    options |= {"on_hole": data.draw(modes), "on_conflict": data.draw(modes)}
    plain = gym.make(ENV, **options).unwrapped
    shaped = gym.make(ENV, **options, reward="shaped", gamma=gamma).unwrapped
    for env in (plain, shaped):
        env.reset(options={"instance": instance})
    returns, done, step = [0.0, 0.0], False, 0
    while not done:
        actions = data.draw(st.lists(st.integers(0, 4), min_size=instance.num_agents, max_size=instance.num_agents))
        for index, env in enumerate((plain, shaped)):
            _, reward, terminated, truncated, _ = env.step(actions)
            returns[index] += gamma**step * reward
        done, step = terminated or truncated, step + 1
    assert returns[0] == pytest.approx(returns[1], abs=1e-9)


def test_steps_towards_the_goals_pay_and_steps_away_cost() -> None:
    line = Instance(5, [], [(0, 0), (4, 0)], [(0, 4), (4, 2)])
    env = gym.make(ENV, reward="shaped", gamma=1.0).unwrapped
    env.reset(options={"instance": line})
    assert env.step([2, 2])[1] == pytest.approx(2 / 6)  # of six steps that both need, two are done
    assert env.step([0, 4])[1] == pytest.approx(-1 / 6)
    twin = pettingzoo.make("parallel", ENV, reward="shaped", gamma=1.0, rewards="individual")
    twin.reset(options={"instance": line})
    rewards = twin.step({"agent_0": 2, "agent_1": 4})[1]
    assert rewards == {"agent_0": pytest.approx(1 / 4), "agent_1": 0.0}


def test_an_agent_that_is_cut_off_plays_no_part() -> None:
    walls = [(1, c) for c in range(5)]
    env = gym.make(ENV, reward="shaped", gamma=1.0, on_hole="block").unwrapped
    env.reset(options={"instance": Instance(5, walls, [(0, 0), (2, 0)], [(0, 4), (0, 2)])})
    assert env.step([2, 2])[1] == pytest.approx(1 / 4)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_shared_reward_is_the_joint_environments(data: st.DataObject) -> None:
    options: dict[str, Any] = {"size": 3, "reward": "shaped", "on_hole": "block", "on_conflict": "block", "max_steps": 6}
    joint, together = gym.make(ENV, **options), pettingzoo.make("parallel", ENV, **options)
    for env in (joint, together):
        env.reset(options={"instance": TINY})
    for actions in data.draw(joint_actions(2)):
        _, reward, terminated, truncated, _ = joint.step(actions)
        rewards = together.step(dict(zip(together.possible_agents, actions, strict=True)))[1]
        assert set(rewards.values()) == {reward}
        if terminated or truncated:
            break
