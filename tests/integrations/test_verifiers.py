"""verifiers and the package for the Environments Hub, for real: every task can be solved, the figures are ours, and the stream of
training lakes follows its configuration.

    bash .ci/integrations verifiers
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.plugins import installed
from t2t_envs.frozen_lake import format_answer, solve

pytest.importorskip("verifiers.v1")
sys.path.insert(0, str(Path(__file__).parents[1] / "plugins"))
from fake_server import FakeServer  # noqa: E402

BED = installed().testbeds.make("mapf-frozenlake")
NULL = ["--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess", "--no-push", "--no-rich"]


def run(*words: Any, **more: str) -> str:
    """A command of verifiers, from the environment that the tests run in."""
    command = [str(Path(sys.executable).parent / words[0]), *map(str, words[1:])]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **more}, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def streamed(text: str) -> tuple[int, dict[str, str], bytes]:
    """An answer as a stream of events, which is what the harnesses of verifiers ask for."""
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    facts = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "fake"}
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    events = [{**facts, "choices": [choice]}, {**facts, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    events += [{**facts, "choices": [], "usage": usage}]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    return 200, {"Content-Type": "text/event-stream"}, body.encode()


def test_every_task_is_solved_by_our_solver() -> None:
    out = run("vf-validate", "t2t-mapf-frozenlake", "-n", 20, "--runtime.type", "subprocess")
    assert json.loads(out[out.index("{") :])["valid_rate"] == 1.0


def test_the_figures_are_those_of_t2t_and_a_rerun_asks_nothing_twice(tmp_path: Path) -> None:
    lakes = {BED.prompt(i, "board"): (n, i) for n, i in enumerate(BED.load_set("3agents").instances[:6])}

    def answer(prompt: str, nth: int) -> tuple[int, dict[str, str], bytes]:
        number, lake = lakes[prompt]
        return streamed(format_answer(solve(lake).paths) if number % 3 else "I give up.")

    with FakeServer(answer) as server:
        client = ["--client.base-url", server.url, "--client.api-key-var", "SOME_KEY"]
        words = ["vf-eval", "t2t-mapf-frozenlake", "-n", 6, "-r", 1, "-m", "fake", *client, "--env.taskset.agents", 3, *NULL]
        run(*words, "-o", tmp_path / "out", SOME_KEY="x")
        asked = len(server.requests)
        (resolved,) = (tmp_path / "out").glob("*/configs/resolved/eval.json")
        run("vf-eval", "@", resolved, "--resume", SOME_KEY="x")
        assert asked == 6 == len(server.requests)
    (traces,) = (tmp_path / "out").glob("*/traces.jsonl")
    theirs = [json.loads(line)["traces"][0] for line in traces.read_text().splitlines()]
    words = ["bench", "--agents", "3", "--limit", "6", "--policy", f"answers:{traces}", "--out", str(tmp_path / "b")]
    assert CliRunner().invoke(cli, words, catch_exceptions=False).exit_code == 0
    (row,) = (tmp_path / "b" / "rows").iterdir()
    ours = [json.loads(line) for line in (row / "answers.jsonl").read_text().splitlines()]
    judged = {line["instance"]: line["verdict"] for line in ours if line["error"] is None}
    assert len(judged) == 6 == len(theirs)
    for trace in theirs:
        verdict, metrics = judged[trace["task"]["data"]["id"]], trace["metrics"]
        assert metrics["valid"] == float(verdict["valid"]) and metrics["optimal"] == float(verdict["optimal"] is True)
        assert all(metrics[name] == float(held) for name, held in verdict["checks"].items())
        assert trace["rewards"]["accuracy"]["score"] == float(verdict["valid"])


def test_the_stream_follows_its_configuration_and_meets_nothing_protected(tmp_path: Path) -> None:
    from t2t_mapf_frozenlake.taskset import Config, MAPFFrozenLakeTaskset

    path = tmp_path / "configuration.json"

    def only(size: str) -> str:
        return json.dumps({g: {"data_ratio": float(g == size), "hole_ratio": 0.2, "wait_ratio": 0.5} for g in BED.groups})

    path.write_text(only("4"))
    stream = MAPFFrozenLakeTaskset(Config(split="train", agents="2", batch=30, configuration=str(path))).load()
    kept = {BED.identity(i) for name in BED.protected_sets() for i in BED.load_set(name).instances}

    def sizes() -> set[int]:
        lakes = [BED.read_instance(task.data.instance) for task in islice(stream, 30)]
        assert not kept & {BED.identity(lake) for lake in lakes}
        return {lake.size for lake in lakes}

    assert sizes() == {4}
    path.write_text(only("7"))
    assert sizes() == {7}
    path.write_text("{")  # somebody is just writing it
    with pytest.warns(UserWarning, match="the former configuration stays"):
        assert sizes() == {7}
