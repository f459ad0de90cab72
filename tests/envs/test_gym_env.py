"""`MAPFFrozenLake-v0` as Gymnasium sees it: conformance, seeds, options, instances, pictures, workers."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from play import TINY

import t2t_envs  # noqa: F401
from t2t_core.errors import T2TError
from t2t_envs.frozen_lake import solver
from t2t_envs.frozen_lake.generation.configuration import Configuration
from t2t_envs.frozen_lake.gym import stepper
from t2t_envs.frozen_lake.instance import Instance
from t2t_envs.frozen_lake.jsonl import write_instances
from t2t_envs.frozen_lake.solver import solve

OPTIONS: list[dict[str, Any]] = [
    {},
    {"observation": "flat", "reward": "shaped", "action_masks": True},
    {"observation": "image", "configuration": Configuration.uniform(), "num_agents": 3, "labels": True},
    {"observation": "padded", "size": 3, "max_size": 5, "labels": False},
    {"relative_goals": True, "desc": ["a.#B", "b..A"]},
    {"size": 4, "num_agents": 3, "observation": "planes", "objective": "sum_of_costs"},
    {"size": 4, "view": 1, "on_hole": "block", "on_conflict": "block", "reward": "success"},
    {"size": 3, "num_agents": 1, "view": 2, "observation": "planes", "max_steps": 5},
]


def make(**options: Any) -> gym.Env[Any, Any]:
    return gym.make("MAPFFrozenLake-v0", disable_env_checker=False, **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_gymnasiums_checker_has_nothing_to_say(options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(**options).unwrapped)


def episodes(env: gym.Env[Any, Any], seed: int, count: int = 4) -> list[Any]:
    """Whole episodes of random play: everything the environment returned."""
    env.action_space.seed(seed)
    seen: list[Any] = [env.reset(seed=seed)]
    for _ in range(count):
        done = False
        while not done:
            seen.append(env.step(env.action_space.sample()))
            done = seen[-1][2] or seen[-1][3]
        seen.append(env.reset())
    return seen


@pytest.mark.parametrize("options", OPTIONS)
def test_whole_episodes_follow_from_the_seed(options: dict[str, Any]) -> None:
    first, second = episodes(make(**options), 7), episodes(make(**options), 7)
    assert data_equivalence(first, second, exact=True)
    assert not data_equivalence(first, episodes(make(**options), 8))
    assert {type(value) for step in first for value in step[-1].values()} <= {bool, int, np.ndarray}
    named = [] if "desc" in options else episodes(make(**options, names=True), 7)
    ids = [info["instance"] for step in named if len(step) == 2 for info in [step[1]]]
    assert len(set(ids)) == len(ids)


def test_without_the_native_core_everything_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"size": 3, "num_agents": 2, "view": 1, "on_conflict": "block"}
    native = episodes(make(**options), 7, count=2)
    for module in (stepper, solver):
        monkeypatch.setattr(module, "native_core", lambda: None)
    assert data_equivalence(native, episodes(make(**options), 7, count=2), exact=True)


def test_a_fresh_instance_is_solvable_and_labelled() -> None:
    env = make(size=4, num_agents=2, hole_ratio=0.25, require_wait=True, objective="sum_of_costs")
    for seed in range(5):
        observation, info = env.reset(seed=seed)
        instance = env.unwrapped.instance
        assert observation["holes"].sum() == len(instance.holes) == 4
        assert instance.requires_wait is True and instance.objective == "sum_of_costs"
        assert info == {} and env.unwrapped.optimum == solve(instance).cost == env.unwrapped.instance.optimum
        assert observation["positions"].tolist() == [list(cell) for cell in instance.starts]
        assert observation["goals"].tolist() == [list(cell) for cell in instance.goals]


def test_an_optimal_solution_earns_the_whole_reward() -> None:
    env = make(size=4, num_agents=3)
    for seed in range(5):
        env.reset(seed=seed)
        solution = solve(env.unwrapped.instance)
        deltas = {(0, -1): 0, (1, 0): 1, (0, 1): 2, (-1, 0): 3, (0, 0): 4}
        for step in range(solution.cost):
            cells = [[path[min(t, len(path) - 1)] for path in solution.paths] for t in (step, step + 1)]
            moves = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(*cells, strict=True)]
            _, reward, terminated, _, info = env.step([deltas[move] for move in moves])
        assert terminated and reward == 1.0 and info["optimal"] is True


def test_instances_and_pools_through_reset(tmp_path: Path) -> None:
    env = make(size=3, names=True, labels=True)
    other = Instance.from_dict(TINY.to_dict() | {"id": "other", "goals": [[2, 2], [0, 2]]})
    for given in (TINY, TINY.to_dict()):
        _, info = env.reset(options={"instance": given})
        assert env.unwrapped.instance == TINY and info == {"instance": "", "optimum": 1}
        assert make(size=3).reset(options={"instance": given})[1] == {}
    path = tmp_path / "pool.jsonl"
    write_instances(path, [TINY, other])
    for pool in (path, str(path), [TINY, other.to_dict()]):
        seen = {env.reset(seed=seed, options={"pool": pool})[1]["instance"] for seed in range(12)}
        assert seen == {"", "other"}
    env.reset(seed=1)
    assert env.unwrapped.instance not in (TINY, other)
    always = make(pool=path, names=True)
    assert {always.reset()[1]["instance"] for _ in range(20)} == {"", "other"}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"size": 2}, "size"), ({"size": 33}, "sizes up to 32"), ({"size": 257}, "size"),
        ({"size": 5.0}, "size"), ({"num_agents": 0}, "num_agents"),
        ({"num_agents": 17}, "num_agents"), ({"num_agents": True}, "num_agents"), ({"size": 3, "num_agents": 10}, "fit"),
        ({"hole_ratio": 0.6}, "hole_ratio"), ({"hole_ratio": float("nan")}, "hole_ratio"), ({"hole_ratio": "a"}, "hole_ratio"),
        ({"require_wait": 1}, "require_wait"), ({"objective": "flowtime"}, "objective"), ({"max_steps": 0}, "max_steps"),
        ({"on_hole": "drown"}, "on_hole"), ({"on_conflict": None}, "on_conflict"), ({"reward": "dense"}, "reward"),
        ({"observation": "voxels"}, "observation"), ({"view": 5}, "view"), ({"view": -1}, "view"), ({"pool": []}, "pool"),
        ({"pool": "/nowhere.jsonl"}, "read"), ({"pool": [TINY], "size": 5}, "size"), ({"colour": 1}, "unknown option 'colour'"),
        ({"labels": 1}, "labels"), ({"reuse": 0}, "reuse"), ({"max_size": 4}, "max_size"), ({"action_masks": 1}, "action_masks"),
        ({"observation": "image", "image_size": 4}, "pixels"), ({"observation": "padded", "view": 1}, "padded"),
        ({"observation": "flat", "relative_goals": True}, "relative_goals"), ({"gamma": 1.5}, "gamma"),
        ({"pool": [TINY], "desc": ["S.G"]}, "not both"), ({"desc": ["S.#"]}, "goal"), ({"desc": ["S.G"], "size": 5}, "size"),
        ({"configuration": 3}, "configuration"), ({"configuration": {"3": 1}}, "size 3"), ({"max_nodes": 0}, "max_nodes"),
        ({"configuration": Configuration.uniform(), "hole_ratio": 0.1}, "hole_ratio"),
        ({"configuration": Configuration.uniform(), "max_size": 4}, "max_size"), ({"pool": 5}, "pool"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(options: dict[str, Any], word: str) -> None:
    with pytest.raises(T2TError, match=word):
        make(**options)


def test_wrong_reset_options_are_named() -> None:
    env = make(size=3)
    bad: list[dict[str, Any]] = [
        {"instence": TINY}, {"instance": TINY, "pool": [TINY]}, {"instance": 3}, {"pool": {}},
        {"instance": Instance(4, [], [(0, 0), (0, 1)], [(1, 1), (2, 2)])}, {"instance": Instance(3, [], [(0, 0)], [(1, 1)])},
    ]  # fmt: skip
    for options in bad:
        with pytest.raises(T2TError):
            env.reset(options=options)
    with pytest.raises(T2TError, match="reset"):
        make(size=3).unwrapped.step([0, 0])
    with pytest.raises(T2TError, match="the action cannot be read: 'int' object is not iterable"):
        played = make(size=3).unwrapped
        played.reset(seed=0)
        played.step(3)
    with pytest.raises(T2TError) as error:
        make(hole_ratio=1.5)
    assert error.value.cause == "it is 1.5"
    with pytest.raises(T2TError, match="no such lake"):
        make(size=3, num_agents=3, hole_ratio=0.5, require_wait=True).reset()


def test_the_observations_show_what_they_say() -> None:
    planes = make(size=3, observation="planes").reset(options={"instance": TINY})[0]
    assert [tuple(map(int, cell)) for cell in np.argwhere(planes)] == [(0, 1, 0), (1, 0, 0), (2, 0, 1), (3, 0, 1), (4, 0, 2)]
    view = make(size=3, view=1).reset(options={"instance": TINY})[0]
    assert view["holes"][0].tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 0]]  # off the grid looks like a hole
    assert view["others"].tolist() == [[[0, 0, 0], [0, 0, 1], [0, 0, 0]], [[0, 0, 0], [1, 0, 0], [0, 0, 0]]]
    far = Instance(4, [], [(0, 0), (3, 3)], [(3, 3), (3, 2)])
    windows = make(size=4, view=1, observation="planes").reset(options={"instance": far})[0]
    assert windows[0, 2].tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]  # the goal is far away: on the border
    assert windows[1, 2].tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_action_masks() -> None:
    env = make(size=3)
    env.reset(options={"instance": TINY})
    masks = env.unwrapped.action_masks()
    assert masks.tolist() == [[0, 0, 1, 0, 1], [1, 1, 1, 0, 1]]
    assert env.action_space.sample(tuple(masks)) in env.action_space
    shown = make(size=3, action_masks=True)
    assert data_equivalence(shown.reset(options={"instance": TINY})[1]["action_mask"], masks, exact=True)
    assert shown.step([4, 4])[4]["action_mask"].shape == (2, 5)


@pytest.mark.parametrize("options", [{}, {"size": 9}, {"max_steps": 7}, {"size": 3, "max_size": 8}])
def test_the_spec_names_the_limit_in_force(options: dict[str, Any]) -> None:
    """No wrapper has a limit of its own."""
    env = make(**options)
    steps = options.get("max_steps", 8 * options.get("max_size", options.get("size", 5)))
    assert env.spec.max_episode_steps == env.unwrapped.spec.max_episode_steps == steps
    assert "TimeLimit" not in str(env)
    blocked = make(**options, on_hole="block", on_conflict="block")
    blocked.reset(seed=0)
    taken, done = 0, False
    while not done:
        *_, terminated, truncated, _ = blocked.step([4, 4])
        taken, done = taken + 1, terminated or truncated
    assert taken == steps and truncated


def test_numpys_booleans_are_booleans() -> None:
    assert make(size=4, require_wait=np.bool_(True), names=np.bool_(True)).reset(seed=0)[1]["instance"]


def test_render_modes(capsys: pytest.CaptureFixture[str]) -> None:
    texts = make(size=3, render_mode="ansi")
    texts.reset(options={"instance": TINY})
    texts.step([2, 4])
    assert texts.render().startswith("step 1\n") and "*0,1" in texts.render()
    images = make(size=3, render_mode="rgb_array")
    images.reset(options={"instance": TINY})
    assert images.render().ndim == 3 and images.render().dtype == np.uint8
    make(size=3, render_mode="human").reset(options={"instance": TINY})
    assert "step 0" in capsys.readouterr().out
    with pytest.raises(T2TError, match="render_mode"):
        make(size=3, render_mode="svg")


def test_sixteen_agents_on_the_largest_grid() -> None:
    starts, goals = [(0, i) for i in range(16)], [(1, i) for i in range(16)]
    env = make(size=32, num_agents=16, hole_ratio=0.0)
    env.reset(options={"instance": Instance(32, [], starts, goals, optimal_makespan=1)})
    assert env.step([1] * 16)[1] == 1.0


def test_spawned_workers_find_the_environment_by_module_and_name() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        envs = gym.make_vec(
            "t2t_envs:MAPFFrozenLake-v0", num_envs=2, vectorization_mode="async", vector_kwargs={"context": "spawn"}, size=3
        )
    try:
        observations, infos = envs.reset(seed=1)
        assert observations["positions"].shape == (2, 2, 2) and infos == {}
        for _ in range(30):
            envs.step(envs.action_space.sample())
    finally:
        envs.close()


def test_importing_the_package_is_light_and_registers_whatever_comes_first() -> None:
    script = (
        "import sys, t2t_envs; assert not {'gymnasium', 'torch', 'numpy'} & set(sys.modules);"
        "import pettingzoo, gymnasium; assert 'torch' not in sys.modules;"
        "gymnasium.spec('MAPFFrozenLake-v0'); gymnasium.spec('MAPFFrozenLakeText-v0');"
        "pettingzoo.spec('parallel', 'MAPFFrozenLake-v0'); pettingzoo.spec('aec', 'MAPFFrozenLake-v0')"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": ":".join(sys.path)})
