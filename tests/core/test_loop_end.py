"""What `t2t run` and `t2t sweep` report during the work and at the end, and the mistakes that they find before they start."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import lake
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.loop.sweep import Grid, sweep
from t2t_core.loop.whole_run import run_experiment
from t2t_core.plugins import installed
from t2t_core.records import Response, TrainingResult
from t2t_core.report import html
from t2t_core.report.run_page import page_document
from t2t_core.run import progress as loop_progress
from t2t_core.run.experiment import Experiment
from t2t_core.run.progress import Reporter

pytestmark = pytest.mark.usefixtures("lake_plugins")
FIGURES = ("reward", "entropy", "zero_variance", "kl", "response_tokens", "responses_per_second")
EXPERIMENT = Experiment.from_dict(
    {
        "testbed": "lake",
        "policy": "repeater",
        "trainer": "telling",
        "designer": "random",
        "rounds": 2,
        "generation": {"samples": 10},
        "validation": {"set": "validation"},
    }
)


class Telling:
    """A trainer that tells ten updates, every figure rising by one each time; the third is told twice, as after a kill."""

    def ready(self, order: TrainingOrder) -> None:
        if "missing" in sys.modules:
            raise T2TError("this trainer needs an extra")

    def train(self, job: TrainingJob) -> TrainingResult:
        assert job.progress
        for update in (1, 2, 3, *range(3, 11)):
            figures = {name: float(update + job.round_index) for name in FIGURES}
            job.progress({"update": update, "updates": 10, "eta_seconds": 1.0, **figures, "epoch": None})
        return TrainingResult(job.checkpoint, {"reward": 0.75, "kl": 0.01}, 80, 10, 1000)


@pytest.fixture(autouse=True)
def telling() -> Iterator[None]:
    installed().trainers.add("telling", lambda argument, settings: Telling())
    yield
    del installed().trainers.entries["telling"]


def test_the_end_has_every_figure_of_training_at_both_ends_of_each_round(tmp_path: Path) -> None:
    summary = run_experiment(EXPERIMENT, tmp_path, Reporter(), with_control=True)
    first, second = summary.training["designed"]
    assert (first.round, first.updates, set(first.figures)) == (0, 10, set(FIGURES))
    assert first.figures["kl"] == [1.5, 9.5] and second.figures["kl"] == [2.5, 10.5]
    text = (tmp_path / "summary.md").read_text()
    for name in FIGURES:
        line = next(line for line in text.splitlines() if line.startswith(f"| {name.replace('_', ' ')} "))
        assert line.split("|")[2].strip() == "1.5 → 9.5" and line.split("|")[4].strip() == "2.5 → 10.5"
    assert re.search(r"designed round 1 +\| +control round 1", text) and "control round 0" not in text
    assert "2.5 → 10.5" in html.render(page_document(tmp_path))


def test_progress_has_rate_and_time_to_go_and_a_stage_ends_with_its_figures(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(loop_progress, "EVERY", -1.0)
    lines: list[str] = []
    run_experiment(replace(EXPERIMENT, rounds=1), tmp_path, Reporter(lines.append))
    told = next(line for line in lines if "update 4/10" in line)
    assert "s to go" in told and all(name in told for name in FIGURES)
    assert any("answers," in line and "/s" in line for line in lines)
    ended = next(line for line in lines if line.startswith("  train "))
    assert "samples 80" in ended and "reward 0.75" in ended and "kl 0.01" in ended


def test_what_a_trainer_lacks_is_said_before_a_run_is_begun_and_only_where_there_is_something_to_train(
    tmp_path: Path, monkeypatch: Any
) -> None:
    run_experiment(EXPERIMENT, tmp_path / "done", Reporter())
    monkeypatch.setitem(sys.modules, "missing", None)
    run_experiment(EXPERIMENT, tmp_path / "done", Reporter())
    with pytest.raises(T2TError, match="needs an extra"):
        run_experiment(EXPERIMENT, tmp_path / "new", Reporter())
    assert not (tmp_path / "new" / "run.json").exists()


@pytest.mark.parametrize("trainer", ["trl-grpo", "trl-sft"])
def test_the_trainers_name_the_extra_they_need(trainer: str, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(T2TError, match="training extra") as caught:
        installed().trainers.make(trainer).ready(TrainingOrder(Path("x"), None, {}, 10))
    assert "torch" in str(caught.value) and "[train]" in str(caught.value)


@pytest.mark.parametrize(
    ("table", "name", "value"),
    [
        ("validation", "temperature", -1.0),
        ("validation", "max_tokens", 0),
        ("validation", "limit", -1),
        ("validation", "temperature", float("nan")),
        ("", "design_seconds", 0.0),
        ("", "design_seconds", float("inf")),
    ],
)
def test_a_value_that_no_run_could_use_is_refused(table: str, name: str, value: Any) -> None:
    data = EXPERIMENT.to_dict()
    (data[table] if table else data)[name] = value
    with pytest.raises(T2TError, match=name):
        Experiment.from_dict(data)


def test_the_folder_has_every_value_the_run_goes_by_defaults_and_constants_included(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(Telling, "defaults", {"epochs": 2, "group": 8}, raising=False)
    monkeypatch.setattr(Telling, "constants", {"schedule": "constant"}, raising=False)
    experiment = replace(EXPERIMENT, rounds=1, training={"epochs": 5}, designer="checkpoint:attempts=2", context="H:last=4")
    run_experiment(experiment, tmp_path, Reporter())
    resolved = json.loads((tmp_path / "resolved.json").read_text())
    assert resolved["training"] == {"epochs": 5, "group": 8} and resolved["constants"] == {"schedule": "constant"}
    assert resolved["design"]["attempts"] == 2 and resolved["design"]["temperature"] == 0 and resolved["context H"] == {"last": 4}
    assert resolved["generation"] == {"samples": 10}


# --- sweeps


def t2t(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments])


@pytest.mark.parametrize(("designers", "contexts"), [(["rule", "ruel"], ["F"]), (["rule"], ["F", "V9"]), (["llm"], ["F"])])
def test_a_misspelt_arm_is_found_before_a_sweep_is_begun(designers: list[str], contexts: list[str], tmp_path: Path) -> None:
    with pytest.raises(T2TError, match="called|needs a policy"):
        sweep(EXPERIMENT, Grid(designers, contexts, [0]), tmp_path, Reporter())
    assert not (tmp_path / "run.json").exists() and not (tmp_path / "seed_0").exists()


def test_a_sweeps_seed_is_the_configurations_unless_it_names_more(tmp_path: Path) -> None:
    path = tmp_path / "lake.toml"
    path.write_text('testbed="lake"\npolicy="repeater"\nrounds=1\n[generation]\nsamples=4\n[validation]\nset="validation"\n')
    for words, folders in (
        (["--seed", 3], {"seed_3"}),
        (["--set", "seed=4"], {"seed_4"}),
        (["--seeds", "1 5"], {"seed_1", "seed_5"}),
    ):
        out = tmp_path / "-".join(map(str, words)).replace(" ", "")
        result = t2t("sweep", "--config", path, *words, "--out", out)
        assert result.exit_code == 0, result.output
        assert {p.name for p in out.glob("seed_*")} == folders
    twice = t2t("sweep", "--config", path, "--seed", 3, "--seeds", "1 5", "--out", tmp_path / "x")
    assert isinstance(twice.exception, T2TError) and "exclude each other" in str(twice.exception)


def test_unequal_budgets_are_found_seed_by_seed(tmp_path: Path, monkeypatch: Any) -> None:
    """The sums over seeds are equal here."""
    given = iter([80, 90, 90, 80])

    def train(self: Any, job: TrainingJob) -> TrainingResult:
        return TrainingResult(job.checkpoint, {}, next(given) if job.round_index else 10, 1, 1)

    monkeypatch.setattr(Telling, "train", train)
    result = sweep(EXPERIMENT, Grid(["fixed", "random"], ["F"], [0, 1]), tmp_path, Reporter())
    assert [line.split(" differ")[0] for line in result.unequal] == ["seed 0, samples", "seed 1, samples"]
    assert "UNEQUAL" in (tmp_path / "sweep.md").read_text()


@pytest.mark.parametrize("varied", ["designers", "contexts"])
def test_what_a_publication_printed_of_an_arm_stands_under_ours(tmp_path: Path, monkeypatch: Any, varied: str) -> None:
    def reported_arms(self: lake.Lake, set_name: str) -> list[dict[str, Any]]:
        printed: dict[str, Any] = {"source": "a paper", "total": {"valid": 12.5}}
        return [{"designer": "rule", "arm": "rules of thumb", **printed}, {"context": "F,G", "arm": "guided", **printed}]

    monkeypatch.setattr(lake.Lake, "reported_arms", reported_arms)
    grid = Grid(["fixed", "rule"], ["F"], [0]) if varied == "designers" else Grid(["rule"], ["F", "V2"], [0])
    result = sweep(replace(EXPERIMENT, evaluation={"limit": 3}), grid, tmp_path, Reporter())
    ours, words = ("rule F", "rules of thumb") if varied == "designers" else ("rule V2", "guided")
    assert [(quote.arm, quote.words, quote.figures) for quote in result.quoted] == [(ours, words, {"2agents valid": 12.5})]
    rows = [line.split("|")[1].strip() for line in (tmp_path / "sweep.md").read_text().splitlines() if line.startswith("| ")]
    assert rows[rows.index(ours) + 1].startswith(f"printed: {words}")
    assert "a paper" in (tmp_path / "sweep.md").read_text() and "12.5" in (tmp_path / "sweep.md").read_text()


# --- the board of designers


def test_show_context_prints_byte_for_byte_what_the_designer_saw(tmp_path: Path) -> None:
    path = tmp_path / "lake.toml"
    path.write_text(
        'testbed="lake"\npolicy="repeater"\ndesigner="rule"\ncontext="V6"\n'
        '[generation]\nsamples=4\n[validation]\nset="validation"\n'
    )
    assert t2t("run", "--config", path, "--out", tmp_path / "run").exit_code == 0
    for index in (0, 1):
        asked = t2t("design", "--run", tmp_path / "run", "--round", index, "--show-context")
        assert asked.stdout_bytes == (tmp_path / "run" / f"round_{index}" / "context.md").read_bytes()
        assert f" rule, round {index} " in asked.stderr


def test_the_board_says_why_a_designer_has_no_proposal(tmp_path: Path) -> None:
    run_experiment(EXPERIMENT, tmp_path / "run", Reporter())
    board = t2t("design", "--run", tmp_path / "run", "--designer", "checkpoint", "--round", 0)
    assert board.exit_code == 0 and "failed" in board.output
    (reason,) = (line.strip() for line in board.output.splitlines() if "failed 3 times" in line)
    assert reason.startswith("checkpoint ") and "after round 0" in reason


# --- the dry run


def test_a_dry_run_prints_what_no_setting_changes_too() -> None:
    output = t2t("run", "--preset", "paper", "--dry-run").output
    rows = {words[0]: words[1:] for line in output.splitlines() if len(words := re.split(r" {2,}", line.strip())) == 3}
    assert rows["constants.kl_estimator"] == ["k3", "low-variance (k3)"]
    assert rows["constants.weight_accuracy"] == ["0.5 to 0.8", "0.5 to 0.8"]
    assert rows["training.trl.max_grad_norm"] == ["1.0", "not given in the paper"]
    assert rows["training.trl.optim"] == ["adamw_torch", "AdamW"]
    assert rows["training.optimizer"] == ["reset", "not given in the paper"]
    assert rows["design.temperature"] == ["0.6", "not given in the paper"] and rows["design.attempts"][0] == "3"
    assert rows["context H.last"] == ["3", "not given in the paper"] and rows["context F.examples"][0] == "2"
    assert rows["constants.accuracy_without_optimum"] == ["0.5", "0.5"]
    assert json.loads(rows["training.beta"][0]) == 0.001


# --- what a design by a language model leaves in the folder


class Talker:
    """A policy that answers lakes like the repeater and design prompts with these texts in turn; None is a failed call."""

    def __init__(self, texts: list[str | None]) -> None:
        self.texts, self.prompts = texts, list[str]()

    def describe(self) -> dict[str, Any]:
        return {"deterministic": True, "batch_size": 1}

    def respond(self, tasks: Any, sampling: Any) -> Any:
        self.prompts += [task.prompt for task in tasks]
        text = self.texts.pop(0)
        yield 0, Response(text or "", 100, 20, cost_usd=0.5, error=None if text is not None else "503")


def test_prompt_reply_proposal_corrections_and_cost_are_in_the_folder(tmp_path: Path) -> None:
    reply = 'Thus\n```json\n{"3": {"data_ratio": 1, "hole_ratio": 0.9,}, // all\n "4": {"data_ratio": 0}}\n```'
    talker = Talker([None, reply, None, None, None])
    installed().policies.add("talker", lambda argument, settings: talker)
    lines: list[str] = []
    try:
        summary = run_experiment(replace(EXPERIMENT, rounds=3, designer="llm:talker"), tmp_path, Reporter(lines.append))
    finally:
        del installed().policies.entries["talker"]
    first, second = tmp_path / "round_0", tmp_path / "round_1"
    assert (first / "context.md").read_text() == talker.prompts[0] == talker.prompts[1]
    record = json.loads((first / "proposal.json").read_text())
    assert (record["raw"], record["outcome"], record["designer"]) == (reply, "proposed", "llm:talker")
    assert record["parsed"] == {"3": {"data_ratio": 1, "hole_ratio": 0.9}, "4": {"data_ratio": 0}}
    assert record["notes"] == ["a trailing comma was dropped", "a comment was dropped"]
    assert record["cost"] == {"calls": 2, "prompt_tokens": 200, "completion_tokens": 40, "usd": 1.0}
    assert [call["error"] for call in record["calls"]] == ["503", None]
    changes = json.loads((first / "projection.json").read_text())["changes"]
    assert any(c["knob"] == "3.hole_ratio" and c["proposed"] == "0.9" and c["used"] == 0.5 for c in changes)
    assert any("corrected 3.hole_ratio" in line for line in lines) and "    asking llm:talker" in lines
    assert "of 2 designs 1 failed" in (tmp_path / "summary.md").read_text()

    assert (second / "context.md").read_text() == talker.prompts[-1]
    kept = [json.loads((tmp_path / f"round_{i}" / "configuration.json").read_text()) for i in (1, 2)]
    assert kept[0] == kept[1]
    assert "designer failed" in json.loads((second / "projection.json").read_text())["note"]
    assert any("designer failed" in line and "failed 3 times; the last time: 503" in line for line in lines)
    assert [d.outcome for d in summary.designs] == ["proposed", "failed"]
    assert (summary.budgets["designed"].design_calls, summary.budgets["designed"].design_usd) == (5, 2.5)


def test_a_second_call_for_the_json_alone_is_counted(tmp_path: Path) -> None:
    talker = Talker(["nothing to read", '{"3": {"data_ratio": 1}, "4": {"data_ratio": 0}}'])
    installed().policies.add("talker", lambda argument, settings: talker)
    try:
        run_experiment(replace(EXPERIMENT, rounds=2, designer="llm:talker"), tmp_path, Reporter(lambda line: None))
    finally:
        del installed().policies.entries["talker"]
    assert "of 1 designs 1 could not be read at first: asked once more" in (tmp_path / "summary.md").read_text()
    assert json.loads((tmp_path / "round_0" / "proposal.json").read_text())["cost"]["calls"] == 2


class Silent(Talker):
    """A small policy that never answers."""

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "brief": "compact"}

    def respond(self, tasks: Any, sampling: Any) -> Any:
        self.prompts += [task.prompt for task in tasks]
        time.sleep(60)
        yield from ()


@pytest.mark.thorough
def test_the_prompt_is_on_record_even_where_no_answer_ever_comes(tmp_path: Path) -> None:
    silent = Silent([])
    installed().policies.add("silent", lambda argument, settings: silent)
    try:
        run_experiment(replace(EXPERIMENT, designer="llm:silent", design_seconds=2.0), tmp_path, Reporter())
    finally:
        del installed().policies.entries["silent"]
    files = tmp_path / "round_0"
    assert json.loads((files / "proposal.json").read_text())["outcome"] == "timed out"
    assert silent.prompts[0].startswith("design\nconfig") and (files / "context.md").read_text() == silent.prompts[0]


# --- the ablations of the page on the loop, word for word

PAGE = (Path(__file__).parents[2] / "docs" / "loop.md").read_text()
ABLATIONS = re.findall(r"^(\S[^\n]*?) {2,}(t2t sweep [^\n]*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("name", "command"), ABLATIONS, ids=[name for name, _ in ABLATIONS])
def test_each_ablation_is_one_command_at_equal_budgets(name: str, command: str, tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "lake.toml"
    path.write_text(
        'testbed="lake"\npolicy="repeater"\ntrainer="telling"\nrounds=2\n[generation]\nsamples=4\n'
        '[validation]\nset="validation"\nlimit=1\n[evaluation]\nlimit=1\n'
    )
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    words = shlex.split(command)[1:]
    words[words.index("--seeds") + 1] = "0"
    words[words.index("--out") + 1] = str(tmp_path / "out")
    result = t2t(*words, "--config", path)
    assert result.exit_code == 0, result.output
    swept = json.loads((tmp_path / "out" / "sweep.json").read_text())
    arms = {arm["arm"]: arm["budget"] for arm in swept["arms"] if arm["arm"] != "base"}
    varied = words[words.index("--designers" if "--designers" in words else "--contexts") + 1].split()
    assert len(arms) == len(varied) and swept["unequal"] == []
    assert {(b["samples"], b["updates"], b["instances"]) for b in arms.values()} == {(160, 20, 8)}
    assert len(ABLATIONS) == 4
