"""The generator's configuration and Project: strict reading, counts, and corrections that never fail and are all named."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_envs.frozen_lake import Configuration, generate
from t2t_envs.frozen_lake.generation.configuration import NAMES, SIZES, JointCell, cell_counts, hole_count, split
from t2t_envs.frozen_lake.generation.forms import available
from t2t_envs.frozen_lake.generation.generator import strata_of
from t2t_envs.frozen_lake.generation.projection import project, random_configuration
from t2t_envs.frozen_lake.generation.request import Request
from t2t_envs.frozen_lake.generation.sampling import list_forms
from t2t_envs.frozen_lake.generation.strata import Stratum
from t2t_envs.frozen_lake.instance import OBJECTIVES

UNIFORM = Configuration.uniform()


def proposal(**sizes):
    """n3=(data, hole, wait) -> {"3": {"data_ratio": data, ...}}"""
    return {name[1:]: dict(zip(NAMES, three, strict=True)) for name, three in sizes.items()}


def waits(ratio, count):
    """How many of a size's instances require a wait."""
    return cell_counts([JointCell(1, 0, ratio)], count)[0][1]


def corrected(given, request=None, previous=UNIFORM):
    result = project(given, previous, request or Request(800))
    return result.configuration, {change.knob: change for change in result.changes}


# --- reading


def test_dict_and_back():
    data = proposal(n3=(0.25, 0.1, 0.5), n10=(0.75, 0.5, 1))
    configuration = Configuration.from_dict(data)
    assert Configuration.from_dict(configuration.to_dict()) == configuration
    assert list(configuration.to_dict()) == [str(n) for n in SIZES]
    assert configuration[10].wait_ratio == 1 and configuration[5].data_ratio == 0
    assert len({configuration, Configuration.from_dict(data)}) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "JSON object"),
        (proposal(n3=(0.5, 0, 0)), "sum to 0.5"),
        (proposal(n11=(1, 0, 0)), "unknown map size"),
        ({3: {"data_ratio": 1, "hole_ratio": 0, "wait_ratio": 0}}, "unknown map size"),
        ({"3": 1}, "must be a JSON object"),
        ({"3": {"data_ratio": 1, "hole_ratio": 0}}, "'wait_ratio' is missing"),
        ({"3": {"data_ratio": 1, "hole_ratio": 0, "wait_ratio": 0, "x": 1}}, "'x' is unknown"),
        (proposal(n3=(1, 0.51, 0)), "hole_ratio must be a number in 0..0.5"),
        (proposal(n3=(1, 0, 30)), "wait_ratio must be a number in 0..1"),
        (proposal(n3=(1, "0.1", 0)), "hole_ratio must be"),
        (proposal(n3=(1, math.nan, 0)), "hole_ratio must be"),
        (proposal(n3=(True, 0, 0)), "data_ratio must be"),
        (proposal(n3=(10**400, 0, 0)), "data_ratio must be"),
    ],
)
def test_nonsense_is_refused(data, message):
    with pytest.raises(T2TError, match=message):
        Configuration.from_dict(data)


def test_counts_follow_the_rule():
    assert UNIFORM.counts(4000) == dict.fromkeys(SIZES, 500)
    assert UNIFORM.counts(10) == {3: 2, 4: 2} | dict.fromkeys(SIZES[2:], 1)  # ties to the smaller size
    assert split([0.0] * 7 + [1.0], 3)[10] == 3
    assert split([0.15, 0.35, 0.5, 0, 0, 0, 0, 0], 10) == {3: 2, 4: 3, 5: 5} | dict.fromkeys(SIZES[3:], 0)
    assert [hole_count(0.2, n) for n in SIZES] == [2, 3, 5, 7, 10, 13, 16, 20]
    assert [hole_count(0.5, n) for n in (3, 5)] == [5, 13]
    assert [waits(0.5, n) for n in (0, 1, 2, 3)] == [0, 1, 1, 2]


# --- Project, rule by rule


def test_a_good_proposal_passes_untouched():
    data = proposal(**{f"n{n}": (0.125, 0.3, 0.25) for n in SIZES})
    configuration, changes = corrected(data)
    assert configuration.to_dict() == data and not changes


def test_sizes_not_named_give_way_only_to_a_complete_proposal():
    configuration, changes = corrected(proposal(n3=(0.5, 0.1, 0.5), n4=(0.49, 0.1, 0.5)))
    assert configuration[3].data_ratio == pytest.approx(0.5 / 0.99) and configuration[9].data_ratio == 0
    assert changes["data_ratio"].proposed == pytest.approx(0.99)
    assert configuration[9].hole_ratio == 0.2 and "9.hole_ratio" not in changes
    configuration, changes = corrected(proposal(n3=(0.5, 0.1, 0.5)))
    assert configuration[3].data_ratio == pytest.approx(0.5 / 1.375)
    assert configuration[9].data_ratio == pytest.approx(0.125 / 1.375)
    assert changes["9.data_ratio"].used == 0.125


@pytest.mark.parametrize(("second", "complete"), [(0.48, True), (0.52, True), (0.4799, False), (0.5201, False)])
def test_named_sizes_are_complete_up_to_two_hundredths_inclusive(second, complete):
    configuration, _ = corrected(proposal(n3=(0.5, 0.1, 0.5), n4=(second, 0.1, 0.5)))
    assert (configuration[9].data_ratio == 0) == complete


def test_out_of_bounds_is_clipped_and_never_reinterpreted():
    configuration, changes = corrected(proposal(n5=(1, 30, 50), n6=(-2, -1, -0.5)))
    assert (configuration[5].hole_ratio, configuration[5].wait_ratio) == (0.5, 1)
    assert (configuration[6].data_ratio, configuration[6].hole_ratio, configuration[6].wait_ratio) == (0, 0, 0)
    assert changes["5.hole_ratio"].proposed == 30 and changes["6.data_ratio"].proposed == -2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "0.3", None, True, [0.3], 10**400])
def test_what_is_no_number_counts_as_missing(value):
    configuration, changes = corrected({"5": {"data_ratio": 1, "hole_ratio": value, "wait_ratio": 0.25}})
    assert configuration[5].hole_ratio == 0.2 and configuration[5].wait_ratio == 0.25 and configuration[5].data_ratio == 1
    assert "kept" in changes["5.hole_ratio"].reason
    configuration, changes = corrected({"5": {"data_ratio": value, "hole_ratio": 0.1, "wait_ratio": 0.25}})
    assert configuration[5].data_ratio == 0.125 and configuration[5].hole_ratio == 0.1
    assert "kept" in changes["5.data_ratio"].reason


@pytest.mark.parametrize("junk", [None, "text", 7, [], {}, {"3": 4}, {"11": {}}, proposal(**{f"n{n}": (0, 0, 0) for n in SIZES})])
def test_without_data_ratios_the_previous_ones_stay(junk):
    configuration, changes = corrected(junk)
    assert [k.data_ratio for k in configuration.knobs] == [0.125] * 8
    assert changes or junk == {}


def test_a_size_named_with_zero_is_dropped_and_the_others_stay():
    configuration, _ = corrected(proposal(n3=(0, 0.2, 0.5)))
    assert configuration[3].data_ratio == 0 and configuration[4].data_ratio == pytest.approx(1 / 7)


def test_a_sum_that_overflows_counts_as_missing():
    configuration, changes = corrected(proposal(n3=(1.5e308, 0.1, 0.5), n4=(1.5e308, 0.1, 0.5)))
    assert configuration[3].data_ratio == configuration[10].data_ratio == 0.125
    assert "overflows" in changes["data_ratio"].reason and configuration[3].hole_ratio == 0.1


def test_hole_and_wait_ratios_are_clipped_to_what_the_size_can_produce():
    three = Request(100, num_agents=3)
    configuration, changes = corrected(proposal(n3=(1, 0.5, 0.5)), three)
    assert configuration[3].hole_ratio == 0.5 and configuration[3].wait_ratio == 0
    assert "3 agents" in changes["3.wait_ratio"].reason
    configuration, changes = corrected(proposal(n3=(1, 0.5, 0)), Request(100, num_agents=5))
    assert configuration[3].hole_ratio < 0.5 and "3.hole_ratio" in changes


def test_forbidden_repeats_bound_the_wait_ratio_on_both_sides():
    request = Request(400, repeats="forbid")
    configuration, _ = corrected(proposal(n3=(1, 2 / 9, 1)), request)
    assert waits(configuration[3].wait_ratio, 400) == 223
    configuration, _ = corrected(proposal(n3=(1, 2 / 9, 0)), Request(2300, repeats="forbid"))
    assert waits(configuration[3].wait_ratio, 2300) == 2300 - 2207
    configuration, changes = corrected(proposal(n3=(1, 0, 0)), Request(2400, repeats="forbid"))
    assert "3.hole_ratio" in changes and hole_count(configuration[3].hole_ratio, 3) == 2
    configuration, changes = corrected(proposal(n3=(1, 0, 0)), Request(4000, repeats="forbid"))
    most = max(available(Stratum(3, h, 2)).total for h in range(6))
    assert configuration.counts(4000)[3] == most and "at most" in changes["3.data_ratio"].reason
    assert len(generate(configuration, 4000, repeats="forbid")) == 4000


def test_exclusions_count():
    every = frozenset(list_forms(Stratum(3, 0, 2), wait=True).listed)
    configuration, changes = corrected(proposal(n3=(1, 0, 0.5)), Request(10, exclude=every))
    assert configuration[3].wait_ratio == 0 and "3.wait_ratio" in changes
    configuration, changes = corrected(proposal(n3=(1, 0, 0.5)), Request(10, exclude=frozenset(sorted(every)[1:])))
    assert configuration[3].wait_ratio == 0.5 and "3.wait_ratio" not in changes


# --- Project, whatever comes

numbers = st.one_of(st.floats(), st.integers(), st.sampled_from([0, 0.125, 0.5, 1, -1, 10**400, 5e-324, 1.7e308, True]))
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)
sized = st.dictionaries(
    st.one_of(st.sampled_from([str(n) for n in SIZES]), st.text(max_size=4)),
    st.one_of(junk, st.dictionaries(st.sampled_from([*NAMES, "note"]), st.one_of(numbers, junk), max_size=4)),
    max_size=8,
)
ratios = st.fixed_dictionaries({"data_ratio": st.floats(0, 1), "hole_ratio": st.floats(0, 0.5), "wait_ratio": st.floats(0, 1)})
near = st.dictionaries(st.sampled_from([str(n) for n in SIZES]), ratios, max_size=8)


@st.composite
def requests(draw, most=60):
    agents = draw(st.integers(2, 5))
    exclude = frozenset()
    if draw(st.booleans()):
        exclude = frozenset(list_forms(Stratum(3, draw(st.integers(0, 2)), 2), wait=draw(st.booleans())).listed)
    objective = draw(st.sampled_from(OBJECTIVES)) if agents < 4 else "makespan"
    return Request(draw(st.integers(1, most)), agents, objective, exclude, draw(st.sampled_from(["allow", "forbid"])))


def test_deep_nesting_does_no_harm():
    deep = 1
    for _ in range(5000):
        deep = {"3": deep}
    assert corrected(deep)[0].knobs[0].data_ratio == 0.125


@given(st.one_of(junk, sized, near), requests(), st.integers(0, 3))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_project_never_fails_and_its_result_is_a_fixed_point(data, request, seed):
    previous = random_configuration(request, seed)
    result = project(data, previous, request)
    again = project(result.configuration.to_dict(), previous, request)
    assert again.configuration == result.configuration and not again.changes
    if data != previous.to_dict() and isinstance(data, dict):
        differs = {
            f"{size}.{knob}"
            for size, knobs in result.configuration.to_dict().items()
            for knob, value in knobs.items()
            if isinstance(data.get(size), dict) and knob in data[size] and data[size][knob] != value
        }
        named = {change.knob for change in result.changes}
        assert all(knob in named or (knob.endswith("data_ratio") and "data_ratio" in named) for knob in differs)


@given(st.one_of(sized, near), requests(), st.integers(0, 3))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_project_passes_generate_can_fill(data, request, seed):
    configuration = project(data, random_configuration(request, seed), request).configuration
    more = (request.num_agents, seed, request.objective, request.exclude, request.repeats)
    instances = generate(configuration, request.count, *more)
    assert len(instances) == request.count
    assert not {x.canonical() for x in instances} & request.exclude
    for cell, wait_free, wait in strata_of(configuration, request):
        mine = [x.requires_wait for x in instances if x.size == cell.size]
        assert (mine.count(False), mine.count(True)) == (wait_free, wait)


@pytest.mark.parametrize("agents", [2, 3, 4, 5])
@pytest.mark.parametrize("repeats", ["allow", "forbid"])
def test_small_grids_alone_are_filled_too(agents, repeats):
    request = Request(40, agents, repeats=repeats)
    for holes in range(6):
        for wait in (0.0, 0.4, 1.0):
            configuration = project(proposal(n3=(1, min(0.5, holes / 9), wait)), UNIFORM, request).configuration
            assert len(generate(configuration, 40, agents, repeats=repeats)) == 40


def test_random_configurations_are_fillable_and_differ():
    request = Request(200, num_agents=3)
    several = [random_configuration(request, seed) for seed in range(5)]
    assert len(set(several)) == 5 and random_configuration(request, 3) == several[3]
    for configuration in several:
        assert not project(configuration.to_dict(), UNIFORM, request).changes
        assert abs(sum(k.data_ratio for k in configuration.knobs) - 1) < 1e-9
