"""The endpoint client against a real server: `transformers serve` with a model of random weights.

It needs what the extra `serving` of transformers brings (fastapi, uvicorn): pip install 'transformers[serving]'.
"""

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from qwen import random_model

from t2t_core.plugins import load
from t2t_core.records import Sampling, Task

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    for package in ("fastapi", "uvicorn", "transformers"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("model")
    random_model(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("transformers")), "serve", str(folder), "--port", str(port)]
    with open(folder / "log", "w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait(f"http://127.0.0.1:{port}/health", process)
            yield folder, f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _wait(url, process):
    for _ in range(240):
        assert process.poll() is None, "the server died"
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            time.sleep(0.5)
    raise AssertionError("the server did not come up")


def ask(server, model=None, sampling=None, **settings):
    folder, url = server
    policy = load().policies.make(f"endpoint:{model or folder}", base_url=url, attempts="2", backoff="0.1", **settings)
    tasks = [Task(f"i{n}", 0, f"Question {n}", None, n) for n in range(4)]
    answers = dict(policy.respond(tasks, sampling or Sampling(temperature=0.7, max_tokens=8)))
    assert sorted(answers) == [0, 1, 2, 3]
    return list(answers.values())


def test_answers_with_token_counts(server):
    for response in ask(server):
        assert response.error is None and response.prompt_tokens > 0 and 0 < response.completion_tokens <= 8
        assert response.finish_reason == ("length" if response.completion_tokens == 8 else "stop")


def test_the_thinking_switch_is_taken(server):
    assert all(r.error is None for r in ask(server, sampling=Sampling(max_tokens=2, thinking=False)))


def test_a_model_it_does_not_have_is_an_error(server):
    assert all("HTTP 4" in r.error or "HTTP 5" in r.error for r in ask(server, "no/such-model"))
