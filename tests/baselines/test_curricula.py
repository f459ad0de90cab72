"""Curricula: their formulas worked out by hand on little evidence, and that all of them always propose a sound configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lake
from t2t_core.cells import SHRINK, Cells, numbers
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Brief, RoundState, TrialRun
from t2t_core.plugins import installed
from t2t_core.records import Proposal, Round
from t2t_core.testing import check_designer

LAKE = installed().testbeds.make("mapf-frozenlake")
REQUEST = LAKE.request(10)
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
    state = RoundState(LAKE, past, bookkeeping={"rounds": rounds})
    proposed: dict[str, Any] = installed().designers.make(name).propose(Brief("", state, Setting(), REQUEST, 0)).parsed
    return proposed


def cells() -> Cells:
    """Those of the two sizes of CONFIGURATION."""
    return Cells.of(Brief("", RoundState(LAKE, []), Setting(), REQUEST, 0))


def cell(size: int, level: int, wait: bool) -> str:
    return f"{size}x{size} holes {10 * level + 5}% {'wait' if wait else 'no wait'}"


def test_rates_are_shrunk_towards_size_and_whole() -> None:
    rates = cells().success_rates(breakdown(s3_h1_wait=(10, 10), s5_h0=(30, 0)))
    overall = 10 / 40
    small, large = (10 + SHRINK * overall) / (10 + SHRINK), SHRINK * overall / (30 + SHRINK)
    assert rates[cell(3, 1, True)] == pytest.approx((10 + SHRINK * small) / (10 + SHRINK))
    assert rates[cell(3, 0, False)] == pytest.approx(small)
    assert rates[cell(5, 0, False)] == pytest.approx(SHRINK * large / (30 + SHRINK))
    assert set(cells().success_rates(breakdown()).values()) == {0.5}


def test_levels_are_fifths_of_the_range() -> None:
    assert [LAKE.cell_of(f"10x10 holes={holes} wait") for holes in (0, 9, 10, 30, 40, 50)] == [
        cell(10, level, True) for level in (0, 0, 1, 3, 4, 4)
    ]
    assert LAKE.cell_of("10x10 holes=1") == cell(10, 0, False) and LAKE.cell_of("a pond") is None


def test_weights_become_knobs() -> None:
    knobs = cells().proposal({cell(3, 0, True): 1.0, cell(3, 4, False): 3.0})
    assert numbers(knobs["3"]) == pytest.approx({"data_ratio": 1.0, "hole_ratio": 0.35, "wait_ratio": 0.25})
    assert knobs["3"]["cells"] == [
        {"share": 0.25, "hole_ratio": 0.05, "wait_ratio": 1.0},
        {"share": 0.75, "hole_ratio": 0.45, "wait_ratio": 0.0},
    ]
    assert knobs["5"] == {"data_ratio": 0.0, "hole_ratio": 0.3, "wait_ratio": 0.0}


def test_the_levels_that_a_curriculum_chose_are_drawn_and_not_their_mean() -> None:
    levels = cells().proposal({cell(5, 0, False): 1.0, cell(5, 4, True): 1.0})
    assert levels["5"]["hole_ratio"] == pytest.approx(0.25), "which no instance of the two levels has"
    projection = LAKE.project(levels, LAKE.random_configuration(REQUEST, 0), REQUEST)
    drawn = LAKE.generate(projection.configuration, REQUEST, 0)
    assert Counter(LAKE.cell_of(LAKE.place(x).cell) for x in drawn) == {cell(5, 0, False): 5, cell(5, 4, True): 5}


def test_uniform_and_the_schedule_look_at_nothing() -> None:
    proposed = propose("uniform", breakdown(s3_h1=(9, 9)))["3"]
    assert numbers(proposed) == pytest.approx({"data_ratio": 0.5, "hole_ratio": 0.25, "wait_ratio": 0.5})
    assert [cell["share"] for cell in proposed["cells"]] == pytest.approx([0.1] * 10)
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
    ages = cells().rounds_since_sampled([Round(0, CONFIGURATION, {}), Round(1, later, {})])
    assert (ages[cell(5, 0, False)], ages[cell(5, 3, False)], ages[cell(5, 4, True)]) == (0, 1, 2)


# --- each formula as it stands in the docstrings, cell by cell, in plain arithmetic

CELLS = [(size, level, wait) for size in (3, 5) for level in range(5) for wait in (False, True)]
FIRST = {(3, 1, False): (20, 18), (3, 1, True): (10, 5), (5, 0, False): (16, 8), (5, 4, True): (12, 0)}
SECOND = {(3, 1, False): (20, 19), (3, 1, True): (10, 8), (5, 0, False): (16, 15), (5, 4, True): (12, 0)}
HOLES = {(3, 1): 1, (5, 0): 2, (5, 4): 10}


def named(counts: dict[Any, tuple[int, int]]) -> dict[str, Any]:
    return breakdown(**{f"s{s}_h{HOLES[s, level]}" + ("_wait" if wait else ""): n for (s, level, wait), n in counts.items()})


def rates(counts: dict[Any, tuple[int, int]]) -> dict[Any, float]:
    """Shrunk with K = 8: the whole, then the size, then the cell."""
    total = [sum(n[i] for n in counts.values()) for i in (0, 1)]
    shrunk = {}
    for cell in CELLS:
        own = [sum(n[i] for c, n in counts.items() if c[0] == cell[0]) for i in (0, 1)]
        of_size = (own[1] + 8 * total[1] / total[0]) / (own[0] + 8)
        answers, valid = counts.get(cell, (0, 0))
        shrunk[cell] = (valid + 8 * of_size) / (answers + 8)
    return shrunk


def flat(knobs: dict[str, Any]) -> dict[str, float]:
    """The numbers of one group, those of its joint cells among them."""
    cells = {f"cell {i} {name}": x for i, cell in enumerate(knobs["cells"]) for name, x in cell.items()}
    return {**numbers(knobs), **cells}


def knobs(weights: dict[Any, float]) -> dict[str, Any]:
    """The configuration that weights stand for."""
    proposed: dict[str, Any] = {}
    for size in (3, 5):
        own = {cell: w for cell, w in weights.items() if cell[0] == size}
        mass = sum(own.values())
        holes = sum(w * (0.05 + 0.1 * cell[1]) for cell, w in own.items()) / mass
        waits = sum(w for cell, w in own.items() if cell[2]) / mass
        proposed[str(size)] = {"data_ratio": mass / sum(weights.values()), "hole_ratio": holes, "wait_ratio": waits}
        proposed[str(size)]["cells"] = [
            {"share": w / mass, "hole_ratio": 0.05 + 0.1 * level, "wait_ratio": float(wait)}
            for (_, level, wait), w in own.items()
            if w > 0
        ]
    return proposed


def place(score: dict[Any, float], cell: Any) -> tuple[int, int]:
    """How many cells are better than this one, and how many are as good, itself included."""
    rounded = {c: round(s, 9) for c, s in score.items()}
    return sum(s > rounded[cell] for s in rounded.values()), sum(s == rounded[cell] for s in rounded.values())


def learning_progress() -> dict[Any, float]:
    before, now = rates(FIRST), rates(SECOND)
    moved = {cell: abs(now[cell] - before[cell]) for cell in CELLS}
    return {cell: 0.2 / len(CELLS) + 0.8 * moved[cell] / sum(moved.values()) for cell in CELLS}


def learnability() -> dict[Any, float]:
    """Cells that tie for the last places share them."""
    p = rates(SECOND)
    weights, best = {}, len(CELLS) // 4
    for cell in CELLS:
        better, equal = place({c: p[c] * (1 - p[c]) for c in CELLS}, cell)
        weights[cell] = 0.5 / len(CELLS) + 0.5 / best * min(1.0, max(0.0, (best - better) / equal))
    return weights


def level_replay() -> dict[Any, float]:
    """Cells that tie share their ranks."""
    p = rates(SECOND)
    priority = {}
    for cell in CELLS:
        better, equal = place({c: 2 * p[c] * (1 - p[c]) for c in CELLS}, cell)
        priority[cell] = sum(1 / rank for rank in range(better + 1, better + equal + 1)) / equal
    latest = [(3, 1, False), (3, 1, True), (5, 3, False)]  # what both rounds were trained on; all others never
    stale = {cell: 0 if cell in latest else 2 for cell in CELLS}
    total = sum(priority.values())
    return {cell: 0.9 * priority[cell] / total + 0.1 * stale[cell] / sum(stale.values()) for cell in CELLS}


@pytest.mark.parametrize(
    ("name", "weights"),
    [("learning-progress", learning_progress), ("learnability", learnability), ("level-replay", level_replay)],
)
def test_each_formula_by_plain_arithmetic(name: str, weights: Any) -> None:
    proposed = propose(name, named(FIRST), named(SECOND))
    for size, expected in knobs(weights()).items():
        assert flat(proposed[size]) == pytest.approx(flat(expected)), size


@pytest.mark.parametrize("name", ["learnability", "level-replay:staleness=0", "learning-progress"])
def test_without_evidence_no_cell_is_preferred(name: str) -> None:
    """Ties once went to the first cells, so the smallest map got 54 % of the data before anything had been answered."""
    for nothing in (breakdown(), breakdown(s3_h0=(0, 0))):
        got = propose(name, nothing, nothing)
        assert {size: flat(knobs) for size, knobs in got.items()} == {
            size: pytest.approx(flat(knobs)) for size, knobs in propose("uniform", nothing).items()
        }


@pytest.mark.parametrize("name", ["learnability", "level-replay:staleness=0"])
@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_equal_evidence_gets_equal_shares(name: str, seen: tuple[int, int]) -> None:
    """The same evidence in the same cells of both sizes; also p against 1 - p, which are equal but for rounding."""
    answers, valid = seen
    same = propose(name, breakdown(s3_h0=seen, s5_h0=seen))
    assert flat(same["3"]) == pytest.approx(flat(same["5"]))
    mirrored = propose(name, breakdown(s3_h0=seen, s5_h0=(answers, answers - valid)))
    assert flat(mirrored["3"]) == pytest.approx(flat(mirrored["5"]))


def test_the_schedule_by_hand() -> None:
    """Sizes 3 and 5 in a run of 3 rounds: after round 0, t = 1/2 and the frontier is 5, so both sizes get the same."""
    after_0 = propose("easy-to-hard", breakdown(), rounds=3)
    assert after_0 == {s: pytest.approx({"data_ratio": 0.5, "hole_ratio": 0.2, "wait_ratio": 0.4}) for s in ("3", "5")}


def test_every_formula_names_its_source() -> None:
    for name, source in (
        ("learning-progress", ("1910.07224", "1810.06284")),
        ("level-replay", ("2010.03934",)),
        ("learnability", ("2408.15099",)),
        ("easy-to-hard", ("t = n / (R - 1)",)),
        ("uniform", ("w = 1",)),
    ):
        text = installed().designers.find(name).load().__doc__ or ""
        assert all(part in text for part in source), name


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


def test_the_probe_takes_the_best_trial_and_of_equal_ones_what_is_there() -> None:
    def tried(worth: Callable[[dict[str, Any]], int]) -> Proposal:
        def trial(candidate: dict[str, Any], instances: int) -> TrialRun:
            assert instances == 64
            counts = {"answers": 100, "valid": worth(candidate), "optimal": 0}
            return TrialRun({"groups": {"3": counts, "5": {"answers": 0, "valid": 0, "optimal": 0}}}, 1, 10)

        state = RoundState(LAKE, [Round(0, CONFIGURATION, breakdown())], bookkeeping={"rounds": 2})
        made: Proposal = installed().designers.make("probe").propose(Brief("", state, Setting(), REQUEST, 0, trial=trial))
        return made

    assert tried(lambda candidate: 50).parsed == CONFIGURATION
    waits = tried(lambda candidate: round(100 * candidate["3"]["wait_ratio"])).parsed
    assert waits == {size: {**knobs, "wait_ratio": (1 + knobs["wait_ratio"]) / 2} for size, knobs in CONFIGURATION.items()}
    large = tried(lambda candidate: round(100 * candidate["5"]["data_ratio"])).parsed
    assert large is not None and (large["3"]["data_ratio"], large["5"]["data_ratio"]) == (0.25, 0.75)
    with pytest.raises(T2TError, match="needs a run"):
        installed().designers.make("probe").propose(Brief("", RoundState(LAKE, []), Setting(), REQUEST, 0))
