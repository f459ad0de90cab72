"""The committed study of RL algorithms: its table and curves follow from its files, and its arms were measured as planned."""

import importlib.util
import sys
from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[2] / "studies"
FOLDER = STUDIES / "rl"

spec = importlib.util.spec_from_file_location("rl_study", STUDIES / "rl.py")
study = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = study
spec.loader.exec_module(study)


def test_the_table_and_the_curves_follow_from_the_outcomes():
    assert study.table(FOLDER) == (FOLDER / "table.md").read_text()
    assert study.curves(FOLDER) == (FOLDER / "curves.svg").read_text()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("seed_*/*.json")), ids=lambda path: f"{path.parent.name} {path.stem}")
def test_an_arm_was_measured_as_the_plan_says(path):
    made = study.read(path)
    assert made["arm"] in study.ARMS and 21 <= made["seed"] <= 23
    assert path == study.path_of(FOLDER, made["arm"], made["seed"])
    assert [point["joint_steps"] for point in made["curve"]][:: study.POINTS] == [0, study.STEPS]
    for digits_by_size, lakes in [(made["final"], 200), *((point["solved"], 50) for point in made["curve"])]:
        assert {int(size): len(digits) for size, digits in digits_by_size.items()} == dict.fromkeys(range(3, 11), lakes)


def test_outcomes_are_the_verifiers_digits():
    """0 not solved, 1 solved, 2 at the optimum."""
    lakes = [lake for lake in study.sets()["curve"] if lake.size == 3][:3]
    best = study.answers_of(study.installed().policies.make("cbs"), lakes)
    assert study.outcomes(best, lakes) == {"3": "222"}
    assert study.outcomes(["", best[1], "no paths"], lakes) == {"3": "020"}
    assert study.solved_share({"3": "020", "4": "11"}) == pytest.approx((1 / 3 + 1) / 2)
    assert study.solved_share({"3": "020", "4": "11"}, "2") == pytest.approx((1 / 3) / 2)
