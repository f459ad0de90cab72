"""The sources of the environments' lakes: fresh, independent streams; variants; configurations; maps of any shape."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import t2t_envs  # noqa: F401
from t2t_core.errors import T2TError
from t2t_envs.frozen_lake import solver
from t2t_envs.frozen_lake.generation.configuration import SIZES, Configuration, JointCell, SizeKnobs
from t2t_envs.frozen_lake.gym import stepper
from t2t_envs.frozen_lake.instance import Instance
from t2t_envs.frozen_lake.maps import parse_desc, read_map, read_scenario
from t2t_envs.frozen_lake.solver import solve, solve_many
from t2t_envs.frozen_lake.verifier import verify_paths

ENV, TEXT = "MAPFFrozenLake-v0", "MAPFFrozenLakeText-v0"


def vector(num_envs: int, **options: Any) -> Any:
    return gym.make_vec(ENV, num_envs=num_envs, vectorization_mode="vector_entry_point", **options).unwrapped


def lakes_of(envs: Any, seed: int, resets: int) -> set[bytes]:
    """The lakes that a vector of planes shows, as bytes."""
    seen = set()
    for reset in range(resets):
        batch = envs.reset(seed=seed if reset == 0 else None)[0]
        seen |= {row.tobytes() for row in batch}
    return seen


def test_no_lake_of_a_hundred_thousand_is_shared_between_seeds_or_drawn_twice() -> None:
    envs = vector(1000, size=10, num_agents=5, observation="planes", reuse=1)
    training, evaluation = lakes_of(envs, 0, 100), lakes_of(envs, 1, 100)
    assert len(training) == len(evaluation) == 100_000
    assert not training & evaluation


def test_one_seed_is_one_lake_everywhere() -> None:
    options: dict[str, Any] = {"size": 6, "num_agents": 3, "objective": "sum_of_costs"}
    single, text = gym.make(ENV, **options).unwrapped, gym.make(TEXT, **options).unwrapped
    parallel, envs = pettingzoo.make("parallel", ENV, **options), vector(3, reuse=1, **options)
    for seed in (5, None, None, 2**80, None):
        for env in (single, text, parallel, envs):
            env.reset(seed=seed)
        assert single.instance.id == text.instance.id == parallel.instance.id == envs.instance(0).id
        assert envs.instance(1).id != envs.instance(0).id


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_slots_lakes_hang_on_nothing_beside_it(count: int) -> None:
    """They depend neither on how many environments there are nor on when the others end."""
    wide, narrow = vector(9, size=4, names=True), vector(count, size=4, names=True)
    assert (wide.reset(seed=3)[1]["instance"][:count] == narrow.reset(seed=3)[1]["instance"]).all()
    actions = np.zeros((9, 2), int)
    for _ in range(20):
        wide.step(actions)
    mask = np.zeros(count, bool)
    mask[-1] = True
    fresh = vector(9, size=4, names=True)
    fresh.reset(seed=3)
    keep = np.zeros(9, bool)
    keep[count - 1] = True
    apart, among = narrow.reset(options={"reset_mask": mask}), fresh.reset(options={"reset_mask": keep})
    assert apart[1]["instance"][-1] == among[1]["instance"][count - 1]


@pytest.mark.parametrize("objective", ["makespan", "sum_of_costs"])
@pytest.mark.parametrize("require_wait", [None, True])
def test_every_guise_is_another_instance_with_the_same_labels(objective: str, require_wait: bool | None) -> None:
    options: dict[str, Any] = {"size": 4, "hole_ratio": 0.25, "objective": objective, "require_wait": require_wait}
    env = gym.make(ENV, reuse=12, names=True, **options).unwrapped
    for lake in range(5):
        names, shown, optima = [], set(), set()
        for play in range(12):
            names.append(env.reset(seed=lake if play == 0 else None)[1]["instance"])
            instance = env.instance
            shown.add((instance.holes, instance.starts, instance.goals))
            label = solve_many([instance], wait=True)[0]
            assert label.status == "solved" and require_wait in (None, label.requires_wait)
            optima.add(label.cost)
        assert optima == {env.optimum}
        assert len({name.rpartition("_")[0] if play else name for play, name in enumerate(names)}) == 1
        assert len(shown) >= 10  # two guises of a symmetric lake may look the same
    env.reset()
    assert "_" not in env.instance.id.partition("x")[2].partition("_")[2]


def test_without_reuse_no_lake_comes_back() -> None:
    env = gym.make(ENV, size=5, names=True)
    assert len({env.reset(seed=0 if i == 0 else None)[1]["instance"] for i in range(300)}) == 300


SOURCES: list[dict[str, Any]] = [
    {"size": 4, "num_agents": 3, "hole_ratio": 0.3},
    {"size": 3, "num_agents": 2, "require_wait": True},
    {"size": 3, "num_agents": 2, "require_wait": False, "objective": "sum_of_costs"},
    {"desc": ["....", ".##.", "...."], "num_agents": 2},
    {"configuration": {
        "3": {"data_ratio": 0.5, "hole_ratio": 0.1, "wait_ratio": 0.5},
        "4": {"data_ratio": 0.5, "hole_ratio": 0.3, "wait_ratio": 0.0},
    }},
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("options", SOURCES)
def test_the_native_and_the_python_sources_draw_the_same(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    by_source = []
    for _ in range(2):
        env = gym.make(ENV, reuse=3, **options).unwrapped
        lakes = []
        for reset in range(9):
            env.reset(seed=7 if reset == 0 else None)
            lakes.append((env.instance.id, env.instance.holes, env.instance.starts, env.instance.goals, env.optimum))
        by_source.append(lakes)
        for module in (stepper, solver):
            monkeypatch.setattr(module, "native_core", lambda: None)
    assert by_source[0] == by_source[1]


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 6), st.integers(1, 8), st.floats(0, 0.5), st.integers(0, 2**64))
def test_every_fresh_lake_is_solvable(size: int, agents: int, ratio: float, seed: int) -> None:
    if agents > size * size * (1 - ratio) - 1:
        return
    env = gym.make(ENV, size=size, num_agents=agents, hole_ratio=ratio).unwrapped
    try:
        env.reset(seed=seed)
    except T2TError as error:
        assert "no such lake" in str(error)
        return
    instance = env.instance
    assert len(instance.holes) == int(ratio * size**2 + 0.5)
    assert all(s != g for s, g in zip(instance.starts, instance.goals, strict=True))
    assert solve_many([instance], "makespan", max_nodes=200_000)[0].status != "infeasible"


@pytest.mark.parametrize("objective", ["makespan", "sum_of_costs"])
def test_an_optimum_that_the_proof_of_a_lake_gives_away_is_the_solvers(objective: str) -> None:
    for size, agents in ((3, 2), (5, 4), (10, 5)):
        envs = vector(150, size=size, num_agents=agents, objective=objective, reuse=1)
        envs.reset(seed=1)
        known = [lake for lake in map(envs.instance, range(150)) if lake.optimum is not None]
        assert len(known) > 20
        solved = solve_many([replace(lake, optimal_makespan=None, optimal_sum_of_costs=None) for lake in known])
        assert [lake.optimum for lake in known] == [solution.cost for solution in solved]


def test_labels_wait_until_somebody_asks() -> None:
    envs = {labels: gym.make(ENV, size=8, num_agents=8, objective="sum_of_costs", labels=labels) for labels in ("lazy", False)}
    infos = {labels: env.reset(seed=1)[1] for labels, env in envs.items()}
    assert infos == {"lazy": {}, False: {}}
    made = gym.make(ENV, size=4, labels=True)
    assert made.reset(seed=1)[1] == {"optimum": made.unwrapped.optimum}


@pytest.mark.parametrize(("labels", "reward"), [("lazy", 1.0), (True, 1.0), (False, 0.5)])
def test_what_a_solved_episode_is_worth(labels: Any, reward: float) -> None:
    env = gym.make(ENV, size=4, labels=labels)
    for seed in range(4):
        env.reset(seed=seed)
        paths = solve(env.unwrapped.instance).paths
        *_, got, _, _, info = play(env, paths)
        assert got == reward and info["valid"] and ("gap" in info) is (labels is not False)


def play(env: Any, paths: Any) -> Any:
    deltas = {(0, -1): 0, (1, 0): 1, (0, 1): 2, (-1, 0): 3, (0, 0): 4}
    for step in range(max(map(len, paths)) - 1):
        cells = [[path[min(t, len(path) - 1)] for path in paths] for t in (step, step + 1)]
        seen = env.step([deltas[b[0] - a[0], b[1] - a[1]] for a, b in zip(*cells, strict=True)])
    return seen


def uneven() -> Configuration:
    knobs = [SizeKnobs() for _ in SIZES]
    knobs[0] = SizeKnobs(0.75, cells=(JointCell(1.0, 0.0, 1.0), JointCell(1.0, 0.3, 0.0)))
    knobs[2] = SizeKnobs(0.25, 0.2, 0.0)
    return Configuration(tuple(knobs))


def test_a_configuration_says_what_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "configuration.json"
    path.write_text(json.dumps(uneven().to_dict()))
    for given_configuration in (uneven(), uneven().to_dict(), path, str(path)):
        envs = vector(2000, configuration=given_configuration, reuse=1)
        assert envs.single_observation_space["holes"].shape == (5, 5)
        envs.reset(seed=0)
        drawn = [envs.instance(index) for index in range(2000)]
        sizes = [instance.size for instance in drawn]
        assert set(sizes) == {3, 5} and abs(sizes.count(3) / 2000 - 0.75) < 0.04
        kinds = {(x.size, len(x.holes)) for x in drawn}
        assert kinds == {(3, 0), (3, 3), (5, 5)}
        waits = solve_many([x for x in drawn if x.size == 3 and not x.holes][:100], wait=True)
        assert all(label.requires_wait for label in waits)


def test_a_configuration_is_set_between_episodes_and_through_wrappers() -> None:
    small = {"3": {"data_ratio": 1.0, "hole_ratio": 0.0, "wait_ratio": 0.0}}
    env = gym.wrappers.TimeAwareObservation(gym.make(ENV, size=5, max_size=5, observation="flat"))
    env.reset(seed=0)
    before = env.unwrapped.instance
    env.get_wrapper_attr("set_configuration")(small)
    assert env.unwrapped.instance == before
    env.step([4, 4])
    env.reset()
    assert env.unwrapped.instance.size == 3
    envs = vector(5, size=5, max_size=5, names=True)
    envs.reset(seed=0)
    envs.set_configuration(small)
    envs.reset()
    assert {envs.instance(i).size for i in range(5)} == {3}
    turns = pettingzoo.make("aec", ENV, size=5)
    turns.unwrapped.set_configuration(small)
    turns.reset(seed=0)
    with pytest.raises(T2TError, match="max_size=10"):
        env.get_wrapper_attr("set_configuration")(Configuration.uniform())
    workers = gym.make_vec("t2t_envs:MAPFFrozenLake-v0", num_envs=2, vectorization_mode="async", size=5)
    try:
        workers.reset(seed=0)
        workers.call("set_configuration", small)
        assert (workers.reset()[0]["holes"][:, :3, :3] == 0).all()
    finally:
        workers.close()


def test_stable_baselines3_sets_a_configuration_in_its_workers() -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    small = {"3": {"data_ratio": 1.0, "hole_ratio": 0.0, "wait_ratio": 0.0}}

    def make() -> Any:
        return gym.make("t2t_envs:MAPFFrozenLake-v0", size=5, observation="planes")

    envs = vec_env.SubprocVecEnv([make, make], start_method="fork")
    try:
        envs.reset()
        envs.env_method("set_configuration", small)
        planes = envs.reset()
        assert (planes[:, 0, 3:] == 1).all() and (planes[:, 0, :3, :3] == 0).all()
    finally:
        envs.close()


def test_maps_are_drawn_by_hand() -> None:
    env = gym.make(ENV, desc=["S.#.", "..#G"]).unwrapped
    env.reset(seed=0)
    assert env.instance == Instance(4, [(0, 2), (1, 2), *((r, c) for r in (2, 3) for c in range(4))], [(0, 0)], [(1, 3)])
    crossing = gym.make(ENV, desc="a.B\n...\nb.A").unwrapped
    crossing.reset()
    assert crossing.instance.starts == ((0, 0), (2, 0)) and crossing.instance.goals == ((2, 2), (0, 2))
    assert parse_desc(["a . .", ". bA B"]).starts == ((0, 0), (1, 1))
    assert parse_desc(["SFFF", "FHFH", "FFFH", "HFFG"]).holes == ((1, 1), (1, 3), (2, 3), (3, 0))
    free = gym.make(ENV, desc=["...", ".#.", "..."], num_agents=3, names=True).unwrapped
    names = {free.reset(seed=seed)[1]["instance"] for seed in range(5)}
    assert len(names) == 5 and free.instance.holes == ((1, 1),)
    for wrong in (["S.", "..G"], ["S?G"], ["SSG"], ["aAa"], [], ["." * 257], 5, ["aAbB" * 9]):
        with pytest.raises(T2TError):
            gym.make(ENV, desc=wrong)


def test_the_largest_map_is_played_and_verified_but_not_solved() -> None:
    row = "S" + "." * 254 + "G"
    env = gym.make(ENV, desc=[row] + ["#" * 256] * 3, max_steps=300, observation="planes").unwrapped
    observation, _ = env.reset(seed=0)
    assert observation.shape == (3, 256, 256) and env.instance.size == 256
    for _ in range(255):
        _, reward, terminated, _, info = env.step([2])
    assert terminated and info["valid"] and reward == 0.5 and verify_paths(env.instance, env.paths).valid
    with pytest.raises(T2TError, match="up to 32x32"):
        solve(env.instance)
    with pytest.raises(T2TError, match="up to 32"):
        gym.make(ENV, desc=["." * 100] * 100)


MAP = "type octile\nheight 2\nwidth 5\nmap\n..@..\n.....\n"
PAIRS = ((0, 0, 4, 0), (4, 1, 0, 1), (1, 1, 3, 1), (2, 0, 0, 0), (3, 0, 1, 0))
SCENARIO = "version 1\n" + "".join("0\troom.map\t5\t2\t" + "\t".join(map(str, pair)) + "\t3\n" for pair in PAIRS)


def test_movingais_maps_and_scenarios(tmp_path: Path) -> None:
    (tmp_path / "room.map").write_text(MAP)
    scenario = tmp_path / "room-even-1.scen"
    scenario.write_text(SCENARIO)
    assert read_map(tmp_path / "room.map").size == 5
    pool = read_scenario(scenario, 2)
    assert [x.id for x in pool] == ["room-even-1_0000", "room-even-1_0001"]
    assert pool[0].starts == ((0, 0), (1, 4)) and pool[1].goals == ((1, 3), (0, 1))  # the fourth line begins in a hole
    env = gym.make(ENV, pool=scenario, num_agents=2, names=True)
    assert {env.reset(seed=seed)[1]["instance"] for seed in range(12)} == {x.id for x in pool}
    drawn = gym.make(ENV, desc=str(tmp_path / "room.map"), num_agents=2).unwrapped
    drawn.reset(seed=0)
    assert drawn.instance.holes == read_map(tmp_path / "room.map").holes
    elsewhere = SCENARIO.replace("room.map", "hall.map")
    for text, word in ((SCENARIO[:30], "not a line"), (elsewhere, "hall.map"), ("version 1\n", "no 2 agents")):
        scenario.write_text(text)
        with pytest.raises(T2TError, match=word):
            read_scenario(scenario, 2)
    (tmp_path / "room.map").write_text(MAP.replace("height 2", "height 3"))
    with pytest.raises(T2TError, match="header"):
        read_map(tmp_path / "room.map")
