"""A pretend testbed with two groups for tests of the loop, the designers and the contexts: instances are numbers, an answer is
valid if it repeats the number, and each group has a data ratio, a hole ratio and a wait ratio, as in the real one."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2t_core.hookspecs import Testbed
from t2t_core.records import Change, Fault, InstanceSet, Knob, Metric, Option, Place, Projection, Response, Scored, Verdict
from t2t_core.seeding import Stream

GROUPS = ("3", "4")
CHECKS = ("parsable", "right")


@dataclass(frozen=True)
class Number:
    id: str
    group: str
    number: int
    answer: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "group": self.group, "number": self.number, "answer": self.answer}


@dataclass(frozen=True)
class Setting:
    values: Mapping[str, Mapping[str, float]]

    def to_dict(self) -> dict[str, Any]:
        return {group: dict(knobs) for group, knobs in self.values.items()}


@dataclass(frozen=True)
class Wanted:
    count: int
    agents: int = 2
    exclude: frozenset[bytes] = frozenset()


class Lake(Testbed[Number, Setting, Wanted]):
    name = "lake"
    title = "Repeat the number"
    group = "lake"
    groups = GROUPS
    groups_rise = True
    checks = CHECKS
    rubric = {"right": 1.0}
    metrics = (
        Metric("valid", "valid", "rate", lambda verdict, response: float(verdict.valid)),
        Metric("optimal", "optimal", "rate", lambda verdict, response: float(bool(verdict.optimal))),
    )
    prompt_formats = ("plain",)
    guideline = "Train where about half succeeds."

    def options(self) -> Sequence[Option]:
        return (Option("agents", "how many agents", "2", lambda text: [int(x) for x in text.split(",")]),)

    def knobs(self, request: Any) -> Sequence[Knob]:
        return [
            Knob("data_ratio", "share of the instances", 0, 1, "share", "percent"),
            Knob("hole_ratio", "share of holes", 0, 0.5, "level", "percent", harder=1, step=0.05),
            Knob("wait_ratio", "share of waits", 0, 1, "mixture", "percent", harder=1, step=0.05),
        ]

    def request(self, count: int, **options: Any) -> Wanted:
        return Wanted(count, **options)

    def read_configuration(self, data: Mapping[str, Any]) -> Setting:
        return Setting(data)

    def random_configuration(self, request: Wanted, seed: int) -> Setting:
        stream = Stream.of(seed, "random configuration")
        share = stream.uniform()
        return Setting(
            {
                g: {"data_ratio": d, "hole_ratio": stream.uniform() / 2, "wait_ratio": stream.uniform()}
                for g, d in zip(GROUPS, (share, 1 - share), strict=True)
            }
        )

    def project(self, proposal: Mapping[str, Any] | None, previous: Setting, request: Wanted) -> Projection[Setting]:
        values, changes = previous.to_dict(), []
        for group, knobs in values.items():
            asked = proposal.get(group) if isinstance(proposal, Mapping) else None
            for name, old in knobs.items():
                new = asked.get(name) if isinstance(asked, Mapping) else None
                usable = isinstance(new, (int, float)) and not isinstance(new, bool) and math.isfinite(new)
                knobs[name] = min(max(float(new), 0.0), 1.0 if name != "hole_ratio" else 0.5) if usable else old
                if knobs[name] != new:
                    changes.append(Change(f"{group}.{name}", repr(new)[:80], knobs[name], "missing or out of bounds"))
        total = sum(knobs["data_ratio"] for knobs in values.values())
        for group, knobs in values.items():
            before = previous.to_dict()[group]["data_ratio"]
            knobs["data_ratio"] = knobs["data_ratio"] / total if total else before
        return Projection(Setting(values), changes)

    def generate(self, configuration: Setting, request: Wanted, seed: int) -> Sequence[Number]:
        stream = Stream.of(seed, "numbers")
        first = round(configuration.values["3"]["data_ratio"] * request.count)
        groups = ["3"] * first + ["4"] * (request.count - first)
        protected = (instance for name in self.protected_sets() for instance in self.load_set(name).instances)
        kept = request.exclude or {self.identity(instance) for instance in protected}
        made = [Number(f"n{i:04d}", g, n, n) for i, g in enumerate(groups) for n in [stream.below(1000)]]
        for _ in range(20):
            made = [replace(m, number=n, answer=n) if self.identity(m) in kept else m for m in made for n in [stream.below(1000)]]
        return made

    def read_instance(self, data: Mapping[str, Any]) -> Number:
        return Number(data["id"], data["group"], data["number"], data["answer"])

    def unlabelled(self, instance: Number) -> Number:
        return Number(instance.id, instance.group, instance.number)

    def place(self, instance: Number) -> Place:
        parity = "even" if instance.number % 2 == 0 else "odd"
        return Place("2 agents", instance.group, f"{instance.group} {parity}", instance.group)

    def identity(self, instance: Number) -> bytes:
        return f"{instance.group} {instance.number}".encode()

    def set_names(self, options: Mapping[str, Any]) -> Sequence[str]:
        return [f"{k}agents" for k in options.get("agents", [2])]

    def load_set(self, name: str) -> InstanceSet:
        return self._set(name, 0)

    def _set(self, name: str, start: int) -> InstanceSet:
        made = [Number(f"{name}-{g}-{i}", g, n, n) for g in GROUPS for i in range(6) for n in [start + 10 * i + int(g)]]
        digest = hashlib.sha256("\n".join(json.dumps(m.to_dict()) for m in made).encode()).hexdigest()
        return InstanceSet(name, "validation", digest, made)

    def protected_sets(self) -> Sequence[str]:
        return ["validation"]

    def twin(self, name: str, seed: int) -> InstanceSet:
        return self._set(name, 100 * seed)

    def prompt(self, instance: Number, format: str) -> str:
        return f"Repeat {instance.number}"

    def verify(self, instance: Number, text: str, format: str = "") -> Verdict:
        parsable = text.strip().isdigit()
        right = parsable and int(text) == instance.answer
        faults = {} if right else {"right": Fault("another number")}
        return Verdict({"parsable": parsable, "right": right}, right, right, 1 if right else None, faults=faults)

    def reward_terms(self, instance: Number, verdict: Verdict) -> Mapping[str, float]:
        return {"right": float(verdict.valid)}

    def breakdown(self, scored: Sequence[Scored]) -> Mapping[str, Any]:
        groups = {g: [s for s in scored if s.instance.group == g] for g in GROUPS}
        cells = {c: [s for s in scored if self.place(s.instance).cell == c] for g in GROUPS for c in (f"{g} even", f"{g} odd")}
        return {
            "total": counts(scored),
            "groups": {g: counts(s) for g, s in groups.items()},
            "cells": {c: counts(s) for c, s in cells.items()},
        }


def counts(scored: Sequence[Scored]) -> dict[str, Any]:
    valid = sum(s.verdict.valid for s in scored)
    first = {check: sum(s.verdict.failure == check for s in scored) for check in CHECKS}
    every = {check: sum(not s.verdict.checks[check] for s in scored) for check in CHECKS}
    return {"answers": len(scored), "valid": valid, "optimal": valid, "first_failures": first, "failures": every}


class Repeater:
    """A scripted policy: right for the numbers below 40 of group 3 and below 20 of group 4."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        self.argument = argument

    def respond(self, tasks: Sequence[Any], sampling: Any) -> Any:
        for position, task in enumerate(tasks):
            limit = {"3": 40, "4": 20}[task.instance.group]
            yield position, Response(str(task.instance.number if task.instance.number < limit else 0), 3, 2)

    def describe(self) -> dict[str, Any]:
        return {"name": "repeater", "deterministic": True, "batch_size": None}


def breakdown(valid_3: int = 6, valid_4: int = 2, answers: int = 10) -> dict[str, Any]:
    def group(valid: int) -> dict[str, Any]:
        failed = answers - valid
        first = {"parsable": 0, "right": failed}
        return {"answers": answers, "valid": valid, "optimal": valid, "first_failures": first, "failures": dict(first)}

    return {
        "total": group(0),
        "groups": {"3": group(valid_3), "4": group(valid_4)},
        "cells": {f"{g} {p}": group(v) for g, v in (("3", valid_3), ("4", valid_4)) for p in ("even", "odd")},
    }
