"""Planted designers, whose behaviour is known: every behaviour number detects those with the behaviour that it measures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2t_core.report.behaviour import MEASURES, Edit, analyze

GROUPS = tuple(str(size) for size in range(3, 11))
RUNS, DESIGNS = 40, 7  # as many runs of each planted designer, with so many designs each
NAMES = (
    "loud",
    "informative",
    "template",
    "boundary",
    "follower",
    "reader",
    "anchored",
    "rewriter",
    "breaker",
    "retreating",
    "quitter",
)
# number -> the planted designers that do what it is about, and whether they are above (1) or below (-1) the others
PLANTED = {
    "loud_over_informative": (("loud",), 1),
    "distance_to_round_0": (("anchored",), -1),
    "cells_rewritten": (("rewriter", "anchored"), 1),
    "rewrites_at_failing": (("reader",), 1),
    "healthy_rewritten": (("breaker", "rewriter", "anchored", "template"), 1),
    "levels_follow_order": (("template",), 1),
    "levels_monotone": (("template",), 1),
    "edit_follows_breakdown": (("reader",), 1),
    "edit_follows_summary": (("follower",), 1),
    "share_near_boundary": (("boundary",), 1),
    "boundary_shift": (("boundary",), 1),
    "centre_shift": (("retreating",), -1),
    "groups_kept": (("quitter",), -1),
}


def situation(rng: Any) -> dict[str, Any]:
    """A configuration, round 0's, a validation that mostly falls with size, and the sizes that the last summary named."""
    before, start = (
        np.column_stack([rng.dirichlet(np.full(8, 3.0)), rng.uniform(0, 0.5, 8), rng.uniform(0, 1, 8)]) for _ in range(2)
    )
    valid = np.clip(0.95 - 0.1 * np.arange(8) * rng.uniform(0.5, 1.4) + rng.normal(0, 0.08, 8), 0.02, 0.98)
    named = rng.uniform(size=8) < 0.35
    named[rng.integers(8)] = True
    failed = np.round(rng.integers(30, 200, 8) * (1 - valid))
    return {"before": before, "start": start, "valid": valid, "failed": failed, "named": named}


def designed(name: str, seen: dict[str, Any], rng: Any) -> Edit:
    """The proposal of the planted designer."""
    after, valid = seen["before"].copy(), seen["valid"]
    shares = after[:, 0]

    def give(group: int) -> None:
        shares[:] *= 0.85
        shares[group] += 0.15

    def ease(groups: Any) -> None:
        after[groups, 1] = np.abs(after[groups, 1] - 0.1)
        after[groups, 2] = np.abs(after[groups, 2] - 0.1)

    if name == "loud":
        give(int(np.argmax(seen["failed"])))
    elif name == "informative":
        give(int(np.argmax(valid * (1 - valid))))
    elif name == "template":
        after[:, 1], after[:, 2] = np.linspace(0.05, 0.45, 8), np.linspace(0.1, 0.9, 8)
    elif name == "boundary":
        edge = max(np.flatnonzero(valid >= 0.5), default=0)
        shares[:] = 0.03
        shares[max(0, edge - 1) : edge + 2] = 0.3
        shares /= shares.sum()
    elif name == "follower":
        ease(seen["named"])
    elif name == "reader":
        ease(valid < 0.5)
    elif name == "anchored":
        after += 0.9 * (seen["start"] - after)
    elif name == "rewriter":
        after[:] = situation(rng)["before"]
    elif name == "breaker":
        after[valid >= 0.5, 1] = np.minimum(0.5, after[valid >= 0.5, 1] + 0.1) - 0.01
    elif name == "retreating":
        shares *= np.exp(-0.5 * np.arange(8))
        shares /= shares.sum()
    elif name == "quitter":
        shares[6:] = 0
        shares /= shares.sum()
    return Edit(GROUPS, seen["before"], after, valid, seen["failed"], seen["named"], seen["start"])


@pytest.fixture(scope="module")
def values() -> dict[str, dict[str, list[float]]]:
    """number -> planted designer -> its mean in every run that has one."""
    rng = np.random.default_rng(0)
    situations = [[situation(rng) for _ in range(DESIGNS)] for _ in range(RUNS)]
    runs = {name: [[designed(name, seen, rng) for seen in run] for run in situations] for name in NAMES}
    by_measure: dict[str, dict[str, list[float]]] = {measure.name: {name: [] for name in NAMES} for measure in MEASURES}
    for measure in MEASURES:
        for name, edits in runs.items():
            known = [[v for edit in run if (v := measure.value(edit)) is not None] for run in edits]
            by_measure[measure.name][name] = [sum(of) / len(of) for of in known if of]
    return by_measure


def above(ours: list[float], theirs: list[float]) -> float:
    """The chance that a run of ours has the higher number; equal ones count half."""
    a, b = np.array(ours)[:, None], np.array(theirs)
    return float(((a > b) + 0.5 * (a == b)).mean())


def test_every_number_has_its_planted_designer() -> None:
    assert set(PLANTED) == {measure.name for measure in MEASURES}


@pytest.mark.parametrize("number", PLANTED)
def test_a_number_finds_those_that_do_what_it_is_about(number: str, values: dict[str, dict[str, list[float]]]) -> None:
    planted, sign = PLANTED[number]
    for name in planted:
        for other in NAMES:
            if other in planted or not values[number][other]:
                continue
            chance = above(values[number][name], values[number][other])
            assert (chance if sign > 0 else 1 - chance) >= 0.9, (name, other, chance)


def test_a_step_whose_loudest_group_is_the_most_informative_says_nothing_of_salience() -> None:
    rng = np.random.default_rng(1)
    seen = situation(rng)
    seen["valid"] = np.array([0.9] * 7 + [0.5])
    seen["failed"] = 50 * (1 - seen["valid"])
    measure = next(m for m in MEASURES if m.name == "loud_over_informative")
    assert measure.value(designed("loud", seen, rng)) is None


def test_kept_studies_are_read_from_their_summaries() -> None:
    """The rule and the fixed control of the kept study behave as they are known to."""
    kept = Path(__file__).parents[2] / "studies" / "tiny" / "results" / "seed_1"
    rule, fixed = analyze(kept / "rule_F"), analyze(kept / "fixed_F")
    assert len(rule["steps"]) == len(fixed["steps"]) == 2
    assert fixed["mean"]["cells_rewritten"] == 0 and 0.2 < rule["mean"]["cells_rewritten"] < 0.7
    assert rule["steps"][1]["edit_follows_summary"] is not None, "the rule says what it saw"
