"""benchmarks/gpu.py, the acceptance check of a machine with GPUs: every step on a CPU, and its message if a step fails."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu.py"
STEPS = ["machine", "model", "training", "loop", "bench"]
whole = [pytest.mark.train, pytest.mark.slow, pytest.mark.timeout(3600)]


def script(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    without = {"CUDA_VISIBLE_DEVICES": "", "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **without})


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [*sys.path])  # it adds to the path
    from benchmarks import gpu

    return gpu


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_in_one_sentence() -> None:
    done = script()
    assert done.returncode == 1 and done.stderr.startswith("error: there is no GPU here") and done.stderr.count("\n") == 1


def test_a_step_that_takes_too_long_is_ended_and_told(module: Any, tmp_path: Path) -> None:
    given = argparse.Namespace(preset="paper", rehearse=True, set=[])
    facts = module.do_apart("model", given, tmp_path, 0.01)
    assert facts["failed"] == "not done within 0 s"


def test_what_was_planned_and_what_was_measured_stand_side_by_side(module: Any) -> None:
    from t2t_plugins.trainers.shapes import shape_of
    from t2t_plugins.trainers.trl_grpo.plan import Plan
    from t2t_plugins.trainers.trl_grpo.settings import Settings

    settings = Settings(sharding="fsdp2", processes=2, engine="vllm-colocate", recompute=True, micro_batch=2)
    plan = Plan(shape_of("Qwen/Qwen3-4B"), settings, 80)
    taken = {"weights": 8_000_000_000, "kept activations": 2_000_000_000, "peak": 40_000_000_000}
    rows = {row["part"]: row for row in module.beside(plan, taken, {"an update": 9.0})}
    assert rows["weights"]["measured"] == 8 and rows["weights"]["plan"] == pytest.approx(8.04, abs=0.01)
    assert rows["logits and what is put together"]["measured"] == 30
    assert rows["gradients"]["measured"] is None and rows["an update at most"]["measured"] == 9
    parts = [row["plan"] for name, row in rows.items() if row["unit"] == "GB" and name != "the most at once"]
    assert rows["the most at once"]["plan"] == pytest.approx(sum(parts))
    assert "weights, GB" in module.report({"training": {"beside the plan": list(rows.values())}})


class TestRehearsal:
    pytestmark = whole

    def test_every_step_passes_on_a_cpu(self, tmp_path: Path) -> None:
        pytest.importorskip("trl")
        done = script("--rehearse", "--work", tmp_path, "--out", tmp_path / "gpu.json")
        assert done.returncode == 0, done.stdout + done.stderr[-3000:]
        facts = json.loads((tmp_path / "gpu.json").read_text())
        assert [name for name in STEPS if "failed" not in facts[name]] == STEPS
        training = facts["training"]
        assert len(training["updates"]) == 2 and training["moved"] > 10_000
        rows = {row["part"]: row for row in training["beside the plan"]}
        for part in ("weights", "gradients", "optimizer", "reference"):
            assert rows[part]["measured"] == pytest.approx(rows[part]["plan"], rel=0.02), part
        assert facts["loop"]["rows"] == [f"{arm} {n}agents" for arm in ("base", "designed") for n in (3, 4, 5)]
        assert done.stdout.splitlines()[-1].startswith("pass ") and not [p for p in tmp_path.iterdir() if p.is_dir()]

    def test_a_step_that_fails_does_not_keep_the_others_from_running(self, tmp_path: Path) -> None:
        pytest.importorskip("trl")
        done = script("--rehearse", "--work", tmp_path, "--out", tmp_path / "gpu.json", "--set", "training.micro_batch=3")
        facts = json.loads((tmp_path / "gpu.json").read_text())
        assert done.returncode == 1 and done.stdout.splitlines()[-1].startswith("failed: training, loop ")
        assert "do not split evenly" in facts["training"]["failed"]
        assert "left out" not in facts["bench"] and "failed" not in facts["bench"], "the bench is done alone then"
