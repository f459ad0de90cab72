"""Every example for other libraries runs for a moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "rl"
NEEDS = {
    "sb3_maskable": "sb3_contrib", "supersuit_ppo": "supersuit", "torchrl_ppo": "torchrl", "cleanrl_ppo": "torch",
    "tictactoe_maskable": "sb3_contrib", "text_answers": "gymnasium",
    "tictactoe_text": "gymnasium", "tictactoe_players": "pettingzoo",
}  # fmt: skip
ELSEWHERE = {"rllib_ppo", "tianshou_ppo"}  # their pins want environments of their own: tests/integrations


@pytest.mark.train
@pytest.mark.parametrize("name", sorted({path.stem for path in EXAMPLES.glob("*.py")} - ELSEWHERE))
def test_an_example_runs(name: str) -> None:
    pytest.importorskip(NEEDS.get(name, "stable_baselines3"))
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py", "--updates", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
