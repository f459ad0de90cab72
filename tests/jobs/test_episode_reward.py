"""An episode's reward, against values worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_jobs.reward import RewardSettings, Trained, episode_reward, uplift_term

SCORES = st.floats(0, 1, allow_subnormal=False)


@pytest.mark.parametrize(
    ("submission", "trained", "total"),
    [
        # first try, unchanged: quality 0.25 * 0.4 + 0.75 * 0.5 = 0.475; half the time left: 0.35 + 0.60 * 0.475 + 0.05 * 0.5
        (1, Trained(0.4, 0.4, 10, 20), 0.66),
        # second try, from 0.2 to 0.6: half of what was left, term 0.75; quality 0.15 + 0.5625 = 0.7125; no time left
        (2, Trained(0.6, 0.2, 20, 20), 0.35 * 0.8 + 0.60 * 0.7125),
        # third try, from 0.4 down to 0.1: three quarters lost, term 0.125; quality 0.025 + 0.09375 = 0.11875
        (3, Trained(0.1, 0.4, 0, 20), 0.35 * 0.6 + 0.60 * 0.11875 + 0.05),
        # perfect
        (1, Trained(1.0, 0.3, 0, 20), 1.0),
        # the job died: the validation part stays
        (1, None, 0.35),
        (4, None, 0.35 * 0.4),
        # a seventh try is worth nothing, and never less
        (7, None, 0.0),
        # slower than its limit
        (1, Trained(0.4, 0.4, 30, 20), 0.635),
    ],
)
def test_totals_worked_out_by_hand(submission, trained, total):
    assert episode_reward(submission, trained).total == pytest.approx(total, abs=1e-12)


def test_nothing_valid_is_worth_nothing_and_nothing_parsable_less():
    assert episode_reward(None, None).total == 0
    assert episode_reward(None, None, parsable=False).total == -0.1


def test_the_ends_of_the_uplift_term():
    assert uplift_term(0.0, 0.0) == 0.5 and uplift_term(1.0, 1.0) == 0.5  # nothing to lose, nothing to gain
    assert uplift_term(0.0, 0.3) == 0 and uplift_term(1.0, 0.3) == 1
    assert uplift_term(0.65, 0.3) == pytest.approx(0.75) and uplift_term(0.15, 0.3) == pytest.approx(0.25)


@given(SCORES, SCORES, SCORES)
def test_a_better_model_is_never_worth_less(first, second, best_pre):
    worse, better = sorted((first, second))
    assert uplift_term(worse, best_pre) <= uplift_term(better, best_pre) + 1e-12
    assert 0 <= episode_reward(1, Trained(worse, best_pre, 1, 2)).total <= 1


def test_every_choice_is_a_parameter():
    settings = RewardSettings(validation=1, quality=0, speed=0, decay=0.5, unparsable=-1)
    assert episode_reward(2, Trained(1, 0, 0, 1), settings=settings).total == 0.5
    assert episode_reward(None, None, parsable=False, settings=settings).total == -1
    half = RewardSettings(validation=0, quality=1, speed=0, post=0.5, unchanged=0.2)
    assert episode_reward(1, Trained(0.5, 0.5, 0, 1), settings=half).quality == pytest.approx(0.25 + 0.1)


@pytest.mark.parametrize(
    "trained", [Trained(1.1, 0, 0, 1), Trained(0, -0.1, 0, 1), Trained(0.5, 0.5, 0, 0), Trained(0.5, 0.5, -1, 1)]
)
def test_what_is_no_score_or_time_is_refused(trained):
    with pytest.raises(T2TError):
        episode_reward(1, trained)
