"""The generator: exact counts, determinism, refusals; known counts of forms; the native core against plain Python."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_core.seeding import Stream, key
from t2t_envs.frozen_lake import Configuration, Instance, generate, requires_wait, solve, solver
from t2t_envs.frozen_lake.generation import reference_sampler
from t2t_envs.frozen_lake.generation.forms import available, capacity, count_forms, most_holes
from t2t_envs.frozen_lake.generation.generator import variants
from t2t_envs.frozen_lake.generation.sampling import draw_stratum, from_form, list_forms
from t2t_envs.frozen_lake.generation.strata import Quota, Stratum

native = pytest.mark.skipif(solver.native_core() is None, reason="the native core is not built")


def only(size: int, hole_ratio: float = 0.0, wait_ratio: float = 0.0) -> Configuration:
    return Configuration.from_dict({str(size): {"data_ratio": 1, "hole_ratio": hole_ratio, "wait_ratio": wait_ratio}})


def lines(instances: list[Instance]) -> list[dict]:
    return [x.to_dict() for x in instances]


def names(instances: list[Instance]) -> list[object]:
    return [reference_sampler.variant(x) for x in instances]


@native
def test_four_thousand_instances_are_exact_in_every_count():
    instances = generate(Configuration.uniform(0.2, 0.5), 4000, num_agents=2, seed=11)
    assert [x.id for x in instances] == [f"2agents_{n}x{n}_{i:04d}" for n in range(3, 11) for i in range(500)]
    by_size = Counter((x.size, len(x.holes), x.requires_wait) for x in instances)
    assert by_size == {(n, math.floor(0.2 * n * n + 0.5), w): 250 for n in range(3, 11) for w in (False, True)}
    assert len(set(zip([x.size for x in instances], names(instances), strict=True))) == 4000
    assert instances.report.repeats == instances.report.undecided == 0
    assert all(s != g for x in instances for s, g in zip(x.starts, x.goals, strict=True))
    assert lines([Instance.from_dict(x.to_dict()) for x in instances]) == lines(instances)


@native
def test_same_seed_same_instances_with_any_number_of_threads():
    def drawn(seed, threads):
        return generate(Configuration.uniform(0.3, 0.4), 160, 3, seed, "sum_of_costs", labels="both", threads=threads)

    single = drawn(5, 1)
    for several in (drawn(5, 2), drawn(5, 3), drawn(5, 64)):
        assert lines(several) == lines(single)
        assert several.report == single.report
    assert lines(single) != lines(drawn(6, 1))


@native
@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_ends_the_drawing_at_once(threads):
    program = f"""
import signal
from t2t_envs.frozen_lake import Configuration, generate
signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run in the background it is ignored
print("begins", flush=True)
generate(Configuration.uniform(0.5, 0.5), 200_000, 5, 1, "sum_of_costs", threads={threads})
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, **pipes) as child:
        assert child.stdout.readline() == b"begins\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        try:
            _, told = child.communicate(timeout=60)
        finally:
            child.kill()
    assert told.rstrip().endswith(b"KeyboardInterrupt")


def test_labels_are_those_of_the_solver():
    instances = generate(only(4, 0.25, 0.5), 12, 3, seed=2, labels="both")
    for x in instances:
        assert x.optimal_makespan == solve(x, "makespan").cost
        assert x.optimal_sum_of_costs == solve(x, "sum_of_costs").cost
        assert x.requires_wait == requires_wait(x, "makespan")
    assert all(x.optimal_sum_of_costs is None for x in generate(only(4, 0.25, 0.5), 6))


@pytest.mark.parametrize(
    ("holes", "agents", "objective", "wait_free", "wait"),
    [(2, 2, "makespan", 2207, 223), (0, 2, "makespan", 268, 4), (1, 2, "makespan", 1334, 48), (5, 3, "makespan", 21, 0)],
)
@native
def test_known_numbers_of_forms(holes, agents, objective, wait_free, wait):
    forms = list_forms(Stratum(3, holes, agents, objective), wait=True)
    assert (forms.wait_free, forms.wait, forms.undecided, len(forms.listed)) == (wait_free, wait, 0, wait)
    assert count_forms(Stratum(3, holes, agents, objective)) == (wait_free, wait, True)
    assert list(forms.listed) == sorted({from_form(f, objective).canonical() for f in forms.listed})


@native
def test_one_hole_on_3x3_has_368_wait_instances_up_to_relabelling():
    forms = list_forms(Stratum(3, 1, 2), wait=True).listed
    assert sum(len(variants(from_form(form, "makespan"))) for form in forms) == 368


@native
def test_allow_repeats_only_what_has_run_out_and_forbid_refuses():
    instances = generate(only(3, 1 / 9, 1), 400)
    assert len(set(names(instances))) == 368 and instances.report.repeats == 32
    assert max(Counter(names(instances)).values()) == 2
    assert len({x.canonical() for x in generate(only(3, 1 / 9, 1), 48, repeats="forbid")}) == 48
    with pytest.raises(T2TError, match="48 wait forms.*49 are asked for") as refused:
        generate(only(3, 1 / 9, 1), 49, repeats="forbid")
    assert "hole_ratio" in refused.value.next or "wait_ratio" in refused.value.next


@native
def test_a_cell_without_wait_instances_is_refused_with_the_nearest_request():
    with pytest.raises(T2TError, match="0 wait forms") as refused:
        generate(only(3, 0.5, 0.5), 10, num_agents=3)
    assert "3.wait_ratio = 0" in refused.value.next
    assert len(generate(only(3, 0.5, 0), 10, num_agents=3)) == 10


def test_one_agent_that_should_wait_is_refused_at_once():
    with pytest.raises(T2TError, match="nobody is in its way") as refused:
        generate(only(8, 0.2, 1), 2, num_agents=1)
    assert "8.wait_ratio = 0" in refused.value.next


@native
def test_excluded_forms_are_never_drawn_and_can_empty_a_cell():
    every = set(list_forms(Stratum(3, 0, 2), wait=True).listed)
    assert len(every) == 4
    gone = set(sorted(every)[:3])
    left = generate(only(3, 0, 1), 20, exclude=gone)
    assert {x.canonical() for x in left} == every - gone
    assert left.report.repeats == 20 - len(set(names(left)))
    assert available(Stratum(3, 0, 2), every) == (268, 0, True)
    with pytest.raises(T2TError, match="0 wait forms"):
        generate(only(3, 0, 1), 1, exclude=every)


def test_hole_counts_are_capped_at_what_the_size_can_hold():
    assert [most_holes(n) for n in (3, 4, 5, 10)] == [5, 8, 13, 50]
    assert capacity(3, 2) == capacity(3, 3) == 5
    assert capacity(3, 10) == -1
    top = capacity(3, 5)
    assert 0 <= top < 4
    assert {len(x.holes) for x in generate(only(3, 0.5, 0), 5, num_agents=5)} == {top}
    with pytest.raises(T2TError, match="10 agents"):
        generate(only(3), 1, num_agents=10)


@given(st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
@native
def test_native_sampler_and_plain_python_draw_the_same(seed):
    cell = Stratum(3 + seed % 3, seed % 4, 1 + seed % 3, ("makespan", "sum_of_costs")[seed % 2])
    quota = Quota(wait_free=5, wait=min(2, cell.num_agents - 1), both=seed % 3 == 0, one_per_form=seed % 5 == 0)
    theirs = draw_stratum(cell, key(seed, "test"), quota, stall=300)
    plain = reference_sampler.draw_stratum(cell, key(seed, "test"), quota, 300, 10**6)
    assert lines(theirs.instances) == lines(plain.instances)
    assert (theirs.drawn, theirs.undecided, theirs.stalled) == (plain.drawn, plain.undecided, plain.stalled)


@native
def test_without_the_native_core_the_instances_are_the_same(monkeypatch):
    request = (only(3, 0.2, 0.5), 6, 2, 3)
    expected = lines(generate(*request))
    few = (only(3, 0.5, 1), 140)  # more than there are: the complete list and repeats
    expected_few = lines(generate(*few))
    monkeypatch.setattr(solver, "native_core", lambda: None)
    assert lines(generate(*request)) == expected
    assert lines(generate(*few)) == expected_few


@given(st.data())
@settings(max_examples=60, deadline=None)
@native
def test_native_canonical_form_is_the_instances(data):
    size = data.draw(st.integers(3, 12))
    cells = data.draw(st.permutations(range(size * size)))
    holes, free = cells[: data.draw(st.integers(0, size))], cells[size:]
    agents = data.draw(st.integers(1, 4))
    starts, goals = free[:agents], data.draw(st.permutations(free[: 2 * agents]))[:agents]
    at = [divmod(c, size) for c in range(size * size)]
    instance = Instance(size, [at[c] for c in holes], [at[c] for c in starts], [at[c] for c in goals])
    form = instance.canonical()
    assert solver.native_core().canonical(size, holes, starts, goals) == form
    assert from_form(form, "makespan").canonical() == form
    assert all(x.canonical() == form for x in variants(instance))


@native
@pytest.mark.parametrize("objective", ["makespan", "sum_of_costs"])
def test_sampler_is_uniform_over_all_instances_of_its_kind(objective):
    """Chi-square against the complete list: 4 holes on 3x3, both kinds, every variant equally likely."""
    cell, draws = Stratum(3, 4, 2, objective), 6000
    for wait in (False, True):
        forms = list_forms(cell, wait).listed
        weights = {form: len(variants(from_form(form, objective))) for form in forms}
        quota = Quota(wait_free=0 if wait else draws, wait=draws if wait else 0, distinct=False)
        hits = Counter(x.canonical() for x in draw_stratum(cell, key(1, "chi", wait), quota).instances)
        expected = {form: draws * weight / sum(weights.values()) for form, weight in weights.items()}
        assert set(hits) <= set(expected)
        statistic = sum((hits[form] - mean) ** 2 / mean for form, mean in expected.items())
        freedom = len(expected) - 1
        assert abs(statistic - freedom) < 5 * math.sqrt(2 * freedom)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count must lie in"),
        ({"count": True}, "count must be an integer"),
        ({"num_agents": 17}, "num_agents must lie in"),
        ({"seed": -1}, "seed must lie in"),
        ({"objective": "speed"}, "objective must be one of"),
        ({"repeats": "maybe"}, "repeats must be one of"),
        ({"labels": "none"}, "labels must be one of"),
        ({"exclude": "abc"}, "exclude must be"),
        ({"exclude": ["abc"]}, "exclude must hold"),
        ({"threads": 0}, "threads must lie in"),
        ({"max_nodes": 0}, "max_nodes must lie in"),
        ({"configuration": {}}, "configuration must be a Configuration"),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises(T2TError, match=message):
        generate(**{"configuration": only(3), "count": 1} | arguments)


def test_undecided_candidates_are_left_out_and_counted():
    instances = generate(only(3, 0.2, 0.5), 20, max_nodes=1)
    assert len(instances) == 20


def test_streams_of_neighbouring_candidates_share_nothing():
    stream = Stream(key(0, "generate"))
    assert len({stream.fork(i).next() for i in range(1000)}) == 1000
