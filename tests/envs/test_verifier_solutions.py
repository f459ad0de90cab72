"""Solver solutions pass; a solution mutated in one way fails exactly the check for it, whatever the labels say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from t2t_core.seeding import Stream
from t2t_envs.frozen_lake import CHECKS, Instance, UnsolvableError, format_answer, solve, verify
from t2t_envs.frozen_lake.rules import first_path_conflict

Paths = list[list[tuple[int, int]]]


@cache
def solved() -> list[tuple[Instance, Paths]]:
    """60 random instances of 1..3 agents on 3x3 and 4x4 with an optimal solution each, labelled."""
    stream = Stream.of(11, "verifier")
    solved_pairs: list[tuple[Instance, Paths]] = []
    while len(solved_pairs) < 60:
        size, k = 3 + stream.below(2), 1 + stream.below(3)
        cells = [(r, c) for r in range(size) for c in range(size)]
        stream.shuffle(cells)
        holes = cells[: stream.below(4)]
        free = cells[len(holes) :]
        starts = free[:k]
        stream.shuffle(free)
        instance = Instance(size, holes, starts, free[:k])
        try:
            solutions = [solve(instance, objective) for objective in ("makespan", "sum_of_costs")]
        except UnsolvableError:
            continue
        labelled = replace(instance, optimal_makespan=solutions[0].cost, optimal_sum_of_costs=solutions[1].cost)
        solved_pairs.append((labelled, [list(path) for path in solutions[0].paths]))
    return solved_pairs


def test_solutions_are_optimal() -> None:
    for instance, paths in solved():
        verdict = verify(instance, format_answer(paths))
        assert (verdict.valid, verdict.optimal, verdict.gap) == (True, True, 0)
        by_sum = replace(instance, objective="sum_of_costs")
        assert verify(by_sum, format_answer(solve(by_sum).paths)).optimal


def mutations(instance: Instance, paths: Paths) -> Iterator[tuple[str, Paths]]:
    """(the check that must fail, mutated paths); a mutation that causes a conflict by accident is left out."""
    agent = next((a for a, p in enumerate(paths) if len(p) > 2 and p[0] != p[1]), None)
    if agent is None:
        return
    before, path, after = paths[:agent], paths[agent], paths[agent + 1 :]
    yield "goal_reached", [*before, path[:-1], *after]
    (r, c), beside = path[0], path[1]
    if abs(path[2][0] - r) + abs(path[2][1] - c) == 2:
        yield "legal_move", [*before, [path[0], *path[2:]], *after]
    yield "start_correct", [*before, path[1:], *after]
    size = instance.size
    for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        step = (r + dr, c + dc)
        detour = [path[0], step, path[0], beside, *path[2:]]
        if step in instance.holes:
            yield "hole_free", [*before, detour, *after]
        elif not (0 <= step[0] < size and 0 <= step[1] < size):
            yield "in_bounds", [*before, detour, *after]


def test_a_mutation_fails_exactly_its_check() -> None:
    seen = dict.fromkeys(CHECKS, 0)
    for instance, paths in solved():
        for check, mutated in mutations(instance, paths):
            if first_path_conflict(mutated) is None:
                verdict = verify(instance, format_answer(mutated))
                assert [name for name, passed in verdict.checks.items() if not passed] == [check], (instance, mutated)
                seen[check] += 1
    assert all(seen[check] > 3 for check in ("start_correct", "in_bounds", "hole_free", "legal_move", "goal_reached")), seen


@pytest.mark.parametrize("labels", [(None, None), (0, 0), (99, 99)])
def test_labels_never_change_a_check(labels: tuple[int | None, int | None]) -> None:
    for instance, paths in solved()[:20]:
        other = replace(instance, optimal_makespan=labels[0], optimal_sum_of_costs=labels[1])
        for answer in (paths, paths[:-1], [p[:1] for p in paths]):
            text = format_answer(answer)
            assert verify(other, text).checks == verify(instance, text).checks
            assert verify(other, text).costs == verify(instance, text).costs
