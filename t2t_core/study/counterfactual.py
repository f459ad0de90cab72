"""What a designer reacts to: the same brief with one fact changed at a time, and how far its design moves.

A designer that reads a fact designs otherwise where the fact is another one; one that does not, does not. (Our choice.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from t2t_core.cells import numbers
from t2t_core.hookspecs import Brief, Designer, RoundState
from t2t_core.records import Round

Change = Callable[[RoundState], RoundState]


def rates_turned(state: RoundState) -> RoundState:
    """The counts of the latest validation, dealt to groups and cells in the opposite order."""

    def turned(past: Round) -> Round:
        tables = {name: past.breakdown.get(name, {}) for name in ("groups", "cells")}
        dealt = {name: dict(zip(t, reversed(list(t.values())), strict=True)) for name, t in tables.items()}
        return replace(past, breakdown={**past.breakdown, **dealt})

    return _latest(state, turned)


def failures_turned(state: RoundState) -> RoundState:
    """The names of the failed checks of the latest validation, in the opposite order; rates stay."""

    def turned(counts: Mapping[str, Any]) -> Mapping[str, Any]:
        lists = {name: counts[name] for name in ("first_failures", "failures") if name in counts}
        return {**counts, **{name: dict(zip(c, reversed(list(c.values())), strict=True)) for name, c in lists.items()}}

    def all_turned(past: Round) -> Round:
        parts = {name: {k: turned(v) for k, v in past.breakdown.get(name, {}).items()} for name in ("groups", "cells")}
        return replace(past, breakdown={**past.breakdown, "total": turned(past.breakdown.get("total", {})), **parts})

    return replace(_latest(state, all_turned), examples=())


def summary_removed(state: RoundState) -> RoundState:
    """The designer's own last words, gone."""
    return _latest(state, lambda past: replace(past, summary=None))


def past_forgotten(state: RoundState) -> RoundState:
    """The latest round alone."""
    return replace(state, rounds=state.rounds[-1:])


def training_turned(state: RoundState) -> RoundState:
    """What the trainings counted by cell, turned round like the rates: the cells' facts in the opposite order."""

    def turned(past: Round) -> Round:
        cells = past.training.get("cells")
        if not isinstance(cells, Mapping):
            return past
        return replace(past, training={**past.training, "cells": dict(zip(cells, reversed(list(cells.values())), strict=True))})

    return replace(state, rounds=[turned(past) for past in state.rounds])


CHANGES: Mapping[str, Change] = {
    "rates": rates_turned,
    "failure types": failures_turned,
    "own summary": summary_removed,
    "earlier rounds": past_forgotten,
    "training facts": training_turned,
}


def reactions(designer: Designer, brief: Brief) -> dict[str, float | None]:
    """For every fact, the mean absolute difference over groups and knobs between the design on the brief and on the brief with
    that fact changed, after Project; None if either was no design."""
    plain = _design(designer, brief)
    return {name: _apart(plain, _design(designer, _changed(brief, change))) for name, change in CHANGES.items()}


def _changed(brief: Brief, change: Change) -> Brief:
    state = change(brief.state)
    if brief.anew is None:
        return replace(brief, state=state)
    return replace(brief.anew(state), policy=brief.policy, anew=brief.anew)


def _design(designer: Designer, brief: Brief) -> Mapping[str, Mapping[str, Any]] | None:
    parsed = designer.propose(brief).parsed
    if parsed is None:
        return None
    projected = brief.state.testbed.project(parsed, brief.previous, brief.request)
    made: Mapping[str, Mapping[str, Any]] = projected.configuration.to_dict()
    return made


def _apart(ours: Mapping[str, Mapping[str, Any]] | None, theirs: Mapping[str, Mapping[str, Any]] | None) -> float | None:
    if ours is None or theirs is None:
        return None
    knobs = ((group, knob, value) for group, values in ours.items() for knob, value in numbers(values).items())
    gaps = [abs(value - numbers(theirs[group])[knob]) for group, knob, value in knobs]
    return sum(gaps) / len(gaps)


def _latest(state: RoundState, change: Callable[[Round], Round]) -> RoundState:
    return replace(state, rounds=[*state.rounds[:-1], change(state.rounds[-1])])
