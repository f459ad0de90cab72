import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.evaluation.stats import (
    Rate,
    _random_words,
    holm,
    mcnemar,
    paired_difference,
    seeded_difference,
    stratified,
    t_interval,
    t_quantile,
    wilson,
)
from t2t_core.seeding import Stream


def test_wilson_by_hand():
    e = wilson(0.5, 150)  # 0.5 -+ 1.96 / 1.02561 * sqrt(0.25 / 150 + 3.8415 / 90000)
    assert (round(e.low, 4), round(e.high, 4)) == (0.421, 0.579)
    assert (wilson(0, 150).low, round(wilson(0, 150).high, 4)) == (0, 0.025)
    assert wilson(1, 150).high == 1
    assert math.isnan(wilson(0, 0).value)


@given(st.integers(0, 50), st.integers(1, 50))
def test_wilson_holds_its_value(successes, n):
    e = wilson(min(successes, n) / n, n)
    assert 0 <= e.low <= e.value <= e.high <= 1


def rate(values, samples=1):
    r = Rate(samples)
    for value in values:
        r.add(value)
    return r


def coverage(draw, truth, times=400):
    return sum(e.low - 1e-12 <= truth <= e.high + 1e-12 for e in (draw() for _ in range(times))) / times


TRUTHS = [
    [0.5] * 8,
    [0.65, 0.5, 0.4, 0.3, 0.25, 0.2, 0.2, 0.1],
    [0.995] * 6,
    [0.02, 0.01, 0.005, 0, 0, 0],
    [1, 1, 1, 0, 0, 0],
    [0.99, 0.99, 0.5, 0.02, 0.01, 0],
]


@pytest.mark.parametrize("rates", TRUTHS)
def test_coverage_of_totals(rates):
    """95 % intervals hold the truth at least 93 % of the time, near 0 and 100 % too."""
    random = np.random.default_rng(1)

    def draw():
        return stratified([rate((random.random(150) < p).astype(float)) for p in rates])

    assert coverage(draw, np.mean(rates)) >= 0.93


@pytest.mark.parametrize("concentration", [0.5, 5.0])
def test_coverage_with_several_answers_per_instance(concentration):
    """Answers to one instance resemble each other; intervals that ignored it would hold the truth far too seldom."""
    random = np.random.default_rng(2)
    strata = [0.7, 0.4, 0.2]

    def shares(p):
        own = random.beta(p * concentration, (1 - p) * concentration, 60)
        return random.binomial(8, own) / 8

    def draw():
        return stratified([rate(shares(p), 8) for p in strata])

    def naive():
        return stratified([rate(np.repeat(shares(p), 8)) for p in strata])

    assert coverage(draw, np.mean(strata)) >= 0.92
    if concentration < 1:
        assert coverage(naive, np.mean(strata)) < 0.75


def test_effective_number_lies_between_instances_and_answers():
    assert rate([1, 0] * 20, 4).effective == 40  # answers to one instance always agree
    assert rate([0.5] * 40, 4).effective == 160  # they never resemble each other
    assert rate([1] * 40, 4).effective == 40
    assert rate([1, 0, 1]).effective == 3


def test_totals_are_unweighted_means_of_the_strata():
    assert stratified([rate([1] * 10), rate([0] * 90), Rate()]).value == 0.5
    assert math.isnan(stratified([Rate()]).value)


def test_mcnemar_is_exact():
    for better, worse in itertools.product(range(8), repeat=2):
        n = better + worse
        tail = sum(math.comb(n, i) for i in range(min(better, worse) + 1)) / 2**n
        assert mcnemar(better, worse) == pytest.approx(min(1, 2 * tail))


def test_paired_difference_is_seeded_and_covers():
    random = np.random.default_rng(3)

    def draw():
        return paired_difference([random.choice([-1, 0, 1], p=[0.1, 0.6, 0.3], size=60) for _ in range(3)], seed=5, resamples=400)

    assert coverage(draw, 0.2, 200) >= 0.91
    strata = [[1, 0, 0, 1, -1, 0] * 10]
    first, second = paired_difference(strata, seed=1), paired_difference(strata, seed=1)
    assert first == second
    assert (first.higher, first.lower, first.instances, first.test) == (20, 10, 60, "exact McNemar")
    assert paired_difference([[0.5, 0.25] * 30], binary=False).p < 0.001
    assert paired_difference([[0.0] * 9], binary=False).p == 1
    assert paired_difference([]).instances == 0


def test_sign_flips_hold_their_level():
    random = np.random.default_rng(4)
    small = sum(paired_difference([random.normal(size=30)], binary=False, resamples=200).p < 0.05 for _ in range(200))
    assert small <= 20


def test_holm_by_hand():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert holm({}) == {}


def test_draws_in_blocks_are_the_suite_generator():
    stream = Stream(99)
    words = [stream.next() for _ in range(10)]
    assert [int(w) for w in _random_words(99, 0, 10)] == words
    assert [int(w) for w in _random_words(99, 4, 3)] == words[4:7]


def test_t_quantiles_are_those_of_the_tables():
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.000, 120: 1.980}
    assert {df: round(t_quantile(df), 3) for df in table} == table
    assert t_quantile(4.9) == t_quantile(4) and round(t_quantile(math.inf), 3) == 1.960


def test_an_interval_over_seeds_by_hand():
    e = t_interval([1.0, 2.0, 3.0])  # 2 -+ 4.303 * 1 / sqrt(3)
    assert (e.value, round(e.low, 3), round(e.high, 3)) == (2.0, -0.484, 4.484)
    assert math.isnan(t_interval([1.0]).low)


def test_a_difference_over_seeds_by_hand():
    """Two seeds, one stratum, two instances, no residual: variance 0.02/2 over seeds + 0.5/2 over instances."""
    d = seeded_difference([[[0.0, 1.0]], [[0.2, 1.2]]])
    assert d.value == pytest.approx(0.6) and d.seeds == pytest.approx([0.5, 0.7])
    freedom = 0.26**2 / (0.01**2 + 0.25**2)
    assert d.df == pytest.approx(freedom)
    assert d.high - d.value == pytest.approx(t_quantile(freedom) * 0.26**0.5)
    assert math.isnan(seeded_difference([[[0.0, 1.0]]]).low) and seeded_difference([[[1.0, 1.0]], [[1.0, 1.0]]]).low == 1.0


@pytest.mark.parametrize(("over_seeds", "over_instances"), [(0.0, 0.3), (0.02, 0.3), (0.05, 0.0)])
def test_a_difference_over_seeds_covers(over_seeds, over_instances):
    random = np.random.default_rng(2)

    def draw():
        seeds, instances = random.normal(0, over_seeds, 5), random.normal(0, over_instances, (4, 100))
        noise = random.normal(0, 0.3, (5, 4, 100))
        return seeded_difference((seeds[:, None, None] + instances + noise).tolist())

    assert coverage(draw, 0.0, 600) >= 0.93
