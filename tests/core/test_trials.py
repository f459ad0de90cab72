"""Statistics of studies, checked against scipy and statsmodels, by hand, and by simulation: stated rates are the real rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.weightstats import ttost_paired

from t2t_core.evaluation.stats import SeededDifference, holm, seeded_difference, t_below, t_quantile
from t2t_core.evaluation.trials import (
    area_under,
    forgetting,
    inference,
    interquartile_mean,
    power,
    probability_of_improvement,
    worst_quarter,
)

scores = st.lists(st.floats(-100, 100), min_size=1, max_size=30)


@given(st.floats(-30, 30), st.integers(1, 200))
@settings(max_examples=40, deadline=None)
def test_t_agrees_with_scipy(t: float, df: int) -> None:
    assert t_below(t, df) == pytest.approx(scipy_stats.t.cdf(t, df), abs=1e-9)


@given(st.floats(0.55, 0.9995), st.integers(1, 200))
@settings(max_examples=40, deadline=None)
def test_quantiles_agree_with_scipy(share: float, df: int) -> None:
    assert t_quantile(df, share) == pytest.approx(scipy_stats.t.ppf(share, df), rel=1e-6, abs=1e-9)


def of_seeds(values: list[float]) -> SeededDifference:
    """The difference of one instance a seed: an ordinary t interval over seeds."""
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = t_quantile(len(values) - 1) * error
    return SeededDifference(mean, mean - half, mean + half, len(values) - 1, values)


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=12).filter(lambda v: np.std(v) > 0.01), st.floats(0.5, 4))
@settings(max_examples=40, deadline=None)
def test_tests_agree_with_scipy_and_statsmodels(values: list[float], margin: float) -> None:
    tests = inference(of_seeds(values), margin)
    assert tests.p == pytest.approx(scipy_stats.ttest_1samp(values, 0).pvalue, abs=1e-6)
    zeros = np.zeros(len(values))
    assert tests.p_equivalence == pytest.approx(ttost_paired(np.array(values), zeros, -margin, margin)[0], abs=1e-6)


def test_an_interval_within_the_margin_is_equivalence() -> None:
    near, far = of_seeds([0.1, -0.1, 0.05, 0.0, -0.05]), of_seeds([3.0, -3.0, 1.0, -1.0, 0.5])
    assert inference(near, 1.5).p_equivalence < 0.05 < inference(far, 1.5).p_equivalence
    assert inference(near, 1.5).detectable < 1.5 < inference(far, 1.5).detectable


def test_what_is_detectable_is_detected_in_four_of_five_studies() -> None:
    """The stated effect, given to simulated studies of ten seeds with that spread."""
    rng = np.random.default_rng(1)
    studies = rng.normal(0, 1.0, (4000, 10))
    error = 1 / math.sqrt(10)
    effect = (t_quantile(9) + t_quantile(9, 0.8)) * error
    share = np.mean([scipy_stats.ttest_1samp(values + effect, 0).pvalue < 0.05 for values in studies])
    assert share == pytest.approx(0.8, abs=0.03)
    assert power(effect, error, 9) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize(("effect", "seeds"), [(2.0, 5), (2.0, 10), (1.0, 10), (0.0, 10)])
def test_a_designer_that_is_two_points_better_is_found_at_the_stated_rate(effect: float, seeds: int) -> None:
    """Whole studies: policies of either arm answer the same 400 instances, whose difficulty differs; a training seed moves
    both arms' skill by 1 point. The share of studies that find the better designer is the one that `power` states from the
    spread of the estimates; without an effect it is the error rate."""
    rng, detected, estimates = np.random.default_rng(5), [], []
    for _ in range(150):
        hard = rng.normal(0, 1.5, 400)
        values = []
        for _ in range(seeds):
            ours, theirs = (1 / (1 + np.exp(hard - 4 * (shift + rng.normal(0, 0.005)))) for shift in (effect / 100 * 1.35, 0.0))
            common = rng.uniform(size=400)
            values.append([((common < ours).astype(float) - (common < theirs).astype(float)).tolist()])
        difference = seeded_difference(values)
        detected.append(difference.low > 0)
        estimates.append(difference)
    error = float(np.mean([(d.high - d.value) / t_quantile(max(1.0, d.df)) for d in estimates]))
    df = float(np.median([d.df for d in estimates]))
    mean = float(np.mean([d.value for d in estimates]))
    assert mean == pytest.approx(effect / 100, abs=0.004)
    stated = power(mean, error, df) if effect else 0.025
    assert np.mean(detected) == pytest.approx(stated, abs=0.12)
    if effect == 2.0 and seeds == 10:
        assert stated > 0.8


@given(scores)
@settings(max_examples=40, deadline=None)
def test_the_interquartile_mean_agrees_with_scipy_where_quarters_are_whole(values: list[float]) -> None:
    whole = values * 4  # then a quarter is a whole number of values
    assert interquartile_mean(whole) == pytest.approx(scipy_stats.trim_mean(whole, 0.25), abs=1e-6)
    assert min(values) - 1e-9 <= interquartile_mean(values) <= max(values) + 1e-9


def test_the_interquartile_mean_ignores_one_lucky_seed() -> None:
    assert interquartile_mean([1.0, 1.0, 1.0, 1.0, 99.0]) == pytest.approx(1.0)
    assert interquartile_mean([1.0, 2.0]) == pytest.approx(1.5)


@given(scores, scores)
@settings(max_examples=40, deadline=None)
def test_improvement_is_mann_whitney(ours: list[float], theirs: list[float]) -> None:
    u = scipy_stats.mannwhitneyu(ours, theirs).statistic
    assert probability_of_improvement(ours, theirs) == pytest.approx(u / len(ours) / len(theirs))
    assert probability_of_improvement(ours, theirs) + probability_of_improvement(theirs, ours) == pytest.approx(1)


def test_areas_by_hand() -> None:
    curve = [(10.0, 40.0), (20.0, 60.0), (30.0, 60.0)]
    assert area_under(curve, 30) == pytest.approx(55)
    assert area_under(curve, 15) == pytest.approx(45)
    assert area_under(curve, 50) == pytest.approx((500 + 600 + 1200) / 40), "what ends early keeps its last score"
    assert area_under(curve, 10) == 40 and math.isnan(area_under(curve, 5))


def test_the_worst_quarter_and_forgetting_by_hand() -> None:
    assert worst_quarter({"a": 0.9, "b": 0.1, "c": 0.5, "d": 0.7}) == pytest.approx(0.1)
    assert worst_quarter({"a": 0.0, "b": 0.4, "c": 0.9, "d": 0.9, "e": 0.9, "f": 0.9}) == pytest.approx((0 + 0.5 * 0.4) / 1.5)
    assert forgetting([{"3": 0.5, "4": 0.2}, {"3": 0.9, "4": 0.3}, {"3": 0.6, "4": 0.4}]) == pytest.approx(0.3)
    assert forgetting([{"3": 0.5}, {"3": 0.6}]) == 0


def test_holm_agrees_with_statsmodels() -> None:
    from statsmodels.stats.multitest import multipletests

    values = {"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005, "e": 0.6}
    assert list(holm(values).values()) == pytest.approx(multipletests(list(values.values()), method="holm")[1].tolist())
