"""The committed studies: their figures follow from the stored outcomes, and all arms had the same conditions."""

import importlib.util
import json
import re
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from t2t_core.plugins import installed
from t2t_core.store.paths import SafePath
from t2t_core.study.comparing import compare, compare_gate
from t2t_core.study.outcomes import MeasuredSets, code_hashes, kept_seeds, read_trials
from t2t_core.study.plan import read_plan

STUDIES = Path(__file__).parents[2] / "studies"
RESULTS = STUDIES / "tiny" / "results"
FIVE_SEEDS = STUDIES / "tiny" / "five_seeds"

spec = importlib.util.spec_from_file_location("collect", STUDIES / "collect.py")
collect = importlib.util.module_from_spec(spec)
spec.loader.exec_module(collect)


def test_the_differences_follow_from_the_outcomes():
    assert collect.check(RESULTS) >= 20
    assert collect.check(FIVE_SEEDS) == 12


def test_the_spread_of_tictactoe_follows_from_its_games():
    spread = STUDIES / "tictactoe" / "spread"
    result = json.loads((spread / "sweep.json").read_text())
    assert collect.check(spread) == len(result["differences"]) > 0
    assert [arm["arm"] for arm in result["arms"]] == ["base", "p_0.2-0.7", "p_0-1", "p_0-0.25", "p_0", "p_0.7-1", "p_1"]
    assert all(arm["seeds"] == [21, 22, 23, 24, 25] for arm in result["arms"]) and result["unequal"] == []


def test_a_changed_outcome_is_found(tmp_path):
    for name in ("sweep.json", "outcomes.json"):
        text = (RESULTS / name).read_text()
        (tmp_path / name).write_text(re.sub(r"1{9}", "1" * 8 + "0", text, count=1) if name == "outcomes.json" else text)
    assert (tmp_path / "outcomes.json").read_text() != (RESULTS / "outcomes.json").read_text()
    with pytest.raises(SystemExit, match="sweep.json says"):
        collect.check(tmp_path)


@pytest.mark.parametrize(
    ("results", "designers", "seeds"),
    [
        (RESULTS, {"fixed", "random", "rule", "uniform", "base", "checkpoint"}, [1, 2, 3, 4, 5]),
        (FIVE_SEEDS, {"fixed", "checkpoint"}, [6, 7, 8, 9, 10]),
    ],
)
def test_every_arm_was_given_the_same(results, designers, seeds):
    result = json.loads((results / "sweep.json").read_text())
    trained = [arm for arm in result["arms"] if arm["arm"] != "base"]
    assert {arm["arm"].split()[0] for arm in trained} == designers
    assert all(arm["seeds"] == seeds for arm in result["arms"]) and result["unequal"] == []
    assert len({tuple(arm["budget"][k] for k in ("rounds", "instances", "samples", "updates")) for arm in trained}) == 1


@pytest.mark.parametrize(
    ("arm", "smaller"), [(FIVE_SEEDS / "seed_6", []), (RESULTS / "seed_1", ["generation.samples=1536"])]
)
def test_the_preset_was_not_changed_after_the_runs(arm, smaller):
    """The runs used the preset as it is now, except for the sets that they were measured on, one run's budget, and a thread."""
    from t2t_core.run.experiment import Experiment, resolve

    settings = json.loads((arm / "checkpoint_F" / "run.json").read_text())["settings"]
    ran = Experiment.from_dict({k: v for k, v in settings.items() if k != "fork"}).to_dict()
    now = resolve("tiny", None, ["training.threads=1", *smaller], {}, {}).to_dict()
    assert {k: v for k, v in ran.items() if k not in ("seed", "evaluation")} == {
        k: v for k, v in now.items() if k not in ("seed", "evaluation")
    }


@pytest.mark.parametrize("plan", sorted((STUDIES / "designers").rglob("*.toml")), ids=lambda plan: plan.stem)
def test_every_committed_plan_can_be_run(plan):
    """Its arms can be made, its start can be drawn, and the sets that it measures exist."""
    file = read_plan(plan)
    sets = MeasuredSets.of(file.experiment)
    metrics = {metric.name for metric in installed().testbeds.make(file.experiment.testbed).metrics if metric.kind == "rate"}
    assert all(measure.set in sets.columns and measure.metric in metrics for measure in file.plan.measure)
    assert file.plan.gate is not None and {"fixed", "fixed-again"} == set(file.plan.gate.same)


def test_no_two_plans_share_a_seed():
    seeds = [seed for plan in (STUDIES / "designers").rglob("*.toml") for seed in tomllib.loads(plan.read_text())["seeds"]]
    assert len(seeds) == len(set(seeds))


@pytest.mark.parametrize("name", sorted(place.name for place in (STUDIES / "designers" / "results").iterdir()))
def test_a_study_of_designers_follows_from_its_outcomes(name, monkeypatch):
    monkeypatch.chdir(STUDIES.parent)
    folder, file = SafePath(STUDIES / "designers" / "results" / name), read_plan(Path(f"studies/designers/{name}.toml"))
    gate = json.loads(json.dumps(asdict(compare_gate(file, read_trials(file, folder, [], file.plan.gate_arms())))))
    if (folder / "gate.json").exists():
        close_to(gate, json.loads((folder / "gate.json").path.read_text()))
    if not (folder / "study.json").exists():
        return  # so far the gate alone is known
    result = json.loads((folder / "study.json").path.read_text())
    arms = list(file.plan.arms)
    assert kept_seeds(file, folder, arms) == result["seeds"] == list(file.plan.seeds) and result["plan"] == file.sha256
    again = json.loads(json.dumps(asdict(compare(file, read_trials(file, folder, code_hashes(folder), arms)))))
    assert again["leverage"] == result["leverage"] and again["deviations"] == result["deviations"]
    for part in ("differences", "arms"):
        close_to(again[part], result[part])
    assert [d for d in again["differences"] if d["role"] in ("gate", "same")] == gate["differences"]


def close_to(ours, kept):
    """Equal but for the last digits of numbers."""
    if isinstance(kept, dict):
        assert ours.keys() == kept.keys()
        for key, value in kept.items():
            close_to(ours[key], value)
    elif isinstance(kept, list):
        assert len(ours) == len(kept)
        for our_item, other in zip(ours, kept, strict=True):
            close_to(our_item, other)
    else:
        assert ours == (pytest.approx(kept) if isinstance(kept, float) else kept)
