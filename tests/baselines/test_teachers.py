"""Curricula that read the training's counts, and schedules: each formula worked out by hand, and that no two behave alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lake
from t2t_baselines.curricula.thompson import best_of
from t2t_core.cells import Cells, levels, softmax, top_shares
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Brief, RoundState
from t2t_core.plugins import installed
from t2t_core.records import Round
from t2t_core.testing import check_designer

LAKE = installed().testbeds.make("mapf-frozenlake")
REQUEST = LAKE.request(10)
READ_TRAINING = ("sec", "dump", "adarft", "thompson", "accel")
NAMES = (*READ_TRAINING, "e2h:cosine", "e2h:gaussian", "success-window", "comfort-zone", "too-hard")
CONFIGURATION = {
    "3": {"data_ratio": 0.5, "hole_ratio": 0.1, "wait_ratio": 0.5},
    "5": {"data_ratio": 0.5, "hole_ratio": 0.3, "wait_ratio": 0.0},
}
EASY, FAIR, HARD = "3x3 holes 15% no wait", "3x3 holes 15% wait", "5x5 holes 25% no wait"
PLACES = {EASY: "3x3 holes=1", FAIR: "3x3 holes=1 wait", HARD: "5x5 holes=6"}


class Setting:
    def to_dict(self) -> dict[str, Any]:
        return {size: dict(knobs) for size, knobs in CONFIGURATION.items()}


def validated(valid: dict[str, float], answers: int = 10_000) -> dict[str, Any]:
    """A validation with so many answers in each of these cells that shrinking hardly matters."""
    cells = {PLACES.get(cell, cell): {"answers": answers, "valid": round(answers * share)} for cell, share in valid.items()}
    return {"groups": {}, "cells": cells}


def trained(**facts: tuple[int, float, float, float]) -> dict[str, Any]:
    """`EASY=(groups, advantage, dead, valid)`, four answers a group."""
    cells = {}
    for name, (groups, advantage, dead, valid) in facts.items():
        cell = globals()[name]
        cells[cell] = {"group": cell[0], "groups": groups, "answers": 4 * groups, "reward": valid, "tokens": 40 * groups}
        cells[cell] |= {"advantage": advantage, "dead": dead, "valid": valid, "first_failures": {}}
    return {"cells": cells}


def brief(*rounds: tuple[dict[str, Any], dict[str, Any]], planned: int = 5, seed: int = 0) -> Brief:
    past = [Round(i, CONFIGURATION, breakdown, None, training) for i, (breakdown, training) in enumerate(rounds)]
    state = RoundState(LAKE, past, bookkeeping={"rounds": planned})
    return Brief("", state, Setting(), REQUEST, seed)


def weights(name: str, asked: Brief) -> dict[str, float]:
    """The proposal as a share of every cell."""
    proposed = installed().designers.make(name).propose(asked).parsed
    cells = Cells.of(asked)
    mass = dict.fromkeys(cells.names(), 0.0)
    for group, values in proposed.items():
        for part in values.get("cells", ()):
            levels = {"hole_ratio": part["hole_ratio"], "wait_ratio": part["wait_ratio"]}
            cell = next(c.name for c in cells.cells if c.group == group and c.levels == levels)
            mass[cell] += values["data_ratio"] * part["share"]
    return mass


NOTHING = validated({})
TAUGHT = trained(EASY=(30, 0.2, 0.8, 1.0), FAIR=(30, 0.8, 0.1, 0.5), HARD=(30, 0.05, 0.95, 0.0))


def test_sec_by_hand() -> None:
    later = trained(FAIR=(10, 0.4, 0.5, 0.9))
    got = weights("sec:rate=0.5,temperature=0.3", brief((NOTHING, TAUGHT), (NOTHING, later)))
    values = {EASY: 0.5 * 0.2, FAIR: 0.5 * 0.5 * 0.8 + 0.5 * 0.4, HARD: 0.5 * 0.05}
    powers = {cell: math.exp(values.get(cell, 0.0) / 0.3) for cell in got}
    assert got == pytest.approx({cell: power / sum(powers.values()) for cell, power in powers.items()})


def test_dump_by_hand() -> None:
    got = weights("dump:temperature=0.3", brief((NOTHING, TAUGHT)))
    bound = {cell: math.sqrt(2 * math.log(91)) for cell in got}
    for cell, advantage in ((EASY, 0.2), (FAIR, 0.8), (HARD, 0.05)):
        bound[cell] = advantage + math.sqrt(2 * math.log(91) / 31)
    powers = {cell: math.exp(u / 0.3) for cell, u in bound.items()}
    assert got == pytest.approx({cell: power / sum(powers.values()) for cell, power in powers.items()})
    assert got[FAIR] < got["3x3 holes 25% wait"], "what was never tried is tried first"


def test_adarft_by_hand() -> None:
    seen = validated({EASY: 1.0, FAIR: 0.5, HARD: 0.0})
    valid = trained(EASY=(3, 0.1, 0.5, 0.9), FAIR=(1, 0.1, 0.5, 0.5))  # 0.8 of the answers
    target = 0.5 * math.tanh(2 * (0.8 - 0.5))
    rates = Cells.of(brief((seen, valid))).success_rates(seen)
    got = weights("adarft:top=0.05", brief((seen, valid)))
    away = {cell: round(abs(1 - rate - target), 9) for cell, rate in rates.items()}
    assert {cell for cell, w in got.items() if w} == {cell for cell in away if away[cell] == min(away.values())}
    failing = trained(HARD=(3, 0.1, 0.5, 0.0))
    assert weights("adarft:top=0.05", brief((seen, failing)))[EASY] == pytest.approx(1)
    high = [(seen, trained(EASY=(3, 0.1, 0.5, 1.0)))] * 5
    assert weights("adarft:top=0.05", brief(*high))[HARD] == pytest.approx(1), "and stays within the difficulties there are"


def test_thompson_by_hand() -> None:
    """P(Beta(3, 1) > Beta(1, 1)) = 3/4: of four independent uniform numbers the highest is one of three."""
    assert best_of([(3, 1), (1, 1)]) == pytest.approx([0.75, 0.25], abs=1e-3)
    assert best_of([(1, 1)] * 5) == pytest.approx([0.2] * 5)
    got = weights("thompson:uniform=0", brief((NOTHING, trained(EASY=(200, 0.1, 1.0, 1.0), FAIR=(200, 0.9, 0.0, 0.5)))))
    assert got[EASY] < 1e-9 and got[FAIR] == max(got.values())


@given(st.lists(st.tuples(st.floats(1, 30), st.floats(1, 30)), min_size=2, max_size=6))
@settings(max_examples=40, deadline=None)
def test_chances_agree_with_draws(posteriors: list[tuple[float, float]]) -> None:
    draws = np.random.default_rng(0).beta(*np.array(posteriors).T, size=(20_000, len(posteriors)))
    drawn = np.bincount(draws.argmax(axis=1), minlength=len(posteriors)) / 20_000
    assert best_of(posteriors) == pytest.approx(drawn.tolist(), abs=0.02)


def test_thompson_forgets() -> None:
    long_ago = (NOTHING, trained(EASY=(100, 0.9, 0.0, 0.5), FAIR=(100, 0.1, 1.0, 0.0)))
    now = (NOTHING, trained(EASY=(100, 0.1, 1.0, 1.0), FAIR=(100, 0.9, 0.0, 0.5)))
    got = weights("thompson:memory=0.5,uniform=0", brief(long_ago, now))
    assert got[FAIR] > got[EASY]
    assert weights("thompson:memory=1,uniform=0", brief(long_ago, now))[FAIR] == pytest.approx(
        weights("thompson:memory=1,uniform=0", brief(long_ago, now))[EASY]
    )


def test_e2h_by_hand() -> None:
    """Two levels of ten cells; of five rounds the next is the second: t = 1/4."""
    by_size = {f"{n}x{n} holes={n * n // 5}": v for n, v in ((3, 1.0), (5, 0.0))}
    asked = brief((validated(by_size), {}))
    easy = (1 + math.cos(math.pi / 4)) / 2
    got = weights("e2h:cosine,levels=2", asked)
    assert sum(w for cell, w in got.items() if cell[0] == "3") == pytest.approx(easy)
    gaussian = [math.exp(-((0.25**0.5 - k) ** 2) / (2 * 0.5**2)) for k in (0, 1)]
    got = weights("e2h:gaussian,levels=2", asked)
    assert sum(w for cell, w in got.items() if cell[0] == "3") == pytest.approx(gaussian[0] / sum(gaussian))
    with pytest.raises(T2TError, match="schedule"):
        installed().designers.make("e2h:sudden")


def test_the_window_moves_when_its_hardest_level_is_mastered() -> None:
    by_size = {"3x3 holes=1": 0.95, "5x5 holes=6": 0.2}
    first, mastered = brief((validated(by_size), {})), validated({"3x3 holes=1": 0.95, "5x5 holes=6": 0.95})
    share = {name: sum(w for cell, w in weights(name, first).items() if cell[0] == "3") for name in ("success-window:levels=2",)}
    assert share["success-window:levels=2"] == pytest.approx(0.5), "3x3 is mastered, so 5x5 has been added"
    narrow = weights("success-window:levels=2,width=1", brief((validated(by_size), {}), (mastered, {})))
    assert sum(w for cell, w in narrow.items() if cell[0] == "5") == pytest.approx(1)
    strict = weights("success-window:levels=2,mastered=0.99", first)
    assert sum(w for cell, w in strict.items() if cell[0] == "3") == pytest.approx(1)


def test_accel_edits_the_round_that_taught_most() -> None:
    other = {size: {**knobs, "wait_ratio": 1.0} for size, knobs in CONFIGURATION.items()}
    past = [
        Round(0, CONFIGURATION, NOTHING, None, trained(FAIR=(10, 0.9, 0.0, 0.5))),
        Round(1, other, NOTHING, None, trained(EASY=(10, 0.1, 0.9, 1.0))),
    ]
    asked = Brief("", RoundState(LAKE, past), Setting(), REQUEST, 3)
    proposed = installed().designers.make("accel:edits=1,step=2").propose(asked).parsed
    changes = [
        (size, knob)
        for size, knobs in CONFIGURATION.items()
        for knob, value in knobs.items()
        if knob != "data_ratio" and proposed[size][knob] != pytest.approx(value)
    ]
    moved_share = proposed["3"]["data_ratio"] != pytest.approx(0.5)
    assert len(changes) + moved_share <= 1, "one edit of round 0's configuration, not of the latest"
    seen = [installed().designers.make("accel").propose(Brief("", asked.state, Setting(), REQUEST, s)).parsed for s in (1, 1, 2)]
    assert seen[0] == seen[1] != seen[2]


def test_extremes_are_opposites() -> None:
    asked = brief((validated({EASY: 1.0, FAIR: 0.5, HARD: 0.0}), {}))
    assert weights("comfort-zone:top=0.05", asked)[EASY] == 1 and weights("too-hard:top=0.05", asked)[HARD] == 1


def test_those_that_read_trainings_say_so_where_nothing_was_counted() -> None:
    for name in READ_TRAINING:
        with pytest.raises(T2TError, match="no facts about its cells"):
            weights(name, brief((NOTHING, {"loss": 1.0})))


def test_they_can_be_told_apart() -> None:
    """Every designer proposes something different from the same history."""
    seen = validated({EASY: 0.95, FAIR: 0.6, HARD: 0.1})
    training = trained(EASY=(60, 0.2, 0.8, 1.0), FAIR=(30, 0.8, 0.1, 0.6), HARD=(5, 0.05, 0.95, 0.0))
    names = [name for name in NAMES if name != "accel"]
    made = {name: weights(name, brief((seen, training), (seen, training))) for name in names}
    for i, name in enumerate(names):
        for other in names[:i]:
            apart = sum(abs(made[name][cell] - made[other][cell]) for cell in made[name]) / 2
            assert apart > 0.02, (name, other)


@pytest.mark.parametrize("name", ["sec", "dump", "thompson", "e2h:cosine", "e2h:gaussian", "comfort-zone", "too-hard", "adarft"])
def test_equal_evidence_gets_equal_shares(name: str) -> None:
    """If all cells have the same facts, none is preferred for its place in a list."""
    cells = Cells.of(brief((NOTHING, {}))).names()
    same = {"group": "3", "groups": 5, "answers": 20, "reward": 0.5, "tokens": 1, "advantage": 0.5, "dead": 0.2, "valid": 0.5}
    got = weights(name, brief((NOTHING, {"cells": dict.fromkeys(cells, same)})))
    assert list(got.values()) == pytest.approx([1 / len(cells)] * len(cells))


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_levels_are_quantiles_and_ties_stay_together(rates: dict[str, float], count: int) -> None:
    placed = levels(rates, count)
    assert set(placed) == set(rates) and all(0 <= level < count for level in placed.values())
    for a in rates:
        for b in rates:
            if rates[a] > rates[b] + 1e-9:
                assert placed[a] <= placed[b]
            elif rates[a] == rates[b]:
                assert placed[a] == placed[b]


@given(st.dictionaries(st.integers(0, 50), st.floats(-5, 5), min_size=1), st.floats(0.01, 1), st.floats(0.05, 10))
@settings(max_examples=40, deadline=None)
def test_shares_sum_to_one_and_follow_the_scores(numbers: dict[int, float], part: float, temperature: float) -> None:
    scores = {str(name): score for name, score in numbers.items()}
    for shares in (top_shares(scores, part), softmax(scores, temperature)):
        assert sum(shares.values()) == pytest.approx(1)
        for a in scores:
            for b in scores:
                if scores[a] > scores[b]:
                    assert shares[a] >= shares[b] - 1e-12


def test_facts_of_places_are_added_up_where_a_testbed_has_no_cells() -> None:
    """On the pretend lake a group is one cell, and trainings count by finer places."""
    testbed = lake.Lake()
    counts = {"answers": 4, "reward": 0.5, "advantage": 0.2, "dead": 0.0, "valid": 0.5, "tokens": 10}
    facts = {"3 even": {"group": "3", "groups": 1, **counts}, "3 odd": {"group": "3", "groups": 3, **counts, "dead": 1.0}}
    past = Round(0, {}, {}, None, {"cells": facts})
    request = testbed.request(4)
    asked = Brief("", RoundState(testbed, [past]), testbed.random_configuration(request, 0), request, 0)
    together = {**counts, "groups": 4, "answers": 8, "tokens": 20, "dead": 0.75}
    assert Cells.of(asked).trained(past) == {"3": pytest.approx(together)}


@pytest.mark.parametrize("name", NAMES)
def test_each_keeps_the_contract_and_names_its_source(name: str) -> None:
    made = installed().designers.make(name)
    check_designer(made, lake.Lake())
    check_designer(made, LAKE)
    text = installed().designers.find(name.partition(":")[0]).load().__doc__ or ""
    assert "arXiv" in text or "our choice" in text
