"""`check_family` accepts a task family that keeps the contract, and names what is wrong with one that does not."""

from dataclasses import replace

import pytest

from t2t_core.plugins import installed
from t2t_core.testing import CheckFailed
from t2t_jobs.family import Base, Bound, HiddenEvaluation, Part
from t2t_jobs.testing import check_family

FAMILIES = [entry.name for entry in installed().families if entry.plugin == "t2t_jobs"]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_built_in_families_pass(name, tmp_path):
    check_family(installed().families.make(name), tmp_path)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"description": " "}, "description is"),
        ({"bases": {"small": Base("tiny:tictactoe", ""), "large": Base("tiny:tictactoe", "x")}}, "base small has no description"),
        ({"evaluation": HiddenEvaluation(())}, "no part"),
        ({"evaluation": HiddenEvaluation((Part("random", "glory"),))}, "no rate glory"),
        ({"evaluation": HiddenEvaluation((Part("nowhere", "win"),))}, "drawing the hidden evaluation"),
        ({"evaluation": HiddenEvaluation((Part("random", "win", ("north",)),))}, "nothing of random is in north"),
        ({"best": {"training.learning_rate": 7.0}}, "the best job known is refused"),
        ({"teacher": "nobody"}, "examples()"),
    ],
)
def test_what_breaks_the_contract_is_named(changes, says, tmp_path):
    family = installed().families.make("draw-optimal")
    with pytest.raises(CheckFailed) as error:
        check_family(replace(family, **changes), tmp_path)
    assert says in str(error.value)


def test_a_bound_without_words_is_named(tmp_path):
    family = installed().families.make("draw-optimal")
    key = next(iter(family.bounds))
    bound = replace(family.bounds[key], description="")
    with pytest.raises(CheckFailed, match="has no description"):
        check_family(replace(family, bounds={**family.bounds, key: bound}), tmp_path)
    assert isinstance(bound, Bound)
