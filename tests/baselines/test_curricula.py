"""Curricula: their formulas by hand on small evidence, and that every one of them always proposes a sound configuration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lake
from t2t_baselines.curricula.cells import SHRINK, Cell, all_cells, level_of, marginal, rounds_since_sampled, success_rates
from t2t_core.plugins import installed
from t2t_core.records import Brief, Round, RoundState
from t2t_core.testing import check_designer

NAMES = ("uniform", "easy-to-hard", "learning-progress", "level-replay", "learnability")
CONFIGURATION = {
    "3": {"data_ratio": 0.5, "hole_ratio": 0.1, "wait_ratio": 0.5},
    "5": {"data_ratio": 0.5, "hole_ratio": 0.3, "wait_ratio": 0.0},
}


class Setting:
    def to_dict(self) -> dict[str, Any]:
        return {size: dict(knobs) for size, knobs in CONFIGURATION.items()}


def breakdown(**cells: tuple[int, int]) -> dict[str, Any]:
    """`s3_h1_wait=(10, 4)`: ten answers, four valid, in the cell "3x3 holes=1 wait"."""
    named = {}
    for short, (answers, valid) in cells.items():
        size, holes, *wait = short.split("_")
        flag = " wait" if wait else " no-wait"
        named[f"{size[1:]}x{size[1:]} holes={holes[1:]}{flag}"] = {"answers": answers, "valid": valid, "optimal": 0}
    return {"groups": {}, "cells": named}


def propose(name: str, *breakdowns: dict[str, Any], rounds: int = 4) -> dict[str, Any]:
    past = [Round(i, CONFIGURATION, b) for i, b in enumerate(breakdowns)]
    state = RoundState(None, past, bookkeeping={"rounds": rounds})
    proposed: dict[str, Any] = installed().designers.make(name).propose(Brief("", state, Setting(), None, 0)).parsed
    return proposed


def test_rates_are_shrunk_towards_size_and_whole() -> None:
    cells = all_cells(CONFIGURATION)
    rates = success_rates(cells, breakdown(s3_h1_wait=(10, 10), s5_h0=(30, 0)))
    overall = 10 / 40
    small, large = (10 + SHRINK * overall) / (10 + SHRINK), SHRINK * overall / (30 + SHRINK)
    assert rates[Cell(3, 1, True)] == pytest.approx((10 + SHRINK * small) / (10 + SHRINK))
    assert rates[Cell(3, 0, False)] == pytest.approx(small)
    assert rates[Cell(5, 0, False)] == pytest.approx(SHRINK * large / (30 + SHRINK))
    assert set(success_rates(cells, breakdown()).values()) == {0.5}


def test_levels_are_fifths_of_the_range() -> None:
    assert [level_of(r) for r in (0, 0.0999, 0.1, 0.3, 0.4, 0.5, 0.7)] == [0, 0, 1, 3, 4, 4, 4]


def test_weights_become_knobs() -> None:
    weights = dict.fromkeys(all_cells(CONFIGURATION), 0.0)
    weights[Cell(3, 0, True)] = 1.0
    weights[Cell(3, 4, False)] = 3.0
    knobs = marginal(weights, CONFIGURATION)
    assert knobs["3"] == pytest.approx({"data_ratio": 1.0, "hole_ratio": 0.35, "wait_ratio": 0.25})
    assert knobs["5"] == {"data_ratio": 0.0, "hole_ratio": 0.3, "wait_ratio": 0.0}


def test_uniform_and_the_schedule_look_at_nothing() -> None:
    assert propose("uniform", breakdown(s3_h1=(9, 9)))["3"] == pytest.approx(
        {"data_ratio": 0.5, "hole_ratio": 0.25, "wait_ratio": 0.5}
    )
    first, last = propose("easy-to-hard", breakdown()), propose("easy-to-hard", *[breakdown()] * 3)
    assert first["3"]["hole_ratio"] == pytest.approx(0.1 + 0.2 / 3) and last["3"]["hole_ratio"] == pytest.approx(0.3)


def test_learning_progress_follows_what_moves() -> None:
    moved = propose("learning-progress", breakdown(s3_h0=(50, 0), s5_h0=(50, 0)), breakdown(s3_h0=(50, 50), s5_h0=(50, 0)))
    assert moved["3"]["data_ratio"] > 0.8
    assert propose("learning-progress", breakdown(s3_h0=(50, 0)))["3"]["data_ratio"] == pytest.approx(0.5)


def test_learnability_and_replay_prefer_what_half_succeeds() -> None:
    evidence = breakdown(s3_h0=(100, 100), s3_h1_wait=(100, 100), s5_h2=(100, 50))
    for name in ("learnability", "level-replay"):
        assert propose(name, evidence)["5"]["data_ratio"] > 0.6, name


def test_staleness_counts_rounds_since_a_cell_was_trained_on() -> None:
    later = {**CONFIGURATION, "5": {"data_ratio": 0.5, "hole_ratio": 0.0, "wait_ratio": 0.0}}
    ages = rounds_since_sampled(all_cells(CONFIGURATION), [Round(0, CONFIGURATION, {}), Round(1, later, {})])
    assert ages[Cell(5, 0, False)] == 0 and ages[Cell(5, 3, False)] == 1 and ages[Cell(5, 4, True)] == 2


counts = st.integers(0, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
evidence = st.dictionaries(st.sampled_from(["s3_h0", "s3_h1_wait", "s3_h3", "s5_h2", "s5_h12_wait", "s9_h4"]), counts)


@given(st.lists(evidence, min_size=1, max_size=4))
@settings(max_examples=60)
def test_every_curriculum_always_proposes_a_sound_configuration(rounds: list[dict[str, tuple[int, int]]]) -> None:
    for name in NAMES:
        proposed = propose(name, *(breakdown(**r) for r in rounds))
        assert set(proposed) == {"3", "5"}
        assert sum(k["data_ratio"] for k in proposed.values()) == pytest.approx(1)
        assert all(0 <= k["hole_ratio"] <= 0.5 and 0 <= k["wait_ratio"] <= 1 and k["data_ratio"] >= 0 for k in proposed.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_curriculum_keeps_the_contract(name: str) -> None:
    check_designer(installed().designers.make(name), lake.Lake())
