"""F: the failure breakdown of the latest validation (paper section "context modules", letter F)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import RoundState
from t2t_core.records import Scored
from t2t_core.settings import integer, read_settings
from t2t_plugins.contexts.compact import failure_lines

SHOWN = 400  # characters of an example's answer: short, our choice


class Failures:
    """Valid rate, optimal rate and failure counts per group, then `examples` failed answers, the shortest first
    (default 2, our choice). An answer counts under the first check it failed.

    `F:rates` shows only the rates, neither failure counts nor examples (our choice, to measure what the failure types are
    worth).
    """

    title = "Latest validation"

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        if argument not in ("", "rates"):
            raise T2TError(f"context F knows no option {argument[:60]!r}", next="F, F:rates or F:examples=3")
        self.types = not argument
        readers = {"examples": integer(0, 50)} if self.types else {}
        self.examples = read_settings(settings or {}, "context F", readers).get("examples", 2 if self.types else 0)
        self.settings = {"examples": self.examples} if self.types else {}

    def render(self, state: RoundState, compact: bool) -> str | None:
        if not state.rounds:
            return None
        breakdown = state.rounds[-1].breakdown
        if compact:
            return failure_lines(breakdown, self.types)
        parts = counts_lines(state, breakdown, self.types)
        shortest = sorted(state.examples, key=lambda s: (len(s.response.text), s.instance.id))[: self.examples]
        return "\n".join(parts + [_example(state, scored) for scored in shortest])


def counts_lines(state: RoundState, breakdown: Mapping[str, Any], types: bool = True) -> list[str]:
    """A line for each group of a breakdown, with its failure types unless `types` is False."""
    return [_counts_line(f"{state.testbed.group} {group}", counts, types) for group, counts in breakdown["groups"].items()]


def _counts_line(group: str, counts: Mapping[str, Any], types: bool) -> str:
    """`span near: 50 answers, valid 62.0 %, optimal 40.0 %; failed first: parsable 12, guessed 7`."""
    answers = counts["answers"]
    rates = [f"{name} {100 * counts[name] / answers:.1f} %" if answers else f"{name} -" for name in ("valid", "optimal")]
    failed = [f"{check} {count}" for check, count in counts.get("first_failures", {}).items() if count and types]
    failed += [f"no answer {counts['errors']}"] if counts.get("errors") else []
    return f"{group}: {answers} answers, {', '.join(rates)}" + (f"; failed first: {', '.join(failed)}" if failed else "")


def _example(state: RoundState, scored: Scored) -> str:
    """One failed answer with its verdict; the instance comes without its solver's labels."""
    instance = {k: v for k, v in state.testbed.unlabelled(scored.instance).to_dict().items() if v is not None}
    text = scored.response.text
    shown = text if len(text) <= SHOWN else "..." + text[-SHOWN:]
    faults = "; ".join(f"{check}: {fault.message}" for check, fault in scored.verdict.faults.items())
    return f"A failed answer to {json.dumps(instance)}:\n{shown.strip()}\nVerdict: {faults or scored.verdict.failure}"
