"""`rule`: a transparent heuristic that follows only the latest breakdown (our choice; no model behind it)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2t_core.cells import numbers, share_knob
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed, Brief
from t2t_core.records import Knob, Proposal
from t2t_core.settings import number, read_settings


class Rule:
    """Per group with valid rate v:

    - its share is proportional to `floor` + v (1 - v): most where about half succeeds, some everywhere;
    - every level whose hard end is known goes towards it by `step` moderate steps of the knob where v >= `high`, away from
      it where v < `low`, and stays otherwise.

    `rule:failures` reads the checked failure types instead: the share is as above, and the levels that the testbed names as
    remedies of the group's most frequent first failure (`Testbed.remedies`) move by `step` moderate steps as they say; of
    failures that are equally frequent the remedies are added up.

    A group without answers keeps all its values. Defaults: floor 0.1, high 0.8, low 0.2, step 1, with failures 4.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        if argument not in ("", "failures"):
            raise T2TError(f"there is no rule {ascii(argument)[:60]}", next="rule, or rule:failures")
        self.reads_failures = argument == "failures"
        readers = {**{name: number(0, 1) for name in ("floor", "high", "low")}, "step": number(0, 1000)}
        values = {"floor": 0.1, "step": 4.0 if self.reads_failures else 1.0, "high": 0.8, "low": 0.2}
        values.update(read_settings(settings or {}, "designer rule", readers))
        self.floor, self.step, self.high, self.low = (values[name] for name in ("floor", "step", "high", "low"))
        self.settings = values

    def propose(self, brief: Brief) -> Proposal:
        groups = brief.state.rounds[-1].breakdown["groups"]
        testbed = brief.state.testbed
        knobs = testbed.knobs(brief.request)
        share = share_knob(knobs)
        proposed: dict[str, dict[str, Any]] = {}
        said = []
        for group, values in brief.previous.to_dict().items():
            counts = groups.get(group) or {}
            rate = counts["valid"] / counts["answers"] if counts.get("answers") else None
            if rate is None:
                proposed[group] = numbers(values)
                said.append(f"{group}: no answers, kept")
                continue
            failures = most_frequent(counts.get("first_failures", {})) if self.reads_failures else []
            towards = _remedies(testbed, failures) if self.reads_failures else self._difficulty(knobs, rate)
            proposed[group] = self._group(knobs, numbers(values), rate, towards)
            said.append(", ".join([f"{group}: valid {rate:.0%}", *failures]))
        total = sum(values[share] for values in proposed.values()) or 1.0
        for values in proposed.values():
            values[share] /= total
        return Proposal("", proposed, summary="; ".join(said))

    def _difficulty(self, knobs: Sequence[Knob], rate: float) -> dict[str, int]:
        towards = 1 if rate >= self.high else -1 if rate < self.low else 0
        return {knob.name: towards * knob.harder for knob in knobs}

    def _group(
        self, knobs: Sequence[Knob], values: Mapping[str, float], rate: float, towards: Mapping[str, int]
    ) -> dict[str, Any]:
        moved = {}
        for knob in knobs:
            if knob.role == "share":
                moved[knob.name] = self.floor + rate * (1 - rate)
            else:
                value = values[knob.name] + towards.get(knob.name, 0) * self.step * knob.moderate
                moved[knob.name] = max(knob.low, value) if towards.get(knob.name) else values[knob.name]
        return moved


def most_frequent(failures: Mapping[str, int]) -> list[str]:
    """The failed checks with the highest count, none if nothing failed."""
    highest = max(failures.values(), default=0)
    return [check for check, count in failures.items() if highest and count == highest]


def _remedies(testbed: AnyTestbed, failures: Sequence[str]) -> dict[str, int]:
    together: dict[str, int] = {}
    for check in failures:
        for knob, towards in testbed.remedies.get(check, {}).items():
            together[knob] = together.get(knob, 0) + towards
    return {knob: (towards > 0) - (towards < 0) for knob, towards in together.items()}
