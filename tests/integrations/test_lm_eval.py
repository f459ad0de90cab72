"""lm-evaluation-harness, for real: the exported task group, its figures, and its samples on our board.

    bash .ci/integrations lm-eval
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import hundred
import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.plugins import installed

pytest.importorskip("lm_eval")
sys.path.insert(0, str(Path(__file__).parents[1] / "plugins"))
from fake_server import FakeServer, completion  # noqa: E402


def t2t(*words: Any) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: Any) -> Path:
    """The hundred lakes as one task, and the validation set as another, in a group."""
    folder: Path = tmp_path_factory.mktemp("lm")
    lakes = folder / "hundred.jsonl"
    lakes.write_text("".join(json.dumps(lake.to_dict()) + "\n" for lake in hundred.instances()))
    t2t("export", lakes, "--format", "lm-eval", "--out", folder / "tasks")
    return folder / "tasks"


def answering(answers: dict[str, str]) -> Any:
    """lm-eval's own kind of model, which says what is written down."""
    from lm_eval.api.model import LM

    class Stored(LM):
        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
            return [answers[request.args[0]] for request in requests]

        def loglikelihood(self, requests: Any) -> Any:
            raise NotImplementedError

        def loglikelihood_rolling(self, requests: Any) -> Any:
            raise NotImplementedError

    return Stored()


def test_the_hundred_answers_score_as_t2t_verify_scores_them(tasks: Path) -> None:
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    model = answering(hundred.by_prompt())
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    results = simple_evaluate(model, tasks=["mapf_frozenlake"], task_manager=manager, bootstrap_iters=0)
    samples = results["samples"]["mapf_frozenlake_hundred"]
    theirs = {sample["doc"]["id"]: sample for sample in samples}
    assert len(theirs) == 100
    for answer in hundred.answers():
        sample = theirs[answer["id"]]
        for name in ("valid", "optimal", "reward"):
            assert sample[name] == float(answer[name]), (answer["id"], name)
    for name in ("valid", "optimal", "reward"):
        mean = sum(float(answer[name]) for answer in hundred.answers()) / 100
        assert results["results"]["mapf_frozenlake_hundred"][f"{name},none"] == pytest.approx(mean)
        assert results["results"]["mapf_frozenlake"][f"{name},none"] == pytest.approx(mean)


def test_the_page_s_command_runs_and_its_samples_come_back_onto_the_board(tmp_path: Path, monkeypatch: Any) -> None:
    """The commands of the page as they stand, with two questions a task and a server of the test's own."""
    page = (Path(__file__).parents[2] / "docs" / "lm-eval.md").read_text()
    (block,) = re.findall(r"```bash\n(t2t export.*?)```", page, re.DOTALL)
    export, run, back = block.replace("\\\n", " ").strip().splitlines()
    monkeypatch.chdir(tmp_path)
    t2t(*export.split()[1:])
    answers = hundred.by_prompt()
    first = installed().testbeds.make("mapf-frozenlake").load_set("3agents").instances[0]
    with FakeServer(lambda prompt, nth: completion(answers.get(prompt, "no plan"))) as server:
        words = run.split("#")[0].replace("MODEL", "fake").replace("http://localhost:8000/v1", server.url).split()
        command = [str(Path(sys.executable).parent / words[0]), *words[1:], "--limit", "2"]
        env = {**os.environ, "OPENAI_API_KEY": "x", "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    (samples,) = Path("out").rglob("samples_mapf_frozenlake_3agents_*.jsonl")
    words = back.split("#")[0].split()[1:]
    place = next(n for n, word in enumerate(words) if word.startswith("answers:"))
    t2t(*words[:place], f"answers:{samples}", *words[place + 1 :], "--limit", "1", "--out", "b", "--no-reported")
    (row,) = Path("b/rows").iterdir()
    kept = {line["instance"]: line for line in map(json.loads, (row / "answers.jsonl").read_text().splitlines())}
    said = {answer["id"]: answer for answer in hundred.answers()}
    assert kept[first.id]["error"] is None and kept[first.id]["verdict"]["valid"] == said[first.id]["valid"]


def test_a_game_is_refused(tmp_path: Path) -> None:
    from t2t_core.errors import T2TError

    with pytest.raises(T2TError, match="played in turns"):
        t2t("export", "--testbed", "tictactoe", "--set", "all", "--format", "lm-eval", "--out", tmp_path / "x")
