"""Prompts say everything a policy needs, ask for the documented answer and show no label."""

from __future__ import annotations

from dataclasses import replace

import pytest

from t2t_core.errors import T2TError
from t2t_envs.frozen_lake import Instance, make_prompt, requires_wait, solve, verify
from t2t_envs.frozen_lake.prompt import EXAMPLE, FORMATS

LAKE = Instance(
    size=12,
    holes=[(0, 1), (11, 11), (10, 2)],
    starts=[(2, 0), (1, 0), (5, 5)],
    goals=[(1, 0), (2, 2), (5, 6)],
    id="3agents_12x12_0007",
    optimal_makespan=777,
    optimal_sum_of_costs=888,
    requires_wait=True,
)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("objective", ["makespan", "sum_of_costs"])
def test_no_label_is_shown(name: str, objective: str) -> None:
    lake = replace(LAKE, objective=objective)
    prompt = make_prompt(lake, name)
    assert prompt == make_prompt(lake.unlabelled(), name) == make_prompt(replace(lake, id="other"), name)
    assert prompt != make_prompt(replace(lake, starts=[(2, 1), (1, 0), (5, 5)]), name)
    assert prompt != make_prompt(replace(lake, holes=[(0, 1)]), name)
    assert prompt != make_prompt(replace(lake, objective="makespan" if objective != "makespan" else "sum_of_costs"), name)


@pytest.mark.parametrize("name", ["board", "coordinates"])
def test_the_worked_example_is_optimal_and_waits(name: str) -> None:
    verdict = verify(EXAMPLE, make_prompt(LAKE, name))
    assert verdict.valid
    assert verdict.costs == {o: solve(EXAMPLE, o).cost for o in ("makespan", "sum_of_costs")}
    assert requires_wait(EXAMPLE)


@pytest.mark.parametrize("name", ["board", "coordinates"])
def test_every_agent_and_rule_is_named(name: str) -> None:
    prompt = make_prompt(LAKE, name)
    assert "Agent 2: start (5,5), goal (5,6)" in prompt
    assert "12 x 12" in prompt
    assert "<answer>\nAgent 0: (" in prompt
    for word in ("waits", "hole", "swap", "same cell", "goal", "last agent arrives"):
        assert word in prompt


def test_the_board_is_a_grid_of_named_cells() -> None:
    rows = make_prompt(LAKE).split("\n\n")[1].splitlines()[1:]
    grid = [row.split() for row in rows]
    assert grid[0] == [str(c) for c in range(12)]
    assert [row[0] for row in grid[1:]] == [str(r) for r in range(12)]
    marks = {(r, c): grid[r + 1][c + 1] for r in range(12) for c in range(12)}
    assert {cell for cell, mark in marks.items() if mark == "#"} == set(LAKE.holes)
    assert (marks[2, 0], marks[1, 0], marks[5, 6]) == ("S0", "S1G0", "G2")
    assert len({len(row) for row in rows}) == 1, "columns stand under each other"


def test_compact_is_literally_this() -> None:
    assert make_prompt(LAKE, "compact") == (
        "N 12\nholes (0,1) (10,2) (11,11)\nAgent 0: (2,0) -> (1,0)\nAgent 1: (1,0) -> (2,2)\nAgent 2: (5,5) -> (5,6)"
    )
    empty = Instance(size=3, holes=[], starts=[(0, 0)], goals=[(0, 1)], objective="sum_of_costs")
    assert make_prompt(empty, "compact") == "N 3 sum_of_costs\nholes\nAgent 0: (0,0) -> (0,1)"


def test_formats_are_replaced_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "haiku", lambda instance: f"{instance.num_agents} on the ice")
    assert make_prompt(LAKE, "haiku") == "3 on the ice"
    with pytest.raises(T2TError, match="no prompt format") as caught:
        make_prompt(LAKE, "bord")
    assert "did you mean board" in str(caught.value)
