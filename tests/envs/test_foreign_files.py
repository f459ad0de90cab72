"""Lakes from and to MovingAI's files and the YAML of path-finding solvers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from addition import t2t
from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.store.instance_files import read_instances
from t2t_envs.frozen_lake import Instance, generate
from t2t_envs.frozen_lake.generation.configuration import Configuration
from t2t_envs.frozen_lake.movingai import map_text, scenario_text
from t2t_envs.frozen_lake.yaml_files import text

LAKE = installed().testbeds.make("mapf-frozenlake")
YAML = """\
agents:
-   goal: [2, 0]
    name: agent0
    start: [0, 0]
-   goal: [0, 1]
    name: agent1
    start: [3, 1]
map:
    dimensions: [4, 2]
    obstacles:
    - !!python/tuple [1, 0]
"""


@settings(max_examples=8, deadline=None)
@given(agents=st.integers(2, 4), seed=st.integers(0, 2**32))
def test_yaml_holds_everything_and_movingai_all_but_the_labels(agents: int, seed: int, tmp_path_factory: Any) -> None:
    pytest.importorskip("yaml")
    folder = tmp_path_factory.mktemp("lakes")
    for instance in generate(Configuration.uniform(), 8, agents, seed):
        (folder / "a.yaml").write_text(text(instance))
        assert read_instances(LAKE, folder / "a.yaml") == [instance]
        name = instance.id
        (folder / f"{name}.map").write_text(map_text(instance))
        (folder / f"{name}.scen").write_text(scenario_text(instance, f"{name}.map"))
        (back,) = read_instances(LAKE, folder / f"{name}.scen")
        assert back == Instance(instance.size, instance.holes, instance.starts, instance.goals, id=name)


@pytest.mark.thorough
def test_frozen_sets_come_back_from_folders(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    frozen = {i.id: i for i in LAKE.load_set("validation_2agents").instances}
    for form in ("yaml", "movingai"):
        t2t("export", "--set", "validation_2agents", "--format", form, "--out", tmp_path / form)
        back = {i.id: i for i in read_instances(LAKE, tmp_path / form)}
        assert list(back) == sorted(frozen)
        for name, instance in back.items():
            assert (instance.holes, instance.starts, instance.goals) == (
                frozen[name].holes,
                frozen[name].starts,
                frozen[name].goals,
            )
    assert back[name].optimal_makespan is None
    t2t("export", tmp_path / "yaml", "--format", "jsonl", "--out", tmp_path / "back.jsonl")
    assert {i.id: i for i in read_instances(LAKE, tmp_path / "back.jsonl")} == frozen


def test_a_yaml_of_another_solver_is_read(tmp_path: Path) -> None:
    """libMultiRobotPlanning's and its Python companions' form: [x, y], a map that is no square, cells as Python tuples."""
    pytest.importorskip("yaml")
    path = tmp_path / "map_4by2_obst1_agents2.yaml"
    path.write_text(YAML)
    (instance,) = read_instances(LAKE, path)
    assert instance.id == "map_4by2_obst1_agents2" and instance.size == 4
    assert set(instance.holes) == {(0, 1), *((row, column) for row in (2, 3) for column in range(4))}
    assert instance.starts == ((0, 0), (1, 3)) and instance.goals == ((0, 2), (1, 0))
    assert "1 instances; 0 wrong labels, 0 undecided, 0 without a solution" in t2t("solve", path).output


def test_every_command_takes_them(tmp_path: Path) -> None:
    (tmp_path / "room.map").write_text("type octile\nheight 2\nwidth 3\nmap\n@..\n...\n")
    ways = ((1, 0, 2, 1), (2, 1, 0, 1), (0, 1, 1, 0))
    lines = ["\t".join(map(str, (0, "room.map", 3, 2, *way, 2))) for way in ways]
    (tmp_path / "room.scen").write_text("\n".join(["version 1", *lines]))
    scenario = tmp_path / "room.scen"
    assert "room  optimal_makespan=" in t2t("solve", scenario).output  # three lines are three agents
    solved = t2t("solve", f"{scenario}@1", "--out", tmp_path / "a.jsonl").output
    assert "3 instances; 0 wrong" in solved
    assert [i.optimal_makespan for i in read_instances(LAKE, tmp_path / "a.jsonl")] == [2, 2, 2]
    assert "room_0001: 1 agent" in t2t("show", f"{scenario}@1#room_0001").output
    board = t2t("bench", "--instances", f"{scenario}@2", "--policy", "cbs", "--out", tmp_path / "b", "--no-reported").output
    assert "2 agents" in board and "1 answers of 1 row(s) rescored" in board
    kept = t2t("generate", "--instances", f"{scenario}@1", "--answers-from", "cbs", "--out", tmp_path / "c.jsonl")
    assert "3 questions" in kept.output + kept.stderr
    assert t2t("show", scenario, "--format", "map").output.endswith("map\n@..\n...\n@@@\n")
    assert t2t("show", scenario, "--format", "scen").output.splitlines()[1] == "0\troom.map\t3\t3\t1\t0\t2\t1\t2.00000000"
    assert "agent2, start: [0, 1], goal: [1, 0]" in t2t("show", scenario, "--format", "yaml").output


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "the file must be a mapping"),
        ("a: [", "cannot be read"),
        ("[" * 20_000, "cannot be read"),
        ("agents: []\nmap: {dimensions: [3, 3]}", "agents"),
        ("agents: 3\nmap: {dimensions: [3, 3]}", "agents must be a list"),
        ("agents: [{start: [0, 0], goal: [9, 9]}]\nmap: {dimensions: [3, 3]}", "lies off the map"),
        ("agents: [{start: [0, 0]}]\nmap: {dimensions: [3, 3]}", "agents.goal must be two whole numbers"),
        ("agents: [{start: [0, 0], goal: [true, 1]}]\nmap: {dimensions: [3, 3]}", "two whole numbers"),
        ("agents: []\nmap: {dimensions: [3, 100000000]}", "must lie in 1..256"),
        ("agents: []\nmap: {dimensions: [3, 3], obstacles: {a: 1}}", "obstacles must be a list"),
        ("!!python/object/apply:os.system ['echo']", "cannot be read"),
        ("agents: " + "9" * 5000 + "\nmap: {dimensions: [3, 3]}", "cannot be read|must be a list"),
    ],
)
def test_a_broken_yaml_is_named(content: str, what: str, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / "a.yaml"
    path.write_text(content)
    with pytest.raises(T2TError, match=what) as caught:
        read_instances(LAKE, path)
    assert str(path) in caught.value.where


@pytest.mark.parametrize(
    ("name", "what"),
    [("room.map", "a map alone"), ("room.scen@x", "not a number of agents"), ("room.scen@17", "not a number of agents"),
     ("room.scen@0", "not a number of agents"), ("room.scen", "20 lines"), ("room.scen@" + "9" * 200, "not a number of agents")],
)  # fmt: skip
def test_a_scenario_that_cannot_be_read_so_is_named(name: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "room.map").write_text("type octile\nheight 5\nwidth 5\nmap\n" + ".....\n" * 5)
    lines = [f"0\troom.map\t5\t5\t{n % 5}\t{n // 5}\t{n // 5}\t{n % 5}\t1" for n in range(20)]
    (tmp_path / "room.scen").write_text("version 1\n" + "\n".join(lines))
    with pytest.raises(T2TError, match=what) as caught:
        read_instances(LAKE, tmp_path / name)
    assert "room" in caught.value.where


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.yaml").write_text(YAML)
    with pytest.raises(T2TError, match="two files hold an instance called x"):
        read_instances(LAKE, tmp_path)
    with pytest.raises(T2TError, match="holds no instances"):
        (tmp_path / "empty").mkdir()
        read_instances(LAKE, tmp_path / "empty")


def test_without_pyyaml_the_message_says_what_to_install(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "a.yaml").write_text(YAML)
    with pytest.raises(T2TError, match="needs PyYAML") as caught:
        read_instances(LAKE, tmp_path / "a.yaml")
    assert "[data]'" in str(caught.value.next)
