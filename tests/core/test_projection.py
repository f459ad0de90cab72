"""Project's general part, against knobs that no testbed has."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_core.projection import Settling, read_values
from t2t_core.records import Knob
from t2t_core.seeding import Stream
from t2t_core.shares import EXACT_SUM, apportion, check_sum, is_exact, random_shares

KNOBS = (Knob("share", "share", 0, 1, "share"), Knob("level", "level", 0, 0.5), Knob("mix", "mix", 0, 1, "mixture"))
PREVIOUS = {"a": {"share": 0.5, "level": 0.1, "mix": 0.2}, "b": {"share": 0.5, "level": 0.2, "mix": 0.4}}


def settle(proposal: object, previous: dict[str, dict[str, float]] | None = None) -> Settling:
    work = Settling(previous or PREVIOUS, KNOBS, "colour")
    work.settle(proposal)
    return work


def changed(work: Settling) -> dict[str, str]:
    return {change.knob: change.reason for change in work.changes}


def test_what_is_right_stays_as_it_is() -> None:
    proposal = {"a": {"share": 0.25, "level": 0.5, "mix": 1}, "b": {"share": 0.75, "level": 0.0, "mix": 0}}
    work = settle(proposal)
    assert work.values == proposal and not work.changes


@pytest.mark.parametrize(
    ("proposal", "shares", "knob", "says"),
    [
        ({"a": {"share": 3, "level": 0}, "b": {"share": 1, "level": 0}}, (0.75, 0.25), "share", "renormalised"),
        ({"a": {"share": 1, "level": 0, "mix": 0}}, (1.0, 0.0), "b.share", "sum to 1: set to 0"),
        ({"a": {"share": 0.5, "level": 0, "mix": 0}}, (0.5, 0.5), "b.share", "not named"),
        ({"a": {"share": -1, "level": 0, "mix": 0}}, (0.0, 1.0), "a.share", "negative"),
        ({"a": {"share": 0}, "b": {"share": 0}}, (0.5, 0.5), "share", "all shares are zero"),
        ({"a": {"share": 1e308}, "b": {"share": 1e308}}, (0.5, 0.5), "share", "overflows"),
        ({"a": {"level": 0.3, "mix": 0}}, (0.5, 0.5), "a.share", "missing"),
        ({"a": {"share": "30%"}}, (0.5, 0.5), "a.share", "missing"),
        ("no", (0.5, 0.5), "proposal", "not an object from colour"),
        ({"red": {}}, (0.5, 0.5), "red", "unknown colour"),
        ({"a": 3}, (0.5, 0.5), "a", "counts as not named"),
    ],
)
def test_shares(proposal: object, shares: tuple[float, float], knob: str, says: str) -> None:
    work = settle(proposal)
    assert tuple(values["share"] for values in work.values.values()) == pytest.approx(shares)
    assert says in changed(work)[knob]


def test_levels_are_clipped_and_never_reinterpreted() -> None:
    work = settle({"a": {"share": 0.5, "level": 30, "mix": -1, "hue": 3}, "b": {"share": 0.5, "level": None, "mix": 0.1}})
    assert work.values == {"a": {"share": 0.5, "level": 0.5, "mix": 0.0}, "b": {"share": 0.5, "level": 0.2, "mix": 0.1}}
    assert changed(work) == {
        "a.level": "clipped to 0..0.5",
        "a.mix": "clipped to 0..1",
        "a.hue": "unknown knob: dropped",
        "b.level": "missing or not a number: kept",
    }


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "share", "level", "mix", "c"]), inner),
    max_leaves=12,
)


@given(ANYTHING)
def test_anything_is_settled_once_and_for_all(proposal: object) -> None:
    work = settle(proposal)
    assert sum(values["share"] for values in work.values.values()) == pytest.approx(1)
    assert all(KNOBS[1].low <= values["level"] <= KNOBS[1].high for values in work.values.values())
    assert all(0 <= values["mix"] <= 1 and 0 <= values["share"] <= 1 for values in work.values.values())
    json.dumps([[change.knob, change.proposed, change.used] for change in work.changes], allow_nan=False)
    again = settle(work.values, work.values)
    assert again.values == work.values and not again.changes


# --- reading a configuration, and its shares

RIGHT = {"a": {"share": 0.25, "level": 0.5, "mix": 1}, "b": {"share": 0.75, "level": 0, "mix": 0}}


def test_a_configuration_is_read_as_it_stands() -> None:
    assert read_values(RIGHT, ("a", "b"), KNOBS, "colour") == RIGHT
    nothing = {"share": 0.0, "level": 0.2, "mix": 0.5}
    alone = {"b": {"share": 1, "level": 0, "mix": 0}}
    assert read_values(alone, ("a", "b"), KNOBS, "colour", {"a": nothing, "b": nothing}) == {"a": nothing, **alone}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "JSON object from colour to knobs, not None"),
        ([RIGHT], "JSON object from colour to knobs, not list"),
        ({**RIGHT, "red": RIGHT["a"]}, "unknown colour 'red'"),
        ({**RIGHT, 3: RIGHT["a"]}, "unknown colour 3"),
        ({"a": RIGHT["a"]}, "the colour 'b' is missing"),
        ({**RIGHT, "b": 3}, "colour b must be a JSON object, not 3"),
        ({**RIGHT, "b": {"share": 0.75, "level": 0}}, "the knob 'mix' is missing"),
        ({**RIGHT, "b": {**RIGHT["b"], "hue": 1}}, "unknown knob 'hue'"),
        ({**RIGHT, "b": {**RIGHT["b"], "level": 0.51}}, "level must be a number in 0..0.5, not 0.51"),
        ({**RIGHT, "b": {**RIGHT["b"], "level": True}}, "level must be a number in 0..0.5, not True"),
        ({**RIGHT, "b": {**RIGHT["b"], "mix": 10**400}}, "mix must be a number in 0..1, not an integer of 1329 bits"),
        ({**RIGHT, "b": {**RIGHT["b"], "share": 0.5}}, "the shares sum to 0.75, not 1"),
    ],
)
def test_nonsense_is_refused_with_its_reason(data: object, says: str) -> None:
    with pytest.raises(T2TError) as error:
        read_values(data, ("a", "b"), KNOBS, "colour")
    assert error.value.what.endswith(says)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=9).filter(lambda weights: sum(weights) > 1e-3), st.integers(0, 5000))
def test_a_count_is_divided_within_one_of_its_shares(weights: list[float], count: int) -> None:
    counts = apportion(weights, count)
    assert sum(counts) == count
    assert all(abs(n - count * weight / sum(weights)) < 1 + 1e-6 for n, weight in zip(counts, weights, strict=True))


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_random_shares_pass_as_they_are(seed: int, number: int) -> None:
    shares = random_shares(Stream.of(seed), number)
    check_sum(shares, "share", "each colour's")
    assert len(shares) == number and is_exact(sum(shares)) and min(shares) >= 0


def test_what_project_leaves_passes_the_check() -> None:
    for off in (9e-8, -9e-8, 2e-7, -2e-7, 1e-3):
        work = settle({"a": {"share": 0.5, "level": 0, "mix": 0}, "b": {"share": 0.5 + off, "level": 0, "mix": 0}})
        assert ("share" in changed(work)) == (abs(off) > EXACT_SUM)
        assert read_values(work.values, ("a", "b"), KNOBS, "colour") == work.values
