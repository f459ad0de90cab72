"""Other libraries' test suites and collectors accept the environments unchanged: Stable-Baselines3, sb3-contrib, SuperSuit,
TorchRL. (Gymnasium's and PettingZoo's suites are in test_gym_env.py and test_pettingzoo_env.py.)"""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest
from play import TINY

import t2t_envs  # noqa: F401

ENV = "MAPFFrozenLake-v0"
FORMS: list[dict[str, Any]] = [
    {"observation": "flat"},
    {"observation": "planes"},
    {"observation": "image"},
    {"observation": "padded", "max_size": 6},
    {"observation": "dict", "relative_goals": True},
]


@pytest.mark.parametrize("options", FORMS)
def test_stable_baselines3s_checker_has_nothing_to_say(options: dict[str, Any]) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if options["observation"] in ("dict", "planes", "padded"):  # it takes every 3-d array of bytes for an image
            warnings.filterwarnings("ignore", message="(?s).*(image|Box observation space|normalized|uint8|unconventional shape)")
        checker.check_env(gym.make(ENV, action_masks=True, **options).unwrapped)


def test_maskable_ppo_learns_on_the_masks() -> None:
    ppo = pytest.importorskip("sb3_contrib").MaskablePPO
    env = gym.make(ENV, size=4, observation="flat", reward="shaped")
    model = ppo("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")
    model.learn(128)
    observation, _ = env.reset(seed=1)
    masks = env.unwrapped.action_masks()
    for seed in range(20):
        model.set_random_seed(seed)
        action, _ = model.predict(observation, action_masks=masks)
        assert all(masks[agent, a] for agent, a in enumerate(action))


def test_cnn_policies_take_the_images() -> None:
    ppo = pytest.importorskip("stable_baselines3").PPO
    env = gym.make(ENV, observation="image")
    ppo("CnnPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu").learn(16)


def test_supersuit_wraps_and_concatenates() -> None:
    supersuit = pytest.importorskip("supersuit")
    parallel = pettingzoo.make("parallel", ENV, size=4, num_agents=3, observation="planes", max_steps=6)
    envs = supersuit.concat_vec_envs_v1(supersuit.pettingzoo_env_to_vec_env_v1(parallel), 2, base_class="gymnasium")
    observations, _ = envs.reset(seed=1)
    assert observations.shape == (6, 7, 4, 4)
    for _ in range(30):
        observations, rewards, *_ = envs.step(np.full(6, 4))
    assert observations.shape == (6, 7, 4, 4) and rewards.shape == (6,)


@pytest.mark.parametrize("options", [*FORMS, {"names": False, "reward": "shaped", "rewards": "individual"}])
def test_torchrls_wrapper_rolls_out(options: dict[str, Any]) -> None:
    libs = pytest.importorskip("torchrl.envs.libs.pettingzoo")
    utils = pytest.importorskip("torchrl.envs.utils")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = libs.PettingZooWrapper(pettingzoo.make("parallel", ENV, size=4, **options), use_mask=True)
        utils.check_env_specs(env)
        assert env.rollout(40, break_when_any_done=False).batch_size[0] == 40


def test_torchrls_gym_wrapper_takes_the_vector_environment() -> None:
    libs = pytest.importorskip("torchrl.envs.libs.gym")
    envs = gym.make_vec(
        ENV, num_envs=3, vectorization_mode="vector_entry_point", vector_kwargs=None, size=4, observation="flat",
        autoreset_mode=gym.vector.AutoresetMode.SAME_STEP,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert libs.GymWrapper(envs).rollout(20, break_when_any_done=False).batch_size == (3, 20)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_gymnasiums_vectors_stack_the_infos(mode: str) -> None:
    envs = gym.make_vec(
        ENV, num_envs=4, vectorization_mode="sync", vector_kwargs={"autoreset_mode": gym.vector.AutoresetMode(mode)},
        pool=[TINY], action_masks=True,
    )  # fmt: skip
    envs.reset(seed=0)
    for actions in ([[2, 2], [2, 0], [1, 4], [4, 4]], [[4, 4]] * 4, [[4, 4]] * 4):
        *_, infos = envs.step(np.array(actions))
        arrays = [value for value in infos.values() if not isinstance(value, dict)]
        assert all(isinstance(value, np.ndarray) for value in arrays)
        said = infos.get("final_info", infos)
        assert all(value.dtype != object for value in said.values() if isinstance(value, np.ndarray))
