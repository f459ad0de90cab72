"""Another library's algorithm learns on the environment: Stable-Baselines3's PPO, in a few thousand steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

import t2t_envs  # noqa: F401


def make() -> gym.Env[Any, Any]:
    env = gym.make("MAPFFrozenLake-v0", size=3, num_agents=2, hole_ratio=0)
    return gym.wrappers.FlattenObservation(env)


def mean_reward(act: Callable[[Any], Any], episodes: int = 150) -> float:
    """Over fresh instances that training has not drawn."""
    env, total = make(), 0.0
    for seed in range(episodes):
        observation, _ = env.reset(seed=10_000 + seed)
        done = False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total += float(reward)
            done = terminated or truncated
    return total / episodes


@pytest.mark.thorough
def test_ppo_beats_random_play() -> None:
    torch = pytest.importorskip("torch")
    ppo = pytest.importorskip("stable_baselines3").PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        envs = DummyVecEnv([make] * 8)
        model = ppo(
            "MlpPolicy", envs, n_steps=64, batch_size=128, n_epochs=10, learning_rate=2e-3, ent_coef=0.01, gamma=0.9, seed=0,
            device="cpu",
        )  # fmt: skip
        model.learn(10_240)
        learned = mean_reward(lambda observation: model.predict(observation, deterministic=True)[0])
    finally:
        torch.set_num_threads(threads)
    actions = make().action_space
    actions.seed(0)
    at_random = mean_reward(lambda _: actions.sample())
    assert learned > 4 * at_random, (learned, at_random)
