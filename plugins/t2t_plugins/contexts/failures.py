"""F: the failure breakdown of the latest validation (paper section "context modules", letter F)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from t2t_core.hookspecs import RoundState
from t2t_core.records import Scored
from t2t_core.settings import integer, no_argument, read_settings
from t2t_plugins.contexts.compact import failure_lines

SHOWN = 400  # characters of an example's answer: short, our choice


class Failures:
    """Valid rate, optimal rate and failure counts per group, then `examples` failed answers, the shortest first
    (default 2, our choice). An answer counts under the first check it failed."""

    title = "Latest validation"

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "context F")
        self.examples = read_settings(settings or {}, "context F", {"examples": integer(0, 50)}).get("examples", 2)
        self.settings = {"examples": self.examples}

    def render(self, state: RoundState, compact: bool) -> str | None:
        if not state.rounds:
            return None
        breakdown = state.rounds[-1].breakdown
        if compact:
            return failure_lines(breakdown)
        parts = counts_lines(state, breakdown)
        shortest = sorted(state.examples, key=lambda s: (len(s.response.text), s.instance.id))[: self.examples]
        return "\n".join(parts + [_example(state, scored) for scored in shortest])


def counts_lines(state: RoundState, breakdown: Mapping[str, Any]) -> list[str]:
    """A line per group of a breakdown."""
    return [_counts_line(f"{state.testbed.group} {group}", counts) for group, counts in breakdown["groups"].items()]


def _counts_line(group: str, counts: Mapping[str, Any]) -> str:
    """`span near: 50 answers, valid 62.0 %, optimal 40.0 %; failed first: parsable 12, guessed 7`."""
    answers = counts["answers"]
    rates = [f"{name} {100 * counts[name] / answers:.1f} %" if answers else f"{name} -" for name in ("valid", "optimal")]
    failed = [f"{check} {count}" for check, count in counts.get("first_failures", {}).items() if count]
    failed += [f"no answer {counts['errors']}"] if counts.get("errors") else []
    return f"{group}: {answers} answers, {', '.join(rates)}" + (f"; failed first: {', '.join(failed)}" if failed else "")


def _example(state: RoundState, scored: Scored) -> str:
    """One failed answer with its verdict; the instance without what its solver knows."""
    instance = {k: v for k, v in state.testbed.unlabelled(scored.instance).to_dict().items() if v is not None}
    text = scored.response.text
    shown = text if len(text) <= SHOWN else "..." + text[-SHOWN:]
    faults = "; ".join(f"{check}: {fault.message}" for check, fault in scored.verdict.faults.items())
    return f"A failed answer to {json.dumps(instance)}:\n{shown.strip()}\nVerdict: {faults or scored.verdict.failure}"
