"""Ray, for real: a sweep on a cluster of two nodes on this machine, with a worker that dies, leaves the files of a plain one.

    bash .ci/integrations ray
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.errors import T2TError

ray = pytest.importorskip("ray")
CONFIG = """
testbed = "mapf-frozenlake"
policy = "pibt"
trainer = "none"
designer = "fixed"
context = "F"
rounds = 2
[generation]
samples = 6
[validation]
set = "validation_2agents"
limit = 1
[evaluation]
agents = "3"
limit = 1
"""
GRID = ("--designers", "fixed rule", "--seeds", "0 1")
LASTING = {"sweep.json", "sweep.md", "answers.jsonl", "instances.jsonl", "breakdown.json", "configuration.json", "proposal.json"}


def t2t(*words: Any) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words], standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.output


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.name in LASTING}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def two_nodes(monkeypatch: Any) -> Iterator[str]:
    """The address of a cluster of two nodes, one CPU each."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "120")
    places = [str(Path(sys.modules["t2t_core"].__file__ or "").parents[1])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*places, *filter(None, [os.environ.get("PYTHONPATH")])]))
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    cluster.add_node(**{name: value for name, value in node.items() if name != "include_dashboard"})
    yield cluster.address
    ray.shutdown()
    cluster.shutdown()


def test_a_sweep_on_two_nodes_leaves_the_bytes_of_a_plain_one(config: Path, two_nodes: str, tmp_path: Path) -> None:
    t2t("sweep", "--config", config, *GRID, "--out", tmp_path / "plain")
    ray.init(address=two_nodes, log_to_driver=False)
    assert sum(node["Alive"] for node in ray.nodes()) == 2
    said = t2t("sweep", "--config", config, *GRID, "--ray", two_nodes, "--out", tmp_path / "ray")
    assert "seed 1: rule F: done" in said and "0 runs to go" in said
    plain, remote = files(tmp_path / "plain"), files(tmp_path / "ray")
    assert len(plain) > 20 and remote == plain
    again = t2t("sweep", "--config", config, *GRID, "--ray", two_nodes, "--out", tmp_path / "ray")
    assert "0 runs to go" in again and files(tmp_path / "ray") == plain


PLAN = """
title = "Another node"
seeds = [0, 1]
measure = [{set = "3agents", metric = "valid"}]
margin = 5.0
start = "random"
[experiment]
testbed = "mapf-frozenlake"
policy = "pibt"
trainer = "none"
context = "F"
rounds = 2
generation = {samples = 6}
validation = {set = "validation_2agents", limit = 1}
evaluation = {agents = "3", limit = 1}
[arms.fixed]
designer = "fixed"
[arms.rule]
designer = "rule"
[primary]
arm = "rule"
against = "fixed"
"""


def test_a_study_on_two_nodes_leaves_the_bytes_of_a_plain_one(two_nodes: str, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    t2t("sweep", "--plan", tmp_path / "plan.toml", "--out", tmp_path / "plain")
    ray.init(address=two_nodes, log_to_driver=False)
    said = t2t("sweep", "--plan", tmp_path / "plan.toml", "--ray", two_nodes, "--out", tmp_path / "ray")
    assert "seed 1: rule: done" in said and "0 runs to go" in said
    plain = files(tmp_path / "plain") | {"study": (tmp_path / "plain" / "study.json").read_bytes()}
    assert len(plain) > 20 and files(tmp_path / "ray") | {"study": (tmp_path / "ray" / "study.json").read_bytes()} == plain


def test_a_worker_that_dies_is_started_again(two_nodes: str, tmp_path: Path) -> None:
    from t2t_core.loop.on_ray import Cluster, run_ahead
    from t2t_core.run.progress import Reporter

    class Dies:
        """Simulates a run whose first worker is killed in the middle."""

        title, fork = "the dying one", None

        def run(self, reporter: Any) -> None:
            if not (tmp_path / "once").exists():
                (tmp_path / "once").write_text("x")
                os._exit(1)
            (tmp_path / "done").write_text("x")

    class Fails:
        title, fork = "the failing one", None

        def run(self, reporter: Any) -> None:
            raise T2TError("the policy cannot be reached")

    ray.init(address=two_nodes, log_to_driver=False)
    with pytest.raises(T2TError, match="1 of 2 runs failed") as caught:
        run_ahead([[Dies()], [Fails()]], Cluster(two_nodes), Reporter())  # type: ignore[list-item]
    assert (tmp_path / "done").exists() and "cannot be reached" in caught.value.cause and "failing" in caught.value.where


@pytest.mark.parametrize("text", ["", "gpus=1", "auto,gpus=x", "auto,disk=1", "auto,gpus"])
def test_what_names_no_cluster_is_refused(text: str) -> None:
    from t2t_core.loop.on_ray import Cluster

    with pytest.raises(T2TError, match="does not name a cluster"):
        Cluster.parse(text)
    assert Cluster.parse("auto,cpus=4,gpus=0.5") == Cluster("auto", 4.0, 0.5)
