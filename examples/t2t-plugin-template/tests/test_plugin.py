"""The suite's own checks on this plugin, and one test of what it is for."""

import pytest

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.testing import check_designer, check_policy


@pytest.fixture(scope="module")
def testbed():
    return installed().testbeds.make("mapf-frozenlake")


def test_it_is_loaded_and_nothing_of_it_is_refused():
    assert "template" in installed().loaded
    assert not [r for r in installed().refused if "template" in r]


def test_the_policy(testbed):
    check_policy(installed().policies.make("one-by-one"), testbed)


def test_the_designer(testbed):
    check_designer(installed().designers.make("focus:strength=0.3"), testbed)


def test_a_misspelt_setting_is_refused():
    with pytest.raises(T2TError, match="strength"):
        installed().designers.make("focus:strenght=0.3")
