"""RLlib, for real: its example trains for a moment (`bash .ci/integrations rllib`)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray.rllib")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "rl" / "rllib_ppo.py"


@pytest.mark.train
def test_the_example_trains() -> None:
    done = subprocess.run([sys.executable, EXAMPLE, "--updates", "2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(re.findall(r"return +-?[0-9.]+", done.stdout)) >= 2, done.stdout
