"""OpenEnv, for real: a server of its own process, and our client over its socket.

    bash .ci/integrations openenv
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hundred
import pytest

from t2t_core.errors import T2TError
from t2t_core.plugins import installed

pytest.importorskip("openenv.core")


@contextmanager
def served(testbed: str) -> Iterator[str]:
    """The address of a server that `python -m t2t.openenv` started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "t2t.openenv", "--testbed", testbed, "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()
                break
            except OSError:
                assert server.poll() is None, server.stdout.read() if server.stdout else ""
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


def test_the_hundred_answers_pay_what_t2t_verify_says() -> None:
    from t2t.openenv import Answer, TestbedClient

    said = {answer["id"]: answer for answer in hundred.answers()}
    names = [lake.id for lake in hundred.BED.load_set(hundred.SET).instances]
    with served("mapf-frozenlake") as url, TestbedClient(base_url=url).sync() as env:
        for name, answer in said.items():
            asked = env.reset(set=hundred.SET, index=names.index(name))
            assert not asked.done and asked.observation.messages[0]["role"] == "user"
            assert env.state().instance == name
            result = env.step(Answer(text=answer["text"]))
            assert result.done and result.reward == pytest.approx(answer["reward"])
            assert result.observation.verdict["valid"] == answer["valid"]
            assert result.observation.verdict["checks"] == answer["checks"]
        kept = {hundred.BED.prompt(hundred.BED.unlabelled(i), "board") for i in hundred.BED.load_set(hundred.SET).instances}
        first, again, other = (env.reset(seed=seed).observation.messages for seed in (70, 70, 71))
        assert first == again != other and first[0]["content"] not in kept


def test_the_page_s_client_plays_a_game() -> None:
    page = (Path(__file__).parents[2] / "docs" / "skyrl.md").read_text()
    (code,) = re.findall(r"```python\n(from t2t.openenv.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    with served("tictactoe") as url:
        exec(code.replace("http://localhost:8000", url), names)
    result = names["result"]
    assert result.done and result.observation.verdict["figures"]["turns"] >= 1


def test_two_sessions_do_not_meet_and_what_is_over_stays_over() -> None:
    from t2t.openenv import Answer, TestbedEnvironment, app

    env, other = TestbedEnvironment("tictactoe"), TestbedEnvironment("tictactoe")
    with pytest.raises(T2TError, match="nothing has begun"):
        env.step(Answer(text="x"))
    assert env.reset(seed=1).messages == other.reset(seed=1).messages
    heard = env.step(Answer(text="<think>a</think><move>4</move>"))
    assert heard.messages and not other._said
    lake = TestbedEnvironment("mapf-frozenlake")
    lake.reset(set="3agents", index=0)
    assert lake.step(Answer(text="no")).done
    with pytest.raises(T2TError, match="is over"):
        lake.step(Answer(text="no"))
    for names in (("no-such-testbed", ""), ("tictactoe", "no-such-format")):
        with pytest.raises(T2TError):
            app(*names)
    assert installed().testbeds.make("tictactoe").turns > 1
