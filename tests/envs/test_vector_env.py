"""The vector environment behaves like the same number of single ones, step for step, with and without the native core."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode
from play import TINY

import t2t_envs  # noqa: F401
from t2t_core.errors import T2TError
from t2t_envs.frozen_lake.gym import stepper

N = 6
OPTIONS: list[dict[str, Any]] = [
    {"size": 3, "max_steps": 6},
    {"size": 3, "num_agents": 1, "objective": "sum_of_costs", "on_hole": "block", "reward": "success"},
    {"size": 4, "num_agents": 3, "on_conflict": "block", "on_hole": "block", "observation": "planes", "max_steps": 9},
    {"size": 4, "view": 1, "max_steps": 5, "reward": "shaped", "action_masks": True},
]


def make(num_envs: int = N, **options: Any) -> Any:
    return gym.make_vec("MAPFFrozenLake-v0", num_envs=num_envs, vectorization_mode="vector_entry_point", **options)


def rows(batch: Any, index: int) -> Any:
    if isinstance(batch, dict):
        return {name: int(part[index]) if name == "step" else part[index] for name, part in batch.items()}
    return batch[index]


def info_of(infos: dict[str, Any], index: int) -> dict[str, Any]:
    """One environment's info out of a batch of infos."""
    names = [name for name in infos if not name.startswith("_") and infos[f"_{name}"][index]]
    values = {name: infos[name] if isinstance(infos[name], dict) else infos[name][index] for name in names}
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}


class Singles:
    """N single environments that play the lakes which the vector environment plays."""

    def __init__(self, envs: Any, options: dict[str, Any]) -> None:
        self.vector = envs.unwrapped
        self.envs = [gym.make("MAPFFrozenLake-v0", labels=True, **options) for _ in range(N)]

    def reset(self, index: int) -> Any:
        return self.envs[index].reset(options={"instance": self.vector.instance(index)})


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("options", OPTIONS)
def test_it_is_as_many_single_environments(
    options: dict[str, Any], mode: AutoresetMode, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr(stepper, "native_core", lambda: None)
    envs = make(**options, autoreset_mode=mode, labels=True)
    assert envs.metadata["autoreset_mode"] is mode and envs.num_envs == N
    singles = Singles(envs, options)
    batch, infos = envs.reset(seed=3)
    assert batch in envs.observation_space
    for index in range(N):
        assert data_equivalence((rows(batch, index), info_of(infos, index)), singles.reset(index))
    envs.action_space.seed(3)
    done = np.zeros(N, bool)
    ended = 0
    for _ in range(60):
        actions = envs.action_space.sample()
        batch, rewards, terminated, truncated, infos = envs.step(actions)
        assert batch in envs.observation_space
        for index in range(N):
            seen, info = rows(batch, index), info_of(infos, index)
            got = (seen, rewards[index], terminated[index], truncated[index])
            if done[index] and mode is AutoresetMode.NEXT_STEP:
                expected, start = singles.reset(index)
                assert data_equivalence(seen, expected) and data_equivalence(info, start) and got[1:] == (0.0, False, False)
                done[index] = False
                continue
            expected, reward, end, cut, verdict = singles.envs[index].step(actions[index])
            assert got[1:] == (reward, end, cut)
            done[index] = end or cut
            ended += done[index]
            if done[index] and mode is AutoresetMode.SAME_STEP:
                assert data_equivalence(info["final_obs"], expected)
                assert without_mask(info_of(info["final_info"], index)) == without_mask(verdict)
                expected, verdict = singles.reset(index)
                info = {name: value for name, value in info.items() if not name.startswith("final")}
            assert data_equivalence(seen, expected) and data_equivalence(info, verdict)
    assert ended > N


def without_mask(info: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in info.items() if name != "action_mask"}


def test_the_native_and_the_python_form_draw_the_same_lakes(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"size": 3, "names": True, "action_masks": True}
    envs = [make(**options)]
    monkeypatch.setattr(stepper, "native_core", lambda: None)
    envs.append(make(**options))
    assert type(envs[0].unwrapped._stepper) is not type(envs[1].unwrapped._stepper)
    for seed in (5, [3, 1, 4, 1, 5, 9], None):
        assert data_equivalence(envs[0].reset(seed=seed), envs[1].reset(seed=seed), exact=True)
    for _ in range(40):
        actions = envs[0].action_space.sample()
        assert data_equivalence(envs[0].step(actions), envs[1].step(actions), exact=True)


def test_the_seed_says_what_happens() -> None:
    first, second = make(size=3, names=True), make(size=3, names=True)
    assert data_equivalence(first.reset(seed=1), second.reset(seed=1), exact=True)
    assert not data_equivalence(first.reset(seed=1), second.reset(seed=2))
    assert len(set(first.reset(seed=2**40)[1]["instance"])) > 1
    names = first.reset(seed=[7] * N)[1]["instance"]
    assert len(set(names)) == 1


def test_the_infos_are_gymnasiums() -> None:
    """Keys, masks, types and values as `SyncVectorEnv` would batch them from single environments."""
    for labels in ("lazy", True):
        options: dict[str, Any] = {"pool": [TINY], "labels": labels}
        ours = make(3, **options)
        theirs = gym.make_vec("MAPFFrozenLake-v0", num_envs=3, vectorization_mode="sync", **options)
        assert ours.observation_space == theirs.observation_space and ours.action_space == theirs.action_space
        assert data_equivalence(ours.reset(seed=1), theirs.reset(seed=1), exact=True)
        for actions in ([[2, 2], [4, 4], [2, 0]], [[0, 0], [1, 0], [0, 0]], [[4, 4], [4, 4], [2, 4]]):
            a, b = ours.step(np.array(actions)), theirs.step(np.array(actions))
            assert data_equivalence(a[:4], b[:4], exact=True)
            assert a[4].keys() == b[4].keys()
            for name, values in a[4].items():
                assert values.dtype == b[4][name].dtype and values.tolist() == b[4][name].tolist(), name


@pytest.mark.parametrize("options", [{}, {"names": True, "reward": "shaped", "autoreset_mode": "SameStep"}])
def test_pickles_and_copies_go_on_as_the_original(options: dict[str, Any]) -> None:
    envs = make(size=3, **options).unwrapped
    envs.reset(seed=4)
    envs.action_space.seed(0)
    for step in range(30):
        if step % 10 == 5:
            twins = [copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))]
            for _ in range(8):
                actions = envs.action_space.sample()
                expected = envs.step(actions)
                assert all(data_equivalence(twin.step(actions), expected, exact=True) for twin in twins)
        envs.step(envs.action_space.sample())
    assert pickle.loads(pickle.dumps(make(size=3).unwrapped)).reset(seed=1)[1] == make(size=3).reset(seed=1)[1]


def test_masks_and_the_limit_of_steps() -> None:
    envs = make(size=4, num_agents=3, action_masks=True)
    assert envs.spec.max_episode_steps == 32
    _, infos = envs.reset(seed=0)
    assert infos["action_mask"].shape == (N, 3, 5) and infos["_action_mask"].all()
    assert data_equivalence(infos["action_mask"], envs.unwrapped.action_masks(), exact=True)


def test_disabled_autoreset_waits_for_the_mask() -> None:
    envs = make(2, pool=[TINY], autoreset_mode="Disabled", names=True)
    envs.reset(seed=0)
    _, rewards, terminated, _, _ = envs.step(np.array([[2, 2], [4, 4]]))
    assert rewards.tolist() == [1.0, 0.0] and terminated.tolist() == [True, False]
    with pytest.raises(T2TError, match="environment 0 has ended"):
        envs.step(np.array([[2, 2], [2, 2]]))
    observations, infos = envs.reset(options={"reset_mask": terminated})
    assert observations["step"].tolist() == [0, 1] and infos["_instance"].tolist() == [True, False]
    _, rewards, terminated, _, _ = envs.step(np.array([[2, 2], [2, 2]]))
    assert terminated.all() and rewards[0] == 1.0 and rewards[1] < 1.0


def test_what_is_returned_never_changes_later() -> None:
    envs = make(size=3)
    first = envs.reset(seed=0)[0]
    kept = {name: part.copy() for name, part in first.items()}
    for _ in range(10):
        envs.step(envs.action_space.sample())
    assert data_equivalence(first, kept, exact=True)


def test_misuse_is_named() -> None:
    envs = make(2, size=3)
    with pytest.raises(T2TError, match="reset"):
        envs.step(np.zeros((2, 2), int))
    envs.reset(seed=0)
    for actions in (np.zeros((2, 3), int), np.zeros((2, 2)), np.full((2, 2), 5), np.full((2, 2), -1), [[0, 0]]):
        with pytest.raises(T2TError):
            envs.step(actions)
    with pytest.raises(T2TError, match="not 7"):
        envs.step([[0, 7], [0, 0]])
    for seed in ([1], [1, None], [1, -1], "ab"):
        with pytest.raises(T2TError):
            envs.reset(seed=seed)
    for mask in (np.zeros(2, bool), np.ones(3, bool), [True, True], np.ones(2)):
        with pytest.raises(T2TError):
            envs.reset(options={"reset_mask": mask})
    with pytest.raises(T2TError, match="reset"):
        make(2, size=3).unwrapped.action_masks()
    for options in ({"pool_size": 5}, {"reuse": 0}, {"pool": []}, {"autoreset_mode": "never"}, {"view": 9}):
        with pytest.raises(T2TError):
            make(2, **options)
    with pytest.raises(T2TError):
        make(0)


def test_pictures() -> None:
    envs = make(2, pool=[TINY], render_mode="ansi")
    envs.reset(seed=0)
    envs.step(np.array([[4, 4], [4, 2]]))
    frames = envs.render()
    assert len(frames) == 2 and all(frame.startswith("step 1") for frame in frames)
