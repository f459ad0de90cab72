"""`rule`: does what somebody would do who had read the task once. It asks for the baseline scores, takes the best base, trains it
at a moderate learning rate on half of what the budget allows, and resets every value that the probe complains about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import sqrt
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import EpisodeState
from t2t_core.records import AgentTurn, ToolCall
from t2t_core.settings import read_settings
from t2t_jobs.agents.drawing import conversations, submit
from t2t_jobs.agents.search import FIDELITY
from t2t_jobs.family import Bound, Family, Value
from t2t_jobs.tools import BASELINES

RATE = "training.learning_rate"
_SPARE = 0.5  # share of the budget's conversations to use, since CPU time is limited too


class Rule:
    """A fixed rule; it has no settings."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        if argument:
            raise T2TError("the agent rule takes no argument", where=f"agent rule:{argument[:60]}")
        read_settings(settings or {}, "agent rule", {})

    def act(self, state: EpisodeState) -> AgentTurn:
        if not state.exchanges:
            return AgentTurn("which base is best?", (ToolCall("baselines", BASELINES, json.dumps({})),))
        changes = self._job(state.family, state.exchanges[0].results[0])
        complained = " ".join(f"{fault.what} {fault.where}" for fault in state.failures)
        kept = {key: value for key, value in changes.items() if key not in complained}
        if state.failures and kept == changes:  # the complaints name none of our values; the start job itself is valid
            kept = {"base": changes["base"]} if state.submissions > 1 else {}
        return submit(kept, "the best base, moderately trained" if not state.failures else "without what was wrong")

    def _job(self, family: Family, told: str) -> dict[str, Value]:
        scores = dict(line.rsplit(": ", 1) for line in told.splitlines() if ": " in line)
        known = {base: float(score) for base, score in scores.items() if base in family.bases}
        changes: dict[str, Value] = {"base": max(known, key=lambda base: known[base])} if known else {}
        if RATE in family.bounds:
            changes[RATE] = _middle(family.bounds[RATE])
        if FIDELITY in family.bounds:
            bound, each = family.bounds[FIDELITY], conversations(family, {**changes, FIDELITY: 1})
            most = int(_SPARE * family.budget.conversations / max(1, each))
            changes[FIDELITY] = max(int(bound.low), min(int(bound.high), most))
        return changes

    def describe(self) -> Mapping[str, Any]:
        return {}


def _middle(bound: Bound) -> float:
    return float(f"{sqrt(bound.low * bound.high) if bound.kind == 'log-range' else (bound.low + bound.high) / 2:.3g}")
