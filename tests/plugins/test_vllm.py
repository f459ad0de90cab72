"""vLLM itself, offline and behind `vllm serve`, with the shipped toy checkpoint: the same answers as transformers gives.

vLLM does not share an environment with the rest easily, so it is another interpreter's: T2T_VLLM_PYTHON names one that has vLLM
and the suite (docs: Trainers, local models and the toy policy). On two CPU cores a start takes about two minutes.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from t2t_baselines.tiny.policy import shipped
from t2t_envs.frozen_lake import Configuration, generate
from t2t_envs.frozen_lake.jsonl import write_instances

PYTHON = os.environ.get("T2T_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not PYTHON, reason="T2T_VLLM_PYTHON names no Python with vLLM and the suite (docs/training.md)"),
]
ROOT = Path(__file__).resolve().parents[2]
ROOMS = os.pathsep.join(str(ROOT / room) for room in ("", "envs", "plugins", "baselines", "leaderboard"))
CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1"}
ENVIRONMENT = {**os.environ, "PYTHONPATH": ROOMS, **CPU}


@pytest.fixture(scope="module")
def instances(tmp_path_factory):
    """64 instances with 2 to 5 agents."""
    path = tmp_path_factory.mktemp("instances") / "own.jsonl"
    drawn = [list(generate(Configuration.uniform(0.2, 0.3), 16, agents, seed=3)) for agents in (2, 3, 4, 5)]
    write_instances(path, [instance for some in drawn for instance in some])
    return path


def bench(python, policy, instances, out, *options):
    """The answers of `t2t bench` with that policy, by instance."""
    command = [python, "-c", "from t2t_core.cli import main; main()", "bench", "--policy", policy, "--instances", instances]
    command += ["--prompt-format", "compact", "--max-tokens", "160", "--no-reported", "--out", out, *options]
    done = subprocess.run([str(c) for c in command], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    (row,) = (out / "rows").iterdir()
    lines = [json.loads(line) for line in (row / "answers.jsonl").read_text().splitlines()]
    return {line["instance"]: line for line in lines}


@pytest.fixture(scope="module")
def expected(instances, tmp_path_factory):
    pytest.importorskip("transformers")
    return bench(sys.executable, f"hf:{shipped()},threads=1", instances, tmp_path_factory.mktemp("hf") / "out")


def equal_share(expected, answers, note):
    assert expected.keys() == answers.keys() and all(answer["error"] is None for answer in answers.values())
    same = sum(expected[id]["text"] == answers[id]["text"] for id in expected)
    tokens = sum(expected[id]["completion_tokens"] == answers[id]["completion_tokens"] for id in expected)
    note("summary", f"vLLM and transformers: {same} of {len(expected)} greedy answers word for word, {tokens} as long")
    assert all(answer["prompt_tokens"] == expected[id]["prompt_tokens"] for id, answer in answers.items())
    return same / len(expected)


def test_the_offline_engine_gives_the_answers_of_transformers(expected, instances, tmp_path, record_property):
    policy = f"vllm:{shipped()},dtype=float32,enforce_eager=true"
    answers = bench(PYTHON, policy, instances, tmp_path / "out")
    assert equal_share(expected, answers, record_property) >= 0.95
    assert sum(answer["verdict"]["valid"] for answer in answers.values()) > len(answers) / 4


@contextmanager
def served(model, log):
    """`vllm serve` on the loopback; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(Path(PYTHON).with_name("vllm"))
    command = [program, "serve", str(model), "--dtype", "float32", "--enforce-eager", "--port", str(port)]
    with open(log, "w") as file, subprocess.Popen(command, stdout=file, stderr=file, env=ENVIRONMENT) as process:
        try:
            for _ in range(3000):
                assert process.poll() is None, log.read_text()[-4000:]
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()
                    break
                except OSError:
                    time.sleep(1)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def test_vllm_serve_is_an_endpoint_like_any_other(expected, instances, tmp_path, record_property):
    with served(shipped(), tmp_path / "log") as address:
        options = ("--base-url", address, "--concurrency", "8")
        answers = bench(sys.executable, f"endpoint:{shipped()}", instances, tmp_path / "out", *options)
        assert equal_share(expected, answers, record_property) >= 0.95
        failing = f"endpoint:no-such-model,base_url={address},attempts=1"
        with pytest.raises(AssertionError, match="404"):
            bench(sys.executable, failing, instances, tmp_path / "none")
