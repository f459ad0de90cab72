"""The solver's interface: known instances, limits, bad input, threads, and what happens without the native core."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_core.seeding import Stream
from t2t_envs.frozen_lake import reference_cbs, rules, solver
from t2t_envs.frozen_lake.instance import OBJECTIVES, Instance
from t2t_envs.frozen_lake.solver import SearchLimitError, UnsolvableError, requires_wait, solve, solve_many

# The project page's example: two agents, three moves each, nobody waits.
PAGE = Instance(3, [(0, 1)], [(2, 0), (1, 0)], [(1, 2), (2, 2)])
# A corridor with one bay: agent 1 must let agent 0 pass.
BAY = Instance(3, [(0, 0), (0, 2), (2, 0), (2, 1), (2, 2)], [(1, 0), (1, 2)], [(1, 2), (1, 0)])
# A corridor without a bay.
CORRIDOR = Instance(3, [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2)], [(1, 0), (1, 2)], [(1, 2), (1, 0)])
# Four agents turn around a square of four cells.
TURN = Instance(
    3, [(0, 2), (1, 2), (2, 0), (2, 1), (2, 2)], [(0, 0), (0, 1), (1, 1), (1, 0)], [(0, 1), (1, 1), (1, 0), (0, 0)]
)


def crowded(size: int, agents: int, holes: int, seed: int) -> Instance:
    stream = Stream.of(seed, "crowded", size)
    cells = [(r, c) for r in range(size) for c in range(size)]
    stream.shuffle(cells)
    free = cells[holes:]
    goals = list(free)
    stream.shuffle(goals)
    return Instance(size, cells[:holes], free[:agents], goals[:agents])


@pytest.mark.parametrize(
    ("instance", "makespan", "sum_of_costs", "waits"), [(PAGE, 3, 6, (False, False)), (TURN, 1, 4, (False, False))]
)
def test_known_optima(instance: Instance, makespan: int, sum_of_costs: int, waits: tuple[bool, bool]) -> None:
    for objective, cost, wait in zip(OBJECTIVES, (makespan, sum_of_costs), waits, strict=True):
        solution = solve(instance, objective)
        assert (solution.cost, solution.objective) == (cost, objective)
        assert requires_wait(instance, objective) is wait


def test_stepping_aside_may_need_a_wait() -> None:
    # The one that steps into the bay needs two steps more than its distance 2, and the other one has to let it in first.
    assert solve(BAY, "makespan").cost == 4
    assert solve(BAY, "sum_of_costs").cost == 7
    assert requires_wait(BAY, "sum_of_costs") is True
    assert all(rules.costs(solve(BAY, o).paths, BAY.goals) is not None for o in OBJECTIVES)


def test_an_agent_may_start_on_its_goal() -> None:
    alone = Instance(3, [], [(1, 1)], [(1, 1)])
    assert solve(alone).cost == 0 and solve(alone).paths == (((1, 1),),)
    # It must make way for the other one and come back: two steps of its own, and no wait.
    guard = Instance(3, [(0, 0), (0, 2), (2, 0), (2, 1), (2, 2)], [(1, 0), (1, 1)], [(1, 2), (1, 1)])
    assert solve(guard, "sum_of_costs").cost == 4
    assert solve(guard, "makespan").cost == 2
    assert requires_wait(guard, "sum_of_costs") is False


def test_infeasible_is_proven_and_limits_are_honest() -> None:
    with pytest.raises(UnsolvableError):
        solve(CORRIDOR)
    with pytest.raises(UnsolvableError):
        requires_wait(Instance(3, [(0, 1), (1, 0), (1, 1)], [(0, 0)], [(2, 2)]))
    hard = crowded(5, 5, 8, 11)
    with pytest.raises(SearchLimitError):
        solve(hard, "sum_of_costs", max_nodes=1)
    assert solve_many([hard], "sum_of_costs", max_nodes=1)[0].status == "undecided"
    assert issubclass(UnsolvableError, T2TError) and issubclass(SearchLimitError, T2TError)


def test_labels_do_not_depend_on_threads_order_or_stored_labels() -> None:
    batch = [crowded(size, agents, holes, seed) for seed in range(12) for size, agents, holes in
             ((3, 2, 2), (4, 4, 3), (5, 5, 4), (7, 3, 20), (8, 5, 13), (10, 5, 30), (12, 4, 30), (20, 3, 100))]  # fmt: skip
    for objective in OBJECTIVES:
        labels = solve_many(batch, objective, max_nodes=50_000, wait=True)
        assert solve_many(batch, objective, max_nodes=50_000, wait=True, threads=3) == labels
        assert solve_many(batch[::-1], objective, max_nodes=50_000, wait=True) == labels[::-1]
        lies = [Instance(i.size, i.holes, i.starts, i.goals, i.objective, "x", 999, 999, True) for i in batch]
        assert solve_many(lies, objective, max_nodes=50_000, wait=True) == labels


def test_largest_allowed_instances_are_solved_or_honestly_undecided() -> None:
    for instance in (crowded(32, 16, 0, 1), crowded(32, 16, 200, 2), crowded(17, 16, 60, 3)):
        for objective in OBJECTIVES:
            label = solve_many([instance], objective, max_nodes=20_000, wait=True)[0]
            assert label.status in ("solved", "infeasible", "undecided")
            if label.status == "solved":
                solution = solve(instance, objective, max_nodes=20_000)
                assert getattr(rules.costs(solution.paths, instance.goals), objective) == label.cost


def test_a_long_corridor_does_not_overflow() -> None:
    # A snake through 32x32: the two agents start and end at opposite ends of a way of more than 500 cells.
    holes = [(r, c) for r in range(1, 32, 2) for c in range(32) if c != (31 if r % 4 == 1 else 0)]
    with pytest.raises(UnsolvableError):
        solve(Instance(32, holes, [(0, 0), (31, 0)], [(31, 0), (0, 0)]))
    assert solve(Instance(32, holes, [(0, 0)], [(31, 0)])).cost > 500
    follow = Instance(32, holes, [(0, 0), (0, 1)], [(30, 0), (31, 0)])
    assert solve(follow, "sum_of_costs").cost > 1000
    overtake = Instance(32, holes, [(0, 1), (0, 0)], [(30, 0), (31, 0)])
    assert solve_many([overtake], wait=True)[0].status == "infeasible"


def test_bad_input_is_refused() -> None:
    for objective in ("speed", "", 3, "\ud800"):
        with pytest.raises(T2TError):
            solve(PAGE, objective)  # type: ignore[arg-type]
    for limit in (0, -1, 1.5, True, "9", 2**70, None):
        with pytest.raises(T2TError):
            solve(PAGE, max_nodes=limit)  # type: ignore[arg-type]
    with pytest.raises(T2TError):
        solve_many([PAGE], threads=0)
    assert solve_many([]) == []


def test_the_native_door_checks_its_arrays() -> None:
    core = solver.native_core()
    assert core is not None
    good = ([3], [1], [0] * 9, [0], [8], [0], 10, True)
    assert core.solve_many(*good)[1][0] == 4
    for position, value in ((0, [2]), (0, [33]), (0, [3, 3]), (1, [0]), (1, [17]), (2, [0] * 8), (2, [0] * 10), (2, [1] * 9),
                            (3, [-1]), (3, [9]), (3, [0, 1]), (4, []), (5, [2]), (5, [])):  # fmt: skip
        with pytest.raises(ValueError):
            core.solve_many(*good[:position], value, *good[position + 1 :])
    with pytest.raises(ValueError):
        core.solve(3, [0] * 9, [0, 0], [7, 8], 0, 10)
    with pytest.raises(ValueError):
        core.solve_many(*good, threads=0)


def test_without_the_core_the_reference_takes_over_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [solve_many([PAGE, BAY, TURN, CORRIDOR], objective, wait=True) for objective in OBJECTIVES]

    def missing(name: str) -> None:
        raise ImportError(f"no module {name}")

    monkeypatch.setattr(solver, "import_module", missing)
    solver.native_core.cache_clear()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for objective, labels in zip(OBJECTIVES, expected, strict=True):
                for label, native in zip(solve_many([PAGE, BAY, TURN, CORRIDOR], objective, wait=True), labels, strict=True):
                    assert (label.status, label.cost, label.requires_wait) == (native.status, native.cost, native.requires_wait)
            assert solve(PAGE).cost == 3 and requires_wait(PAGE) is False
        assert [w.category for w in caught] == [RuntimeWarning]
    finally:
        solver.native_core.cache_clear()


def test_the_reference_says_undecided_where_it_cannot_know() -> None:
    swap = Instance(9, [(r, c) for r in range(9) for c in range(9) if r != 4], [(4, 0), (4, 8), (4, 4)], [(4, 8), (4, 0), (4, 4)])
    assert reference_cbs.search(swap, "makespan", max_nodes=30).status in ("undecided", "infeasible")
    assert reference_cbs.search(BAY, "sum_of_costs", max_nodes=1).status == "undecided"


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(3, 8), agents=st.integers(1, 5), share=st.integers(0, 50))
def test_bounds_and_symmetry(seed: int, size: int, agents: int, share: int) -> None:
    """The optima bound each other, and a mirrored and relabelled instance has the same labels."""
    holes = min(size * size * share // 100, size * size - agents)
    instance = crowded(size, agents, holes, seed)
    mirrored = Instance(
        size,
        [(r, size - 1 - c) for r, c in instance.holes],
        [(c0, size - 1 - c1) for c0, c1 in reversed(instance.starts)],
        [(c0, size - 1 - c1) for c0, c1 in reversed(instance.goals)],
    )
    labels = {}
    for objective in OBJECTIVES:
        a, b = solve_many([instance, mirrored], objective, max_nodes=300_000, wait=True)
        if "undecided" not in (a.status, b.status):
            assert (a.status, a.cost, a.requires_wait) == (b.status, b.cost, b.requires_wait)
        labels[objective] = a
    makespan, total = labels["makespan"], labels["sum_of_costs"]
    if makespan.cost is not None and total.cost is not None:
        assert makespan.cost <= total.cost <= agents * makespan.cost
