"""The solver policies: legal, unlabelled, deterministic, and as good or bad as their docstrings say."""

import time
from dataclasses import replace

import pytest

from t2t_baselines.board import Board
from t2t_baselines.prioritized import _SpaceTime
from t2t_core.errors import T2TError
from t2t_core.plugins import load
from t2t_core.records import Sampling, Task
from t2t_core.seeding import Stream
from t2t_envs.frozen_lake import Instance, rules, solve, verify
from t2t_envs.frozen_lake.solver import UnsolvableError

POLICIES = load().policies
NAMES = ["cbs", "prioritized", "pibt", "independent", "random"]
SWAP = Instance(3, [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2)], [(1, 0), (1, 2)], [(1, 2), (1, 0)])  # one lane
BAY = Instance(3, [(0, 0), (0, 2), (2, 0), (2, 1), (2, 2)], [(1, 0), (1, 2)], [(1, 2), (1, 0)])  # one lane with a bay


def lakes(count, seed=0, sizes=(3, 4, 5, 6), agents=(2, 3, 4), holes=0.45, solvable=True):
    """Random instances, labelled."""
    stream = Stream.of(seed, "test lakes")
    made = []
    while len(made) < count:
        size, k = stream.choice(sizes), stream.choice(agents)
        cells = [(r, c) for r in range(size) for c in range(size)]
        stream.shuffle(cells)
        h = stream.below(int(holes * size * size) + 1)
        starts, free = cells[h : h + k], cells[h:]
        stream.shuffle(free)
        instance = Instance(size, cells[:h], starts, free[:k], id=f"i{len(made)}")
        try:
            optimum = solve(instance).cost
        except UnsolvableError:
            if solvable:
                continue
            optimum = None
        made.append(replace(instance, optimal_makespan=optimum))
    return made


LAKES = lakes(150)


def ask(name, instances, seed=0):
    tasks = [Task(i.id, 0, "unread", i.unlabelled(), seed + n) for n, i in enumerate(instances)]
    answers = list(POLICIES.make(name).respond(tasks, Sampling()))
    assert [position for position, _ in answers] == list(range(len(tasks)))
    return [response for _, response in answers]


def rates(name, instances=LAKES):
    verdicts = [verify(i, r.text) for i, r in zip(instances, ask(name, instances), strict=True)]
    return sum(v.valid for v in verdicts) / len(verdicts), sum(bool(v.optimal) for v in verdicts) / len(verdicts)


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_is_legal_but_for_conflicts_and_unreached_goals(name):
    for instance, response in zip(LAKES, ask(name, LAKES), strict=True):
        assert response.error is None
        checks = verify(instance, response.text).checks
        expected = {"parsable", "agent_count", "start_correct", "in_bounds", "hole_free", "legal_move"}
        assert {name for name, passed in checks.items() if passed} >= expected, response.text
        if name in ("pibt", "cbs"):
            assert checks["conflict_free"]
        if name in ("independent", "cbs"):
            assert checks["goal_reached"]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_task_gets_the_same_answer_whatever_the_labels(name):
    corrupted = [replace(i, optimal_makespan=1, optimal_sum_of_costs=99, requires_wait=True, id="other") for i in LAKES[:40]]
    first, again, other = ask(name, LAKES[:40]), ask(name, LAKES[:40]), ask(name, corrupted)
    assert [r.text for r in first] == [r.text for r in again] == [r.text for r in other]


@pytest.mark.parametrize("name", ["random", "pibt"])
def test_another_seed_draws_other_answers(name):
    assert [r.text for r in ask(name, LAKES)] != [r.text for r in ask(name, LAKES, seed=1)]


def test_cbs_is_valid_and_optimal_everywhere_in_both_objectives():
    assert rates("cbs") == (1.0, 1.0)
    sums = [replace(i, objective="sum_of_costs", optimal_sum_of_costs=solve(i, "sum_of_costs").cost) for i in LAKES[:40]]
    assert rates("cbs", sums) == (1.0, 1.0)


def test_the_order_of_the_baselines():
    cbs, prioritized, pibt, independent, random = (rates(name) for name in NAMES)
    assert cbs[0] > prioritized[0] > independent[0] > random[0]
    assert pibt[0] > independent[0]
    assert independent[0] == independent[1]  # a valid answer of shortest paths is optimal
    assert prioritized[1] > pibt[1] > random[1]
    assert rates("prioritized:orders=1")[0] < prioritized[0]


def test_what_has_no_solution():
    for name in NAMES:
        response = ask(name, [SWAP])[0]
        if name == "cbs":
            assert response.error == "the agents cannot all reach their goals" and response.text == ""
        else:
            assert response.error is None and not verify(SWAP, response.text).valid


def test_a_search_limit_is_an_error_and_no_answer():
    hard = lakes(1, 3, sizes=(6,), agents=(3,))
    response = ask("cbs:max_nodes=1", hard)[0]
    if response.error:  # the fast path may settle it without a search
        assert response.text == "" and response.finish_reason == "error"


def test_a_bay_is_where_the_baselines_differ():
    assert verify(replace(BAY, optimal_makespan=solve(BAY).cost), ask("cbs", [BAY])[0].text).optimal
    assert not verify(BAY, ask("prioritized", [BAY])[0].text).valid  # nobody makes room for a later one
    assert not verify(BAY, ask("independent", [BAY])[0].text).valid


def earliest_arrival(board, start, goal, earlier):
    """By plain search over (cell, time): the first step from which the agent may stay on its goal for good, or None."""
    horizon = max((len(path) for path in earlier), default=1)
    at = [[path[min(t, len(path) - 1)] for path in earlier] for t in range(horizon + board.size**2 + 2)]
    cells = {start}
    for t in range(horizon + board.size**2):
        if goal in cells and all(goal not in later for later in at[t:]):
            return t
        moves = {(cell, after) for cell in cells for after in (cell, *board.steps[cell])}
        swaps = {(after, before) for before, after in zip(at[t], at[t + 1], strict=True)}
        cells = {after for cell, after in moves - swaps if after not in at[t + 1]}
    return None


def test_the_search_of_prioritised_planning_arrives_as_early_as_can_be():
    arrived = blocked = 0
    for instance in lakes(150, 5, agents=(3,), holes=0.5, solvable=False):
        board = Board(instance)
        search = _SpaceTime(board)
        earlier = []
        for start, goal in zip(board.starts, board.goals, strict=True):
            path = search.search(start, goal, earlier)
            assert (None if path is None else len(path) - 1) == earliest_arrival(board, start, goal, earlier)
            blocked += path is None
            if path:
                arrived += 1
                earlier.append(path)
                cells = [[divmod(n, board.size) for n in p] for p in earlier]
                for t in range(max(map(len, cells))):
                    before, after = ([rules.position_at(p, u) for p in cells] for u in (t, t + 1))
                    assert rules.first_conflict(before, after) is None
    assert arrived > 300 and blocked > 20


@pytest.mark.parametrize("name", NAMES[1:])
def test_an_answer_takes_milliseconds(name):
    stream = Stream.of(0, "big")
    cells = [(r, c) for r in range(10) for c in range(10)]
    big = []
    for n in range(40):
        stream.shuffle(cells)
        big.append(Instance(10, cells[:20], cells[20:25], cells[30:35], id=f"big{n}"))
    begin = time.process_time()
    ask(name, big)
    assert time.process_time() - begin < 40 * 0.02


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        ("cbs:5", "no argument"),
        ("prioritized:orders=0", "orders"),
        ("pibt:max_step=3", "did you mean max_steps"),
        ("random:max_steps=x", "whole number"),
    ],
)
def test_mistakes_are_named(spec, match):
    with pytest.raises(T2TError, match=match):
        POLICIES.make(spec)


def test_other_testbeds_are_refused():
    with pytest.raises(T2TError, match="MAPF-FrozenLake instances, not on dict"):
        list(POLICIES.make("cbs").respond([Task("i", 0, "p", {}, 0)], Sampling()))
