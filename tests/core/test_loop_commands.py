"""`t2t run`, `design`, `analyze`, `sweep` and `report` on the pretend testbed."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.records import Proposal
from t2t_core.registry import Spec
from t2t_core.report import html, markdown
from t2t_core.report.run_document import run_document
from t2t_core.report.run_page import page_document
from t2t_core.run.experiment import Experiment, read_published, resolve
from t2t_core.seeding import Stream

pytestmark = pytest.mark.usefixtures("lake_plugins")
CONFIGURATION = """
testbed = "lake"
policy = "repeater"
trainer = "none"
designer = "rule"
context = "V6"
rounds = 2
[generation]
samples = 10
[training]
epochs = 3
[validation]
set = "validation"
[evaluation]
limit = 2
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "lake.toml"
    path.write_text(CONFIGURATION)
    return path


def t2t(*arguments: Any) -> Result:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_run_prints_the_result_and_the_same_command_resumes(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = t2t("run", "--config", config, "--seed", 3, "--with-control", "--agents", "2,3", "--out", out)
    for text in ("Validation per round", "Configurations", "2agents", "3agents", "designed - control", "What each arm"):
        assert text in first.output, text
    again = t2t("run", "--config", config, "--seed", 3, "--with-control", "--agents=2,3", "--out", out)
    assert "resumed" in again.output and "generate" not in again.output
    settings = json.loads((out / "run.json").read_text())["settings"]
    assert settings["seed"] == 3 and settings["evaluation"] == {"limit": 2, "agents": "2,3"}


def test_every_value_can_be_overridden_and_nonsense_is_refused(config: Path) -> None:
    experiment = resolve("", config, ["training.epochs=5", "designer=random", "rounds=7"], {"rounds": 4, "seed": None}, {})
    assert (experiment.training["epochs"], experiment.designer, experiment.rounds, experiment.seed) == (5, "random", 4, 0)
    for override in (
        "rounds",
        "round=3",
        "rounds=0",
        "rounds=many",
        "validation.sets=a",
        "generation.samples=0",
        "policy=",
        "checkpoint=x",
    ):
        with pytest.raises(T2TError):
            resolve("", config, [override], {}, {})
    with pytest.raises(T2TError, match="no option"):
        CliRunner().invoke(cli, ["run", "--config", str(config), "--agent", "2"], catch_exceptions=False)


@pytest.mark.parametrize("preset", [entry.name for entry in installed().presets if read_published(entry.name)])
def test_a_dry_run_of_every_preset_names_every_value(preset: str) -> None:
    output = t2t("run", "--preset", preset, "--dry-run").output
    assert "not given in the paper" in output and "generation.samples" in output
    rows = dict(re.findall(r"^ (\S+)  .*?  (\S+) *$", output, re.MULTILINE))
    assert rows["training.prompts"] == "128" and rows["training.group"] == "8" and rows["generation.samples"] == "4000"
    assert "no such setting" not in output


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--set", "training.epoch=3"], "no setting 'epoch'"),
        (["--designer", "ruel"], "no designer called 'ruel'"),
        (["--designer", "rule:high=2"], "high cannot be '2'"),
        (["--designer", "llm:openai:x,temperatur=1"], "no setting 'temperatur'"),
        (["--context", "V9"], "no context module called 'V9'"),
        (["--context", "F:examples=-1"], "examples cannot be '-1'"),
        (["--trainer", "trl-sft", "--set", "training.epochs=three"], "epochs must be a whole number"),
        (["--trainer", "trl-sft", "--set", "training.epochs=0"], "epochs must be at least 1"),
        (["--trainer", "trl-sft", "--set", "training.answers_from=nobody"], "no policy called 'nobody'"),
        (["--trainer", "trl-sft", "--set", "training.answers_file=no.jsonl"], "no such file of answers"),
        (["--trainer", "trl-sft", "--set", "training.answers_file=setup.cfg", "--set", "training.temperature=1"], "do nothing"),
        (["--trainer", "trl-sft", "--set", "training.answer_format=haiku"], "no prompt format 'haiku'"),
        (["--trainer", "ppo"], "tiny cannot play what the trainer ppo trains"),
        (["--trainer", "sb3", "--policy", "sb3:{checkpoint}"], "cannot continue from the checkpoint"),
        (["--preset", "ppo", "--policy", "tiny:{checkpoint}"], "tiny cannot play what the trainer ppo trains"),
        (["--preset", "ppo", "--testbed", "tictactoe"], "no such environment of tictactoe"),
        (["--designer", "llm:cbs"], "the policy cbs cannot design"),
        *((["--set", setting], match) for setting, match in {
            "training.epoch=3": "no setting 'epoch'",
            "training.group=1": "group must be at least 2",
            "training.prompts=0": "prompts must be at least 1",
            "training.epochs=0": "epochs must be at least 1",
            "training.temperature=0": "temperature must be above 0",
            "training.temperature=true": "temperature must be",
            "training.learning_rate=0": "learning_rate must be above 0",
            "training.beta2=1": "beta2 must be at least 0 and below 1",
            "training.max_tokens=0": "max_tokens must be at least 1",
            "training.save_every=0": "save_every must be at least 1",
            "training.iterations=0": "iterations must be at least 1",
            "training.iterations=2": "does not go with buckets=4",
            "training.buckets=0": "buckets must be at least 1",
            "training.buckets=5": "into 5 buckets",
            "training.micro_batch=7": "7 at once",
            "training.micro_batch=1000": "1000 at once",
            "training.processes=0": "processes must be at least 1",
            "training.processes=3": "over 3 processes",
            "training.prompts=4096": "2048 instances do not fill an update of 4096 prompts",
            "training.length_end=20": "length penalty",
            "training.engine=fats": "engine must be one of",
            "training.prompt_format=haiku": "no prompt format 'haiku'",
            "training.vllm_server_url=http://127.0.0.1:1": "vllm_server_url does nothing",
            "training.max_updates=-1": "max_updates must be at least 0",
            "checkpoint=./nowhere": "no folder ./nowhere",
            "checkpoint=runs/no/such/run": "no folder runs/no/such/run",
            "seed=-1": "seed: expected `int` >= 0",
            "seed=1.5": "seed: expected `int`",
            f"seed={2**63}": "seed: ",
            "rounds=0": "rounds: expected `int` >= 1",
            "generation.samples=0": "generation.samples: expected `int` >= 1",
            "generation.agents=0": "num_agents must lie in",
            "generation.objective=beauty": "beauty",
            "generation.hole=1": "hole",
            "validation.temperature=-1": "validation.temperature: expected `float` >= 0",
            "validation.max_tokens=0": "validation.max_tokens: expected `int` >= 1",
            "validation.limit=-1": "validation.limit: expected `int` >= 0",
            "validation.set=mine": "mine",
            "validation.prompt_format=haiku": "no prompt format 'haiku'",
            "evaluation.agents=9": "9",
            "evaluation.limit=-1": "limit",
            "evaluation.instances=nowhere.jsonl": "nowhere.jsonl",
            "evaluation.sets=3": "no setting 'sets'",
            "policy=tiny:nowhere/{checkpoint}": "no checkpoint of the toy policy",
            "configuration=nowhere.json": "no such configuration file",
            "configuration.3.hole_ratio=0.2": "is missing",
        }.items()),
    ],
)
def test_a_name_that_no_run_accepts_is_found_by_the_dry_run_and_before_a_folder_is_begun(
    words: list[str], match: str, tmp_path: Path
) -> None:
    for last in (["--dry-run"], ["--out", str(tmp_path / "run")]):
        with pytest.raises(T2TError, match=match):
            CliRunner().invoke(cli, ["run", "--preset", "tiny", *words, *last], catch_exceptions=False)
    assert not (tmp_path / "run" / "run.json").exists()


def test_another_trainer_does_not_get_the_settings_of_the_presets_trainer(tmp_path: Path) -> None:
    assert resolve("tiny", None, [], {"trainer": "trl-grpo"}, {}).training["group"] == 8
    assert resolve("tiny", None, ["training.batch=3"], {"trainer": "trl-sft"}, {}).training == {"batch": 3}
    file = tmp_path / "mine.toml"
    file.write_text('trainer = "trl-sft"\n[training]\nkeep = "optimal"\n')
    assert resolve("tiny", file, [], {}, {}).training == {"keep": "optimal"}
    assert "training.batch" in t2t("run", "--preset", "tiny", "--trainer", "trl-sft", "--dry-run").output


def test_the_paper_preset_has_the_papers_values() -> None:
    experiment = resolve("paper", None, [], {}, {})
    paper = {"group": 8, "prompts": 128, "epochs": 3, "learning_rate": 2e-6, "length_start": 1500, "length_end": 4096}
    assert paper.items() <= dict(experiment.training).items()
    assert (experiment.rounds, experiment.samples, experiment.context) == (3, 4000, "V6")
    assert experiment.designer.partition(":")[0] == "checkpoint"


@pytest.mark.parametrize("preset", ["paper", "paper-lora", "single-gpu", "api-designer"])
def test_the_presets_think_alike_in_training_validation_and_design(preset: str) -> None:
    """They also do not sample greedily, which the model's card warns against."""
    experiment = resolve(preset, None, [], {}, {})
    sampling = experiment.sampling
    assert (sampling.thinking, sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (True, 0.6, 0.95, 20, 0)
    assert experiment.training["thinking"] == "on" and experiment.training["max_tokens"] == sampling.max_tokens
    design = Spec.parse(experiment.designer).settings
    assert int(design["max_tokens"]) > sampling.max_tokens
    if preset != "api-designer":
        assert [design[name] for name in ("thinking", "temperature", "top_p", "top_k")] == ["on", "0.6", "0.95", "20"]


def test_a_fork_takes_its_settings_from_its_source(config: Path, tmp_path: Path) -> None:
    t2t("run", "--config", config, "--out", tmp_path / "a")
    output = t2t("run", "--fork", f"{tmp_path / 'a'}@0", "--designer", "random", "--out", tmp_path / "b").output
    assert "random proposed" in output
    with pytest.raises(T2TError, match="differ"):
        CliRunner().invoke(
            cli, ["run", "--fork", f"{tmp_path / 'a'}@0", "--seed", "9", "--out", str(tmp_path / "c")], catch_exceptions=False
        )


def test_design_is_a_board_of_designers_and_shows_the_context(config: Path, tmp_path: Path) -> None:
    t2t("run", "--config", config, "--out", tmp_path / "run")
    output = t2t(
        "design", "--run", tmp_path / "run", "--designer", "rule", "--designer", "random", "--out", tmp_path / "o"
    ).output
    assert len(re.findall("^ rule, round [01]  ", output, re.MULTILINE)) == 2 and "random, round 1" in output
    assert len(list((tmp_path / "o").glob("*.json"))) == 4
    asked = t2t("design", "--run", tmp_path / "run", "--round", 0, "--show-context")
    assert asked.stderr.startswith("# what ") and "sees after round 0" in asked.stderr
    shown = asked.stdout
    assert (tmp_path / "run" / "round_0" / "context.md").read_text().strip() in shown
    assert not list(tmp_path.glob("run/round_1/proposal.json"))


def test_analyze_prints_every_number_with_its_formula(config: Path, tmp_path: Path) -> None:
    t2t("run", "--config", config, "--out", tmp_path / "run")
    output = t2t("analyze", tmp_path / "run", "--formulas", "--out", tmp_path / "plots").output
    assert "cells rewritten" in output and "Jaccard" in output
    assert "the paper saw" not in output, "nothing was published on this testbed"
    written = {p.name for p in (tmp_path / "plots").iterdir()}
    assert {"analysis.json", "analysis.md", "behaviour_signal_salience.svg", "0_run_valid.svg"} <= written
    assert "Jaccard" in (tmp_path / "plots" / "analysis.md").read_text()
    data = json.loads(t2t("analyze", tmp_path / "run", f"{tmp_path}/./run", "--json").output)
    assert len(data["runs"][0]["steps"]) == 1 and {m["name"] for m in data["measures"]} <= set(data["runs"][0]["mean"])


@pytest.mark.thorough
def test_a_sweep_forks_its_arms_and_goes_on(config: Path, tmp_path: Path) -> None:
    command = ("sweep", "--config", config, "--designers", "fixed random", "--contexts", "V1 V6", "--seeds", "0-1")
    output = t2t(*command, "--out", tmp_path / "s").output
    assert "fixed V1" in output and "random V6" in output and "UNEQUAL" not in output
    before = {p: p.read_bytes() for p in (tmp_path / "s").rglob("*") if p.is_file() and p.name != ".lock"}
    t2t(*command, "--out", tmp_path / "s")
    assert before == {p: p.read_bytes() for p in (tmp_path / "s").rglob("*") if p.is_file() and p.name != ".lock"}
    result = json.loads((tmp_path / "s" / "sweep.json").read_text())
    arms, differences = result["arms"], result["differences"]
    (tmp_path / "s" / "seed_0" / ".DS_Store").touch()  # what a desktop leaves
    t2t("report", tmp_path / "s")
    together = t2t("analyze", tmp_path / "s").output
    assert "fixed, V1: mean, 2 runs" in together and "random, V6: mean, 2 runs" in together and "shared" not in together
    assert [arm["arm"] for arm in arms] == ["base", "fixed V1", "fixed V6", "random V1", "random V6"]
    assert all(arm["seeds"] == [0, 1] and arm["figures"]["2agents valid"]["low"] is not None for arm in arms)
    rates = {arm["arm"]: arm["figures"]["2agents valid"]["value"] for arm in arms}
    pairs = {(d["arm"], d["against"]): d for d in differences if d["set"] == "2agents" and d["metric"] == "valid"}
    assert set(pairs) == {(a, "base") for a in rates if a != "base"} | {
        (a, "fixed V1") for a in rates if a not in ("base", "fixed V1")
    }
    for (arm, against), d in pairs.items():
        assert d["value"] == pytest.approx(rates[arm] - rates[against]) and d["low"] <= d["value"] <= d["high"]
    for against, rows in (("base", 4), ("fixed_V1", 3)):
        picture = (tmp_path / "s" / f"minus_{against}.svg").read_text()
        panels = len({(d["set"], d["metric"]) for d in differences})
        assert picture.count("<circle") == rows * panels and "random V6" in picture
    t2t("report", tmp_path / "s" / "seed_0" / "fixed_V1")
    t2t("report", tmp_path / "s")
    page = (tmp_path / "s" / "report.html").read_text()
    for text in ("Every seed", "On the way", "validation: valid by round", "Differences"):
        assert text in page, text
    assert 'href="seed_0/fixed_V1/report.html"' in page and "random V6" in page


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_report_lets_no_stranger_in(config: Path, tmp_path: Path) -> None:
    hostile = '<script>alert(1)</script><img src=x onerror="alert(2)">\x1b[31m'
    reply = Proposal(hostile, {hostile: {hostile: 1}, "3": {"hole_ratio": hostile}}, hostile, [hostile])

    class Hostile:
        def propose(self, brief: Any) -> Proposal:
            return reply

    installed().designers.entries.pop("hostile", None)
    installed().designers.add("hostile", lambda argument, settings: Hostile())
    run_output = t2t("run", "--config", config, "--designer", "hostile", "--out", tmp_path / "run").output
    t2t("report", tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "&lt;script&gt;" in page and "\x1b" not in page and "\x1b" not in run_output
    page_tags = Tags()
    page_tags.feed(page)
    assert not {tag for tag, _ in page_tags.tags} & {"script", "img", "iframe", "link", "object"}
    assert not [a for _, attributes in page_tags.tags for a in attributes if a.startswith("on") or a in ("src", "style")]
    assert all(str(attributes["href"]).startswith("#") for _, attributes in page_tags.tags if "href" in attributes)
    policies = [a["content"] for tag, a in page_tags.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies and str(policies[0]).startswith("default-src 'none'") and "unsafe" not in str(policies[0])


def test_an_experiment_survives_json() -> None:
    experiment = resolve("paper", None, [], {}, {})
    assert Experiment.from_dict(json.loads(json.dumps(experiment.to_dict()))) == experiment


ROUNDS = 100
HOSTILE = [None, True, -1, 10**60, 1e300, "", "../../../etc", "\x1b[2J<script>", [], {}, [[]], {"": None}, {"3": {"x": "y"}}]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every node of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, item in items for place in places(item, (*at, key)))]


def test_a_tampered_run_folder_is_read_or_refused_but_never_crashes(config: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    t2t("run", "--config", config, "--with-control", "--out", run)
    stream, refused = Stream.of(3, "tampering"), 0
    files = [p for p in run.rglob("*.json") if p.name != "summary.json"]
    for _ in range(ROUNDS):
        path = stream.choice(files)
        before = path.read_bytes()
        data = json.loads(before)
        *inner, last = stream.choice(places(data)[1:])
        node = data
        for step in inner:
            node = node[step]
        if stream.below(4):
            node[last] = stream.choice(HOSTILE)
        else:
            del node[last]
        path.write_text(json.dumps(data))
        try:
            shown = html.render(page_document(run)) + markdown.render(run_document(run))
            assert "\x1b" not in shown and "<script>" not in shown
        except T2TError:
            refused += 1
        path.write_bytes(before)
    assert ROUNDS / 4 < refused < ROUNDS
    (run / "round_0" / "context.md").unlink()
    with pytest.raises(T2TError, match="no such file"):
        html.render(page_document(run))
