"""The reward against values computed by hand from the paper's words."""

from __future__ import annotations

from typing import Any

import pytest

from t2t_core.errors import T2TError
from t2t_envs.frozen_lake import AdaptiveWeights, Instance, accuracy_reward, length_reward, total_reward, verify
from t2t_envs.frozen_lake.reward import reward, share_short


@pytest.mark.parametrize(
    ("cost", "optimum", "expected"),
    [
        (None, 4, 0.0),
        (None, None, 0.0),
        (4, 4, 1.0),
        (5, 4, 0.9125),  # 1 - 0.7 * 1/8
        (8, 4, 0.65),  # gap = optimum: half way
        (11, 4, 0.3875),  # 1 - 0.7 * 7/8
        (12, 4, 0.3),  # gap = 2 * optimum
        (13, 4, 0.3),
        (10**9, 4, 0.3),
        (3, 1, 0.3),
        (2, 1, 0.65),
        (0, 0, 1.0),
        (1, 0, 0.3),
        (7, None, 0.5),
        (7, "4", 0.5),
        (7, float("nan"), 0.5),
        (7, True, 0.5),
        (7, -1, 0.5),
        (3, 4, 0.5),  # a valid answer below the stored optimum: the label is no optimum
    ],
)
def test_accuracy(cost: int | None, optimum: object, expected: float) -> None:
    assert accuracy_reward(cost, optimum) == pytest.approx(expected, abs=1e-12)


def test_accuracy_of_a_verdict_uses_the_instance_objective() -> None:
    text = "Agent 0: (0,0) -> (0,1)\nAgent 1: (2,0) -> (2,0) -> (2,1)"
    facts: dict[str, Any] = {"size": 3, "holes": [], "starts": [(0, 0), (2, 0)], "goals": [(0, 1), (2, 1)]}
    optima: dict[str, Any] = {"optimal_makespan": 1, "optimal_sum_of_costs": 2}
    for objective, expected in (("makespan", 1 - 0.7 * 1 / 2), ("sum_of_costs", 1 - 0.7 * 1 / 4)):
        instance = Instance(**facts, objective=objective, **optima)
        assert reward(instance, verify(instance, text)) == pytest.approx(expected)
        assert reward(instance.unlabelled(), verify(instance.unlabelled(), text)) == 0.5
        assert reward(instance, verify(instance, "no")) == 0.0


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [(0, 0.0), (1500, 0.0), (1501, -1 / 2596), (2798, -0.5), (4095, -2595 / 2596), (4096, -1.0), (100_000, -1.0)],
)
def test_length(tokens: int, expected: float) -> None:
    assert length_reward(tokens) == pytest.approx(expected, abs=1e-12)


def test_length_thresholds_are_parameters() -> None:
    assert length_reward(60, start=40, end=80) == -0.5
    for start, end in ((-1, 5), (5, 5), (6, 5)):
        with pytest.raises(T2TError, match="penalty"):
            length_reward(1, start, end)


@pytest.mark.parametrize(
    ("share", "weights"),
    [
        (0.0, (0.5, 0.5)),
        (0.4999, (0.5, 0.5)),
        (0.5, (0.5, 0.5)),
        (0.6, (0.575, 0.425)),
        (0.7, (0.65, 0.35)),
        (0.9, (0.8, 0.2)),
        (1.0, (0.8, 0.2)),
    ],
)
def test_weights(share: float, weights: tuple[float, float]) -> None:
    assert AdaptiveWeights(share).weights() == pytest.approx(weights)


def test_the_average_starts_at_zero_and_forgets_a_tenth_per_update() -> None:
    state = AdaptiveWeights()
    assert state.weights() == (0.5, 0.5)
    seen = []
    for _ in range(3):
        state = state.update(1.0)
        seen.append(state.share)
    assert seen == pytest.approx([0.1, 0.19, 0.271])
    assert state.update(0.0).share == pytest.approx(0.2439)
    assert AdaptiveWeights(0.2, decay=0.5).update(0.6).share == pytest.approx(0.4)


def test_short_means_without_a_penalty() -> None:
    assert share_short([1, 1500, 1501, 9999]) == 0.5
    assert share_short([10, 20, 30, 40], start=30) == 0.75
    with pytest.raises(T2TError):
        share_short([])


def test_total() -> None:
    assert total_reward(0.65, -0.5, (0.8, 0.2)) == pytest.approx(0.42)


def test_the_state_survives_a_checkpoint() -> None:
    state = AdaptiveWeights().update(0.7).update(0.3)
    assert AdaptiveWeights(**state.to_dict()) == state
    bad: Any
    for bad in ("x", True, float("nan"), -0.1, 1.1):
        with pytest.raises(T2TError):
            AdaptiveWeights(bad)
        with pytest.raises(T2TError):
            AdaptiveWeights(0.5, decay=bad)
    for share in (-0.1, 1.1, float("nan"), float("inf")):
        with pytest.raises(T2TError):
            state.update(share)
