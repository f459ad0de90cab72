"""The weights of the reward's terms, which a run may change, and what the run records about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from addition import t2t
from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.plugins import installed
from t2t_core.records import TrainingResult

pytestmark = pytest.mark.usefixtures("lake_plugins")
TOML = """testbed="lake"
policy="repeater"
trainer="seeing"
rounds=1
[generation]
samples=4
[validation]
set="validation"
"""


@pytest.fixture
def seen() -> Iterator[list[Any]]:
    """The weights of the jobs that a trainer got."""
    rewards: list[Any] = []

    class Seeing:
        def train(self, job: TrainingJob) -> TrainingResult:
            rewards.append(dict(job.reward))
            return TrainingResult(job.checkpoint)

    installed().trainers.add("seeing", lambda argument, settings: Seeing())
    yield rewards
    del installed().trainers.entries["seeing"]


def run(folder: Path, reward: str, *words: str) -> Any:
    (folder / "run.toml").write_text(TOML + (f"[reward]\n{reward}\n" if reward else ""))
    return t2t("run", "--config", folder / "run.toml", "--out", folder / "run", *words)


def test_a_trainer_gets_the_weights_that_the_run_changes(tmp_path: Path, seen: list[Any]) -> None:
    run(tmp_path, "right = 2")
    assert seen == [{"right": 2.0}]
    manifest, resolved = (json.loads((tmp_path / "run" / name).read_text()) for name in ("run.json", "resolved.json"))
    assert manifest["settings"]["reward"] == {"right": 2.0} == resolved["reward"]


def test_a_run_that_changes_none_shows_the_testbeds_and_records_nothing(tmp_path: Path, seen: list[Any]) -> None:
    assert "reward.right" in run(tmp_path, "", "--dry-run").output
    run(tmp_path, "")
    assert seen == [{}] and "reward" not in json.loads((tmp_path / "run" / "run.json").read_text())["settings"]


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        ("rihgt = 1.0", "did you mean right"),
        ('right = "much"', "reward"),
        ("right = inf", "reward.right"),
        ("right = 1e9", "number"),
    ],
)
@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_a_weight_that_cannot_be_is_refused_before_anything_is_begun(
    tmp_path: Path, seen: list[Any], reward: str, said: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(T2TError, match=said):
        run(tmp_path, reward, *words)
    assert not (tmp_path / "run" / "run.json").exists() and seen == []
