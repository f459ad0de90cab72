"""A whole run of the preset `paper`, two rounds and control, with a stand-in for vLLM and for the training that each hold "the
GPU" while they are alive: never two at once, and no engine is started where one is at hand."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.timeout(600)
WHOLE = [
    "training run/round_0",
    "engine run/round_0/checkpoint",  # validation and design
    "training run/round_1",
    "engine run/round_1/checkpoint",  # validation and all sets of the bench
    "engine start",  # the bench of the policy that training started from
    "training control/round_1",
    "engine control/round_1/checkpoint",  # its validation and bench
]


class Machine:
    """One GPU, and the run that wants it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run = folder, folder / "run"
        self.log = folder / "log.txt"
        self.log.touch()
        (folder / "start").mkdir()
        (folder / "start" / "config.json").write_text("{}")

    def start(self, *options: str) -> subprocess.Popen[str]:
        rooms = [str(HERE / "one_gpu"), *filter(None, sys.path)]
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(rooms), "T2T_TEST_GPU": str(self.folder)}
        small = {"checkpoint": self.folder / "start", "generation.samples": 8, "validation.limit": 1, "evaluation.limit": 1}
        changed = [word for name, value in small.items() for word in ("--set", f"{name}={value}")]
        command = [sys.executable, str(HERE / "one_gpu" / "run.py"), "run", "--preset", "paper", "--rounds", "2"]
        command += ["--with-control", "--trainer", "stand-in", "--out", str(self.run), *changed, *options]
        return subprocess.Popen(command, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def wait_for(self, line: str, process: subprocess.Popen[str]) -> None:
        while line not in self.lines():
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.02)

    def wait_until_free(self) -> None:
        with open(self.folder / "gpu", "a") as gpu:
            fcntl.flock(gpu, fcntl.LOCK_EX)

    def had(self) -> list[str]:
        """Who had the GPU, one after another: whoever starts stops before the next one does."""
        lines = self.lines()
        names = [line.removeprefix("start ") for line in lines if line.startswith("start ")]
        assert lines == [f"{what} {name}" for name in names for what in ("start", "stop")]
        return [name.replace(f"{self.folder.parent.name}/", "").replace(f"{self.folder.name}/", "") for name in names]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.thorough
def test_one_engine_at_a_time_and_none_started_twice(machine: Machine) -> None:
    process = machine.start()
    output = process.communicate()[0]
    assert process.returncode == 0, output
    assert machine.had() == WHOLE
    bench = json.loads((machine.run / "bench" / "table.json").read_text())
    assert [row["arm"] for row in bench["sets"][0]["rows"]] == ["base", "designed", "control"] and len(bench["sets"]) == 3


@pytest.mark.thorough
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("during", ["engine run/round_0/checkpoint", "training control/round_1"])
def test_a_run_that_is_stopped_leaves_no_engine_behind(machine: Machine, sign: signal.Signals, during: str) -> None:
    process = machine.start()
    machine.wait_for(f"start {during}", process)
    process.send_signal(sign)
    process.communicate()
    assert process.returncode
    machine.wait_until_free()
    again = machine.start()
    output = again.communicate()[0]
    assert again.returncode == 0, output
    had = machine.had()
    assert [name for name in had if name in WHOLE] == had and had[-1] == WHOLE[-1]
    assert all(had.count(name) <= (2 if name == during else 1) for name in had), "only what was interrupted begins again"


def test_an_engine_that_does_not_end_is_made_to(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    from t2t_core.plugins import installed
    from t2t_plugins.policies import vllm

    for name in ("holder", "vllm"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(HERE / "one_gpu"))
    monkeypatch.setenv("T2T_TEST_GPU", str(machine.folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE / "one_gpu"), *filter(None, sys.path)]))
    monkeypatch.setattr(vllm, "PATIENCE", 0.1)
    policy = installed().policies.make(f"vllm:{machine.folder / 'start'}")
    policy._inside._load()
    (process,) = policy._inside._processes
    policy._inside._engine.llm_engine.engine_core.shutdown = lambda: None  # which does nothing
    policy.close()
    assert not process.is_alive()
    policy.close()
    for name in ("holder", "vllm"):
        sys.modules.pop(name, None)
