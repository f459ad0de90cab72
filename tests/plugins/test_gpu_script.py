"""benchmarks/gpu.py: every line of it on the CPU with tiny shapes, and what it says without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.train, pytest.mark.slow, pytest.mark.timeout(3600)]
SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu.py"


def script(*arguments: object) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("trl")
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})


def test_without_a_gpu_it_says_so_in_one_sentence() -> None:
    done = script()
    assert done.returncode == 1 and done.stderr.startswith("error: torch finds no CUDA GPU here") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("lora", [0, 2])
def test_the_smoke_run_goes_through_every_line(tmp_path: Path, lora: int) -> None:
    part = ("--part", "qwen") if lora else ()
    done = script("--smoke", "--lora", lora, "--out", tmp_path / "gpu.json", *part)
    assert done.returncode == 0, done.stderr[-3000:]
    facts = json.loads((tmp_path / "gpu.json").read_text())
    assert facts["qwen"]["updates"] == 3 and facts["qwen"]["median_seconds"] > 0 and facts["qwen"]["peak_memory_gb"] > 0
    if not lora:
        loop = facts["loop"]
        assert [line["updates"] for line in loop["rounds"]] == [2, 2] and loop["warm_up"]["updates"] > 0
        assert {stage["stage"] for stage in loop["stages"]} == {"generate", "train", "validate", "design"}
        assert loop["bench"]["sets"][0]["rows"]
