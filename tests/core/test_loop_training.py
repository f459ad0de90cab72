"""The loop around a trainer: the states of an interrupted training, and updates without a learning signal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.loop.whole_run import run_experiment
from t2t_core.plugins import installed
from t2t_core.records import TrainingResult
from t2t_core.run.experiment import Experiment
from t2t_core.run.progress import Reporter
from t2t_core.store import folders

pytestmark = pytest.mark.usefixtures("lake_plugins")
EXPERIMENT = Experiment.from_dict(
    {
        "testbed": "lake",
        "policy": "repeater",
        "trainer": "saving",
        "designer": "random",
        "rounds": 2,
        "generation": {"samples": 10},
        "validation": {"set": "validation"},
    }
)


class Saving:
    """A trainer that saves a state as it goes, and tells of updates that taught nothing."""

    keep = False

    def train(self, job: TrainingJob) -> TrainingResult:
        assert job.progress
        state = job.folder / "updates" / "checkpoint-3"
        state.mkdir(parents=True, exist_ok=True)
        (state / "optimizer").write_text("o" * 100)
        (job.folder / "updates" / "latest").symlink_to("checkpoint-3")
        for update in range(1, 5):
            odd = ["every response was cut off"] if update > 1 else []
            job.progress({"update": update, "updates": 4, "reward": 0.5, **({"warnings": odd} if odd else {})})
        return TrainingResult(job.folder, {}, 10, 4, 10, keep_updates=self.keep)


@pytest.fixture(autouse=True)
def saving() -> Iterator[type[Saving]]:
    installed().trainers.add("saving", lambda argument, settings: Saving())
    yield Saving
    del installed().trainers.entries["saving"]


def states(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.glob("round_*/checkpoint/updates"))


def test_the_states_of_a_training_are_gone_when_its_round_is_whole(tmp_path: Path, monkeypatch: Any) -> None:
    run_experiment(EXPERIMENT, tmp_path / "run", Reporter())
    assert states(tmp_path / "run") == []
    assert (tmp_path / "run" / "round_0" / "checkpoint").is_dir()
    monkeypatch.setattr(Saving, "keep", True)
    run_experiment(EXPERIMENT, tmp_path / "kept", Reporter())
    assert states(tmp_path / "kept") == [f"round_{i}/checkpoint/updates" for i in (0, 1)], "the next round's optimizer"


def test_a_run_stopped_before_they_were_removed_removes_them_when_it_goes_on(tmp_path: Path, monkeypatch: Any) -> None:
    removing = folders.remove_folder

    def stopped(path: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(folders, "remove_folder", stopped)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(EXPERIMENT, tmp_path, Reporter())
    assert states(tmp_path) == ["round_0/checkpoint/updates"]
    assert json.loads((tmp_path / "round_0" / "training.json").read_text())["updates"] == 4
    monkeypatch.setattr(folders, "remove_folder", removing)
    run_experiment(EXPERIMENT, tmp_path, Reporter())
    assert states(tmp_path) == []


def test_updates_that_taught_nothing_are_told_at_once_counted_and_summed_up(tmp_path: Path) -> None:
    lines: list[str] = []
    summary = run_experiment(replace(EXPERIMENT, rounds=1), tmp_path, Reporter(lines.append))
    assert "  note: update 2: every response was cut off" in lines
    assert "  note: 3 of 4 updates: every response was cut off" in lines
    assert sum("cut off" in line for line in lines) == 2, "once when it begins, once at the end"
    assert summary.training["designed"][0].warnings == {"every response was cut off": 3}
    assert "- designed round 0, 3 of 4 updates: every response was cut off" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (RuntimeError("probability tensor contains either `inf`, `nan` or element < 0"), "probability tensor"),
        (ValueError("Expected parameter logits to satisfy the constraint x, but found invalid values"), "logits"),
        (ArithmeticError("the loss is nan"), "the loss is nan"),
        ({"update": 3, "loss": float("nan")}, "loss is nan"),
        ({"update": 3, "grad_norm": float("inf")}, "grad_norm is inf"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_training_that_diverged_is_no_fault_of_the_trainer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception | dict[str, Any], told: str
) -> None:
    def train(self: Saving, job: TrainingJob) -> TrainingResult:
        assert job.progress
        if isinstance(fault, dict):
            job.progress(fault)
            return TrainingResult(job.folder, {}, 10, 4, 10)
        raise fault

    monkeypatch.setattr(Saving, "train", train)
    with pytest.raises(T2TError, match="diverged") as raised:
        run_experiment(EXPERIMENT, tmp_path / "run", Reporter())
    assert told in str(raised.value) and "smaller learning_rate" in str(raised.value)
    assert "a fault of the plugin" not in str(raised.value)
