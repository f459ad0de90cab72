"""A designer inside the environment: it sees how the episodes ended, and changes which lakes are drawn."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import t2t_envs  # noqa: F401
from t2t_core.errors import T2TError
from t2t_envs.frozen_lake.generation.configuration import Configuration
from t2t_envs.frozen_lake.gym.curriculum import CurriculumWrapper

FIRST = Configuration.uniform(0.2, 0.3)


def play(env: Any, episodes: int) -> None:
    env.action_space.seed(0)
    for episode in range(episodes):
        env.reset(seed=0 if episode == 0 else None)
        done = False
        while not done:
            *_, terminated, truncated, _ = env.step(env.action_space.sample())
            done = terminated or truncated


DESIGNERS = ["learnability", "level-replay", "learning-progress", "easy-to-hard", "rule", "random", "uniform"]


@pytest.mark.parametrize("designer", DESIGNERS)
def test_designers_and_curricula_change_what_is_drawn(designer: str) -> None:
    made = gym.make("MAPFFrozenLake-v0", max_size=10, size=10)
    env = CurriculumWrapper(gym.wrappers.RecordEpisodeStatistics(made), designer, FIRST, every=40)
    play(env, 81)
    assert [record.index for record in env.history] == [0, 1] and env.history[0].configuration == FIRST.to_dict()
    assert all(record.breakdown["total"]["answers"] == 40 for record in env.history)
    assert env.configuration != FIRST
    drawn = {size for size in range(3, 11) if env.configuration[size].data_ratio}
    assert env.unwrapped.instance.size in drawn


def test_the_failures_are_the_episodes_own() -> None:
    env = CurriculumWrapper(gym.make("MAPFFrozenLake-v0", size=10, max_size=10), "fixed", FIRST, every=30)
    play(env, 30)
    total = env.history[0].breakdown["total"]
    assert sum(total["first_failures"].values()) == 30 - total["valid"]
    assert {name for name, n in total["first_failures"].items() if n} <= {"hole_free", "conflict_free", "goal_reached"}
    assert env.configuration == FIRST


def test_one_seed_designs_the_same() -> None:
    ends = []
    for _ in range(2):
        env = CurriculumWrapper(gym.make("MAPFFrozenLake-v0", size=10, max_size=10), "random", FIRST, every=20, seed=5)
        play(env, 41)
        ends.append(env.configuration)
    assert ends[0] == ends[1]


def test_misuse_is_named() -> None:
    env = gym.make("MAPFFrozenLake-v0", size=5, max_size=5)
    for arguments in (("nobody", FIRST), ("rule", FIRST), ("rule", 3)):
        with pytest.raises(T2TError):
            CurriculumWrapper(env, *arguments)
    for every in (0, True, 2.5):
        with pytest.raises(T2TError, match="every"):
            CurriculumWrapper(env, "rule", {"3": {"data_ratio": 1.0, "hole_ratio": 0.1, "wait_ratio": 0.0}}, every=every)
