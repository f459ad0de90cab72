"""`rule`: a transparent heuristic that follows the latest breakdown and nothing else (our choice; no model behind it)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2t_core.cells import numbers, share_knob
from t2t_core.hookspecs import Brief
from t2t_core.records import Knob, Proposal
from t2t_core.settings import no_argument, number, read_settings


class Rule:
    """Per group with valid rate v:

    - its share is proportional to `floor` + v (1 - v): most where about half succeeds, some everywhere;
    - every level whose hard end is known goes towards it by `step` moderate steps of the knob where v >= `high`, away from
      it where v < `low`, and stays otherwise.

    A group without answers keeps all of it. Defaults: floor 0.1, step 1, high 0.8, low 0.2.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer rule")
        readers = {**{name: number(0, 1) for name in ("floor", "high", "low")}, "step": number(0, 1000)}
        values = {"floor": 0.1, "step": 1.0, "high": 0.8, "low": 0.2}
        values.update(read_settings(settings or {}, "designer rule", readers))
        self.floor, self.step, self.high, self.low = (values[name] for name in ("floor", "step", "high", "low"))
        self.settings = values

    def propose(self, brief: Brief) -> Proposal:
        groups = brief.state.rounds[-1].breakdown["groups"]
        knobs = brief.state.testbed.knobs(brief.request)
        share = share_knob(knobs)
        proposed: dict[str, dict[str, Any]] = {}
        said = []
        for group, values in brief.previous.to_dict().items():
            counts = groups.get(group) or {}
            rate = counts["valid"] / counts["answers"] if counts.get("answers") else None
            proposed[group] = numbers(values) if rate is None else self._group(knobs, numbers(values), rate)
            said.append(f"{group}: {'no answers, kept' if rate is None else f'valid {rate:.0%}'}")
        total = sum(values[share] for values in proposed.values()) or 1.0
        for values in proposed.values():
            values[share] /= total
        return Proposal("", proposed, summary="; ".join(said))

    def _group(self, knobs: Sequence[Knob], values: Mapping[str, float], rate: float) -> dict[str, Any]:
        towards = 1 if rate >= self.high else -1 if rate < self.low else 0
        moved = {}
        for knob in knobs:
            if knob.role == "share":
                moved[knob.name] = self.floor + rate * (1 - rate)
            else:
                value = values[knob.name] + towards * knob.harder * self.step * knob.moderate
                moved[knob.name] = max(knob.low, value) if knob.harder else values[knob.name]
        return moved
