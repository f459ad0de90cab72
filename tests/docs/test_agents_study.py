"""The study of job agents: its plan is read, run and reported, on a pool that pretends to train."""

import importlib.util
import os
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from t2t_core.plugins import installed

sys.path.append(str(Path(__file__).parents[1] / "jobs"))

import desks  # noqa: E402

from t2t_jobs import hidden, office  # noqa: E402
from t2t_jobs.probe import probe  # noqa: E402

spec = importlib.util.spec_from_file_location("agents_study", Path(__file__).parents[2] / "studies" / "agents.py")
study = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = study
spec.loader.exec_module(study)
PLAN = study.read_plan(study.PLAN)


def test_the_plan_names_what_the_study_makes():
    named = {"untrained", "trained", *PLAN.searches, *(name + study.CPU for name in PLAN.searches)}
    compared = [PLAN.primary, *PLAN.secondary]
    assert {name for comparison in compared for name in (comparison.agent, comparison.against)} <= named
    assert all(comparison.measure in ("reward", study.HELD_OUT) for comparison in compared)
    assert PLAN.settings.steps * PLAN.settings.groups * PLAN.settings.group == 320 and len(PLAN.seeds) == 3


@pytest.mark.train
@pytest.mark.slow
def test_a_small_one_is_run_and_told(tmp_path, monkeypatch):
    from t2t_jobs.agents.tiny.warmup import export, learn

    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(office, "probe", lambda folder, family, *_: probe(folder, family))
    monkeypatch.setattr(hidden, "baseline_scores", lambda *_: {"small": 0.1, "large": 0.25})
    desks.register()
    monkeypatch.setattr(study, "families", lambda: (["pretend", "other"], ["kept"]))
    model, tokenizer, _ = learn([installed().families.make(name) for name in ("pretend", "other", "kept")], 0, 300, 60)
    export(model, tokenizer, tmp_path / "warm")
    small = {"steps": 2, "groups": 2, "group": 4, "device": "cpu"}
    plan = msgspec.structs.replace(PLAN, agent=f"tiny:{tmp_path / 'warm'}", seeds=[1, 2], episodes=2, outer=small)
    study.run(plan, tmp_path / "out", "pretend")
    told = study.table(plan, tmp_path / "out")
    assert "primary: trained - random-search, reward" in told and "| 2 |" in told
    assert told == study.table(plan, tmp_path / "out") and replace(plan.settings, steps=2) == plan.settings
