"""The compact form of a brief and of a proposal, for policies too small to read prose (our choice).

A policy that was taught this form says so: its `describe()` has `"brief": "compact"`. Its prompt is then, in full (here for
a testbed with the groups 3 and 4 and three knobs; words are separated by one space or one line break, and every number is a
whole one of 0..100, one word):

    design
    config
    3 20 10 50
    4 80 20 0
    failures
    3 62 40 parsable
    4 31 12 right
    answer

`config` is the configuration in force: the group and its knobs in the testbed's order, as percent where a knob is a ratio
and else as percent of the knob's range. `failures` is the latest validation: the group, valid rate, optimal rate, and the
check that most answers failed first (`none` where all were valid; ties: the earlier check). The words that can occur are
`design`, `config`, `failures`, `answer`, `none`, the groups, the numbers and the testbed's check names. The context modules
after F add their own lines before `answer` where a run asks for them (`history`, `summary`, `training`); the preset `tiny`
asks for F alone.

The answer is one JSON object, from each group to its knobs' numbers in order. Written by `proposal_text`, it splits at spaces
into words of a fixed vocabulary (`{`, `}`, `,`, `]`, `"3":[`, `"4":[`, the numbers):

    { "3":[ 25 , 10 , 50 ] , "4":[ 75 , 20 , 0 ] }

A reader accepts any JSON spacing, and shares that do not sum to 100: Project renormalises them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from t2t_core.breakdown import top_failure
from t2t_core.cells import numbers
from t2t_core.records import Knob


def percent(part: float, whole: float = 1.0) -> int:
    """`part` of `whole` as a whole percent, halves up, kept within 0..100; 0 if there is nothing."""
    if not whole or not math.isfinite(part / whole):
        return 0
    return max(0, min(100, math.floor(100 * part / whole + 0.5)))


def word(knob: Knob, value: float) -> int:
    """A knob's value as one number of 0..100."""
    return percent(value) if knob.form == "percent" else percent(value - knob.low, knob.high - knob.low)


def configuration_lines(configuration: Mapping[str, Mapping[str, Any]], knobs: Sequence[Knob]) -> str:
    """The `config` section: one line per group, its knobs in order."""
    lines = [" ".join([group, *_words(values, knobs)]) for group, values in configuration.items()]
    return "\n".join(["config", *lines])


def _words(values: Mapping[str, Any], knobs: Sequence[Knob]) -> list[str]:
    shown = numbers(values)
    return [str(word(knob, shown[knob.name])) for knob in knobs if knob.name in shown]


def failure_lines(breakdown: Mapping[str, Any], types: bool = True) -> str:
    """The `failures` section, one line per group: valid %, optimal %, and the check that most answers failed first (always
    `none` if `types` is False)."""
    lines = ["failures"]
    for group, counts in breakdown["groups"].items():
        rates = (percent(counts[name], counts["answers"]) for name in ("valid", "optimal"))
        lines.append(" ".join([group, *map(str, rates), top_failure(counts) if types else "none"]))
    return "\n".join(lines)


def brief_text(configuration: Mapping[str, Mapping[str, Any]], knobs: Sequence[Knob], sections: Sequence[str]) -> str:
    """The whole compact prompt around context sections that are already compact."""
    return "\n".join(["design", configuration_lines(configuration, knobs), *sections, "answer"])


def render(configuration: Mapping[str, Mapping[str, Any]], knobs: Sequence[Knob], breakdown: Mapping[str, Any]) -> str:
    """The compact prompt of a brief whose only context module is F: what the preset `tiny` shows its policy.

    Args:
        configuration: `Configuration.to_dict()`: group -> knob -> number.
        knobs: the testbed's.
        breakdown: `Testbed.breakdown(...)`: {"groups": {group: {"answers", "valid", "optimal", "first_failures": {check: n}}}}.
    """
    return brief_text(configuration, knobs, [failure_lines(breakdown)])


def proposal_text(configuration: Mapping[str, Mapping[str, Any]], knobs: Sequence[Knob]) -> str:
    """A configuration as a compact proposal, the way a teacher would answer."""
    entries = [f'"{group}":[ ' + " , ".join(_words(values, knobs)) + " ]" for group, values in configuration.items()]
    return "{ " + " , ".join(entries) + " }"


def read_compact(data: Mapping[str, Any], knobs: Sequence[Knob]) -> dict[str, dict[str, Any]] | None:
    """A compact proposal (the JSON object already read) as a configuration's JSON.

    None if the object is not in the compact form (no group has a list). A group with another number of values keeps those it
    has. A value that is not a number is left unchanged, for Project to refuse by name.
    """
    lists = {str(group): values for group, values in data.items() if isinstance(values, list)}
    if not lists:
        return None
    return {
        group: {knob.name: _value(knob, value) for knob, value in zip(knobs, values, strict=False)}
        for group, values in lists.items()
    }


def _value(knob: Knob, value: Any) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and -1e9 < value < 1e9):
        return value
    return value / 100 if knob.form == "percent" else knob.low + value / 100 * (knob.high - knob.low)
