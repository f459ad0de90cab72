"""The frozen sets: what they promise, what they are checked against, and that they can be regenerated bit for bit."""

from __future__ import annotations

import hashlib
from collections import Counter
from importlib.resources import files

import pytest

from t2t_core.errors import T2TError
from t2t_core.store import frozen as store_frozen
from t2t_envs.frozen_lake import requires_wait, sets, solve, solver
from t2t_envs.frozen_lake.generation import frozen_sets
from t2t_envs.frozen_lake.generation.frozen_sets import PLANS, as_lines, hole_levels, make_set

FOLDER = files("t2t_envs.frozen_lake.sets")
native = pytest.mark.skipif(solver.native_core() is None, reason="the native core is not built")


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_sizes_cells_and_balance(plan):
    instance_set = sets.load_set(plan.name)
    instances = instance_set.instances
    per_size = 2 * plan.each * 5
    assert (instance_set.kind, len(instances)) == (plan.kind, per_size * len(plan.sizes))
    assert [x.id for x in instances] == [
        f"{plan.num_agents}agents_{n}x{n}_{i:04d}" for n in plan.sizes for i in range(per_size)
    ]
    short = {cell["size"] for cell in sets.manifest()["sets"][plan.name]["cells"] if cell["instances"] != plan.each}
    for size in plan.sizes:
        mine = [x for x in instances if x.size == size]
        assert sum(x.requires_wait for x in mine) == per_size // 2
        cells = Counter((len(x.holes), x.requires_wait) for x in mine)
        if size not in short:
            assert cells == {(h, w): plan.each for h in hole_levels(size, plan.num_agents) for w in (False, True)}
            assert len({(len(x.holes), x.requires_wait) for x in mine[:10]}) == 10
            assert len({len(x.holes) for x in mine[:5]}) == 5
    assert all(x.objective == "makespan" and x.optimal_makespan and x.optimal_sum_of_costs for x in instances)
    assert all(s != g for x in instances for s, g in zip(x.starts, x.goals, strict=True))


def test_hole_levels_are_those_of_the_rule():
    assert hole_levels(3, 3) == [0, 1, 3, 4, 5]
    assert hole_levels(10, 5) == [0, 13, 25, 38, 50]
    assert hole_levels(5, 2) == [0, 3, 7, 10, 13]


def test_no_form_occurs_twice_over_all_sets():
    everything = [x.canonical() for name in sets.NAMES for x in sets.load_set(name).instances]
    assert len(set(everything)) == len(everything) == 1200 + 1050 + 900 + 400
    assert sets.canonical_exclusions() == set(everything)


def test_a_set_takes_at_most_half_of_a_cell_and_says_what_is_short():
    for plan in PLANS:
        facts = sets.manifest()["sets"][plan.name]
        held = Counter((x.size, len(x.holes), x.requires_wait) for x in sets.load_set(plan.name).instances)
        for cell in facts["cells"]:
            assert held[cell["size"], cell["holes"], cell["wait"]] == cell["instances"] <= cell["forms"] // 2
        assert len(facts["notes"]) == sum(cell["instances"] != plan.each for cell in facts["cells"])
    assert any("3 agents, 3x3, 5 holes, wait: 0 instances" in note for note in sets.load_set("3agents").notes)


def test_sums_cover_every_file_and_a_damaged_one_is_noticed(monkeypatch):
    sums = [line.split() for line in (FOLDER / "SHA256SUMS").read_text().splitlines()]
    assert {name for _, name in sums} == {*(plan.file for plan in PLANS), "manifest.json"}
    for digest, name in sums:
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest
    with pytest.raises(T2TError, match="no set called"):
        sets.load_set("6agents")
    tampered = {name: facts | {"file": "forms.json"} for name, facts in sets.manifest()["sets"].items()}
    monkeypatch.setattr(store_frozen, "manifest", lambda package: {"sets": tampered})
    with pytest.raises(T2TError, match="not the one that was published"):
        sets.load_set.__wrapped__("3agents")


@native
def test_a_part_of_every_set_comes_out_again_bit_for_bit():
    for plan in PLANS:
        for size in plan.sizes[:1] if plan.num_agents == 5 else plan.sizes[:3]:
            stored = [line for line in (FOLDER / plan.file).read_text().splitlines() if f"_{size}x{size}_" in line]
            assert as_lines(make_set(plan, (size,))[0]).splitlines() == stored


@pytest.mark.slow
@native
def test_all_files_come_out_again_bit_for_bit(tmp_path):
    for name in frozen_sets.write_files(tmp_path):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


@native
def test_labels_are_those_of_the_solver():
    for name in sets.NAMES:
        instances = sets.load_set(name).instances
        few = instances[:: len(instances) // 40]
        for objective in ("makespan", "sum_of_costs"):
            labels = solver.solve_many(few, objective)
            assert [label.cost for label in labels] == [getattr(x, f"optimal_{objective}") for x in few]
    assert solve(few[0]).cost == few[0].optimal_makespan and requires_wait(few[0]) == few[0].requires_wait


@native
def test_a_twin_has_the_same_cells_and_none_of_the_forms():
    frozen = sets.load_set("validation_2agents")
    twin, other = (sets.twin("validation_2agents", seed) for seed in (1, 2))
    again = frozen_sets.make_twin(frozen, sets.manifest()["sets"]["validation_2agents"], 1)
    assert twin == again and twin.sha256 != other.sha256 and twin.kind == "twin"
    assert not {x.canonical() for x in twin.instances} & {x.canonical() for x in frozen.instances}

    def cells(instances):
        return [(x.size, len(x.holes), x.requires_wait) for x in instances]

    assert cells(twin.instances) == cells(frozen.instances)
    assert [x.id for x in twin.instances] == [f"twin1_{x.id}" for x in frozen.instances]
    assert "0 of its forms" in twin.notes[-1]
    with pytest.raises(T2TError, match="seed"):
        sets.twin("3agents", -1)
