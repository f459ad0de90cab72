"""The compact form of a brief and of a proposal, for policies too small to read prose (our choice).

A policy that was taught this form says so: its `describe()` has `"brief": "compact"`. Its prompt is then, in full (here for
sizes 3 and 4; words are separated by one space or one line break, and every number is a whole percent 0..100, one word):

    design
    config
    3 20 10 50
    4 80 20 0
    failures
    3 62 40 hole_free
    4 31 12 goal_reached
    answer

`config` is the configuration in force: size, data ratio, hole ratio, wait ratio. `failures` is the latest validation: size,
valid rate, optimal rate, and the check that most answers failed first (`none` where all were valid; ties: the earlier
check). The words that can occur are `design`, `config`, `failures`, `answer`, `none`, the sizes, the percents and the
testbed's check names. The context modules after F add their own lines before `answer` where a run asks for them (`history`,
`summary`, `training`); the preset `tiny` asks for F alone.

The answer is one JSON object, size to [data, hole, wait] in percent. Written by `proposal_text` it splits at spaces into
words of a fixed vocabulary (`{`, `}`, `,`, `]`, `"3":[` .. `"10":[`, the percents), about 65 words for eight sizes:

    { "3":[ 25 , 10 , 50 ] , "4":[ 75 , 20 , 0 ] }

A reader takes any JSON spacing, and data ratios that do not sum to 100: Project renormalises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

KNOBS = ("data_ratio", "hole_ratio", "wait_ratio")
NO_FAILURE = "none"


def percent(part: float, whole: float = 1.0) -> int:
    """`part` of `whole` as a whole percent, halves up, kept within 0..100; 0 where there is nothing."""
    if not whole or not math.isfinite(part / whole):
        return 0
    return max(0, min(100, math.floor(100 * part / whole + 0.5)))


def top_failure(counts: Mapping[str, Any]) -> str:
    """The check that most answers failed first; the earlier check where two are equal, `none` where nothing failed."""
    failures = counts.get("first_failures") or {}
    best = max(failures.values(), default=0)
    return next((name for name, count in failures.items() if count == best and count), NO_FAILURE)


def configuration_lines(configuration: Mapping[str, Mapping[str, float]]) -> str:
    """The `config` section: one line per group (map size), its knobs in percent."""
    lines = [" ".join([group, *(str(percent(v)) for v in knobs.values())]) for group, knobs in configuration.items()]
    return "\n".join(["config", *lines])


def failure_lines(breakdown: Mapping[str, Any]) -> str:
    """The `failures` section: one line per group: valid %, optimal %, the check that most answers failed first."""
    lines = ["failures"]
    for group, counts in breakdown["groups"].items():
        rates = (percent(counts[name], counts["answers"]) for name in ("valid", "optimal"))
        lines.append(" ".join([group, *map(str, rates), top_failure(counts)]))
    return "\n".join(lines)


def brief_text(configuration: Mapping[str, Mapping[str, float]], sections: Sequence[str]) -> str:
    """The whole compact prompt around context sections that are already compact."""
    return "\n".join(["design", configuration_lines(configuration), *sections, "answer"])


def render(configuration: Mapping[str, Mapping[str, float]], breakdown: Mapping[str, Any]) -> str:
    """The compact prompt of a brief whose only context module is F: what the preset `tiny` shows its policy.

    Args:
        configuration: `Configuration.to_dict()`: size -> {data_ratio, hole_ratio, wait_ratio}, each 0..1.
        breakdown: `Testbed.breakdown(...)`: {"groups": {size: {"answers", "valid", "optimal", "first_failures": {check: n}}}}.
    """
    return brief_text(configuration, [failure_lines(breakdown)])


def proposal_text(configuration: Mapping[str, Mapping[str, float]]) -> str:
    """A configuration as a compact proposal, as a teacher would answer."""
    entries = []
    for group, knobs in configuration.items():
        entries.append(f'"{group}":[ ' + " , ".join(str(percent(v)) for v in knobs.values()) + " ]")
    return "{ " + " , ".join(entries) + " }"


def read_proposal(data: Mapping[str, Any], knobs: Sequence[str] = KNOBS) -> dict[str, dict[str, Any]] | None:
    """A compact proposal (the JSON object already read) as a configuration's JSON, values divided by 100.

    None where the object is not in the compact form (no group has a list). A group with another number of values keeps
    those it has; what is no number is left as it is for Project to refuse by name.
    """
    lists = {str(group): values for group, values in data.items() if isinstance(values, list)}
    if not lists:
        return None
    return {group: {knob: _ratio(v) for knob, v in zip(knobs, values, strict=False)} for group, values in lists.items()}


def _ratio(value: Any) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value / 100 if is_number and -1e9 < value < 1e9 else value
