"""Joint cells of a configuration: a size drawn from (hole ratio, wait ratio) pairs, with the pairs' means as its two ratios."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_envs.frozen_lake import Configuration, generate
from t2t_envs.frozen_lake.generation.configuration import SIZES, JointCell, SizeKnobs, cell_counts, hole_count
from t2t_envs.frozen_lake.generation.forms import available
from t2t_envs.frozen_lake.generation.generator import strata_of
from t2t_envs.frozen_lake.generation.projection import project, random_configuration
from t2t_envs.frozen_lake.generation.request import Request
from t2t_envs.frozen_lake.generation.sampling import list_forms
from t2t_envs.frozen_lake.generation.strata import Stratum

UNIFORM = Configuration.uniform()


def cell(share, hole_ratio, wait_ratio):
    return {"share": share, "hole_ratio": hole_ratio, "wait_ratio": wait_ratio}


def only(size, *cells):
    return {str(size): {"data_ratio": 1, "cells": list(cells)}}


def corrected(proposal, request=None, previous=UNIFORM):
    result = project(proposal, previous, request or Request(800))
    return result.configuration, {change.knob: change for change in result.changes}


def kinds(instances):
    return Counter((x.size, len(x.holes), x.requires_wait) for x in instances)


# --- the configuration


def test_dict_and_back_with_the_means_as_numbers():
    configuration = Configuration.from_dict(only(5, cell(1, 0.05, 1), cell(3, 0.45, 0)))
    assert configuration[5] == SizeKnobs(1, 0.35, 0.25, (JointCell(0.25, 0.05, 1), JointCell(0.75, 0.45, 0)))
    assert configuration.to_dict()["5"]["cells"] == [cell(0.25, 0.05, 1), cell(0.75, 0.45, 0)]
    assert list(configuration.to_dict()["4"]) == ["data_ratio", "hole_ratio", "wait_ratio"]
    assert Configuration.from_dict(configuration.to_dict()) == configuration
    stale = only(5, cell(1, 0.05, 1), cell(3, 0.45, 0))
    stale["5"] |= {"hole_ratio": 0.2, "wait_ratio": 0.5}
    assert Configuration.from_dict(stale) == configuration
    assert len({configuration, Configuration.from_dict(stale), UNIFORM}) == 2


def test_an_empty_list_of_cells_is_no_cells():
    data = UNIFORM.to_dict()
    data["3"]["cells"] = []
    assert Configuration.from_dict(data) == UNIFORM


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("text", "must be a list"),
        ({"share": 1}, "must be a list"),
        ([3], "cell 0 must be a JSON object"),
        ([{"share": 1, "hole_ratio": 0.1}], "'wait_ratio' is missing"),
        ([{**cell(1, 0.1, 0), "x": 1}], "'x' is unknown"),
        ([cell(1, 0.6, 0)], "hole_ratio must be a number in 0..0.5"),
        ([cell(1, 0.1, 0), cell(-1, 0.1, 0)], "share must be a number"),
        ([cell(math.nan, 0.1, 0)], "share must be a number"),
        ([cell(10**400, 0.1, 0)], "share must be a number"),
        ([cell(0, 0.1, 0)], "shares of the cells are all zero"),
    ],
)
def test_nonsense_is_refused(cells, message):
    with pytest.raises(T2TError, match=message):
        Configuration.from_dict({"3": {"data_ratio": 1, "cells": cells}})


def test_counts_by_largest_remainder():
    fifths = [JointCell(0.2, 0.1 * k, 1) for k in range(5)]
    assert cell_counts(fifths, 12) == [(3, 3), (3, 3), (2, 2), (2, 2), (2, 2)]
    mixed = [JointCell(0.5, 0.1, 0.5), JointCell(0.5, 0.3, 0.5)]
    assert cell_counts(mixed, 10) == [(5, 3), (5, 2)]  # 5 of 10 wait, as the mean says
    assert cell_counts([JointCell(0.1, 0.1, 0.4)] * 10, 10) == [(1, 1)] * 4 + [(1, 0)] * 6


shares = st.lists(st.tuples(st.floats(1e-6, 1), st.floats(0, 1)), min_size=1, max_size=12)


@given(shares, st.integers(0, 500))
def test_every_count_is_its_quota_rounded_up_or_down(drawn, count):
    cells = [JointCell(share, 0.1, wait) for share, wait in drawn]
    whole = sum(share for share, _ in drawn)
    counted = cell_counts(cells, count)
    assert sum(n for n, _ in counted) == count
    waits = sum(c.wait_ratio * n for c, (n, _) in zip(cells, counted, strict=True))
    assert abs(sum(w for _, w in counted) - waits) <= 0.5 + 1e-6
    for c, (n, w) in zip(cells, counted, strict=True):
        assert abs(n - count * c.share / whole) < 1 + 1e-6
        assert 0 <= w <= n and abs(w - c.wait_ratio * n) < 1 + 1e-6


# --- drawing


@pytest.mark.parametrize("repeats", ["allow", "forbid"])
def test_levels_are_drawn_and_not_their_mean(repeats):
    configuration = Configuration.from_dict(only(6, cell(1, 0.05, 0), cell(1, 0.45, 1)))
    instances = generate(configuration, 40, seed=3, repeats=repeats)
    assert kinds(instances) == {(6, 2, False): 20, (6, 16, True): 20}
    assert [x.id for x in instances] == [f"2agents_6x6_{i:04d}" for i in range(40)]
    assert len({len(x.holes) for x in instances[:15]}) == 2, "hole counts come in no order"
    assert [(s.holes, s.count, s.wait) for s in instances.report.sizes] == [(2, 20, 0), (16, 20, 20)]
    again = generate(configuration, 40, seed=3, repeats=repeats, threads=3)
    assert [x.to_dict() for x in instances] == [x.to_dict() for x in again]
    assert [x.to_dict() for x in instances] != [x.to_dict() for x in generate(configuration, 40, seed=4, repeats=repeats)]


def test_cells_of_one_hole_count_are_drawn_together():
    """Otherwise the same instances would be drawn twice."""
    configuration = Configuration.from_dict(only(4, cell(1, 0.12, 0), cell(1, 0.13, 0), cell(1, 0.125, 1)))
    instances = generate(configuration, 30, seed=1, repeats="forbid")
    assert kinds(instances) == {(4, 2, False): 20, (4, 2, True): 10}
    assert len({x.canonical() for x in instances}) == 30


@pytest.mark.parametrize(("hole", "wait", "count"), [(0.2, 0.5, 33), (0.3, 1 / 3, 21), (0, 0, 5)])
def test_one_cell_is_the_three_number_form_to_the_byte(hole, wait, count):
    numbers = Configuration.from_dict({"5": {"data_ratio": 1, "hole_ratio": hole, "wait_ratio": wait}})
    cells = Configuration.from_dict(only(5, cell(7, hole, wait)))
    assert [x.to_dict() for x in generate(numbers, count, seed=2)] == [x.to_dict() for x in generate(cells, count, seed=2)]


# --- Project, rule by rule


def test_good_cells_pass_untouched():
    proposal = only(5, cell(0.25, 0.05, 1), cell(0.75, 0.45, 0))
    configuration, changes = corrected(proposal)
    assert configuration.to_dict()["5"]["cells"] == proposal["5"]["cells"] and configuration[5].hole_ratio == 0.35
    assert not [knob for knob in changes if knob.startswith("5.")]


def test_shares_are_normalised_and_the_numbers_are_the_means():
    proposal = only(5, cell(2, 0.1, 1), cell(6, 0.5, 0))
    proposal["5"] |= {"hole_ratio": 0.2, "wait_ratio": 0.25}
    configuration, changes = corrected(proposal)
    assert [c.share for c in configuration[5].cells] == [0.25, 0.75]
    assert configuration[5].hole_ratio == pytest.approx(0.4) and configuration[5].wait_ratio == 0.25
    assert changes["5.cells.share"].proposed == 8
    assert changes["5.hole_ratio"].used == pytest.approx(0.4) and "5.wait_ratio" not in changes


def test_impossible_cells_are_dropped_by_name():
    five = Request(100, num_agents=5)
    proposal = only(3, cell(0.5, 0.1, 0), cell(0.3, 0.5, 0), cell(0.2, 0.0, 1))
    configuration, changes = corrected(proposal, five)
    assert "there is no instance of 3x3 with 5 holes and 5 agents" in changes["3.cells[1]"].reason
    assert all(hole_count(c.hole_ratio, 3) < 5 for c in configuration[3].cells)
    assert sum(c.share for c in configuration[3].cells) == pytest.approx(1)
    request = Request(10, num_agents=1)
    configuration, changes = corrected(only(4, cell(1, 0.1, 1), cell(1, 0.2, 0), cell(1, 0.3, 0.5)), request)
    assert "requires a wait" in changes["4.cells[0]"].reason and changes["4.cells[2].wait_ratio"].used == 0
    assert [(c.hole_ratio, c.wait_ratio) for c in configuration[4].cells] == [(0.2, 0), (0.3, 0)]


def test_where_no_cell_is_possible_the_two_ratios_count():
    request = Request(10, num_agents=1)
    proposal = only(4, cell(1, 0.1, 1), cell(1, 0.2, 1))
    configuration, changes = corrected(proposal, request)
    assert not configuration[4].cells and configuration[4].hole_ratio == 0.2 and configuration[4].wait_ratio == 0
    assert "no cell is possible" in changes["4.cells"].reason
    proposal["4"] |= {"hole_ratio": 0.4, "wait_ratio": 0.0}
    assert corrected(proposal, request)[0][4].hole_ratio == 0.4


def test_excluded_forms_count():
    every = frozenset(list_forms(Stratum(3, 0, 2), wait=True).listed)
    proposal = only(3, cell(0.5, 0, 0), cell(0.5, 0, 1))
    configuration, changes = corrected(proposal, Request(10, exclude=every))
    assert [c.wait_ratio for c in configuration[3].cells] == [0] and "impossible" in changes["3.cells[1]"].reason
    configuration, _ = corrected(proposal, Request(10, exclude=frozenset(sorted(every)[1:])))
    assert [c.wait_ratio for c in configuration[3].cells] == [0, 1]


def test_forbidden_repeats_drop_what_has_too_few_forms():
    there = available(Stratum(3, 0, 2))
    proposal = only(3, cell(0.25, 0, 1), cell(0.25, 1 / 9, 0), cell(0.5, 2 / 9, 0))
    configuration, changes = corrected(proposal, Request(4 * there.wait, repeats="forbid"))
    assert len(configuration[3].cells) == 3 and not [knob for knob in changes if knob.startswith("3.")]
    request = Request(4 * there.wait + 4, repeats="forbid")
    configuration, changes = corrected(proposal, request)
    assert "too few forms" in changes["3.cells[0]"].reason and len(configuration[3].cells) == 2
    assert len({x.canonical() for x in generate(configuration, request.count, repeats="forbid")}) == request.count


def test_cells_stay_until_a_ratio_is_named():
    previous, _ = corrected(only(5, cell(0.5, 0.1, 1), cell(0.5, 0.4, 0)))
    assert corrected({}, previous=previous)[0] == previous
    assert corrected(None, previous=previous)[0] == previous
    assert corrected({"5": {"data_ratio": 0.5}, "6": {"data_ratio": 0.5}}, previous=previous)[0][5].cells == previous[5].cells
    numbers, _ = corrected({"5": {"data_ratio": 1, "hole_ratio": 0.3, "wait_ratio": 0.5}}, previous=previous)
    assert numbers[5] == SizeKnobs(1, 0.3, 0.5)
    emptied, changes = corrected({"5": {"data_ratio": 1, "cells": []}}, previous=previous)
    assert emptied[5] == SizeKnobs(1, 0.25, 0.5) and "kept" in changes["5.hole_ratio"].reason


@pytest.mark.parametrize("value", [math.nan, math.inf, "0.3", None, True, [0.3], 10**400])
@pytest.mark.parametrize("knob", ["share", "hole_ratio", "wait_ratio"])
def test_a_cell_without_a_number_is_dropped_by_name(knob, value):
    configuration, changes = corrected(only(5, cell(1, 0.1, 0), {**cell(1, 0.2, 0), knob: value}))
    assert [c.hole_ratio for c in configuration[5].cells] == [0.1]
    assert "dropped" in changes[f"5.cells[1].{knob}"].reason


def test_out_of_bounds_is_clipped_or_dropped_by_name():
    configuration, changes = corrected(only(5, cell(1, 30, 0), cell(1, 0.2, -1), cell(0, 0.1, 0), cell(-1, 0.1, 0)))
    assert [(c.share, c.hole_ratio, c.wait_ratio) for c in configuration[5].cells] == [(0.5, 0.5, 0), (0.5, 0.2, 0)]
    assert changes["5.cells[0].hole_ratio"].proposed == 30 and changes["5.cells[1].wait_ratio"].used == 0
    assert {"5.cells[2].share", "5.cells[3].share"} <= set(changes)


def test_sums_that_overflow_or_vanish_do_no_harm():
    configuration, changes = corrected(only(5, cell(1.7e308, 0.1, 0), cell(1.7e308, 0.2, 0)))
    assert not configuration[5].cells and "overflows" in changes["5.cells"].reason
    configuration, _ = corrected(only(5, cell(5e-324, 0.1, 0), cell(5e-324, 0.2, 0)))
    assert [c.share for c in configuration[5].cells] == [0.5, 0.5]
    configuration, _ = corrected(only(5, cell(5e-324, 0.1, 0), cell(1e308, 0.2, 0)))
    assert [c.share for c in configuration[5].cells] == [1]


# --- Project, whatever comes

numbers = st.one_of(st.floats(), st.sampled_from([0, 0.125, 0.5, 1, -1, 10**400, 5e-324, 1.7e308, True, None, "x", []]))
wild = st.dictionaries(st.sampled_from(["share", "hole_ratio", "wait_ratio", "note"]), numbers, max_size=4)
tame = st.builds(cell, st.floats(0, 3), st.floats(0, 0.5), st.sampled_from([0.0, 0.3, 1.0]))
listed = st.one_of(numbers, st.lists(st.one_of(tame, tame, tame, wild, numbers), max_size=12))
ratio = st.one_of(st.floats(0, 1), numbers)
grouped = st.fixed_dictionaries({"cells": listed}, optional={"data_ratio": ratio, "hole_ratio": ratio, "wait_ratio": ratio})
proposals = st.dictionaries(st.sampled_from([str(n) for n in SIZES]), grouped, min_size=1, max_size=4)


@st.composite
def requests(draw):
    agents = draw(st.integers(1, 4))
    exclude = frozenset()
    if draw(st.booleans()):
        exclude = frozenset(list_forms(Stratum(3, draw(st.integers(0, 2)), 2), wait=draw(st.booleans())).listed)
    return Request(draw(st.integers(1, 60)), agents, "makespan", exclude, draw(st.sampled_from(["allow", "forbid"])))


@given(proposals, proposals, requests())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_project_never_fails_is_a_fixed_point_and_generate_fills_it(before, proposal, request):
    previous = project(before, random_configuration(request, 1), request).configuration
    result = project(proposal, previous, request)
    configuration = result.configuration
    assert Configuration.from_dict(configuration.to_dict()) == configuration
    again = project(configuration.to_dict(), previous, request)
    assert again.configuration == configuration and not again.changes
    for knobs in configuration.knobs:
        if knobs.cells:
            assert sum(c.share for c in knobs.cells) == pytest.approx(1)
            assert knobs.hole_ratio == pytest.approx(sum(c.share * c.hole_ratio for c in knobs.cells))
            assert knobs.wait_ratio == pytest.approx(sum(c.share * c.wait_ratio for c in knobs.cells))
    _every_cell_that_went_is_named(proposal, result)
    instances = generate(configuration, request.count, request.num_agents, 1, "makespan", request.exclude, request.repeats)
    asked = Counter()
    for grid, wait_free, wait in strata_of(configuration, request):
        asked += Counter({(grid.size, grid.holes, False): wait_free, (grid.size, grid.holes, True): wait})
    assert kinds(instances) == asked and not {x.canonical() for x in instances} & request.exclude
    assert len({x.id for x in instances}) == request.count


def _every_cell_that_went_is_named(proposal, result):
    named = {change.knob for change in result.changes}
    for size, knobs in proposal.items():
        if not isinstance(knobs["cells"], list):
            assert f"{size}.cells" in named
            continue
        kept = [(c.hole_ratio, c.wait_ratio) for c in result.configuration[int(size)].cells]
        for number, c in enumerate(knobs["cells"]):
            stays = isinstance(c, dict) and (c.get("hole_ratio"), c.get("wait_ratio")) in kept
            place = f"{size}.cells[{number}]"
            assert stays or any(knob.startswith(place) for knob in named) or f"{size}.cells" in named
