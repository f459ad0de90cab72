"""How an evaluation failed, as counts: the breakdown that every testbed gets from its declarations (context module F)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from t2t_core.records import Place, Scored


def break_down(
    scored: Sequence[Scored], checks: Sequence[str], place: Callable[[Scored], Place], groups: Sequence[str]
) -> dict[str, Any]:
    """Counts over all answers, per group (in the order of `groups`) and per cell (groups in order, then by name).

    Groups and cells without an answer are left out.
    """
    order = {group: number for number, group in enumerate(groups)}
    by_group: dict[str, list[Scored]] = {}
    by_cell: dict[tuple[int, str], list[Scored]] = {}
    for answer in scored:
        where = place(answer)
        by_group.setdefault(where.group, []).append(answer)
        by_cell.setdefault((order.get(where.group, len(order)), where.cell), []).append(answer)
    ranked = sorted(by_group, key=lambda group: (order.get(group, len(order)), group))
    return {
        "total": count(scored, checks),
        "groups": {group: count(by_group[group], checks) for group in ranked},
        "cells": {cell: count(by_cell[rank, cell], checks) for rank, cell in sorted(by_cell)},
    }


def count(scored: Sequence[Scored], checks: Sequence[str]) -> dict[str, Any]:
    """Count the outcomes of these answers.

    `answers` counts every instance asked. A request that ended in an error has no answer to check: it is counted in `errors`
    and in no failure; `truncated` counts answers cut at the token limit, whatever they are worth.
    """
    verdicts = [s.verdict for s in scored if s.response.error is None]
    return {
        "answers": len(scored),
        "valid": sum(v.valid for v in verdicts),
        "optimal": sum(v.optimal is True for v in verdicts),
        "errors": len(scored) - len(verdicts),
        "truncated": sum(s.response.error is None and s.response.finish_reason == "length" for s in scored),
        "first_failures": {check: sum(v.failure == check for v in verdicts) for check in checks},
        "failures": {check: sum(not v.checks[check] for v in verdicts) for check in checks},
    }


def top_failure(counts: Mapping[str, Any], otherwise: str = "none") -> str:
    """The check that most answers failed first; of two with equal counts, the earlier one; `otherwise` if nothing failed."""
    failures = counts.get("first_failures") or {}
    most = max(failures.values(), default=0)
    return next((name for name, failed in failures.items() if failed == most and failed), otherwise)
