"""The rules, by small cases and by properties; an episode's joint moves and the verifier see the same conflicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_envs.frozen_lake.rules import (
    DELTAS,
    DOWN,
    LEFT,
    RIGHT,
    UP,
    WAIT,
    Conflict,
    arrival,
    conflicting_agents,
    costs,
    first_conflict,
    first_path_conflict,
    move,
    position_at,
    waits,
)


def test_actions_are_numbered_as_in_frozen_lake() -> None:
    assert (LEFT, DOWN, RIGHT, UP, WAIT) == (0, 1, 2, 3, 4)
    assert [DELTAS[a] for a in (LEFT, DOWN, RIGHT, UP, WAIT)] == [(0, -1), (1, 0), (0, 1), (-1, 0), (0, 0)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([(0, 0), (0, 2)], [(0, 1), (0, 1)], Conflict("vertex", (0, 1), (0, 1))),
        ([(0, 0), (0, 1)], [(0, 1), (0, 0)], Conflict("edge", (0, 1), (0, 1))),
        ([(0, 0), (0, 1)], [(0, 1), (0, 1)], Conflict("vertex", (0, 1), (0, 1))),
        ([(0, 0), (0, 1)], [(0, 1), (0, 2)], None),  # following
        ([(0, 0), (0, 1), (1, 1), (1, 0)], [(0, 1), (1, 1), (1, 0), (0, 0)], None),  # rotation
        ([(2, 2), (0, 0), (0, 1)], [(2, 2), (0, 1), (0, 0)], Conflict("edge", (1, 2), (0, 1))),
        ([(0, 0)], [(0, 0)], None),
    ],
)
def test_conflicts(before: list[tuple[int, int]], after: list[tuple[int, int]], expected: Conflict | None) -> None:
    assert first_conflict(before, after) == expected
    assert conflicting_agents(before, after) == (set(expected.agents) if expected else set())


def test_moves() -> None:
    ended = move(3, {(1, 1)}, [(0, 0), (0, 1)], [LEFT, DOWN])
    assert (ended.positions, ended.fell, ended.conflict) == (((0, 0), (1, 1)), (1,), None)
    blocked = move(3, {(1, 1)}, [(0, 0), (0, 1)], [RIGHT, DOWN], block_holes=True)
    assert blocked.positions == ((0, 1), (0, 1))
    assert blocked.conflict == Conflict("vertex", (0, 1), (0, 1))
    both = move(3, {(1, 1)}, [(0, 0), (0, 1)], [RIGHT, DOWN], block_holes=True, block_conflicts=True)
    assert (both.positions, both.conflict) == (((0, 0), (0, 1)), None)


def test_blocking_goes_on_until_nothing_collides() -> None:
    """1 and 2 block each other, so 1 stays, so 0, which follows it, must stay too."""
    after = move(4, set(), [(0, 0), (0, 1), (0, 3)], [RIGHT, RIGHT, LEFT], block_conflicts=True)
    assert after.positions == ((0, 0), (0, 1), (0, 3))


def test_arrival_costs_and_waits() -> None:
    goal = (0, 1)
    assert [arrival(p, goal) for p in ([(0, 1)], [(0, 0), (0, 1), (0, 1)], [(0, 1), (0, 0), (0, 1)])] == [0, 1, 2]
    assert [arrival(p, goal) for p in ([(0, 0)], [(0, 1), (0, 0)], [])] == [None, None, None]
    assert costs([[(0, 0), (0, 1)], [(2, 2)]], [(0, 1), (2, 2)]) == (1, 1)
    assert costs([[(0, 0)]], [(0, 1)]) is None
    assert costs([], []) is None
    assert waits([(0, 0), (0, 0), (0, 1)], goal)
    assert not waits([(0, 0), (0, 1), (0, 1)], goal), "staying on the goal for good is no wait"
    assert waits([(0, 1), (0, 1), (0, 0), (0, 1)], goal), "waiting on the goal before leaving it is one"
    assert not waits([(0, 1), (0, 0), (0, 1)], goal)


cell = st.tuples(st.integers(0, 2), st.integers(0, 2))


@given(st.lists(st.lists(cell, min_size=1, max_size=6), min_size=1, max_size=4))
def test_conflicts_of_paths_are_those_of_their_steps(paths: list[list[tuple[int, int]]]) -> None:
    expected = None
    for step in range(max(map(len, paths))):
        now = [position_at(p, step) for p in paths]
        conflict = first_conflict([position_at(p, max(step - 1, 0)) for p in paths], now)
        if conflict:
            expected = (step, conflict)
            break
    assert first_path_conflict(paths) == expected


cells = st.sets(cell, max_size=4)


@given(cells, st.lists(st.integers(0, 4), min_size=4, max_size=4), cells)
def test_blocked_moves_are_allowed_ones(starts: set[tuple[int, int]], actions: list[int], holes: set[tuple[int, int]]) -> None:
    before = sorted(starts - holes)
    if not before:
        return
    joint = move(3, holes, before, actions[: len(before)], block_holes=True, block_conflicts=True)
    assert joint.conflict is None
    assert joint.fell == ()
    assert not holes.intersection(joint.positions)
    assert len(set(joint.positions)) == len(before)
