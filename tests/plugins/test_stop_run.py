"""`t2t run` gets SIGTERM during a real training: it saves what it has, and the same command ends in the bytes of an undisturbed
run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from t2t_core.store.jsonlines import loads

pytestmark = [pytest.mark.train, pytest.mark.slow, pytest.mark.timeout(1800)]
RUN = """
testbed = "mapf-frozenlake"
policy = "hf:{checkpoint},threads=1"
checkpoint = "MODEL"
designer = "random"
context = "F"
rounds = 1
seed = 7
report_to = "none"
[generation]
samples = 96
[validation]
set = "validation_2agents"
limit = 1
max_tokens = 8
"""
GRPO = """
trainer = "trl-grpo"
[training]
group = 4
prompts = 4
epochs = 1
learning_rate = 1e-3
max_tokens = 24
length_start = 12
length_end = 24
save_every = 1000
threads = 1
"""
SFT = """
trainer = "trl-sft"
[training]
answers_from = "cbs"
batch = 4
epochs = 3
learning_rate = 1e-3
save_every = 1000
threads = 1
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("trl")
    from t2t_baselines.tiny.model import make_model, make_tokenizer

    folder = tmp_path_factory.mktemp("model")
    made = make_model(0, num_hidden_layers=1)
    made.config.t2t_prompt_format = "compact"
    made.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


def start(config: Path, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from t2t_core.cli import main; main()", "run", "--config", str(config), "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)


def told(out: Path) -> list[Any]:
    """The updates that were reported, in their order."""
    path = out / "round_0" / "train" / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [loads(line)["update"] for line in lines if line.endswith("\n")]


@pytest.mark.parametrize("trainer", [GRPO, SFT])
def test_a_run_that_is_told_to_stop_saves_and_ends_in_the_same_bytes(model: Path, tmp_path: Path, trainer: str) -> None:
    config = tmp_path / "run.toml"
    head, training = trainer.split("[training]")
    config.write_text(head + RUN.replace("MODEL", str(model)) + "[training]" + training)
    calm = start(config, tmp_path / "calm")
    output = calm.communicate()[0]
    assert calm.returncode == 0, output
    stopped, out = start(config, tmp_path / "stopped"), tmp_path / "stopped"
    while len(told(out)) < 3 and stopped.poll() is None:
        time.sleep(0.01)
    stopped.send_signal(signal.SIGTERM)
    output = stopped.communicate()[0]
    assert stopped.returncode == 130 and "the same command continues" in output, output
    (state,) = (out / "round_0" / "checkpoint" / "updates").glob("checkpoint-*")
    saved = int(state.name.removeprefix("checkpoint-"))
    whole = told(tmp_path / "calm")
    assert 3 <= saved < len(whole), "no update was due to be saved"
    again = start(config, out)
    output = again.communicate()[0]
    assert again.returncode == 0, output
    assert told(out) == list(range(1, len(whole) + 1)), "no update is done twice"
    for name in ("checkpoint/model.safetensors", "breakdown.json", "instances.jsonl"):
        assert (out / "round_0" / name).read_bytes() == (tmp_path / "calm" / "round_0" / name).read_bytes(), name
