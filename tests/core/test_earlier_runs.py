"""A run folder that an earlier version left is read and goes on, or is refused by its version.

`earlier/run_0_1` was written by commit 59385ef: `t2t run --config run_0_1.toml`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

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
    """Its last round is validated anew; the earlier one, and what was drawn and trained, stay as they are."""
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
