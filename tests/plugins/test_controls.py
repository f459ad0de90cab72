"""Controls: what each removes from a design, and that it removes nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lake
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Brief, RoundState
from t2t_core.plugins import installed
from t2t_core.records import Proposal, Round
from t2t_core.seeding import Stream
from t2t_core.testing import check_designer
from t2t_plugins.designers.controls import Mislabelled, mislabelled, shuffled

LAKE = installed().testbeds.make("mapf-frozenlake")
REQUEST = LAKE.request(64)
KNOBS = LAKE.knobs(REQUEST)
SIZES = tuple(LAKE.groups)


def level(**changes: Mapping[str, float]) -> Any:
    """All sizes alike but for the changes, `s5={"wait_ratio": 1.0}`."""
    plain = {"data_ratio": 1 / 8, "hole_ratio": 0.2, "wait_ratio": 0.5}
    return LAKE.read_configuration({size: {**plain, **changes.get(f"s{size}", {})} for size in SIZES})


def breakdown(**failures: Mapping[str, int]) -> dict[str, Any]:
    """`s5={"conflict_free": 3}` of ten answers."""
    groups = {}
    for size in SIZES:
        failed = {check: failures.get(f"s{size}", {}).get(check, 0) for check in LAKE.checks}
        groups[size] = {"answers": 10, "valid": 10 - sum(failed.values()), "optimal": 0, "first_failures": failed}
    total = {check: sum(g["first_failures"][check] for g in groups.values()) for check in LAKE.checks}
    return {"total": {"answers": 80, "valid": 1, "first_failures": total}, "groups": groups, "cells": {}}


def brief(seen: Mapping[str, Any], seed: int = 0) -> Brief:
    past = Round(0, level().to_dict(), seen, None, {"cells": {"5x5": {"first_failures": {"conflict_free": 1}}}})
    return Brief("", RoundState(LAKE, [past], examples=["a failed answer"]), level(), REQUEST, seed)


def edits(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[float, ...]]:
    return [tuple(round(after[g][k.name] - before[g][k.name], 9) for k in KNOBS) for g in before]


numbers = st.tuples(*(st.integers(0, most).map(lambda percent: percent / 100) for most in (100, 50, 100)))
tables = st.lists(numbers, min_size=8, max_size=8)


@given(tables, tables, st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_shuffling_keeps_edits_and_changes_whose_they_are(first: Any, second: Any, seed: int) -> None:
    before, after = (
        {size: {knob.name: value for knob, value in zip(KNOBS, row, strict=True)} for size, row in zip(SIZES, table, strict=True)}
        for table in (first, second)
    )
    made = shuffled(before, after, KNOBS, Stream.of(seed))
    for values in made.values():
        assert all(knob.low <= values[knob.name] <= knob.high for knob in KNOBS)
    expected, got = edits(before, after), edits(before, made)
    if len(set(expected)) == 1:
        assert made == after
    inner = all(0.26 < value < 0.49 for row in first for value in row[1:2])  # nothing here meets a bound
    small = all(abs(e) < 0.01 for row in expected for e in row)
    if inner and small:
        assert sorted(expected) == sorted(got)


def test_an_edit_of_one_size_goes_to_another_with_all_its_numbers() -> None:
    before = level().to_dict()
    after = level(s5={"data_ratio": 0.2, "wait_ratio": 0.9}, s6={"data_ratio": 0.05, "hole_ratio": 0.1}).to_dict()
    for seed in range(20):
        made = shuffled(before, after, KNOBS, Stream.of(seed))
        assert sorted(edits(before, made)) == sorted(edits(before, after)) and made != after


def test_an_edit_that_would_meet_a_bound_goes_where_it_fits() -> None:
    """A share can only be taken where there is one."""
    poor = {f"s{size}": {"data_ratio": 0.01} for size in SIZES[2:]}
    before = level(**poor, s3={"data_ratio": 0.5}, s4={"data_ratio": 0.44}).to_dict()
    after = {size: dict(values) for size, values in before.items()}
    after["3"]["data_ratio"], after["7"]["data_ratio"] = 0.3, 0.21
    for seed in range(10):
        made = shuffled(before, after, KNOBS, Stream.of(seed))
        assert sum(values["data_ratio"] for values in made.values()) == pytest.approx(1)
        assert sorted(edits(before, made)) == sorted(edits(before, after)) and made != after


def test_joint_cells_move_whole() -> None:
    designer = installed().designers.make("shuffled:too-hard")
    seen = {**breakdown(), "cells": {"10x10 holes=5": {"answers": 50, "valid": 0}, "4x4 holes=5": {"answers": 50, "valid": 50}}}
    asked = brief(seen)
    plain = installed().designers.make("too-hard").propose(asked).parsed
    projected = LAKE.project(plain, asked.previous, REQUEST).configuration.to_dict()
    made = designer.propose(asked).parsed
    as_text = sorted(json.dumps(values, sort_keys=True) for values in made.values())
    assert as_text == sorted(json.dumps(values, sort_keys=True) for values in projected.values()) and made != projected


def test_the_shuffled_twin_of_a_uniform_edit_is_itself() -> None:
    """This is what the docstring says: if all sizes get the same edit, shuffling removes nothing."""
    same = {f"s{size}": {"wait_ratio": 0.7} for size in SIZES}
    assert shuffled(level().to_dict(), level(**same).to_dict(), KNOBS, Stream.of(1)) == level(**same).to_dict()


def test_mislabelled_takes_the_failure_types_and_leaves_the_rates() -> None:
    seen = breakdown(s5={"conflict_free": 4, "hole_free": 1}, s6={"hole_free": 3})
    asked = brief(seen)
    state = mislabelled(asked.state, Stream.of(0))
    now = state.rounds[0].breakdown["groups"]["5"]
    assert (now["answers"], now["valid"]) == (10, 5)
    assert (now["first_failures"]["conflict_free"], now["first_failures"]["hole_free"]) == (1, 4)
    assert state.rounds[0].training["cells"]["5x5"]["first_failures"] == {"conflict_free": 0, "hole_free": 1}
    assert not state.examples
    assert seen["groups"]["5"]["first_failures"]["hole_free"] == 1, "the run's own facts are left alone"


def test_who_reads_failure_types_is_misled_and_who_reads_rates_is_not() -> None:
    asked = brief(breakdown(s5={"conflict_free": 4, "hole_free": 1}))

    def waits(name: str) -> float:
        proposed: float = installed().designers.make(name).propose(asked).parsed["5"]["wait_ratio"]
        return proposed

    assert waits("rule:failures") > 0.5 and waits("mislabelled:rule:failures") == 0.5
    for name in ("rule", "learnability", "level-replay"):
        same = [installed().designers.make(spec).propose(asked).parsed for spec in (name, f"mislabelled:{name}")]
        assert same[0] == same[1], name


def test_the_text_is_written_anew() -> None:
    """A language model reads the brief's text, so that must be misled too."""
    asked = brief(breakdown(s5={"conflict_free": 4, "hole_free": 1}))

    class Reader:
        def propose(self, brief: Brief) -> Proposal:
            return Proposal(brief.text, None)

    def anew(state: RoundState) -> Brief:
        return Brief(json.dumps(state.rounds[0].breakdown), state, asked.previous, REQUEST, 0)

    control = Mislabelled("rule")
    control._designer = Reader()
    text = json.loads(control.propose(Brief("old", asked.state, asked.previous, REQUEST, 0, anew=anew)).raw)
    assert text["groups"]["5"]["first_failures"]["hole_free"] == 4


def test_a_schedule_says_what_its_file_says(tmp_path: Path) -> None:
    steps = [level(s3={"wait_ratio": share}).to_dict() for share in (0.1, 0.9)]
    (tmp_path / "ladder.json").write_text(json.dumps(steps))
    (tmp_path / "one.json").write_text(json.dumps(steps[0]))
    designer = installed().designers.make(f"schedule:{tmp_path}/ladder.json")
    for rounds, expected in ((1, steps[0]), (2, steps[1]), (4, steps[1])):
        past = [Round(i, level().to_dict(), breakdown()) for i in range(rounds)]
        assert designer.propose(Brief("", RoundState(LAKE, past), level(), REQUEST, 0)).parsed == expected
    check_designer(installed().designers.make(f"schedule:{tmp_path}/one.json"), LAKE)


@pytest.mark.parametrize("spec", ["shuffled", "mislabelled", "schedule", "shuffled:nobody", "schedule:/nowhere.json"])
def test_a_control_of_nothing_is_refused(spec: str) -> None:
    with pytest.raises(T2TError):
        installed().designers.make(spec)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "the document: expected `array` of length >= 1"),
        ("{}", r"\[0\]: expected `object` of length >= 1"),
        ("3", r"\[0\]: expected `object`, got `int`"),
        ("[3]", r"\[0\]: expected `object`, got `int`"),
        ('[{"a": {"b": 1}}, {"a": 2}]', r"\[1\]\.a: expected `object`, got `int`"),
        ('{"a": {"b": "much"}}', r"\[0\]\.a\.b: expected `int | float | array`, got `str`"),
        ("nonsense", "no JSON"),
    ],
)
def test_a_schedule_without_a_configuration_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(T2TError, match=said):
        installed().designers.make(f"schedule:{tmp_path}/s.json")


@pytest.mark.parametrize("name", ["shuffled:rule:failures", "mislabelled:rule:failures", "shuffled:uniform", "shuffled:random"])
def test_controls_keep_the_contract(name: str) -> None:
    for testbed in (lake.Lake(), LAKE):
        check_designer(installed().designers.make(name), testbed)
