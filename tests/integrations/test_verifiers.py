"""verifiers and the packages for the Environments Hub, for real: every task can be solved, the figures are ours, and the stream
of training lakes follows its configuration.

    bash .ci/integrations verifiers
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.plugins import installed
from t2t_core.reward import reward
from t2t_envs.frozen_lake import format_answer, solve

pytest.importorskip("verifiers.v1")
sys.path.insert(0, str(Path(__file__).parents[1] / "plugins"))
from fake_server import FakeServer  # noqa: E402

BED = installed().testbeds.make("mapf-frozenlake")
NULL = ["--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess", "--no-push", "--no-rich"]


def run(*words: Any, cwd: Path, **more: str) -> str:
    """A command of verifiers, from the environment that the tests run in."""
    command = [str(Path(sys.executable).parent / words[0]), *map(str, words[1:])]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **more}, cwd=cwd, timeout=600)
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


@pytest.mark.parametrize("package", ["t2t-mapf-frozenlake", "t2t-tictactoe"])
def test_every_task_is_solved_by_our_solver(package: str, tmp_path: Path) -> None:
    out = run("vf-validate", package, "-n", 10, "--runtime.type", "subprocess", cwd=tmp_path)
    assert json.loads(out[out.index("{") :])["valid_rate"] == 1.0


def evaluated(package: str, answer: Any, *words: Any, out: Path) -> tuple[Path, int]:
    """The traces of six rollouts, and how often the model was asked for them; a rerun asks nothing twice."""
    with FakeServer(answer) as server:
        client = ["--client.base-url", server.url, "--client.api-key-var", "SOME_KEY"]
        run("vf-eval", package, "-n", 6, "-r", 1, "-m", "fake", *client, *words, *NULL, "-o", out, SOME_KEY="x", cwd=out.parent)
        asked = len(server.requests)
        (resolved,) = out.glob("*/configs/resolved/eval.json")
        run("vf-eval", "@", resolved, "--resume", SOME_KEY="x", cwd=out.parent)
        assert asked == len(server.requests)
    (traces,) = out.glob("*/traces.jsonl")
    return traces, asked


def same_as_ours(traces: Path, bed: Any, out: Path, *words: Any) -> None:
    """Every figure of every rollout is the one that `t2t bench` gives the same answer."""
    command = ["bench", *map(str, words), "--limit", "6", "--policy", f"answers:{traces}", "--out", str(out)]
    assert CliRunner().invoke(cli, command, catch_exceptions=False).exit_code == 0
    ours = [json.loads(line) for path in out.glob("rows/*/answers.jsonl") for line in path.read_text().splitlines()]
    judged = {line["instance"]: line["verdict"] for line in ours if line["error"] is None}
    theirs = [json.loads(line)["traces"][0] for line in traces.read_text().splitlines()]
    assert len(judged) == 6 == len(theirs)
    instances = {i.id: i for name in bed.protected_sets() for i in bed.load_set(name).instances}
    for trace in theirs:
        name = trace["task"]["data"]["id"]
        verdict, metrics = judged[name], trace["metrics"]
        assert metrics["valid"] == float(verdict["valid"]) and metrics["optimal"] == float(verdict["optimal"] is True)
        assert all(metrics[check] == float(held) for check, held in verdict["checks"].items())
        figures = verdict.get("figures") or {}
        assert all(metrics[figure] == value for figure, value in figures.items())
        rebuilt = replace(bed.verify(instances[name], () if bed.turns > 1 else ""), **known(verdict))
        paid = sum(term["score"] * term["weight"] for term in trace["rewards"].values())
        assert paid == pytest.approx(reward(bed, instances[name], rebuilt))
    assert len({trace["metrics"]["valid"] for trace in theirs}) == 2, "good and bad answers, else the test shows little"


def known(verdict: dict[str, Any]) -> dict[str, Any]:
    names = ("checks", "valid", "optimal", "cost", "gap", "figures")
    return {name: verdict[name] for name in names if name in verdict}


def test_the_hundred_answers_score_as_t2t_verify_scores_them() -> None:
    """Scored by verifiers itself; a harness for each would take minutes and adds nothing to a verdict."""
    import hundred
    import verifiers.v1 as vf
    from t2t_mapf_frozenlake.taskset import Config, MAPFFrozenLakeTaskset
    from verifiers.v1.graph import MessageNode

    tasks = {task.data.id: task for task in MAPFFrozenLakeTaskset(Config(agents="3"))}
    for answer in hundred.answers():
        node = MessageNode(message=vf.AssistantMessage(content=answer["text"]), sampled=True)
        trace = vf.Trace.model_construct(nodes=[node], metrics={}, rewards={})
        asyncio.run(tasks[answer["id"]].score(trace))
        assert trace.reward == pytest.approx(answer["reward"]), answer["id"]
        assert all(trace.metrics[name] == float(answer[name]) for name in ("valid", "optimal"))
        assert all(trace.metrics[name] == float(held) for name, held in answer["checks"].items())


def test_lakes_score_as_on_our_board(tmp_path: Path) -> None:
    lakes = {BED.prompt(i, "board"): (n, i) for n, i in enumerate(BED.load_set("3agents").instances[:6])}

    def answer(prompt: str, nth: int) -> tuple[int, dict[str, str], bytes]:
        number, lake = lakes[prompt]
        return streamed(format_answer(solve(lake).paths) if number % 3 else "I give up.")

    traces, asked = evaluated("t2t-mapf-frozenlake", answer, "--env.taskset.agents", 3, out=tmp_path / "out")
    assert asked == 6
    same_as_ours(traces, BED, tmp_path / "b", "--agents", 3)


def test_games_are_played_in_turns_and_score_as_on_our_board(tmp_path: Path) -> None:
    """A model that takes the first free cell, and names a taken one first where its opponent has the corner."""

    def answer(prompt: str, nth: int) -> tuple[int, dict[str, str], bytes]:
        rows = re.findall(r"^[0-8XO] [0-8XO] [0-8XO]$", prompt, re.MULTILINE)[-3:]
        free = re.findall("[0-8]", "".join(rows))
        return streamed(f"<think>first</think>\n<move>{0 if rows[0][0] == 'O' and len(free) > 6 else free[0]}</move>")

    bed = installed().testbeds.make("tictactoe")
    traces, asked = evaluated("t2t-tictactoe", answer, "--env.taskset.opponents", "random", out=tmp_path / "out")
    assert asked > 12
    same_as_ours(traces, bed, tmp_path / "b", "--testbed", "tictactoe", "--opponents", "random")


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


def test_verifiers_takes_the_source_that_the_page_gives_prime_rl() -> None:
    import tomllib

    from verifiers.v1.configs.taskset import TasksetConfig
    from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

    page = (Path(__file__).parents[2] / "docs" / "skyrl.md").read_text()
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (source,) = tomllib.loads(text)["source"]
    assert source["env"]["agent"] == {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}
    config = taskset_config_type(source["env"]["taskset"]["id"]).model_validate({**source["env"]["taskset"], "batch": 4})
    assert isinstance(config, TasksetConfig)
    with pytest.warns(UserWarning, match="the former configuration stays"):  # the file is not there yet
        (task,) = load_taskset(config).take(1)
    assert BED.read_instance(task.data.instance).num_agents == 2


def test_the_page_s_taskset_is_one() -> None:
    page = Path(__file__).parents[2] / "docs" / "verifiers.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    exec(block, names)
    tasks = [*islice(names["MyTaskset"](names["TestbedConfig"]()).load(), 2)]
    assert all("tic-tac-toe" in task.data.prompt for task in tasks) and tasks[0].key != tasks[1].key
