"""Checks that a plugin's author calls in their own tests:

    from t2t_core.plugins import load
    from t2t_core.testing import check_policy

    def test_my_policy():
        check_policy(load().policies.make("mine"), load().testbeds.make("guessing"))

Each raises `CheckFailed` (an AssertionError) that says what broke, the probable cause and what mends it.
"""

from t2t_core.testing.agents import check_agent
from t2t_core.testing.base import CheckFailed
from t2t_core.testing.parts import check_context, check_designer, check_tracker, check_trainer
from t2t_core.testing.policies import check_policy
from t2t_core.testing.testbeds import check_testbed

__all__ = [
    "CheckFailed",
    "check_agent",
    "check_context",
    "check_designer",
    "check_policy",
    "check_testbed",
    "check_tracker",
    "check_trainer",
]
