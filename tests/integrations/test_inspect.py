"""Inspect AI, for real: the same sets and the same figures as `t2t bench`, and the log comes back onto our board.

    bash .ci/integrations inspect
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.plugins import installed
from t2t_envs.frozen_lake import format_answer, solve

inspect_ai = pytest.importorskip("inspect_ai")


def model(answer: Any) -> Any:
    """Inspect's own stand-in for a model, which answers by what it is asked."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def respond(messages: Any, *rest: Any) -> Any:
        output = ModelOutput.from_content("mockllm/model", answer([message.text for message in messages]))
        output.usage = ModelUsage(input_tokens=5, output_tokens=3, total_tokens=8)  # else it asks the network for a tokenizer
        return output

    return get_model("mockllm/model", custom_outputs=respond)


def evaluated(task: Any, answer: Any, folder: Path) -> Any:
    (log,) = inspect_ai.eval(task, model=model(answer), log_dir=str(folder), display="none")
    assert log.status == "success", log.error
    return log


def board(folder: Path, *arguments: Any) -> Any:
    words = ["bench", *map(str, arguments), "--no-reported", "--out", str(folder)]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads((folder / "leaderboard.json").read_text())


def figures(log: Any, scorer: str = "valid") -> dict[str, float]:
    (score,) = [candidate for candidate in log.results.scores if candidate.name == scorer]
    # Inspect names a package's metrics after it, but for one that is installed with `pip install -e`.
    return {name.removeprefix("t2t/"): metric.value for name, metric in score.metrics.items()}


def test_a_hundred_answers_score_as_on_our_board_there_and_back(tmp_path: Path) -> None:
    from t2t.inspect_tasks import mapf_frozenlake

    bed = installed().testbeds.make("mapf-frozenlake")
    asked = {bed.prompt(i, "board"): (n, i) for n, i in enumerate(bed.load_set("3agents").instances)}

    def answer(said: list[str]) -> str:
        number, instance = asked[said[-1]]
        return format_answer(solve(instance).paths) if number % 3 else "I give up."

    task = mapf_frozenlake(agents=[3], limit_per_column=13)
    log = evaluated(task, answer, tmp_path / "logs")
    assert log.eval.metadata["sets"] == {"3agents": bed.load_set("3agents").sha256} and log.results.total_samples == 104
    back = board(tmp_path / "bench", "--agents", 3, "--limit", 13, "--policy", f"answers:{log.location}")
    row = back["tables"][0]["rows"][0]
    assert row["answers"]["errors"] == 0
    for name in ("valid", "optimal"):
        ours, theirs = row["total"][name]["value"], figures(log, name)
        assert theirs["mean"] == pytest.approx(ours / 100, abs=1e-6) and 0.5 < theirs["mean"] < 0.8
        for column, cell in row["cells"].items():
            assert theirs[f"column_3 agents, {column}"] == pytest.approx(cell[name]["value"] / 100, abs=1e-6)


def test_the_hundred_answers_score_as_t2t_verify_scores_them(tmp_path: Path) -> None:
    import hundred
    from t2t.inspect_tasks import mapf_frozenlake

    asked = hundred.by_prompt()
    task = mapf_frozenlake(agents=[3])
    task.dataset = task.dataset.filter(lambda sample: sample.id in {answer["id"] for answer in hundred.answers()})
    log = evaluated(task, lambda said: asked[said[-1]], tmp_path / "logs")
    theirs = {sample.id: sample.scores["verdict"].value for sample in inspect_ai.log.read_eval_log(log.location).samples}
    assert len(theirs) == 100
    for answer in hundred.answers():
        value = theirs[answer["id"]]
        assert all(value[name] == float(answer[name]) for name in ("valid", "optimal", "reward")), answer["id"]
        assert all(value[f"check_{name}"] == float(held) for name, held in answer["checks"].items())


def test_a_game_is_played_in_turns_and_scored_as_on_our_board(tmp_path: Path) -> None:
    from t2t.inspect_tasks import tictactoe

    def answer(said: list[str]) -> str:
        return f"<think>the next one</think><move>{sum(text.startswith('<think>') for text in said) * 2 % 9}</move>"

    log = evaluated(tictactoe(limit_per_column=3), answer, tmp_path / "logs")
    back = board(tmp_path / "bench", "--testbed", "tictactoe", "--limit", 3, "--policy", f"answers:{log.location}")
    bed = installed().testbeds.make("tictactoe")
    for table in back["tables"]:
        (row,) = table["rows"]
        assert row["answers"]["errors"] == 0
        for metric in (m for m in bed.metrics if m.kind == "rate"):
            theirs = figures(log, metric.name)[f"table_{table['title']}"]
            assert theirs == pytest.approx(row["total"][metric.name]["value"] / 100, abs=1e-6)


def test_the_command_finds_the_task_by_its_name(tmp_path: Path) -> None:
    """Inspect names a task after its package if the package is installed, but not if it runs from a checkout."""
    import t2t

    name = "t2t/mapf_frozenlake"
    if "site-packages" not in str(t2t.__file__):
        name = f"{Path(str(t2t.__file__)).parent}/inspect_tasks.py@mapf_frozenlake"
    words = [name, "-T", "agents=3,4", "-T", "limit_per_column=1", "--model", "mockllm/model", "--display", "plain"]
    command = [sys.executable, "-m", "inspect_ai", "eval", *words, "--log-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    (log,) = inspect_ai.log.list_eval_logs(str(tmp_path))
    asked = inspect_ai.log.read_eval_log(log, header_only=True).eval.dataset.sample_ids
    assert done.returncode == 0 and {name[:7] for name in asked} == {"3agents", "4agents"}, done.stdout


def test_what_is_not_there_is_said_in_a_sentence() -> None:
    from t2t.inspect_tasks import testbed

    from t2t_core.errors import T2TError

    for options, words in (({"agent": 3}, "no option 'agent'"), ({"prompt_format": "compact2"}, "no prompt format")):
        with pytest.raises(T2TError, match=words):
            testbed("mapf-frozenlake", **options)
