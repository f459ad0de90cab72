"""What training instances share with an evaluation set: counted by hand, up to symmetry and labels, and against a plain count."""

from __future__ import annotations

import time
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_envs.frozen_lake import Configuration, Instance, generate
from t2t_envs.frozen_lake.generation.overlap import shared
from t2t_envs.frozen_lake.instance import SYMMETRIES
from t2t_envs.frozen_lake.testbed import make

HOLES = [(0, 1)]
THREE = Instance(4, HOLES, [(0, 0), (3, 0), (3, 3)], [(3, 3), (0, 3), (0, 0)])
NOTHING = {"hole_layouts": 0, "hole_layouts_of_set": 0, "projections": 0, "projections_of_set": 0}


def turned(instance: Instance, symmetry: int) -> Instance:
    """The instance under a symmetry of the grid, its agents in another order."""

    def move(cells):
        return [SYMMETRIES[symmetry](row, column, instance.size - 1) for row, column in cells]

    return Instance(instance.size, move(instance.holes), move(instance.starts)[::-1], move(instance.goals)[::-1])


def pair(instance: Instance, *agents: int) -> Instance:
    return Instance(instance.size, instance.holes, [instance.starts[a] for a in agents], [instance.goals[a] for a in agents])


@pytest.mark.parametrize("symmetry", range(8))
@pytest.mark.parametrize("agents", [(0, 1), (0, 2), (1, 2)])
def test_two_agents_of_an_evaluation_instance_among_its_holes(symmetry, agents):
    trained = turned(pair(THREE, *agents), symmetry)
    assert shared([trained], [THREE]) == dict.fromkeys(NOTHING, 1)


def test_the_same_holes_and_other_agents_share_the_layout_alone():
    other = Instance(4, [(3, 2)], [(0, 0), (2, 2)], [(1, 1), (3, 3)])
    assert shared([other, other], [THREE]) == {
        "hole_layouts": 2,
        "hole_layouts_of_set": 1,
        "projections": 0,
        "projections_of_set": 0,
    }
    crossed = Instance(4, HOLES, [(0, 0), (3, 0)], [(0, 3), (3, 3)])  # starts and goals of two agents, wrongly joined
    assert shared([crossed], [THREE])["projections"] == 0
    assert shared([pair(THREE, 0, 1)], [pair(THREE, 0, 1)])["projections"] == 0, "all of its agents are the instance itself"


def test_other_holes_share_nothing():
    assert shared([Instance(4, [(1, 1)], [(0, 0), (3, 0)], [(3, 3), (0, 3)])], [THREE]) == NOTHING
    assert shared([Instance(5, HOLES, [(0, 0), (3, 0)], [(3, 3), (0, 3)])], [THREE]) == NOTHING
    assert shared([], [THREE]) == shared([THREE], []) == NOTHING


def test_a_grid_without_holes_has_no_layout_to_share_but_its_agents_count():
    bare = Instance(4, [], THREE.starts, THREE.goals)
    overlap = shared([turned(pair(bare, 0, 2), 5), pair(bare, 0, 1), Instance(4, [], [(1, 1)], [(1, 2)])], [bare, THREE])
    assert overlap == {"hole_layouts": 0, "hole_layouts_of_set": 0, "projections": 2, "projections_of_set": 1}


def test_counts_are_of_instances_on_both_sides():
    twin = Instance(4, HOLES, [*THREE.starts[:2], (2, 2)], [*THREE.goals[:2], (2, 1)])
    overlap = shared([pair(THREE, 0, 1), pair(THREE, 1, 0), pair(twin, 1, 2)], [THREE, twin, THREE])
    assert overlap == {"hole_layouts": 3, "hole_layouts_of_set": 3, "projections": 3, "projections_of_set": 3}


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.3]))
def test_as_a_plain_count_by_canonical_forms(seed, holes):
    some = Configuration.from_dict({"3": {"data_ratio": 1.0, "hole_ratio": holes, "wait_ratio": 0.2}})
    trained, kept = generate(some, 60, 2, seed), generate(some, 20, 3, seed + 1)
    forms = {i.canonical() for i in trained}
    groups = [{pair(k, *two).canonical() for two in combinations(range(3), 2)} for k in kept]
    overlap = shared(trained, kept)
    assert overlap["projections"] == sum(any(i.canonical() in g for g in groups) for i in trained)
    assert overlap["projections_of_set"] == sum(bool(g & forms) for g in groups)
    layouts = [[min(sorted(m(r, c, 2) for r, c in i.holes) for m in SYMMETRIES) for i in side] for side in (trained, kept)]
    assert overlap["hole_layouts"] == sum(layout in layouts[1] for layout in layouts[0] if layout)
    assert overlap["hole_layouts_of_set"] == sum(layout in layouts[0] for layout in layouts[1] if layout)


def test_a_round_of_training_is_counted_in_half_a_second():
    lake = make()
    request = lake.request(1056)
    trained = lake.generate(lake.random_configuration(request, 3), request, 5)
    sets = [lake.load_set(name) for name in lake.protected_sets()]
    started = time.process_time()
    counts = [lake.shared(trained, frozen_set.instances) for frozen_set in sets]
    assert time.process_time() - started < 0.5
    assert counts[0]["hole_layouts"] > 0 and counts[-1]["projections"] == 0, "with 2 agents like the training there is no group"
