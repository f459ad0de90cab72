"""Counterfactual briefs: a designer that reads a fact reacts when that fact changes, and to no other change."""

from __future__ import annotations

from typing import Any

import pytest

from t2t_core.hookspecs import Brief, RoundState
from t2t_core.plugins import installed
from t2t_core.records import Proposal, Round
from t2t_core.study.counterfactual import CHANGES, reactions

LAKE = installed().testbeds.make("mapf-frozenlake")
REQUEST = LAKE.request(64)
SETTING = LAKE.read_configuration({s: {"data_ratio": 1 / 8, "hole_ratio": 0.2, "wait_ratio": 0.5} for s in LAKE.groups})


def past(index: int, shift: int) -> Round:
    groups, cells, trained = {}, {}, {}
    for place, size in enumerate(LAKE.groups):
        failures = dict.fromkeys(LAKE.checks, 0) | {"conflict_free": 2 * place + shift, "hole_free": 1}
        counts = {"answers": 40, "valid": 39 - 2 * place - shift * (place % 2), "optimal": 10, "first_failures": failures}
        groups[size], cells[f"{size}x{size} holes=2"] = counts, counts
        facts = {"groups": 10, "answers": 80, "reward": 0.5, "valid": 0.5, "tokens": 9, "dead": 0.1 * place}
        trained[LAKE.cell_of(f"{size}x{size} holes=2")] = {"group": size, **facts, "advantage": 0.9 - 0.1 * place}
    total = {"answers": 320, "valid": 200, "optimal": 80, "first_failures": groups["5"]["first_failures"]}
    summary = "9: too hard" if index else None
    return Round(index, SETTING.to_dict(), {"total": total, "groups": groups, "cells": cells}, summary, {"cells": trained})


BRIEF = Brief("", RoundState(LAKE, [past(0, 0), past(1, 3)], bookkeeping={"rounds": 8}), SETTING, REQUEST, 0)


class Follower:
    """Planted: does what its last summary said."""

    def propose(self, brief: Brief) -> Proposal:
        values: dict[str, Any] = brief.previous.to_dict()
        for size in values if brief.state.rounds[-1].summary else ():
            values[size]["data_ratio"] = 0.5 if size == "9" else 0.5 / 7
        return Proposal("", values)


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("fixed", set()),
        ("uniform", set()),
        ("rule", {"rates"}),
        ("rule:failures", {"rates", "failure types"}),
        ("mislabelled:rule", {"rates"}),
        ("learning-progress", {"rates", "earlier rounds"}),
        ("sec", {"training facts", "earlier rounds"}),
        ("dump", {"training facts", "earlier rounds"}),
    ],
)
def test_a_designer_reacts_to_what_it_reads(name: str, reads: set[str]) -> None:
    moves = reactions(installed().designers.make(name), BRIEF)
    assert {fact for fact, moved in moves.items() if moved is not None and moved > 1e-6} == reads


def test_a_follower_of_its_own_summary_is_found() -> None:
    moves = reactions(Follower(), BRIEF)
    assert [fact for fact, moved in moves.items() if moved] == ["own summary"] and set(moves) == set(CHANGES)


def test_no_design_is_no_reaction() -> None:
    class Silent:
        def propose(self, brief: Brief) -> Proposal:
            return Proposal("hm", None)

    assert set(reactions(Silent(), BRIEF).values()) == {None}
