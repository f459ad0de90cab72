"""The solver against an independent exhaustive search, and larger teams against Conflict-Based Search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from oracle import Oracle

from t2t_core.seeding import Stream
from t2t_envs.frozen_lake import reference_cbs, rules
from t2t_envs.frozen_lake.generation.sampling import draw_stratum
from t2t_envs.frozen_lake.generation.strata import Quota, Stratum
from t2t_envs.frozen_lake.instance import OBJECTIVES, Instance
from t2t_envs.frozen_lake.solver import UnsolvableError, flat_arrays, native_core, solve, solve_many

PER_CELL_GROUP = 384  # instances per objective, agent count and size: 2 * 4 * 384, of which more than 2,000 are solvable


def random_instance(stream: Stream, size: int, holes: int, agents: int, objective: str) -> Instance:
    """Uniform holes, starts and goals; starts may equal goals, and goals may be out of reach."""
    cells = list(product(range(size), repeat=2))
    stream.shuffle(cells)
    free = cells[holes:]
    starts = free[:agents]
    goals: list[tuple[int, int]] = []
    while len(goals) < agents:
        cell = stream.choice(free)
        if cell not in goals:
            goals.append(cell)
    return Instance(size, cells[:holes], starts, goals, objective)


def hole_counts(size: int, agents: int) -> range:
    return range(min((size * size + 1) // 2, size * size - agents) + 1)


def instances(seed: int, sizes: range, teams: tuple[int, ...], each: int, objective: str) -> Iterator[tuple[Instance, tuple]]:
    """`each` instances per team and size, drawn evenly over the hole counts, with the cell they belong to."""
    for agents, size in product(teams, sizes):
        stream = Stream.of(seed, "solver test", agents, size, objective)
        counts = hole_counts(size, agents)
        for number in range(each):
            holes = counts[number * len(counts) // each]
            yield random_instance(stream, size, holes, agents, objective), (agents, size, holes)


def check_paths(instance: Instance, objective: str, cost: int) -> None:
    solution = solve(instance, objective)
    assert solution.cost == cost
    horizon = max(map(len, solution.paths))
    for path, start, goal in zip(solution.paths, instance.starts, instance.goals, strict=True):
        assert path[0] == start and path[-1] == goal
        assert not set(path) & set(instance.holes)
        assert all(rules.in_bounds(instance.size, cell) for cell in path)
        assert all(map(rules.is_legal_move, path, path[1:]))
        assert rules.arrival(path, goal) == len(path) - 1
    for step in range(1, horizon):
        before, after = ([rules.position_at(path, t) for path in solution.paths] for t in (step - 1, step))
        assert rules.first_conflict(before, after) is None
    assert getattr(rules.costs(solution.paths, instance.goals), objective) == cost


@pytest.mark.thorough
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_cost_wait_and_paths_equal_the_exhaustive_search(objective: str, record_property: Callable[[str, str], None]) -> None:
    cases = list(instances(1, range(3, 7), (2, 3), PER_CELL_GROUP, objective))
    labels = solve_many([instance for instance, _ in cases], wait=True)
    compared: Counter = Counter()
    outcomes: Counter = Counter()
    for (instance, cell), label in zip(cases, labels, strict=True):
        oracle = Oracle(instance)
        optimum = oracle.optimum(objective)
        assert label.cost == optimum, instance
        assert label.status == ("infeasible" if optimum is None else "solved")
        if optimum is not None:
            assert label.requires_wait == oracle.requires_wait(objective, optimum), instance
            check_paths(instance, objective, optimum)
        else:
            with pytest.raises(UnsolvableError):
                solve(instance)
        compared[cell] += 1
        outcomes[label.status, label.requires_wait] += 1
    assert sum(count for (status, _), count in outcomes.items() if status == "solved") >= 2_000
    lines = [f"{objective}: {sum(compared.values())} instances equal the exhaustive search; (status, wait) {dict(outcomes)}"]
    for agents, size in product((2, 3), range(3, 7)):
        counts = [f"{h}:{compared[agents, size, h]}" for h in hole_counts(size, agents)]
        lines.append(f"  {agents} agents {size}x{size}, holes:instances {' '.join(counts)}")
    record_property("summary", "\n".join(lines))


@pytest.mark.thorough
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_four_and_five_agents_equal_conflict_based_search(objective: str, record_property: Callable[[str, str], None]) -> None:
    cases = list(instances(2, range(3, 7), (4, 5), 50, objective))
    labels = solve_many([instance for instance, _ in cases], wait=True)
    decided: Counter = Counter()
    waits = 0
    for (instance, cell), label in zip(cases, labels, strict=True):
        assert label.status != "undecided"
        result = reference_cbs.search(instance, objective, max_nodes=25)
        if result.status == "undecided":
            continue
        assert (label.status, label.cost) == (result.status, result.cost), instance
        decided[cell] += 1
        if result.cost is not None:
            check_paths(instance, objective, result.cost)
            answer = reference_cbs.requires_wait(instance, objective, result.cost, max_nodes=25)
            waits += answer is not None
            assert answer in (None, label.requires_wait), instance
    counts = f"{sum(decided.values())} of {len(cases)} decided, {waits} wait flags, {len(decided)} cells"
    record_property("summary", f"{objective}, 4 and 5 agents against Conflict-Based Search: {counts}")
    assert sum(decided.values()) >= 300


def by_method(batch: list[Instance], objective: str, method: int) -> list[list[int]]:
    """Status, cost and wait flag by one of the native core's algorithms."""
    core = native_core()
    assert core is not None
    codes = np.full(len(batch), OBJECTIVES.index(objective), dtype=np.uint8)
    columns = core.solve_many(*flat_arrays(batch), codes, 10**7, True, method=method)
    return [column.tolist() for column in columns[:3]]


@pytest.mark.thorough
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_native_algorithm_says_the_same(objective: str) -> None:
    """All joint states; one joint search guided by tables of pairs, of triples, of four agents; and the fast mixture."""
    small = [i for i, _ in instances(3, range(3, 5), (2, 3), 40, objective)]
    small += [i for i, _ in instances(4, range(3, 4), (4, 5), 25, objective)]
    expected = by_method(small, objective, method=1)
    for method in (0, 2, 3, 4):
        assert by_method(small, objective, method) == expected
    large = [i for i, _ in instances(5, range(5, 8), (4, 5), 20, objective)]
    expected = by_method(large, objective, method=0)
    for method in (3, 4):
        assert by_method(large, objective, method) == expected


@pytest.mark.parametrize("turn", range(1, 6))
@pytest.mark.parametrize("agents", [3, 11, 12])
def test_a_full_ring_can_only_turn(agents: int, turn: int) -> None:
    """More than ten agents have more options than a word has bits. On a ring of twelve cells a full team turns or stays."""
    ring = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (3, 3), (3, 2), (3, 1), (3, 0), (2, 0), (1, 0)]
    holes = [(1, 1), (1, 2), (2, 1), (2, 2)]
    starts, goals = ring[:agents], [ring[(i + turn) % 12] for i in range(agents)]
    instance = Instance(4, holes, starts, goals, "makespan")
    for objective, cost in (("makespan", turn), ("sum_of_costs", turn * agents)):
        for method in (0, 2):
            assert [x[0] for x in by_method([instance], objective, method)] == [0, cost, 0]


def test_more_joint_moves_than_fit_in_memory_leave_it_undecided() -> None:
    """While one agent crosses the map ten others may move about: the first joint moves alone are 11.7 million."""
    idle = [*product((1, 4, 7), (2, 5, 8)), (9, 0)]
    instance = Instance(10, [], [(0, 0), *idle], [(9, 9), *idle], "makespan")
    assert by_method([instance], "makespan", method=2)[0] == [2]
    assert solve(instance, "makespan").cost == 18


def test_a_pair_that_is_first_searched_while_its_team_is_planned_leaves_the_tables_of_the_team_alone() -> None:
    """Among these is a team whose wait-free plan asks for a pair that nothing had asked for before."""
    drawn = draw_stratum(Stratum(7, 17, 3, "sum_of_costs"), 7, Quota(30, 30, distinct=False)).instances
    status, costs, waits = by_method(drawn, "sum_of_costs", method=2)
    assert set(status) == {0}
    assert [(x.optimum, x.requires_wait) for x in drawn] == [(c, w == 1) for c, w in zip(costs, waits, strict=True)]
