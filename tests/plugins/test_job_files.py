"""The files that carry a training job to its processes and the result back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.plugins import installed
from t2t_core.records import TrainingResult
from t2t_plugins.trainers.trl_grpo import job_files
from t2t_plugins.trainers.trl_grpo.settings import Settings


def order(folder: Path) -> TrainingJob:
    testbed = installed().testbeds.make("mapf-frozenlake")
    instances = list(testbed.load_set("validation_2agents").instances[:2])
    return TrainingJob(folder / "policy", instances, testbed, {}, folder / "checkpoint", seed=7, reward={"accuracy": 0.5})


def test_a_job_arrives_as_it_was_sent(tmp_path: Path) -> None:
    sent = order(tmp_path)
    job_files.write_job(sent, Settings(learning_rate=0.5), tmp_path)
    record = job_files.read_job(tmp_path)
    there = record.job(print, lambda: True)
    for name in ("checkpoint", "instances", "folder", "seed", "round_index", "resume_from", "reward"):
        assert getattr(there, name) == getattr(sent, name), name
    assert there.testbed.name == "mapf-frozenlake" and there.settings["learning_rate"] == 0.5 and there.stop()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"seed": "seven"}, "seed"), ({"instances": {}}, "instances"), ({"reward": {"accuracy": "much"}}, "reward.accuracy"),
     ({"round_index": -1}, "round_index"), ({"settings": None}, "settings")],
)  # fmt: skip
def test_a_damaged_job_is_told_by_its_field(tmp_path: Path, wrong: dict[str, Any], field: str) -> None:
    job_files.write_job(order(tmp_path), Settings(), tmp_path)
    path = tmp_path / job_files.JOB
    path.write_text(json.dumps(json.loads(path.read_text()) | wrong))
    with pytest.raises(T2TError, match=field) as caught:
        job_files.read_job(tmp_path)
    assert str(path) in str(caught.value)


def test_what_became_of_it_comes_back(tmp_path: Path) -> None:
    assert job_files.outcome(tmp_path) is None
    result = TrainingResult(tmp_path / "checkpoint", {"loss": 0.5}, samples=8, updates=2, tokens=99, keep_updates=True)
    job_files.write_result(tmp_path, result)
    assert job_files.outcome(tmp_path) == result
    job_files.write_mistake(tmp_path, T2TError("no GPU", where="[training]", next="set device=cpu"))
    mistake = job_files.outcome(tmp_path)
    assert isinstance(mistake, T2TError) and str(mistake) == "no GPU\n  where: [training]\n  next: set device=cpu"
    (tmp_path / job_files.MISTAKE).write_text('{"where": "[training]"}')
    with pytest.raises(T2TError, match="what: is missing"):
        job_files.outcome(tmp_path)
