"""Fixed configurations as the arms of a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from addition import t2t
from t2t_core.errors import T2TError
from t2t_core.store import folders

pytestmark = pytest.mark.usefixtures("lake_plugins")
TOML = """testbed="lake"
policy="repeater"
rounds=2
[generation]
samples=20
[validation]
set="validation"
[evaluation]
limit=2
"""


def group(data: float, hole: float = 0.2, wait: float = 0.5) -> dict[str, float]:
    return {"data_ratio": data, "hole_ratio": hole, "wait_ratio": wait}


EVEN = {"3": group(0.5), "4": group(0.5)}
HARD = {"3": group(0.25), "4": group(0.75, 0.4)}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "lake.toml").write_text(TOML)
    for name, configuration in (("even", EVEN), ("hard", HARD)):
        (tmp_path / f"{name}.json").write_text(json.dumps(configuration))
    return tmp_path


def sweep(place: Path, *words: Any) -> Any:
    return t2t("sweep", "--config", place / "lake.toml", *words, "--out", place / "out")


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_each_file_is_an_arm_that_trains_on_nothing_else(place: Path) -> None:
    sweep(place, "--configurations", place / "even.json", place / "hard.json", "--seeds", "0 1", "--agents", "2")
    out = place / "out"
    for seed in (0, 1):
        assert {p.name for p in (out / f"seed_{seed}").iterdir()} == {"even", "hard"}, "no shared round"
        for name, configuration in (("even", EVEN), ("hard", HARD)):
            arm = out / f"seed_{seed}" / name
            assert [read(arm / f"round_{r}" / "configuration.json") for r in (0, 1)] == [configuration] * 2
            assert read(arm / "run.json")["settings"]["configuration"] == configuration
    result = read(out / "sweep.json")
    assert [arm["arm"] for arm in result["arms"]] == ["base", "even", "hard"]
    assert result["arms"][1]["seeds"] == [0, 1] and result["arms"][1]["figures"]["validation valid"]
    assert {(d["arm"], d["against"]) for d in result["differences"]} == {("even", "base"), ("hard", "base"), ("hard", "even")}
    assert read(out / "run.json")["settings"]["grid"]["configurations"] == {"even": EVEN, "hard": HARD}
    assert "hard" in t2t("analyze", out).output


def test_the_same_command_goes_on_and_another_file_is_another_sweep(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--configurations", place / "even.json", "--configurations", place / "hard.json")
    sweep(place, *words)
    result = (place / "out" / "sweep.json").read_bytes()
    (place / "out" / "sweep.json").unlink()
    monkeypatch.setattr("t2t_core.loop.rounds.Loop._generate", None)
    sweep(place, *words)
    assert (place / "out" / "sweep.json").read_bytes() == result
    (place / "hard.json").write_text(json.dumps({**HARD, "4": group(0.75, 0.1)}))
    with pytest.raises(T2TError, match="grid"):
        sweep(place, *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["even.json", "--designers", "rule"], "nothing to design"),
        (["even.json", "--context", "F"], "nothing to design"),
        (["even.json", "same.json"], "even and same amount to the same configuration"),
        (["even.json", "sub/even.json"], "two files are called even"),
        (["base.json"], "cannot be called base"),
        (["odd.json"], "cannot draw from the configuration as written"),
        (["missing.json"], "cannot be read"),
        (["list.json"], "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_begun(words: list[str], said: str, place: Path) -> None:
    (place / "sub").mkdir()
    for name in ("same.json", "sub/even.json", "base.json"):
        (place / name).write_text(json.dumps(EVEN))
    (place / "list.json").write_text("[1]")
    (place / "odd.json").write_text(json.dumps({"3": group(0.5), "4": group(0.5, hole=0.9)}))
    given = [place / word if word.endswith(".json") else word for word in words]
    with pytest.raises(T2TError, match=said):
        sweep(place, "--configurations", *given)
    assert not (place / "out" / "run.json").exists()


def test_runs_from_before_the_table_go_on(place: Path) -> None:
    """Their settings have no `configuration`, and neither have those of a run that is given none."""
    t2t("run", "--config", place / "lake.toml", "--out", place / "run")
    assert "configuration" not in read(place / "run" / folders.MANIFEST)["settings"]
