"""`rule`: a transparent heuristic that follows the latest breakdown and nothing else (our choice; no model behind it)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2t_core.records import Brief, Proposal
from t2t_core.settings import no_argument, number, read_settings

SHARE = "data_ratio"


class Rule:
    """Per group (map size) with valid rate v:

    - data ratio proportional to `floor` + v (1 - v): most where about half succeeds, some everywhere;
    - every other knob goes up by `step` where v >= `high`, down by `step` where v < `low`, and stays otherwise.

    A group without answers keeps all of it. Defaults: floor 0.1, step 0.05, high 0.8, low 0.2.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer rule")
        readers = {name: number(0, 1) for name in ("floor", "step", "high", "low")}
        values = {"floor": 0.1, "step": 0.05, "high": 0.8, "low": 0.2}
        values.update(read_settings(settings or {}, "designer rule", readers))
        self.floor, self.step, self.high, self.low = (values[name] for name in ("floor", "step", "high", "low"))

    def propose(self, brief: Brief) -> Proposal:
        groups = brief.state.rounds[-1].breakdown["groups"]
        proposed, said = {}, []
        for group, knobs in brief.previous.to_dict().items():
            counts = groups.get(group) or {}
            rate = counts["valid"] / counts["answers"] if counts.get("answers") else None
            proposed[group] = dict(knobs) if rate is None else self._group(knobs, rate)
            said.append(f"{group}: {'no answers, kept' if rate is None else f'valid {rate:.0%}'}")
        total = sum(knobs[SHARE] for knobs in proposed.values()) or 1.0
        for knobs in proposed.values():
            knobs[SHARE] /= total
        return Proposal("", proposed, summary="; ".join(said))

    def _group(self, knobs: Mapping[str, float], rate: float) -> dict[str, Any]:
        move = self.step if rate >= self.high else -self.step if rate < self.low else 0.0
        moved = {name: max(0.0, value + move) for name, value in knobs.items() if name != SHARE}
        return {name: moved.get(name, self.floor + rate * (1 - rate)) for name in knobs}
