"""The step environment's rules: the episode's verdict is the verifier's, and the native stepper is `rules`, step for step."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st
from play import TINY, instances, joint_actions

import t2t_envs  # noqa: F401
from t2t_core.errors import T2TError
from t2t_envs.frozen_lake.gym import stepper as stepping
from t2t_envs.frozen_lake.gym.episode import CONFLICTS, FAILURES
from t2t_envs.frozen_lake.gym.lakes import flat_lake
from t2t_envs.frozen_lake.gym.options import EnvOptions
from t2t_envs.frozen_lake.gym.stepper import stepping_core
from t2t_envs.frozen_lake.instance import Instance
from t2t_envs.frozen_lake.reward import accuracy_reward
from t2t_envs.frozen_lake.verifier import verify_paths

modes = st.sampled_from(["terminate", "block"])


def make(instance: Instance, **options: Any) -> gym.Env[Any, Any]:
    sizes = {"size": instance.size, "num_agents": instance.num_agents, "hole_ratio": 0.0}
    env = gym.make("MAPFFrozenLake-v0", disable_env_checker=False, **sizes, **options)
    env.reset(options={"instance": instance})
    return env


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_an_episodes_path_gets_the_episodes_verdict(data: st.DataObject) -> None:
    instance = data.draw(instances())
    env = make(instance, max_steps=8, on_hole=data.draw(modes), on_conflict=data.draw(modes))
    terminated = truncated = False
    while not (terminated or truncated):
        *_, reward, terminated, truncated, info = env.step(data.draw(st.lists(
            st.integers(0, 4), min_size=instance.num_agents, max_size=instance.num_agents)))  # fmt: skip
        assert terminated or truncated or (reward == 0 and info == {})
    verdict = verify_paths(instance, env.unwrapped.paths)
    assert reward == accuracy_reward(verdict.cost, instance.optimum)
    assert info["valid"] is verdict.valid
    assert info.get("optimal") is verdict.optimal
    assert info.get("cost") == verdict.cost
    assert info.get("gap") == verdict.gap
    assert {name: info[name] for name in ("makespan", "sum_of_costs") if name in info} == verdict.costs
    fault = verdict.faults.get("conflict_free")
    if not verdict.valid:
        assert FAILURES[info["failure"]] == verdict.failure and CONFLICTS[info["conflict"]] == (fault.kind if fault else "")


FORMS = [
    {"observation": form, "view": view, "relative_goals": relative}
    for form in ("dict", "planes", "flat", "image", "padded")
    for view in (None, 0, 1, 2)
    for relative in (False, True)
    if not (form == "padded" and view is not None) and not (relative and form != "dict")
]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_native_stepper_does_what_the_python_one_does(data: st.DataObject) -> None:
    instance = data.draw(instances(max_size=6, max_agents=5))
    options = EnvOptions(
        instance.size, instance.num_agents, 0.0, max_steps=10, on_hole=data.draw(modes), on_conflict=data.draw(modes),
        max_size=data.draw(st.sampled_from([None, 8])), image_size=data.draw(st.sampled_from([8, 21])),
        **data.draw(st.sampled_from(FORMS)),
    )  # fmt: skip
    pair = []
    for core in (stepping_core(), stepping):
        given_source = core.LakeSource.random([(3, 0, 1 << 32, -1)], np.zeros(0, np.uint8), instance.num_agents, 0, 1000, 1000)
        pair.append(core.Stepper(core.EnvOptions(**options.stepper()), given_source))
        pair[-1].play(*flat_lake(instance))
    assert type(pair[0]) is not type(pair[1])
    names = tuple(f"agent_{i}" for i in range(instance.num_agents))
    for joint in data.draw(joint_actions(instance.num_agents)):
        if data.draw(st.booleans()):
            first, second = (stepper.step(np.array(joint)) for stepper in pair)
        else:
            first, second = (stepper.step_agents(names, dict(zip(names, joint, strict=True)), True) for stepper in pair)
        assert data_equivalence(first, second, exact=True)
        for what in ("observation", "planes", "masks", "outcome", "potential", "lake"):
            assert data_equivalence(getattr(pair[0], what)(), getattr(pair[1], what)(), exact=True)
        assert pair[0].potential(0) == pair[1].potential(0)
        assert pair[0].history == pair[1].history
        if first[1] or first[2]:
            break


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_copy_goes_on_as_the_original(data: st.DataObject) -> None:
    instance = data.draw(instances())
    env = make(instance, max_steps=6, on_hole=data.draw(modes), on_conflict=data.draw(modes)).unwrapped
    for joint in data.draw(joint_actions(instance.num_agents, max_steps=5)):
        twin = copy.deepcopy(env) if data.draw(st.booleans()) else pickle.loads(pickle.dumps(env))
        assert twin.paths == env.paths and twin.instance == env.instance
        step = env.step(joint)
        assert data_equivalence(twin.step(joint), step, exact=True) and twin.paths == env.paths
        if step[2] or step[3]:
            break
    assert data_equivalence(copy.deepcopy(env).reset(seed=1)[1], env.reset(seed=1)[1])


@pytest.mark.parametrize(
    ("actions", "reward", "info"),
    [
        ([2, 2], 1.0, {"valid": True, "optimal": True, "cost": 1, "gap": 0, "makespan": 1, "sum_of_costs": 2}),
        ([2, 0], 0.0, {"valid": False, "optimal": False, "failure": 2, "conflict": 2}),
        ([2, 4], 0.0, {"valid": False, "optimal": False, "failure": 2, "conflict": 1}),
        ([1, 2], 0.0, {"valid": False, "optimal": False, "failure": 1, "conflict": 0}),
    ],
)
def test_how_an_episode_ends(actions: list[int], reward: float, info: dict[str, Any]) -> None:
    _, got, terminated, truncated, said = make(TINY).step(np.array(actions))
    assert (got, terminated, truncated, said) == (reward, True, False, info)


def test_moves_off_the_grid_stay_and_time_runs_out() -> None:
    env = make(TINY, max_steps=2)
    observation, reward, terminated, truncated, info = env.step([3, 3])
    assert observation["positions"].tolist() == [[0, 0], [0, 1]] and not (terminated or truncated)
    observation, reward, terminated, truncated, info = env.step([4, 4])
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info == {"valid": False, "optimal": False, "failure": 3, "conflict": 0} and observation["step"] == 2
    with pytest.raises(T2TError, match="has ended"):
        env.step([4, 4])


def test_blocked_moves_stay_and_are_resolved_until_none_is_left() -> None:
    line = Instance(3, holes=[(1, 0)], starts=[(0, 0), (0, 1), (0, 2)], goals=[(2, 0), (2, 1), (2, 2)])
    env = make(line, on_hole="block", on_conflict="block")
    observation, *_ = env.step([2, 2, 0])  # 1 and 2 would swap: both stay, and so 0 cannot follow
    assert observation["positions"].tolist() == [[0, 0], [0, 1], [0, 2]]
    observation, _, terminated, *_ = env.step([1, 4, 4])  # the hole is closed
    assert observation["positions"].tolist() == [[0, 0], [0, 1], [0, 2]] and not terminated
    observation, *_ = env.step([2, 2, 1])  # following is allowed
    assert observation["positions"].tolist() == [[0, 1], [0, 2], [1, 2]]


def test_the_reward_falls_with_the_gap_and_success_ignores_it() -> None:
    for kind, expected in (("accuracy", accuracy_reward(2, 1)), ("success", 1.0)):
        env = make(TINY, reward=kind)
        env.step([4, 4])
        assert env.step([2, 2])[1] == expected
    unlabelled = make(TINY.unlabelled())
    _, reward, _, _, info = unlabelled.step([2, 2])
    assert reward == 0.5 and "optimal" not in info and "gap" not in info


@pytest.mark.parametrize(
    "actions",
    [[2], [2, 2, 2], [2, 5], [2, -1], [2, 1.5], ["left", "up"], 2, None, np.array(2), np.array([[2, 2]]), [[2], [2]], [2, 2**70]],
)
def test_nonsense_actions_are_refused_and_change_nothing(actions: Any) -> None:
    env = make(TINY)
    with pytest.raises(T2TError):
        env.step(actions)
    assert env.step([2, 2])[1] == 1.0
