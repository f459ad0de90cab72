"""How an evaluation failed, as JSON facts: counts, never interpretations (paper section "context modules", letter F)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from t2t_core.breakdown import count
from t2t_core.records import Scored

from .instance import Instance
from .verifier import CHECKS


def cell_name(instance: Instance) -> str:
    """The finest cell of an instance: size, hole count and, if known, whether an optimum needs a wait, e.g.
    `5x5 holes=6 wait`."""
    flag = {True: " wait", False: " no-wait", None: ""}[instance.requires_wait]
    return f"{instance.size}x{instance.size} holes={len(instance.holes)}{flag}"


def breakdown(scored: Sequence[Scored]) -> dict[str, Any]:
    """Counts over all answers, per map size ("groups"), per number of agents and per cell, each in rising order.

    Every entry has `answers`, `valid`, `optimal`, `first_failures` (an answer counts under its first failed check) and
    `failures` (under every failed one), both over all eight checks with zeros. `answers` counts every instance asked. A
    request that ended in an error has no answer to check, so it is counted in `errors` and in no failure. `truncated` counts
    answers cut at the token limit, valid or not.
    """
    return {
        "total": count(scored, CHECKS),
        "groups": _by(scored, lambda s: (s.instance.size,), lambda s: str(s.instance.size)),
        "agents": _by(scored, lambda s: (s.instance.num_agents,), lambda s: str(s.instance.num_agents)),
        "cells": _by(scored, _cell_order, lambda s: cell_name(s.instance)),
    }


def _cell_order(scored: Scored) -> tuple[int, ...]:
    instance = scored.instance
    return instance.size, len(instance.holes), -1 if instance.requires_wait is None else int(instance.requires_wait)


def _by(
    scored: Iterable[Scored], order: Callable[[Scored], tuple[int, ...]], name: Callable[[Scored], str]
) -> dict[str, dict[str, Any]]:
    parts: dict[str, list[Scored]] = {}
    for answer in sorted(scored, key=order):
        parts.setdefault(name(answer), []).append(answer)
    return {key: count(part, CHECKS) for key, part in parts.items()}
