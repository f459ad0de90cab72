"""The eight checks against hand-made cases, and against a slow check written independently here."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_envs.frozen_lake import CHECKS, Instance, Verdict, format_answer, verify, verify_paths

Cell = tuple[int, int]
PAGE = Instance(
    size=3, holes=[(0, 1)], starts=[(2, 0), (1, 0)], goals=[(1, 2), (2, 2)], optimal_makespan=3, optimal_sum_of_costs=6
)
PAGE_PATHS = [[(2, 0), (2, 1), (2, 2), (1, 2)], [(1, 0), (1, 1), (2, 1), (2, 2)]]
ALL = dict.fromkeys(CHECKS, True)


def failed(verdict: Verdict) -> list[str]:
    return [name for name, passed in verdict.checks.items() if not passed]


def test_the_documented_answer() -> None:
    verdict = verify(PAGE, format_answer(PAGE_PATHS))
    assert verdict == Verdict(
        checks=ALL,
        valid=True,
        optimal=True,
        cost=3,
        costs={"makespan": 3, "sum_of_costs": 6},
        gap=0,
        gaps={"makespan": 0, "sum_of_costs": 0},
    )
    assert list(verdict.checks) == [
        "parsable", "agent_count", "start_correct", "in_bounds", "hole_free", "legal_move", "conflict_free", "goal_reached",
    ]  # fmt: skip
    assert verdict == verify_paths(PAGE, PAGE_PATHS)
    assert verdict.failure is None


@pytest.mark.parametrize(
    ("paths", "check", "agent", "step", "cell"),
    [
        ([[(2, 1), (2, 2), (1, 2)], PAGE_PATHS[1]], "start_correct", 0, 0, (2, 1)),
        ([PAGE_PATHS[0], [(1, 0), (1, -1), (1, 0), (1, 1), (2, 1), (2, 2)]], "in_bounds", 1, 1, (1, -1)),
        ([PAGE_PATHS[0], [(1, 0), (1, 1), (0, 1), (1, 1), (2, 1), (2, 2)]], "hole_free", 1, 2, (0, 1)),
        ([[(2, 0), (2, 2), (1, 2)], PAGE_PATHS[1]], "legal_move", 0, 1, (2, 2)),
        ([PAGE_PATHS[0], [(1, 0), (1, 1), (2, 1)]], "goal_reached", 1, 2, (2, 1)),
    ],
)
def test_one_offence_fails_one_check(paths: list[list[Cell]], check: str, agent: int, step: int, cell: Cell) -> None:
    verdict = verify_paths(PAGE, paths)
    assert failed(verdict) == [check] == [verdict.failure]
    fault = verdict.faults[check]
    assert tuple(fault.where.get(name) for name in ("agent", "step", "cell")) == (agent, step, cell)
    assert f"agent {agent}" in fault.message
    assert (verdict.valid, verdict.optimal, verdict.cost, verdict.gap, verdict.costs) == (False, False, None, None, {})


OPEN_BACK = [(0, 2), (0, 1), (0, 0)]
OPEN = Instance(size=3, holes=[], starts=[(0, 0), (0, 2)], goals=[(0, 2), (0, 0)])


@pytest.mark.parametrize(
    ("paths", "kind", "step", "cell"),
    [
        ([[(0, 0), (0, 1), (0, 2)], [(0, 2), (0, 1), (0, 0)]], "vertex", 1, (0, 1)),
        ([[(0, 0), (0, 1), (0, 2)], [(0, 2), (0, 2), (0, 1), (0, 0)]], "edge", 2, (0, 2)),
        # the shorter path stays on its last cell, where the other runs into it
        ([[(0, 0), (1, 0), (1, 1), (1, 2), (0, 2)], [(0, 2), (0, 1), (0, 0), (0, 1), *OPEN_BACK]], "vertex", 4, (0, 2)),
    ],
)
def test_conflicts_have_a_kind_and_a_place(paths: list[list[Cell]], kind: str, step: int, cell: Cell) -> None:
    verdict = verify_paths(OPEN, paths)
    assert failed(verdict) == ["conflict_free"]
    fault = verdict.faults["conflict_free"]
    assert fault.kind == kind and fault.where == {"agent": 0, "other": 1, "step": step, "cell": cell}


def test_following_and_rotating_are_allowed() -> None:
    train = Instance(size=3, holes=[], starts=[(0, 1), (0, 0)], goals=[(0, 2), (0, 1)])
    assert verify_paths(train, [[(0, 1), (0, 2)], [(0, 0), (0, 1)]]).valid
    ring = [(0, 0), (0, 1), (1, 1), (1, 0)]
    wheel = Instance(size=3, holes=[], starts=ring, goals=ring[1:] + ring[:1])
    assert verify_paths(wheel, [[s, g] for s, g in zip(wheel.starts, wheel.goals, strict=True)]).valid


def test_waiting_on_the_goal_is_free_and_leaving_it_is_not() -> None:
    instance = Instance(size=3, holes=[], starts=[(0, 0)], goals=[(0, 1)], optimal_makespan=1)
    assert verify_paths(instance, [[(0, 0), (0, 1), (0, 1), (0, 1)]]).cost == 1
    back = verify_paths(instance, [[(0, 0), (0, 1), (1, 1), (0, 1)]])
    assert (back.cost, back.gap, back.optimal) == (3, 2, False)


def test_fewer_paths_than_agents() -> None:
    verdict = verify(PAGE, "Agent 1: (1,0) -> (1,1) -> (2,1)")
    assert failed(verdict) == ["agent_count", "goal_reached"]
    assert verdict.faults["agent_count"].where["agent"] == 0
    assert verdict.faults["goal_reached"].where["agent"] == 1


def test_a_foreign_label_is_one_agent_too_many() -> None:
    text = format_answer(PAGE_PATHS).replace("</answer>", "Agent 2: (9,9) -> (0,1)\n</answer>")
    assert failed(verify(PAGE, text)) == ["agent_count"]
    shifted = "Agent 1: (1,0) -> (1,1) -> (2,1) -> (2,2)\nAgent 2: (2,0) -> (2,1) -> (2,2) -> (1,2)"
    assert failed(verify(PAGE, shifted)) == ["agent_count"]
    assert failed(verify(PAGE, "Agent 5: (1,0)")) == list(CHECKS[1:])


def test_nothing_to_check_is_false_everywhere() -> None:
    for text in ("", "sorry", "<answer></answer>", "Agent 0: (2,0)\nAgent 0: (2,1)"):
        verdict = verify(PAGE, text)
        assert failed(verdict) == list(CHECKS)
        assert set(verdict.faults) == set(CHECKS)


def test_labels_decide_about_optimality_only() -> None:
    text = format_answer([PAGE_PATHS[0], [(1, 0), *PAGE_PATHS[1]]])
    plain = verify(PAGE.unlabelled(), text)
    assert (plain.valid, plain.optimal, plain.cost, plain.gap, plain.gaps) == (True, None, 4, None, {})
    by_sum = verify(replace(PAGE, objective="sum_of_costs"), text)
    assert (by_sum.cost, by_sum.gap, by_sum.optimal, by_sum.gaps) == (7, 1, False, {"makespan": 1, "sum_of_costs": 1})
    for optimum in (0, 3, 4, 9, None):
        assert verify(replace(PAGE, optimal_makespan=optimum), text).checks == plain.checks


def test_an_answer_better_than_the_optimum_accuses_the_label() -> None:
    verdict = verify(replace(PAGE, optimal_makespan=4), format_answer(PAGE_PATHS))
    assert (verdict.valid, verdict.optimal, verdict.gap) == (True, False, -1)
    assert "makespan 3 < 4" in verdict.faults["label"].message


def test_user_mistakes_are_named() -> None:
    with pytest.raises(T2TError, match="text"):
        verify(PAGE, None)  # type: ignore[arg-type]
    with pytest.raises(T2TError, match="Instance"):
        verify({}, "")  # type: ignore[arg-type]
    for paths in ([[(0.5, 1)]], [["ab"]], [[(1, 2, 3)]], 5):
        with pytest.raises(T2TError, match="sequences"):
            verify_paths(PAGE, paths)  # type: ignore[arg-type]


def test_hostile_answers_end_soon() -> None:
    sixteen = [(r, c) for r in range(4) for c in range(4)]
    full = Instance(size=4, holes=[], starts=sixteen, goals=sixteen)
    endless = [f"Agent {a}: ({r},{c})" + " -> (0,0)" * (110_000 if a == 0 else 0) for a, (r, c) in enumerate(sixteen)]
    began = time.process_time()
    assert verify(full, "\n".join(endless)).valid
    assert verify(full, f"Agent 0: ({'9' * 1_000_000},0)").checks["in_bounds"] is False
    assert time.process_time() - began < 1.5


# --- against an independent, slow reading of the same rules


def slow_checks(instance: Instance, paths: list[list[Cell]]) -> dict[str, bool]:
    k, n = instance.num_agents, instance.size
    longest = max(map(len, paths))
    grid = [[path[min(t, len(path) - 1)] for t in range(longest)] for path in paths]
    conflict = False
    for a in range(len(grid)):
        for b in range(a):
            for t in range(longest):
                conflict |= grid[a][t] == grid[b][t]
                conflict |= t > 0 and grid[a][t] == grid[b][t - 1] and grid[b][t] == grid[a][t - 1]
    moves = [(p[t - 1], p[t]) for p in paths for t in range(1, len(p))]
    return {
        "parsable": True,
        "agent_count": len(paths) == k,
        "start_correct": all(p[0] == s for p, s in zip(paths, instance.starts, strict=False)),
        "in_bounds": all(0 <= x < n for p in paths for cell in p for x in cell),
        "hole_free": not any(cell in instance.holes for p in paths for cell in p),
        "legal_move": all(sum(abs(x - y) for x, y in zip(a, b, strict=True)) < 2 for a, b in moves),
        "conflict_free": not conflict,
        "goal_reached": all(p[-1] == g for p, g in zip(paths, instance.goals, strict=False)),
    }


@st.composite
def questions(draw: st.DrawFn) -> tuple[Instance, list[list[Cell]]]:
    """A small instance and paths that are nearly right: random walks with a few jumps."""
    size, k = draw(st.integers(3, 4)), draw(st.integers(1, 3))
    cells = [(r, c) for r in range(size) for c in range(size)]
    shuffled = draw(st.permutations(cells))
    starts, holes = shuffled[:k], shuffled[k : k + draw(st.integers(0, 2))]
    paths, steps = [], [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)]
    for start in starts:
        path = [start] if draw(st.integers(0, 9)) else [draw(st.sampled_from(cells))]
        for _ in range(draw(st.integers(0, 5))):
            dr, dc = draw(st.sampled_from(steps * 6 + [(1, 1), (2, 0)]))
            path.append((path[-1][0] + dr, path[-1][1] + dc))
        paths.append(path)
    free = [c for c in cells if c not in holes]
    ends = [p[-1] for p in paths]
    goals = ends if len(set(ends)) == k and set(ends) <= set(free) and draw(st.booleans()) else draw(st.permutations(free))[:k]
    return Instance(size=size, holes=holes, starts=starts, goals=goals), paths


@given(questions())
def test_equals_the_slow_check(question: tuple[Instance, list[list[Cell]]]) -> None:
    instance, paths = question
    verdict = verify(instance, format_answer(paths))
    assert verdict.checks == slow_checks(instance, paths)
    assert verdict == verify_paths(instance, paths)
    assert set(verdict.faults) == set(failed(verdict))
    if verdict.valid:
        pairs = zip(paths, instance.goals, strict=True)
        arrivals = [max((t + 1 for t, cell in enumerate(p) if cell != g), default=0) for p, g in pairs]
        assert verdict.costs == {"makespan": max(arrivals), "sum_of_costs": sum(arrivals)}


@given(questions())
def test_the_first_offence_is_the_first(question: tuple[Instance, list[list[Cell]]]) -> None:
    """A path that is cut off before the step of a fault no longer has that fault (agent by agent; for conflicts: all paths)."""
    instance, paths = question
    for name, fault in verify_paths(instance, paths).faults.items():
        if name in ("in_bounds", "hole_free", "legal_move"):
            agent, step = fault.where["agent"], fault.where["step"]
            cut = [p[:step] if a == agent else p for a, p in enumerate(paths) if a <= agent]
            assert not cut[-1] or slow_checks(instance, cut)[name]
            assert paths[agent][step] == fault.where["cell"]
        if name == "conflict_free" and fault.where["step"]:
            assert slow_checks(instance, [p[: fault.where["step"]] for p in paths])[name]
