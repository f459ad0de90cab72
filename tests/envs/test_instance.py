"""Instances: checked when made, JSON there and back, one canonical form for all their symmetric variants."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_envs.frozen_lake import Instance

GOOD: dict[str, Any] = {"size": 3, "holes": [[0, 1]], "starts": [[2, 0], [1, 0]], "goals": [[1, 2], [2, 2]]}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"size": 2}, "size must lie in 3..256"),
        ({"size": 10**5000}, "an integer of"),
        ({"size": True}, "must be an integer"),
        ({"size": "3"}, "must be an integer"),
        ({"size": float("nan")}, "must be an integer"),
        ({"holes": [[0, 3]]}, "must lie in 0..2"),
        ({"holes": [[0, -1]]}, "must lie in 0..2"),
        ({"holes": [[0, 1], [0, 1]]}, "twice"),
        ({"holes": [[0]]}, "a cell is (row, column)"),
        ({"holes": "0,1"}, "list of (row, column)"),
        ({"holes": None}, "list of (row, column)"),
        ({"holes": [[[[[0]]], 1]]}, "must be an integer"),
        ({"starts": [[0, 1], [1, 0]]}, "start (0, 1) is a hole"),
        ({"goals": [[0, 1], [1, 0]]}, "goal (0, 1) is a hole"),
        ({"starts": [[2, 0], [2, 0]]}, "twice"),
        ({"goals": [[2, 0]]}, "2 starts but 1 goals"),
        ({"starts": [], "goals": []}, "1..16 agents"),
        ({"objective": "speed"}, "objective"),
        ({"objective": ["makespan"]}, "objective"),
        ({"id": "a b"}, "id"),
        ({"id": "../x"}, "id"),
        ({"id": "<script>"}, "id"),
        ({"id": "x" * 201}, "id"),
        ({"id": "x\x1b[31m"}, "id"),
        ({"id": 7}, "id"),
        ({"optimal_makespan": -1}, "optimal_makespan"),
        ({"optimal_makespan": 2.5}, "optimal_makespan"),
        ({"optimal_sum_of_costs": 10**9}, "optimal_sum_of_costs"),
        ({"requires_wait": 1}, "requires_wait"),
        ({"colour": "red"}, "unknown field"),
    ],
)
def test_nonsense_is_refused_by_name(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(T2TError) as caught:
        Instance.from_dict(GOOD | changes)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_missing_fields_and_non_objects() -> None:
    with pytest.raises(T2TError, match="no field 'goals'"):
        Instance.from_dict({k: v for k, v in GOOD.items() if k != "goals"})
    data: Any
    for data in (None, [], "x", 3):
        with pytest.raises(T2TError, match="JSON object"):
            Instance.from_dict(data)


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    size, k = draw(st.integers(3, 5)), draw(st.integers(1, 3))
    cells = draw(st.permutations([(r, c) for r in range(size) for c in range(size)]))
    holes = cells[: draw(st.integers(0, 5 if size > 3 else 3))]
    free = cells[len(holes) :]
    goals = draw(st.permutations(free))[:k]
    optimum = draw(st.none() | st.integers(0, 50))
    objective = draw(st.sampled_from(["makespan", "sum_of_costs"]))
    return Instance(size, holes, free[:k], goals, objective, "x_1", optimum, optimum, None)


@given(instances())
def test_json_there_and_back(instance: Instance) -> None:
    assert Instance.from_dict(json.loads(json.dumps(instance.to_dict()))) == instance
    assert set(instance.to_dict()) == {
        "id", "size", "holes", "starts", "goals", "objective", "optimal_makespan", "optimal_sum_of_costs", "requires_wait",
    }  # fmt: skip


@given(instances(), st.randoms(use_true_random=False))
def test_one_canonical_form_for_all_variants(instance: Instance, random: Any) -> None:
    n = instance.size

    def turn(cell: tuple[int, int]) -> tuple[int, int]:
        return cell[1], n - 1 - cell[0]

    order = list(range(instance.num_agents))
    random.shuffle(order)
    holes = [turn(c) for c in instance.holes]
    starts, goals = ([turn(cells[a]) for a in order] for cells in (instance.starts, instance.goals))
    variant = Instance(n, holes, starts, goals)
    assert variant.canonical() == instance.canonical()
    holes, starts, goals = ([(r, n - 1 - c) for r, c in cells] for cells in (variant.holes, variant.starts, variant.goals))
    mirrored = Instance(n, holes, starts, goals)
    assert mirrored.canonical() == instance.canonical()


def test_other_instances_have_other_forms() -> None:
    base = Instance.from_dict(GOOD)
    changes: Any
    for changes in ({"holes": []}, {"holes": [[0, 0]]}, {"goals": [[2, 2], [1, 2]]}, {"size": 4}):
        assert Instance.from_dict(GOOD | changes).canonical() != base.canonical()


def test_unlabelled_keeps_the_question_and_drops_the_labels() -> None:
    labelled = Instance.from_dict(GOOD | {"id": "a", "optimal_makespan": 3, "optimal_sum_of_costs": 6, "requires_wait": False})
    assert labelled.optimum == 3
    assert labelled.unlabelled() == Instance.from_dict(GOOD | {"id": "a"})
