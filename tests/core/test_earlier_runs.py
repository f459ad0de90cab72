"""A run folder of an earlier version can be read and continued, or is refused because of its version.

`earlier/run_0_1` was written by commit 59385ef: `t2t run --config run_0_1.toml`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from addition import t2t
from t2t_core.errors import T2TError

HERE = Path(__file__).parent / "earlier"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "run_0_1", tmp_path / "run"))


def test_it_is_read_by_every_command_that_reads_runs(run: Path, tmp_path: Path) -> None:
    t2t("report", run)
    page = (run / "report.html").read_text()
    assert "map size" in page and "hole ratio" in page and "rule designs mapf-frozenlake" in page
    t2t("analyze", run, "--out", tmp_path / "analysis")
    step = json.loads((tmp_path / "analysis" / "analysis.json").read_text())["runs"][0]["steps"][0]
    assert step["outcome"] == "proposed" and step["cells_rewritten"] > 0 and step["levels_follow_order"] is not None
    board = t2t("design", "--run", run, "--designer", "rule").output
    assert "rule, round 0" in board and "rule, round 1" in board and "failed" not in board


def test_the_same_command_goes_on_with_it(run: Path) -> None:
    """Its last round is validated again. The earlier round, and everything drawn and trained, stay unchanged."""
    before = {path: path.read_bytes() for path in run.glob("round_*/*.json*")}
    for name in ("breakdown.json", "validation.jsonl"):
        (run / "round_1" / name).unlink()
    (run / "summary.json").unlink()
    t2t("run", "--config", HERE / "run_0_1.toml", "--out", run)
    kept = {path: data for path, data in before.items() if path.name not in ("breakdown.json", "validation.jsonl")}
    assert {path: path.read_bytes() for path in kept} == kept
    assert [r["round"] for r in json.loads((run / "summary.json").read_text())["rounds"]] == [0, 1]
    assert json.loads((run / "testbed.json").read_text())["group"] == "map size"


@pytest.mark.parametrize("command", ["report", "analyze"])
def test_a_format_of_another_version_is_refused_as_that(run: Path, command: str) -> None:
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**manifest, "format": 2}))
    with pytest.raises(T2TError, match="format 2; this version of the suite reads format 1"):
        t2t(command, run)


def test_the_same_settings_come_to_the_same_bytes_as_then(tmp_path: Path) -> None:
    """This holds for instances, designs, answers and verdicts. Only figures differ: they now name the reader of answers."""
    t2t("run", "--config", HERE / "run_0_1.toml", "--out", tmp_path / "run")
    names = ("instances.jsonl", "generation.json", "configuration.json", "validation.jsonl")
    designs = ("context.md", "proposal.json", "projection.json")
    files = [f"round_{n}/{name}" for n in (0, 1) for name in (*names, *(designs if n == 0 else ()))]
    for name in (*files, "bench/base/3agents/answers.jsonl"):
        assert (tmp_path / "run" / name).read_bytes() == (HERE / "run_0_1" / name).read_bytes(), name
    for name in ("round_0/breakdown.json", "round_1/breakdown.json", "bench/table.json", "summary.json"):
        then, now = (json.loads((folder / name).read_text()) for folder in (HERE / "run_0_1", tmp_path / "run"))
        assert _without_reader(now) == then, name


def _without_reader(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_reader(item) for name, item in value.items() if name != "reader"}
    return [_without_reader(item) for item in value] if isinstance(value, list) else value


# SHA-256 of the answers, verdicts included, of `t2t bench --agents 3 --limit 1` at commit 59385ef.
ANSWERS = {
    "cbs": "2b3a9832ae88a06b72cd055ef5eec11be974b16684b620bb9a6978d9fae30578",
    "prioritized": "bc4afd9a22346dc3df57dae553880d37d4d452579d3a03aafa5a4c39db808113",
    "pibt": "487d8c7084e72313f61fe64a2c371a912bcb5d05276e4cb7a5dd3a1afce28afc",
    "independent": "fa81369125274fe99f86551707db9d724b5cc84cfe2038c25b9bc7ca94cd600e",
    "random": "c8d37e1c673c2ba0676b4c2257e23480e9752afc4b926c1789371177cf313a78",
}


def test_the_boards_players_give_the_same_answers_as_then(tmp_path: Path) -> None:
    policies = [word for name in ANSWERS for word in ("--policy", name)]
    t2t("bench", "--agents", "3", "--limit", "1", *policies, "--out", tmp_path)
    rows = {row.name.rpartition("-")[0]: row / "answers.jsonl" for row in (tmp_path / "rows").iterdir()}
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in rows.items()} == ANSWERS
