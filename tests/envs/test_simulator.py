"""The environments do what their documentation says: whole episodes beside a simulator that was written from it alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from play import instances
from simulator import Simulator

import t2t_envs  # noqa: F401
from t2t_envs.frozen_lake import solve
from t2t_envs.frozen_lake.instance import Instance

ENV = "MAPFFrozenLake-v0"
modes = st.sampled_from(["terminate", "block"])


@st.composite
def option_sets(draw: st.DrawFn, size: int) -> dict[str, Any]:
    options: dict[str, Any] = {"on_hole": draw(modes), "on_conflict": draw(modes)}
    options["observation"] = draw(st.sampled_from(["dict", "planes", "flat", "padded"]))
    options["reward"] = draw(st.sampled_from(["accuracy", "success", "shaped"]))
    options["gamma"] = draw(st.sampled_from([0.9, 1.0]))
    options["max_steps"] = draw(st.sampled_from([None, 1, 6]))
    options["max_size"] = draw(st.sampled_from([None, size, size + 2]))
    if options["observation"] != "padded":
        options["view"] = draw(st.sampled_from([None, 0, 1, 2]))
    if options["observation"] == "dict":
        options["relative_goals"] = draw(st.booleans())
    return options


def simulate(instance: Instance, options: dict[str, Any]) -> Simulator:
    lake = (list(instance.holes), list(instance.starts), list(instance.goals))
    return Simulator(instance.size, *lake, instance.objective, instance.optimum, options)


def same(shown: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return shown.keys() == expected.keys() and all(same(shown[name], expected[name]) for name in expected)
    return np.allclose(np.asarray(shown, float), np.asarray(expected, float), atol=1e-6) and np.shape(shown) == np.shape(expected)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_joint_environment(data: st.DataObject) -> None:
    instance = data.draw(instances())
    options = data.draw(option_sets(instance.size))
    env = gym.make(ENV, size=instance.size, num_agents=instance.num_agents, hole_ratio=0, action_masks=True, **options)
    twin = simulate(instance, options)
    observation, info = env.reset(options={"instance": instance})
    assert env.spec.max_episode_steps == twin.limit
    for _ in range(14):
        assert same(observation, twin.observe()) and observation in env.observation_space
        assert info.pop("action_mask").tolist() == twin.masks()
        actions = data.draw(st.lists(st.integers(0, 4), min_size=instance.num_agents, max_size=instance.num_agents))
        observation, reward, *ends, info = env.step(actions)
        expected, *flags, verdict = twin.step(actions)
        assert reward == pytest.approx(expected) and ends == flags
        assert {name: value for name, value in info.items() if name != "action_mask"} == verdict
        if twin.over:
            assert same(observation, twin.observe()) and [list(map(tuple, path)) for path in env.unwrapped.paths] == twin.paths
            break


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_parallel_environment(data: st.DataObject) -> None:
    instance = data.draw(instances())
    options = data.draw(option_sets(instance.size))
    individual = data.draw(st.booleans())
    env = pettingzoo.make(
        "parallel", ENV, size=instance.size, num_agents=instance.num_agents, hole_ratio=0,
        rewards="individual" if individual else "shared", **options,
    )  # fmt: skip
    twin = simulate(instance, options)
    observations, infos = env.reset(options={"instance": instance})
    before = [0.0] * instance.num_agents
    for _ in range(14):
        for agent, name in enumerate(env.possible_agents):
            assert same(observations[name], twin.observe(agent)) and observations[name] in env.observation_space(name)
            assert infos[name]["action_mask"].tolist() == twin.masks()[agent]
        actions = data.draw(st.lists(st.integers(0, 4), min_size=instance.num_agents, max_size=instance.num_agents))
        old = list(twin.at)
        observations, rewards, ends, cuts, infos = env.step(dict(zip(env.possible_agents, actions, strict=True)))
        expected, *flags, verdict = twin.step(actions)
        at_fault = twin.in_conflict(old, twin.at)
        for agent, name in enumerate(env.possible_agents):
            reward = expected
            if individual:
                arrived = twin.at[agent] == twin.goals[agent] and agent not in at_fault and twin.at[agent] not in twin.holes
                reward = float(twin.over and arrived)
                if options["reward"] == "shaped":
                    now = 0.0 if twin.over else twin.share_of_the_way([agent])
                    reward += options["gamma"] * now - before[agent]
                    before[agent] = now
            assert rewards[name] == pytest.approx(reward) and [ends[name], cuts[name]] == flags
            assert {key: value for key, value in infos[name].items() if key != "action_mask"} == verdict
        if twin.over:
            assert env.agents == []
            break


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_an_image_shows_the_cells(data: st.DataObject) -> None:
    """Red: holes and what is off the lake; green: agents, agent 0 the brightest; blue: goals."""
    instance = data.draw(instances())
    side = data.draw(st.sampled_from([instance.size, 21, 42]))
    env = gym.make(ENV, size=instance.size, num_agents=instance.num_agents, hole_ratio=0, observation="image", image_size=side)
    image, _ = env.reset(options={"instance": instance})
    assert image.shape == (side, side, 3) and image in env.observation_space
    unit = side // instance.size
    for r in range(instance.size):
        for c in range(instance.size):
            square = image[r * unit : (r + 1) * unit, c * unit : (c + 1) * unit].reshape(-1, 3)
            assert (square == square[0]).all()
            assert (square[0] > 0).tolist() == [(r, c) in instance.holes, (r, c) in instance.starts, (r, c) in instance.goals]
    shades = [int(image[r * unit, c * unit, 1]) for r, c in instance.starts]
    assert shades[0] == 255 and shades == sorted(shades, reverse=True) and len(set(shades)) == len(shades)


SOURCES: list[dict[str, Any]] = [
    {"size": 4, "hole_ratio": 0.2},
    {"size": 3, "hole_ratio": 0.1, "require_wait": False},
    {"desc": ["....", ".#.."]},
    {"desc": ["a.B", ".#.", "b.A"]},
    {"configuration": {str(n): {"data_ratio": 0.5, "hole_ratio": 0.2, "wait_ratio": 0.5} for n in (3, 4)}, "max_size": 4},
]


def told(infos: dict[str, Any], index: int) -> dict[str, Any]:
    """One environment's part of a vector's infos."""
    mine = {name: values[index] for name, values in infos.items() if not name.startswith("_") and infos[f"_{name}"][index]}
    return {name: value.item() for name, value in mine.items() if name not in ("final_obs", "final_info", "action_mask")}


def part(observation: Any, index: int) -> Any:
    return {name: rows[index] for name, rows in observation.items()} if isinstance(observation, dict) else observation[index]


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_vector_environment(data: st.DataObject) -> None:
    """On lakes that it has drawn itself, in all their guises, from every source."""
    source = data.draw(st.sampled_from(SOURCES))
    options = data.draw(option_sets(4))
    options.update({name: source[name] for name in ("max_size",) if name in source})
    options["max_size"] = options["max_size"] and max(4, options["max_size"])
    mode = data.draw(st.sampled_from(["NextStep", "SameStep"]))
    reuse = data.draw(st.sampled_from([1, 3]))
    envs = gym.make_vec(
        ENV, num_envs=3, vectorization_mode="vector_entry_point", num_agents=2, reuse=reuse, action_masks=True,
        autoreset_mode=gym.vector.AutoresetMode(mode), **(source | options),
    ).unwrapped  # fmt: skip

    def twin_of(index: int) -> Simulator:
        lake = envs.instance(index)
        frame = envs.spec.max_episode_steps // 8 if options["max_steps"] is None else options["max_size"]
        given_lake = replace(lake.unlabelled(), **{f"optimal_{lake.objective}": solve(lake).cost})
        return simulate(given_lake, options | {"max_size": frame})

    observation, infos = envs.reset(seed=data.draw(st.integers(0, 99)))
    twins = [twin_of(index) for index in range(3)]
    for _ in range(12):
        for index, twin in enumerate(twins):
            assert same(part(observation, index), twin.observe()) and infos["action_mask"][index].tolist() == twin.masks()
        actions = np.array(data.draw(st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2), min_size=3, max_size=3)))
        observation, rewards, terminated, truncated, infos = envs.step(actions)
        for index, twin in enumerate(twins):
            if twin.over:  # its step began an episode
                assert (rewards[index], terminated[index], truncated[index], told(infos, index)) == (0, False, False, {})
                twins[index] = twin_of(index)
                continue
            expected, *flags, verdict = twin.step(actions[index].tolist())
            assert rewards[index] == pytest.approx(expected) and [terminated[index], truncated[index]] == flags
            ended = mode == "SameStep" and twin.over
            assert told(infos["final_info"] if ended else infos, index) == verdict
            if ended:
                assert same(infos["final_obs"][index], twin.observe())
                twins[index] = twin_of(index)


@pytest.mark.parametrize(("labels", "expected"), [("lazy", 0.7375), (True, 0.7375), (False, 0.5)])
def test_a_map_with_its_agents_is_judged_by_its_optimum(labels: Any, expected: float) -> None:
    """Its optimum is 4; waiting three steps first, a pair of paths takes 7."""
    made: dict[str, Any] = {"desc": ["a.B", ".#.", "b.A"], "labels": labels}
    env = gym.make(ENV, **made)
    envs = gym.make_vec(ENV, num_envs=2, vectorization_mode="vector_entry_point", **made)
    env.reset(seed=0), envs.reset(seed=0)
    for actions in ([0, 0], [0, 0], [0, 2], [1, 1], [1, 2], [2, 3], [2, 3]):
        _, reward, terminated, _, _ = env.step(np.array(actions))
        _, rewards, ended, _, _ = envs.step(np.array([actions, actions]))
    assert terminated and ended.all()
    assert reward == pytest.approx(expected) and rewards.tolist() == pytest.approx([expected] * 2)
