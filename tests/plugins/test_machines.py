"""A run on two machines, both simulated on this computer: `t2t run` on the first, `trl_grpo.machine` on the second."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from qwen import random_model
from test_sharding import free_port

from t2t_core.errors import T2TError
from t2t_plugins.trainers.trl_grpo import machine
from t2t_plugins.trainers.trl_grpo.job_files import JOB, RESULT
from t2t_plugins.trainers.trl_grpo.launch import launcher
from t2t_plugins.trainers.trl_grpo.settings import Settings, _check_machines

SHARDED = Path(__file__).resolve().parent / "sharded"
T2T = [sys.executable, "-c", "from t2t_core.cli import main; main()"]
RUN = """
testbed = "mapf-frozenlake"
policy = "hf:{checkpoint},threads=1"
checkpoint = "MODEL"
trainer = "trl-grpo"
designer = "random"
context = "F"
rounds = 2
seed = 7
report_to = "none"
[generation]
samples = 8
[training]
group = 4
prompts = 4
epochs = 1
learning_rate = 1e-3
max_tokens = 96
length_start = 4
length_end = 96
threads = 1
processes = 2
sharding = "fsdp2"
[validation]
set = "validation_2agents"
limit = 1
max_tokens = 8
[evaluation]
agents = "3"
limit = 1
"""


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_on_two_machines_ends_in_the_bytes_of_one_also_where_one_was_lost(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    random_model(tmp_path / "model")
    rooms = os.pathsep.join([str(SHARDED), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": rooms, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment}
    for name in ("one", "two", "lost"):
        several = f"[training.accelerate]\nnum_machines = 2\nmain_process_ip = '127.0.0.1'\nmain_process_port = {free_port()}\n"
        file = tmp_path / f"{name}.toml"
        file.write_text(RUN.replace("MODEL", str(tmp_path / "model")) + (several if name != "one" else ""))
        out = tmp_path / name
        command = [*T2T, "run", "--config", str(file), "--out", str(out)]
        join = [sys.executable, "-m", "t2t_plugins.trainers.trl_grpo.machine", str(out), "--rank", "1"]
        if name == "lost":
            ended = lose_a_machine(command, join, out, pipes)
            assert "training in 2 processes failed" in ended and "the same command goes on" in ended
        other = subprocess.Popen(join, **pipes) if name != "one" else None
        done = subprocess.run(command, **pipes)
        assert done.returncode == 0, done.stdout[-3000:]
        if other:
            told = other.communicate(timeout=60)[0]
            assert other.returncode == 0, told
            assert [f"training round_{n} ended with status 0" in told for n in (0, 1)] == [True, True], told
    names = [f"round_{n}/{file}" for n in (0, 1) for file in ("checkpoint/model.safetensors", "breakdown.json")]
    for name in ("two", "lost"):
        assert [(tmp_path / "one" / file).read_bytes() == (tmp_path / name / file).read_bytes() for file in names] == [True] * 4
    weights = [tmp_path / place / "model.safetensors" for place in ("model", "two/round_0/checkpoint", "two/round_1/checkpoint")]
    assert len({path.read_bytes() for path in weights}) == 3, "every round has learnt"


def lose_a_machine(command: list[str], join: list[str], out: Path, pipes: Any) -> str:
    """Begin on both, take the second machine away after an update, and return what the first one says of its end."""
    first = subprocess.Popen(command, **pipes)
    second = subprocess.Popen(join, start_new_session=True, **{**pipes, "stdout": subprocess.DEVNULL})
    figures = out / "round_0/train/metrics.jsonl"
    try:
        while not (figures.exists() and figures.read_text().strip()):
            assert first.poll() is None, first.communicate()[0]
            time.sleep(0.2)
    finally:
        os.killpg(second.pid, signal.SIGKILL)
        second.wait()
    told = first.communicate(timeout=300)[0]
    assert first.returncode == 2, told[-3000:]
    return str(told)


def test_the_other_machine_looks_for_what_wants_its_processes(tmp_path: Path) -> None:
    jobs = [tmp_path / place / "checkpoint" / "launch" for place in ("round_0", "round_1", "control/round_1")]
    for folder in jobs:
        folder.mkdir(parents=True)
        (folder / JOB).write_text("{}")
    (jobs[0] / RESULT).write_text("{}")
    (jobs[1] / "stop").write_text("{}")
    assert list(machine.waiting(tmp_path)) == [jobs[2]]
    (tmp_path / "summary.json").write_text(json.dumps({}))
    machine.serve(tmp_path, 1)


def test_machines_that_do_not_go_together_are_refused() -> None:
    shared = {"num_machines": 2, "main_process_ip": "10.0.0.1", "main_process_port": 29500}
    settings = Settings(processes=4, sharding="fsdp2", accelerate=shared)
    pytest.importorskip("torch")
    flags = launcher(machine.of_machine(settings, 1))
    assert flags[flags.index("--machine_rank") + 1] == "1" and flags[flags.index("--main_process_port") + 1] == "29500"
    for rank in (0, 2, -1):
        with pytest.raises(T2TError, match="no machine"):
            machine.of_machine(settings, rank)
    for wrong, why in (({"num_machines": 3}, "do not spread"), ({"num_machines": 2}, "main_process_ip and main_process_port")):
        with pytest.raises(T2TError, match=why):
            _check_machines(Settings(processes=4, accelerate=wrong))
    _check_machines(settings)
