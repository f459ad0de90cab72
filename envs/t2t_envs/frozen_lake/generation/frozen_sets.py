"""Makes the frozen evaluation and validation sets, bit for bit (`t2t generate --sets DIR`), and fresh twins of them.

Evaluation sets v1: 3 agents on sizes 3-10, 4 on 4-10, 5 on 5-10. Each size has 150 instances (as in the paper) over five hole
counts floor(i * max / 4 + 1/2), i = 0..4, where max is the most the size can hold: 30 each, half of them requiring a wait. The
validation set is built the same way: 2 agents on sizes 3-10, 50 per size, 10 per hole count. The objective is makespan, and
both optima are stored. Each canonical form occurs once over all sets. A set takes at most half of the forms of a stratum and kind
(wait, wait-free), so that twins have forms left; if there are too few, the stratum of the same size with the most forms left of
this kind makes up for it. (All but the 150: our choice.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import Any

from t2t_core import seeding
from t2t_core.errors import T2TError
from t2t_core.records import InstanceSet
from t2t_core.store import frozen, jsonlines

from ..instance import Instance
from ..solver import DEFAULT_MAX_NODES
from .forms import capacity, count_forms
from .generator import StratumJob
from .progress import Watcher
from .request import Request
from .strata import Stratum

VERSION = 1
LEVELS = 5


@dataclass(frozen=True)
class Plan:
    """One frozen set: `each` instances per size, hole count and kind."""

    name: str
    kind: str
    num_agents: int
    sizes: tuple[int, ...]
    each: int

    @property
    def file(self) -> str:
        """The name of the set's file, with its version."""
        return f"{self.name}_v{VERSION}.jsonl"


PLANS = (
    Plan("3agents", "evaluation", 3, tuple(range(3, 11)), 15),
    Plan("4agents", "evaluation", 4, tuple(range(4, 11)), 15),
    Plan("5agents", "evaluation", 5, tuple(range(5, 11)), 15),
    Plan("validation_2agents", "validation", 2, tuple(range(3, 11)), 5),
)


@dataclass(frozen=True)
class Part:
    """The instances of one kind that a stratum gives to a set. `forms` is how many canonical forms of the kind it has or, if it
    was not `enumerated`, how many different ones sampling has met."""

    stratum: Stratum
    wait: bool
    count: int
    forms: int
    enumerated: bool


def hole_levels(size: int, num_agents: int) -> list[int]:
    """The hole counts of a size, rising, each once."""
    most = capacity(size, num_agents)
    return sorted({floor(i * most / (LEVELS - 1) + 0.5) for i in range(LEVELS)})


def shares(plan: Plan, size: int) -> list[Part]:
    """What each stratum of a size gives, before anything is drawn."""
    strata = [Stratum(size, holes, plan.num_agents) for holes in hole_levels(size, plan.num_agents)]
    parts: list[Part] = []
    for wait in (False, True):
        counts = [count_forms(stratum) for stratum in strata]
        forms = [count.wait if wait else count.wait_free for count in counts]
        taken = [min(plan.each, have // 2) for have in forms]
        while (missing := plan.each * LEVELS - sum(taken)) > 0:
            left = [have // 2 - gives for have, gives in zip(forms, taken, strict=True)]
            most = max(range(len(strata)), key=lambda i: left[i])
            if left[most] <= 0:
                raise T2TError(f"{missing} instances are missing", where=f"{plan.name}, size {size}", cause="too few forms")
            taken[most] += min(missing, left[most])
        for stratum, count, have, gives in zip(strata, counts, forms, taken, strict=True):
            parts.append(Part(stratum, wait, gives, have if count.exact else 2 * gives, count.exact))
    return parts


def _draw(part: Part, count: int, seed: int, exclude: frozenset[bytes] = frozenset()) -> list[Instance]:
    """`count` instances of a stratum, each canonical form once, in the order they were met."""
    if count == 0:
        return []
    request = Request(count, part.stratum.num_agents, part.stratum.objective, exclude, "forbid")
    counts = (0, count) if part.wait else (count, 0)
    job = StratumJob(part.stratum, *counts, request, True, seed, threads=1, max_nodes=DEFAULT_MAX_NODES, watcher=Watcher(count))
    instances, report = job.run()
    if report.undecided:
        # A better solver would decide them, and that would change the set.
        raise T2TError(f"{report.undecided} candidates were left undecided", where=str(part.stratum), cause="the node limit")
    return instances


def make_set(plan: Plan, sizes: tuple[int, ...] | None = None) -> tuple[list[Instance], list[Part]]:
    """The instances of a frozen set in its order, and the parts they come from; only those of `sizes`, if given."""
    instances: list[Instance] = []
    parts: list[Part] = []
    for size in plan.sizes if sizes is None else sizes:
        mine = shares(plan, size)
        drawn = []
        for part in mine:
            seed = seeding.key(VERSION, "frozen sets", plan.kind, int(part.wait))
            # Where the forms were not counted, drawing twice as many as needed proves that the set takes at most half of them.
            drawn.append(_draw(part, part.count if part.enumerated else 2 * part.count, seed)[: part.count])
        instances += _in_order(mine, drawn)
        parts += mine
    return instances, parts


def _in_order(parts: list[Part], drawn: list[list[Instance]], prefix: str = "") -> list[Instance]:
    """The instances of one size, interleaved so that the first n are balanced over its strata, with their ids."""
    levels = sorted({part.stratum.holes for part in parts})

    def turn(part: Part) -> tuple[bool, int]:
        level = levels.index(part.stratum.holes)
        return (level % 2 == 1) != part.wait, level  # any five in a row have different hole counts, and the kinds take turns

    order = [
        ((rank + 0.5) / len(instances), turn(part), instance)
        for part, instances in zip(parts, drawn, strict=True)
        for rank, instance in enumerate(instances)
    ]
    order.sort(key=lambda item: item[:2])
    return [
        replace(x, id=f"{prefix}{x.num_agents}agents_{x.size}x{x.size}_{i:04d}") for i, (_, _, x) in enumerate(order)
    ]


def make_twin(frozen: InstanceSet, manifest: Mapping[str, Any], seed: int) -> InstanceSet:
    """A fresh set with as many instances of every stratum as the frozen one, and none of its forms (the frozen set took at most
    half of them)."""
    used = frozenset(instance.canonical() for instance in frozen.instances)
    by_size: dict[int, list[Part]] = {}
    for row in manifest["cells"]:
        stratum = Stratum(row["size"], row["holes"], manifest["num_agents"])
        by_size.setdefault(stratum.size, []).append(Part(stratum, row["wait"], row["instances"], row["forms"], row["enumerated"]))
    instances: list[Instance] = []
    for parts in by_size.values():
        drawn = [_draw(part, part.count, seeding.key(seed, "twin", int(part.wait)), used) for part in parts]
        instances += _in_order(parts, drawn, f"twin{seed}_")
    note = f"twin {seed} of {frozen.name}: fresh instances of the same cells; 0 of its forms are in the frozen set"
    data = as_lines(instances).encode()
    return InstanceSet(f"{frozen.name}_twin{seed}", "twin", hashlib.sha256(data).hexdigest(), instances, (*frozen.notes, note))


def as_lines(instances: list[Instance]) -> str:
    """JSON Lines."""
    return "".join(jsonlines.dumps(instance.to_dict()) + "\n" for instance in instances)


def shortfalls(plan: Plan, parts: list[Part]) -> list[str]:
    """One sentence for each stratum that gives fewer, or more, than its even share."""
    return [
        f"{plan.num_agents} agents, {p.stratum.size}x{p.stratum.size}, {p.stratum.holes} holes, "
        f"{'wait' if p.wait else 'wait-free'}: {p.count} instances instead of {plan.each}"
        + (f" (it has {p.forms} forms, at most half are taken)" if p.count < plan.each else " (makes up for other cells)")
        for p in parts
        if p.count != plan.each
    ]


def make_files() -> Iterator[tuple[str, str]]:
    """Name and text of every file of the frozen sets, `SHA256SUMS` last."""
    files: dict[str, str] = {}
    manifest: dict[str, Any] = {"version": VERSION, "made_by": "t2t generate --sets DIR", "objective": "makespan", "sets": {}}
    for plan in PLANS:
        instances, parts = make_set(plan)
        files[plan.file] = as_lines(instances)
        manifest["sets"][plan.name] = {
            "file": plan.file,
            "kind": plan.kind,
            "num_agents": plan.num_agents,
            "instances": len(instances),
            "undecided": 0,
            "notes": shortfalls(plan, parts),
            "cells": [
                {"size": p.stratum.size, "holes": p.stratum.holes, "wait": p.wait, "instances": p.count, "forms": p.forms}
                | {"enumerated": p.enumerated}
                for p in parts
            ],
        }
        yield plan.file, files[plan.file]
    yield from frozen.closing_files(files, manifest)


def write_files(folder: Path) -> list[str]:
    """Make all files of the frozen sets in a folder; returns their names."""
    return frozen.write(folder, make_files())
