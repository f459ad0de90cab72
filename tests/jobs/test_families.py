"""The suite's families keep the contract of a family, as of their last measurement."""

import pytest

from t2t_core.plugins import installed
from t2t_jobs.families.figures import HIGHEST_BASE, LEAST_GAIN, MOST_SECONDS, fingerprint, read
from t2t_jobs.job import document, make_job
from t2t_jobs.probe import probe

FAMILIES = [entry.name for entry in installed().families if entry.plugin == "t2t_jobs"]


def test_six_over_both_worlds_one_of_them_held_out():
    made = [installed().families.make(name) for name in FAMILIES]
    assert len(made) == 6 and sum(family.held_out for family in made) == 1
    assert {family.testbed for family in made} == {"tictactoe", "mapf-frozenlake"}


@pytest.mark.parametrize("name", FAMILIES)
def test_bases_are_weak_and_a_good_job_is_known(name):
    figures, family = read()[name], installed().families.make(name)
    assert figures.family == fingerprint(family), "measure it anew: python -m t2t_jobs.families.figures " + name
    assert max(figures.bases.values()) <= HIGHEST_BASE
    assert figures.gain >= LEAST_GAIN
    assert figures.cpu_seconds <= MOST_SECONDS
    assert len(set(figures.bases.values())) >= 2, "its bases differ"


@pytest.mark.parametrize("name", FAMILIES)
def test_the_best_known_job_is_valid(name, tmp_path):
    family = installed().families.make(name)
    (tmp_path / "job.toml").write_text(document(make_job(family, family.best).values))
    job, failures = probe(tmp_path, family)
    assert job.base == family.best["base"] and not failures


@pytest.mark.parametrize("name", FAMILIES)
def test_a_twin_is_drawn_anew_for_every_episode(name):
    from t2t_jobs.hidden import identities

    family = installed().families.make(name)
    assert identities(family, 1) == identities(family, 1)
    assert identities(family, 1) != identities(family, 2)
