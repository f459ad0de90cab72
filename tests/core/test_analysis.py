"""The behaviour numbers, worked out by hand for small design steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2t_core.plugins import installed
from t2t_core.report.behaviour import MEASURES, Edit, arms, named_groups
from t2t_core.report.behaviour_document import behaviour_charts
from t2t_envs.frozen_lake.observed import OBSERVED

GROUPS = ("3", "4", "5", "6")


def edit(after: Any, valid: Any = (0.9, 0.6, 0.4, 0.1), before: Any = None, named: Any = None) -> Edit:
    start = np.array([[0.25, 0.1, 0.5]] * 4)
    table = start if before is None else np.array(before, dtype=float)
    values = np.array(valid, dtype=float)
    return Edit(GROUPS, table, np.array(after, dtype=float), values, 50 * (1 - values), named, start)


def measure(name: str, step: Edit) -> float | None:
    return next(m for m in MEASURES if m.name == name).value(step)


SAME = [[0.25, 0.1, 0.5]] * 4
TO_THE_BOUNDARY = [[0.1, 0.1, 0.5], [0.4, 0.1, 0.5], [0.4, 0.2, 0.5], [0.1, 0.0, 0.2]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("loud_over_informative", -0.15 - 0.15),  # size 6 has most failures; 0.6 * 0.4 equals 0.4 * 0.6: the first, size 4
        ("distance_to_round_0", (4 * 0.15 + 0.1 + 0.1 + 0.3) / 12),
        ("cells_rewritten", 7 / 12),
        ("rewrites_at_failing", 5 / 7),
        ("healthy_rewritten", 0.0),
        ("levels_monotone", 4 / 6),
        ("edit_follows_breakdown", 2 / 4),
        ("edit_follows_summary", None),
        ("share_near_boundary", 0.9),  # the boundary is size 4
        ("boundary_shift", 0.9 - 0.75),
        ("centre_shift", 0.0),
        ("groups_kept", 1.0),
    ],
)
def test_each_number_by_hand(name: str, expected: float | None) -> None:
    assert measure(name, edit(TO_THE_BOUNDARY)) == (pytest.approx(expected) if expected is not None else None)


def test_a_step_without_change_has_no_rewrites() -> None:
    assert measure("cells_rewritten", edit(SAME)) == 0
    assert measure("rewrites_at_failing", edit(SAME)) is None
    assert measure("levels_follow_order", edit(SAME)) is None


def test_a_template_follows_map_size() -> None:
    rising = [[0.25, 0.1 * i, 0.2 * i] for i in range(4)]
    assert measure("levels_follow_order", edit(rising)) == pytest.approx(1)
    assert measure("levels_monotone", edit(rising)) == 1
    ties = [[0.25, level, 0.5] for level in (0.1, 0.1, 0.3, 0.2)]  # ranks 0.5, 0.5, 3, 2; the other knob says nothing
    assert measure("levels_follow_order", edit(ties)) == pytest.approx(3.5 / (5 * 4.5) ** 0.5)
    falling = [[0.25, 0.4 - 0.1 * i, 0.8 - 0.2 * i] for i in range(4)]
    assert measure("levels_follow_order", edit(falling)) == pytest.approx(-1)


def test_giving_large_maps_up_moves_the_centre_inward_and_keeps_fewer_groups() -> None:
    inward = edit([[0.5, 0.1, 0.5], [0.495, 0.1, 0.5], [0.005, 0.1, 0.5], [0.0, 0.1, 0.5]])
    assert measure("groups_kept", inward) == 0.5
    assert measure("centre_shift", inward) == pytest.approx((0.505 - 1.5) / 3)


def test_runs_of_one_designer_and_context_are_averaged_with_an_interval_over_runs() -> None:
    def run(context: str, *steps: float | None) -> dict[str, Any]:
        known = [s for s in steps if s is not None]
        made = [{m.name: value for m in MEASURES} for value in steps]
        mean = sum(known) / len(known) if known else None
        return {"designer": "rule", "context": context, "steps": made, "mean": {m.name: mean for m in MEASURES}}

    behaviours = arms([run("V1", 0.0, 1.0), run("V6", None), run("V1", 1.0, None)])
    assert [(a["arm"], a["runs"]) for a in behaviours] == [("rule, V1", 2), ("rule, V6", 1)]
    estimate = behaviours[0]["mean"]["cells_rewritten"]
    assert estimate["value"] == 0.75 and estimate["high"] - 0.75 == pytest.approx(12.706 * 0.25, rel=1e-3)
    assert behaviours[0]["values"]["groups_kept"] == [0.0, 1.0, 1.0] and behaviours[1]["mean"]["groups_kept"] is None
    charts = behaviour_charts(behaviours)
    assert len(charts) == 5 == len({m.behaviour for m in MEASURES})
    svg = charts["behaviour_edit_granularity"].svg()
    assert svg.count("<circle") == 3 * 3 + 2 and "cells rewritten" in svg and "rule, V6" in svg  # two of them in the legend


def test_the_summarys_sizes_are_set_against_the_breakdowns() -> None:
    lake = installed().testbeds.make("mapf-frozenlake")
    named = named_groups("Focus on 3x3 and 5×5; 10 comes later, 4% more of 2.6.", GROUPS, lake.group_of)
    assert list(named) == [True, False, True, False]
    words = named_groups("Far numbers; the very near ones less, nearly none.", ("near", "far", "very near", "none yet"))
    assert list(words) == [True, True, True, False], "names that are words, whatever their case"
    assert named_groups(None, GROUPS) is None
    only_3 = [[0.25, 0.3, 0.5], *SAME[1:]]
    assert measure("edit_follows_summary", edit(only_3, named=named)) == pytest.approx(1 / 2)
    assert measure("edit_follows_breakdown", edit(only_3, named=named)) == 0


def test_nothing_answered_gives_no_number_instead_of_a_wrong_one() -> None:
    step = edit(TO_THE_BOUNDARY, valid=(np.nan,) * 4)
    values = [m.value(step) for m in MEASURES]
    assert measure("share_near_boundary", step) is None and measure("loud_over_informative", step) is None
    assert all(v is None or np.isfinite(v) for v in values)


def test_the_documentation_has_every_number_and_its_formula() -> None:
    page = (Path(__file__).parents[2] / "docs" / "behaviour.md").read_text()
    for m in MEASURES:
        assert f"| `{m.name}` | {m.behaviour} | {m.formula} | {m.inputs} | {OBSERVED[m.name]} |" in page
