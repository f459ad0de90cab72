"""The committed study of tic-tac-toe: its table follows from its games, and every arm was given what the plan says."""

import importlib.util
import sys
from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[2] / "studies"
FOLDER = STUDIES / "tictactoe"

spec = importlib.util.spec_from_file_location("tictactoe_study", STUDIES / "tictactoe.py")
study = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = study
spec.loader.exec_module(study)


def test_the_table_follows_from_the_games():
    assert study.table(FOLDER) == (FOLDER / "table.md").read_text()


def test_the_talks_table_follows_from_the_runs():
    assert study.talk(FOLDER) == (FOLDER / "talk.md").read_text()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("seed_*/*.json")), ids=lambda path: f"{path.parent.name} {path.stem}")
def test_an_arm_was_given_what_the_plan_says(path):
    made = study.read(path)
    stages = study.ARMS[made["arm"]]
    assert path == study.path_of(FOLDER, made["arm"], made["seed"]) and 11 <= made["seed"] <= 15
    assert len(stages) == len(made["stages"])
    for stage, done in zip(stages, made["stages"], strict=True):
        assert done["configuration"] == study.Configuration.uniform(stage.low, stage.high).to_dict()
        assert done["request"] == dict(stage.request)
        assert {k: v for k, v in done["training"].items() if k != "save_every"} == {**study.TRAINING, **stage.training}
        assert len(done["updates"]) * done["training"]["prompts"] == stage.updates * study.PROMPTS
        assert {name: len(ends) for name, ends in done["endings"].items()} == {
            "random": 400,
            "optimal": 400,
            "second": 2,
            "first": 2,
        }
