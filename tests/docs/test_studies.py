"""The committed studies: their figures follow from the outcomes that are kept, and their arms were given the same."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[2] / "studies"
RESULTS = STUDIES / "tiny" / "results"

spec = importlib.util.spec_from_file_location("collect", STUDIES / "collect.py")
collect = importlib.util.module_from_spec(spec)
spec.loader.exec_module(collect)


def test_the_differences_follow_from_the_outcomes():
    assert collect.check(RESULTS) >= 20


def test_a_changed_outcome_is_found(tmp_path):
    for name in ("sweep.json", "outcomes.json"):
        text = (RESULTS / name).read_text()
        (tmp_path / name).write_text(re.sub(r"1{9}", "1" * 8 + "0", text, count=1) if name == "outcomes.json" else text)
    assert (tmp_path / "outcomes.json").read_text() != (RESULTS / "outcomes.json").read_text()
    with pytest.raises(SystemExit, match="sweep.json says"):
        collect.check(tmp_path)


def test_every_arm_was_given_the_same():
    result = json.loads((RESULTS / "sweep.json").read_text())
    trained = [arm for arm in result["arms"] if arm["arm"] != "base"]
    assert {arm["arm"].split()[0] for arm in trained} == {"fixed", "random", "rule", "uniform", "base", "checkpoint"}
    assert all(arm["seeds"] == [1, 2, 3, 4, 5] for arm in result["arms"]) and result["unequal"] == []
    assert len({tuple(arm["budget"][k] for k in ("rounds", "instances", "samples", "updates")) for arm in trained}) == 1


def test_the_preset_was_not_changed_after_the_runs():
    """A run of the study is a run of the preset as it stands, apart from the sets it was measured on, its smaller budget, and a thread."""
    from t2t_core.experiment import resolve

    ran = json.loads((RESULTS / "seed_1" / "checkpoint_F" / "run.json").read_text())["settings"]
    now = resolve("tiny", None, ["generation.samples=1536", "training.threads=1"], {}, {}).to_dict()
    assert {k: v for k, v in ran.items() if k not in ("seed", "evaluation", "fork")} == {
        k: v for k, v in now.items() if k not in ("seed", "evaluation")
    }
