"""Context modules: each renders only its own facts, and the compact form can be read back."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lake
from t2t_core.breakdown import top_failure
from t2t_core.errors import T2TError
from t2t_core.hookspecs import RoundState
from t2t_core.loop import context
from t2t_core.plugins import installed
from t2t_core.records import Response, Round, Scored
from t2t_core.testing import check_context
from t2t_plugins.contexts import compact

CONFIGURATION = {
    "3": {"data_ratio": 0.25, "hole_ratio": 0.1, "wait_ratio": 0.5},
    "4": {"data_ratio": 0.75, "hole_ratio": 0.2, "wait_ratio": 0.0},
}
KNOBS = lake.Lake().knobs(None)
EVERYTHING = "F,G,H,S,T:full"


def state() -> RoundState:
    other = {group: {**knobs, "hole_ratio": 0.4} for group, knobs in CONFIGURATION.items()}
    rounds = [
        Round(0, other, lake.breakdown(1, 1)),
        Round(1, CONFIGURATION, lake.breakdown(3, 2), "early failures"),
        Round(2, CONFIGURATION, lake.breakdown(6, 2), "more small maps"),
    ]
    testbed = lake.Lake()
    instance = lake.Number("n1", "3", 77, 77)
    answer = "no idea" * 100
    example = Scored(instance, 0, Response(answer), testbed.verify(instance, answer))
    bookkeeping = {"round": 3, "rounds": 4, "epochs_per_round": 3, "total_epochs": 12}
    return RoundState(testbed, rounds, [example], bookkeeping, {"algorithm": "GRPO", "learning_rate": 2e-6}, KNOBS)


def rendered(current: RoundState, spec: str = EVERYTHING) -> dict[str, context.Section]:
    return {s.spec: s for s in context.sections(context.modules(spec, installed().contexts), current)}


def changed(current: RoundState) -> dict[str, RoundState]:
    """The state with one fact of each module changed."""
    rounds = list(current.rounds)
    latest, earlier = copy.deepcopy(rounds[2].breakdown), copy.deepcopy(rounds[1].breakdown)
    latest["groups"]["4"]["valid"] += 1
    earlier["groups"]["3"]["valid"] += 1
    wiser = lake.Lake()
    wiser.guideline = "Train where it hurts."
    return {
        "F": replace(current, rounds=[*rounds[:2], replace(rounds[2], breakdown=latest)]),
        "G": replace(current, testbed=wiser),
        "H": replace(current, rounds=[rounds[0], replace(rounds[1], breakdown=earlier), rounds[2]]),
        "S": replace(current, rounds=[*rounds[:2], replace(rounds[2], summary="another reason")]),
        "T:full": replace(current, training={**current.training, "learning_rate": 1e-6}),
    }


@pytest.mark.parametrize("name", EVERYTHING.split(","))
def test_changing_one_fact_changes_exactly_its_own_section(name: str) -> None:
    before, after = rendered(state()), rendered(changed(state())[name])
    assert [spec for spec in before if before[spec] != after[spec]] == [name]


def test_variants_are_the_papers() -> None:
    def specs(name: str) -> list[str]:
        return [m.spec for m in context.modules(name, installed().contexts)]

    assert specs("V1") == ["F"]
    assert specs("V2") == ["F", "G"]
    assert specs("V3") == ["F", "G", "H"]
    assert specs("V4") == ["F", "G", "H:no_round_0"]
    assert specs("V5") == [*specs("V4"), "S"]
    assert specs("V6") == [*specs("V4"), "T:bookkeeping"]
    assert specs("F:examples=3,T,V2".replace(",V2", ",G")) == ["F:examples=3", "T", "G"]


def test_history_without_round_0_hides_its_configuration_only() -> None:
    with_it, without = rendered(state(), "H")["H"], rendered(state(), "H:no_round_0")["H:no_round_0"]
    assert "0.4" in with_it.text and "40" in with_it.compact
    assert "0.4" not in without.text and "Round 0" in without.text and "0.1" in without.text
    assert "Round 2" not in with_it.text
    assert "Round 0" not in rendered(state(), "H:last=1")["H:last=1"].text


def test_examples_show_the_answer_but_nothing_a_solver_knows() -> None:
    text = rendered(state())["F"].text
    assert "Verdict: right: another number" in text and '"number": 77' in text and '"answer"' not in text
    assert len(text) < 1000
    assert "Verdict" not in rendered(state(), "F:examples=0")["F:examples=0"].text


def test_rates_alone_say_nothing_of_what_failed() -> None:
    current = replace(state(), rounds=[Round(0, CONFIGURATION, lake.breakdown(62, 31, 100))])
    text = rendered(current, "F:rates")["F:rates"].text
    assert "valid 62.0 %" in text and "right" not in text and "Verdict" not in text
    assert rendered(current, "F:rates")["F:rates"].compact == "failures\n3 62 62 none\n4 31 31 none"


def test_the_prompt_always_states_the_task() -> None:
    named = context.modules("S", installed().contexts)
    current = replace(state(), rounds=[Round(0, CONFIGURATION, lake.breakdown())])
    text = context.prompt(named, current, lake.Setting(CONFIGURATION), lake.Wanted(10))
    assert "Repeat the number" in text and "hole_ratio" in text and '"summary"' in text
    assert "explanation" not in text.split("## Your answer")[0]


@pytest.mark.parametrize(
    "spec",
    ["Q", "F,F", "V6,G", "T:more", "H:no_round_1", "F:examples=-1", "G:please", "F:example=2", "F:rates,examples=1"],
)
def test_a_context_that_makes_no_sense_is_refused(spec: str) -> None:
    with pytest.raises(T2TError):
        context.modules(spec, installed().contexts)


def test_the_compact_brief_is_what_the_documentation_shows() -> None:
    breakdown: dict[str, Any] = lake.breakdown(62, 31, 100)
    expected = "design\nconfig\n3 25 10 50\n4 75 20 0\nfailures\n3 62 62 right\n4 31 31 right\nanswer"
    assert compact.render(CONFIGURATION, KNOBS, breakdown) == expected
    assert top_failure(lake.breakdown(10)["groups"]["3"]) == "none"


@given(st.lists(st.tuples(*[st.integers(0, 100)] * 3), min_size=1, max_size=8))
def test_a_compact_proposal_reads_back(rows: list[tuple[int, int, int]]) -> None:
    names = [knob.name for knob in KNOBS]
    configuration = {str(size): dict(zip(names, (v / 100 for v in row), strict=True)) for size, row in enumerate(rows, 3)}
    text = compact.proposal_text(configuration, KNOBS)
    assert compact.read_compact(json.loads(text), KNOBS) == configuration
    words = set(text.split())
    assert words <= {"{", "}", ",", "]", *(f'"{size}":[' for size in range(3, 11)), *map(str, range(101))}


@pytest.mark.parametrize("spec", ["F", "F:examples=0", "F:rates", "G", "H", "H:no_round_0,last=2", "S", "T", "T:full"])
def test_the_built_in_modules_keep_the_contract(spec: str) -> None:
    check_context(installed().contexts.make(spec), lake.Lake())
