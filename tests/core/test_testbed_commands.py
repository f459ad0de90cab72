"""`generate`, `show`, `solve` and the options of a run for whatever testbed is named: its own form, or the general one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

import guessing
from addition import t2t
from t2t_core.cli.loop_options import gather
from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.run.sets import protected
from t2t_core.store import jsonlines

WORLD = guessing.Guessing()
PRESET = """
testbed = "guessing"
policy = "bisector"
trainer = "none"
designer = "fixed"
context = "F"
rounds = 2
[generation]
samples = 4
[validation]
set = "numbers"
"""


@pytest.fixture(autouse=True)
def _guessing() -> None:
    guessing.register()


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The testbed `guessing` with a command of its own; what it printed."""

    @click.command()
    @click.option("--loud", is_flag=True, help="SHOUT.")
    def shout(loud: bool) -> None:
        click.echo("A NUMBER" if loud else "a number")

    holder = SimpleNamespace(shout=shout, broken=None)
    monkeypatch.setitem(__import__("sys").modules, "guessing_commands", holder)
    monkeypatch.setattr(guessing.Guessing, "commands", {"show": "guessing_commands:shout", "solve": "guessing_commands:no"})
    yield []


def instances(path: Path) -> list[Any]:
    return [WORLD.read_instance(line.value) for line in jsonlines.read(path)]


# --- whose form of a command it is


def test_a_testbed_brings_its_own_form(own: list[str]) -> None:
    assert t2t("show", "--testbed", "guessing", "--loud").output == "A NUMBER\n"
    assert t2t("show", "--testbed=guessing").output == "a number\n"
    shown = t2t("show", "--testbed", "guessing", "--help").output
    assert "SHOUT" in shown and "--testbed" in shown and "--answer" not in shown
    assert "--solution" in t2t("show", "--help").output, "the default testbed's own form"
    with pytest.raises(T2TError, match=r"guessing_commands|no"):
        t2t("solve", "--testbed", "guessing")


def test_the_general_form_is_for_the_others() -> None:
    shown = t2t("show", "--testbed", "guessing", "--help").output
    assert "--answer" in shown and "--solution" not in shown
    assert "--agents" not in t2t("generate", "--testbed", "guessing", "--help").output


def test_a_testbed_that_is_not_there_is_named() -> None:
    for command in ("generate", "show", "solve", "bench", "run", "sweep"):
        with pytest.raises(T2TError, match="there is no testbed called 'gessing'") as error:
            t2t(command, "--testbed", "gessing", *(("--out", "x") if command == "sweep" else ()))
        assert "guessing" in str(error.value)


def test_solve_says_that_there_is_no_solver(tmp_path: Path) -> None:
    with pytest.raises(T2TError, match="the testbed guessing has no solver"):
        t2t("solve", tmp_path / "x.jsonl", "--testbed", "guessing", "--threads", 2)
    assert "with a solver" in t2t("solve", "--testbed", "guessing", "--help").output


# --- generate


def test_generate_fills_a_configuration(tmp_path: Path) -> None:
    file = tmp_path / "spans.json"
    file.write_text(json.dumps(guessing.Spans(0.25).to_dict()))
    arguments = ("generate", "--testbed", "guessing", "--configuration", file, "--count", 8, "--seed", 3)
    told = t2t(*arguments, "--out", tmp_path / "a.jsonl").stderr
    assert [i.span for i in instances(tmp_path / "a.jsonl")] == ["near"] * 2 + ["far"] * 6
    assert "near          2" in told and "8 instances in" in told
    assert t2t(*arguments, "--out", "-").stdout == (tmp_path / "a.jsonl").read_text()
    other = t2t(*arguments[:-1], 4, "--out", "-").stdout
    assert other != (tmp_path / "a.jsonl").read_text()


def test_generate_draws_a_random_configuration_and_tells_it(tmp_path: Path) -> None:
    arguments = ("--testbed", "guessing", "--configuration", "random", "--seed", 1)
    told = t2t("generate", *arguments, "--out", tmp_path / "a.jsonl").stderr
    request = WORLD.request(1000)
    assert json.loads(told.splitlines()[0]) == WORLD.random_configuration(request, 1).to_dict()
    assert len(instances(tmp_path / "a.jsonl")) == 1000


def test_generate_passes_settings_and_exclusions_to_the_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def request(self: Any, count: int, **options: Any) -> Any:
        asked.append(options)
        return guessing.Request(count)

    monkeypatch.setattr(guessing.Guessing, "request", request)
    arguments = ("generate", "--testbed", "guessing", "--configuration", "random", "--count", 2, "--out", tmp_path / "a.jsonl")
    t2t(*arguments, "--set", "depth=3", "--set", "mode=easy")
    assert asked == [{"depth": 3, "mode": "easy"}]
    t2t(*arguments, "--exclude", tmp_path / "a.jsonl")
    mine = {WORLD.identity(i) for i in instances(tmp_path / "a.jsonl")}
    assert asked[-1]["exclude"] == mine | protected(WORLD)
    with pytest.raises(T2TError, match="wants key=value"):
        t2t(*arguments, "--set", "depth")


def test_generate_names_what_is_wrong(tmp_path: Path) -> None:
    base = ("generate", "--testbed", "guessing")
    (tmp_path / "bad.json").write_text('{"near": 1}')
    for arguments, message in (
        (("--count", 3), "--configuration and --out must be given"),
        (("--configuration", tmp_path / "none.json", "--out", "-"), "the configuration cannot be read"),
        (("--configuration", tmp_path / "bad.json", "--out", "-"), "the span 'far' is missing"),
        (("--configuration", "random", "--out", "-", "--keep", "optimal"), "--keep only applies to answers"),
    ):
        with pytest.raises(T2TError, match=message):
            t2t(*base, *arguments)


# --- show


def test_show_prints_the_opening_and_with_answers_the_conversation_and_the_verdict(tmp_path: Path) -> None:
    secret = guessing.Secret("s1", "near", 5)
    file = tmp_path / "s.jsonl"
    file.write_text(jsonlines.dumps(guessing.Secret("s0", "far", 9).to_dict()) + "\n" + jsonlines.dumps(secret.to_dict()) + "\n")
    for name, text in (("a", "3"), ("b", "5"), ("c", "4")):
        (tmp_path / name).write_text(text)
    alone = t2t("show", f"{file}#s1", "--testbed", "guessing").output
    assert "Guess a number below 8." in alone and "verdict" not in alone and "pass" not in alone
    held = t2t("show", file, "--id", "s1", "--testbed", "guessing", "--answer", tmp_path / "a", "--answer", tmp_path / "b").output
    assert held.index("--- user\n3 is too low") < held.index("--- assistant\n5") < held.index("pass  guessed")
    assert "valid, optimal" in held
    lost = t2t("show", f"{file}#s1", "--testbed", "guessing", "--answer", tmp_path / "c", "--out", tmp_path / "out.txt").output
    assert "FAIL  guessed: not guessed" in (tmp_path / "out.txt").read_text() and "wrote" in lost
    with pytest.raises(T2TError, match="over after 1 of 2 answers"):
        t2t("show", f"{file}#s1", "--testbed", "guessing", "--answer", tmp_path / "b", "--answer", tmp_path / "c")
    with pytest.raises(T2TError, match="no instance has the id 'x'"):
        t2t("show", f"{file}#x", "--testbed", "guessing")
    with pytest.raises(T2TError, match="name a file or a set"):
        t2t("show", "--id", "x", "--testbed", "guessing")


def test_show_holds_a_benchs_conversation_again(tmp_path: Path) -> None:
    t2t("bench", "--testbed", "guessing", "--policy", "bisector:tool=yes", "--limit", 1, "--out", tmp_path / "bench")
    (answers,) = (tmp_path / "bench").rglob("answers.jsonl")
    for instance in WORLD.load_set("numbers").instances[:2]:
        text = t2t("show", "--set", "numbers", "--id", instance.id, "--testbed", "guessing", "--answer", answers).output
        assert "[calls even {}]" in text and "--- tool" in text and "pass  numbers" in text


# --- the options of a run


def given(**options: Any) -> dict[str, Any]:
    names = ("preset", "config", "testbed", "policy", "checkpoint", "designer", "context", "trainer", "rounds", "seed")
    return {**dict.fromkeys(names), "overrides": (), "testbed_options": (), **options}


def test_a_run_takes_the_testbeds_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gather(given())[0].testbed == installed().testbeds.default
    with pytest.raises(T2TError, match="the testbed guessing has no preset"):
        gather(given(testbed="guessing"))
    (tmp_path / "preset.toml").write_text(PRESET)
    installed().presets.add("guess", lambda argument, settings: str(tmp_path / "preset.toml"), "")
    monkeypatch.setattr(guessing.Guessing, "preset", "guess")
    experiment, published = gather(given(testbed="guessing", rounds=1))
    assert (experiment.testbed, experiment.rounds, experiment.samples, published) == ("guessing", 1, 4, {})
    del installed().presets.entries["guess"]


def test_testbed_policy_and_checkpoint_go_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(PRESET.replace('"guessing"', '"addition"'))
    (tmp_path / "base").mkdir()
    experiment, _ = gather(given(config=tmp_path / "run.toml", testbed="guessing", policy="bisector:size=2"))
    assert (experiment.testbed, experiment.policy, experiment.checkpoint) == ("guessing", "bisector:size=2", "")
    options = {"policy": "hf:{checkpoint}", "checkpoint": str(tmp_path / "base"), "testbed": "guessing"}
    experiment, _ = gather(given(config=tmp_path / "run.toml", **options))
    assert experiment.checkpoint == str(tmp_path / "base")
    experiment, _ = gather(given(policy="cbs", trainer="none"))
    assert experiment.checkpoint == "", "a policy that takes no checkpoint has none to train"
    with pytest.raises(T2TError, match="would never use the trained checkpoint"):
        gather(given(policy="cbs", checkpoint="tiny"))


def test_a_run_of_a_named_testbed(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(PRESET.replace('"guessing"', '"nothing"').replace('"bisector"', '"nobody"'))
    options = ("--config", tmp_path / "run.toml", "--testbed", "guessing", "--policy", "bisector")
    told = t2t("run", *options, "--out", tmp_path / "run").output
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["testbed"] == "guessing"
    assert "summary" in told
