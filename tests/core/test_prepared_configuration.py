"""The user's own configuration for round 0: taken unchanged from a file or a table, recorded, resumed, refused early."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.run.experiment import resolve

pytestmark = pytest.mark.usefixtures("lake_plugins")
FIRST = {
    "3": {"data_ratio": 0.25, "hole_ratio": 0.1, "wait_ratio": 0.5},
    "4": {"data_ratio": 0.75, "hole_ratio": 0.2, "wait_ratio": 0.0},
}
TOML = """
testbed = "lake"
policy = "repeater"
designer = "rule"
rounds = 2
{}
[generation]
samples = 20
[validation]
set = "validation"
"""
AS_TOML = "\n".join(f"[{g}]\n" + "\n".join(f"{k} = {v}" for k, v in knobs.items()) for g, knobs in FIRST.items())


def t2t(*words: object) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "first.json").write_text(json.dumps(FIRST))
    (tmp_path / "mine" / "first.toml").write_text(AS_TOML)
    (tmp_path / "mine" / "named.toml").write_text(TOML.format('configuration = "first.json"'))
    (tmp_path / "mine" / "other.toml").write_text(TOML.format('configuration = "first.toml"'))
    inline = "\n".join(f"configuration.{g}.{k} = {v}" for g, knobs in FIRST.items() for k, v in knobs.items())
    (tmp_path / "mine" / "inline.toml").write_text(TOML.format(inline))
    (tmp_path / "mine" / "random.toml").write_text(TOML.format(""))
    return tmp_path / "mine"


@pytest.mark.parametrize("name", ["named", "other", "inline"])
def test_round_0_is_drawn_from_it_and_the_run_goes_on_without_the_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The file is named relative to the one that names it, wherever the command is typed."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    out = tmp_path / "run"
    t2t("run", "--config", folder / f"{name}.toml", "--rounds", 1, "--out", out)
    assert read(out / "round_0" / "configuration.json") == FIRST == read(out / "run.json")["settings"]["configuration"]
    assert read(out / "resolved.json")["configuration"] == FIRST
    instances = [json.loads(line)["group"] for line in (out / "round_0" / "instances.jsonl").read_text().splitlines()]
    assert (instances.count("3"), instances.count("4")) == (5, 15)
    for path in folder.glob("first.*"):
        path.unlink()
    (out / "summary.json").unlink()
    if name == "inline":
        t2t("run", "--config", folder / "inline.toml", "--rounds", 1, "--out", out)
    (tmp_path / "again.json").write_text(json.dumps(FIRST))
    t2t("run", "--config", folder / "random.toml", "--set", "configuration=../again.json", "--rounds", 1, "--out", out)
    assert (out / "summary.json").exists()


def test_another_configuration_is_another_run(folder: Path, tmp_path: Path) -> None:
    t2t("run", "--config", folder / "named.toml", "--out", tmp_path / "run")
    for name, *more in (["random"], ["named", "configuration.3.hole_ratio=0.3"], ["named", "configuration="]):
        with pytest.raises(T2TError, match="configuration"):
            words = [word for setting in more for word in ("--set", setting)]
            t2t("run", "--config", folder / f"{name}.toml", *words, "--out", tmp_path / "run")
    fork = ["run", "--fork", f"{tmp_path / 'run'}@0", "--designer", "random", "--out", tmp_path / "fork"]
    with pytest.raises(T2TError, match="configuration"):
        t2t(*fork, "--set", "configuration=")
    t2t(*fork)
    assert read(tmp_path / "fork" / "round_0" / "configuration.json") == FIRST


def test_the_dry_run_shows_it_and_random_where_there_is_none(folder: Path) -> None:
    shown = t2t("run", "--config", folder / "named.toml", "--dry-run")
    assert " configuration.3.hole_ratio 0.1 " in " ".join(shown.split())
    assert " configuration random " in " ".join(t2t("run", "--config", folder / "random.toml", "--dry-run").split())


def test_a_file_over_a_preset_replaces_the_whole_table(folder: Path) -> None:
    (folder / "one.toml").write_text(TOML.format("configuration.3.data_ratio = 1.0"))
    assert resolve("", folder / "one.toml", [], {}, {"configuration": FIRST}).configuration == {"3": {"data_ratio": 1.0}}
    assert resolve("", folder / "random.toml", [], {}, {"configuration": FIRST}).configuration == FIRST


@pytest.mark.parametrize("last", [["--dry-run"], ["--out", "run"]])
def test_what_the_generator_cannot_draw_is_refused_with_what_it_would_take(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(T2TError, match="cannot draw from") as error:
        t2t("run", "--config", folder / "named.toml", "--set", "configuration.3.hole_ratio=0.9", *last)
    assert "3.hole_ratio: 0.9 -> 0.5" in error.value.cause
    for text in ("[1]", '{"3": {"data_ratio": 1', "x" * 100):
        (folder / "first.json").write_text(text)
        with pytest.raises(T2TError, match="not what was written|JSON|configuration"):
            t2t("run", "--config", folder / "named.toml", *last)
    (folder / "first.json").unlink()
    with pytest.raises(T2TError, match="no such configuration file"):
        t2t("run", "--config", folder / "named.toml", *last)
    assert not (tmp_path / "run").exists()


def test_on_frozen_lakes_a_partial_table_and_infeasible_ratios() -> None:
    """A size that is not named is not drawn; a 3x3 map has no room for five agents beside half a map of holes."""

    def dry_run(knobs: dict[str, float], agents: int) -> str:
        words = [f"generation.agents={agents}", *(f"configuration.3.{name}={value}" for name, value in knobs.items())]
        return t2t("run", "--preset", "tiny", "--dry-run", *(word for setting in words for word in ("--set", setting)))

    full = {"data_ratio": 1.0, "hole_ratio": 0.5, "wait_ratio": 0.25}
    assert "configuration.3.wait_ratio" in dry_run(full, 2)
    with pytest.raises(T2TError, match="wait_ratio' is missing"):
        dry_run({"data_ratio": 1.0, "hole_ratio": 0.5}, 2)
    with pytest.raises(T2TError, match="cannot draw from") as error:
        dry_run(full, 5)
    bed = installed().testbeds.make("mapf-frozenlake")
    taken = bed.project({"3": full}, bed.read_configuration({"3": full}), bed.request(2048, agents=5)).changes
    assert taken and taken[0].knob in error.value.cause
