"""What plugins must have and may return, kind by kind: the part of `hookspecs` that is checked at every call.

`t2t_core.testing` checks far more, once, for plugin authors. The checks here keep a run from continuing with nonsense.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_core.records import (
    AgentTurn,
    Cell,
    InstanceSet,
    Knob,
    Message,
    Metric,
    Option,
    Place,
    Projection,
    Proposal,
    Tool,
    TrainingResult,
    Verdict,
)

Complaint = str | None
Check = Callable[[Any], Complaint]


def _a(*kinds: type) -> Check:
    names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
    return lambda value: None if isinstance(value, kinds) else f"which is no {names}"


def _texts(value: Any) -> Complaint:
    good = isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(v, str) for v in value)
    return None if good else "which is no list of texts"


def _many(kind: type) -> Check:
    def check(value: Any) -> Complaint:
        good = isinstance(value, Sequence) and all(isinstance(v, kind) for v in value)
        return None if good else f"which is no list of {kind.__name__}"

    return check


def _record(value: Any) -> Complaint:
    """An instance or a configuration: it converts to a JSON object."""
    if not callable(getattr(value, "to_dict", None)):
        return "which has no to_dict()"
    return _facts(value.to_dict())


def _instances(value: Any) -> Complaint:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return "which holds no instance"
    for instance in value:
        if not isinstance(getattr(instance, "id", None), str) or not callable(getattr(instance, "to_dict", None)):
            return f"which holds {ascii(instance)[:60]}: an instance has an id and to_dict()"
    return None


def _facts(value: Any) -> Complaint:
    if not isinstance(value, Mapping):
        return "which is no mapping"
    try:
        json.dumps(value if isinstance(value, dict) else dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return f"which is not JSON: {str(error)[:100]}"
    return None


def _yes_or_no(value: Any) -> Complaint:
    return None if isinstance(value, bool) else "which is neither True nor False"


def _number_from_one(value: Any) -> Complaint:
    return None if type(value) is int and value >= 1 else "which is no whole number from 1"


def _text_by_name(value: Any) -> Complaint:
    good = isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair)
    return None if good else "which is no mapping of names to texts"


def _moves(value: Any) -> Complaint:
    good = isinstance(value, Mapping) and all(isinstance(moves, Mapping) for moves in value.values())
    good = good and all(type(move) is int and abs(move) == 1 for moves in value.values() for move in moves.values())
    return None if good else "which is no mapping of checks to knobs that move by 1 or -1"


def _range(value: Any) -> Complaint:
    good = isinstance(value, Sequence) and len(value) == 2 and all(map(_finite, value)) and value[0] < value[1]
    return None if good else "which is no (lowest, highest)"


def _weights(value: Any) -> Complaint:
    good = isinstance(value, Mapping) and value and all(isinstance(name, str) and _finite(w) for name, w in value.items())
    return None if good else "which is no mapping of names to weights"


def _optional(value: Any) -> Complaint:
    """An optional attribute: facts by name."""
    return None if value is None else _facts(value)


def _path(value: Any) -> Complaint:
    """An attribute that need not be there: a path."""
    return None if value is None or isinstance(value, str | os.PathLike) else "which is no path"


def _flag(value: Any) -> Complaint:
    """An attribute that need not be there: yes or no."""
    return None if value is None else _yes_or_no(value)


def _described(value: Any) -> Complaint:
    """What a policy says of itself: facts, of which the core reads some."""
    if _facts(value):
        return _facts(value)
    for name in ("prompt_format", "model", "caveat"):
        if not isinstance(value.get(name), str | None):
            return f"whose {name} is no text"
    return None if value.get("brief", "prose") in ("prose", "compact") else 'whose brief is neither "prose" nor "compact"'


def _breakdown(value: Any) -> Complaint:
    def counts(row: Any) -> bool:
        return isinstance(row, Mapping) and all(type(row.get(n)) is int and row[n] >= 0 for n in ("answers", "valid", "optimal"))

    if _facts(value):
        return _facts(value)
    groups = value.get("groups")
    good = isinstance(groups, Mapping) and counts(value.get("total")) and all(map(counts, groups.values()))
    return None if good else "which lacks the counts answers, valid and optimal of total or of a group"


def _terms(value: Any) -> Complaint:
    good = isinstance(value, Mapping) and all(_finite(term) for term in value.values())
    return None if good else "whose terms are no finite numbers"


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _hashable(value: Any) -> Complaint:
    try:
        hash(value)
    except TypeError:
        return "which cannot be counted, because it is not hashable"
    return None


def _anything(value: Any) -> Complaint:
    return None


def _result(value: Any) -> Complaint:
    if not isinstance(value, TrainingResult):
        return "not a TrainingResult"
    if value.checkpoint is not None and not isinstance(value.checkpoint, Path):
        return f"whose checkpoint is {ascii(value.checkpoint)[:200]}, not a path"
    if not all(type(count) is int and count >= 0 for count in (value.samples, value.updates, value.tokens)):
        return "whose samples, updates or tokens are no counts"
    return None if isinstance(value.metrics, Mapping) else "whose metrics are no mapping"


METHODS: Mapping[str, Mapping[str, Check]] = {
    "policy": {"respond": _a(Iterable), "describe": _described},
    "designer": {"propose": _a(Proposal)},
    "context module": {"render": _a(str, type(None))},
    "trainer": {"train": _result},
    "pool": {"start": _anything, "stop": _anything},
    "job agent": {"act": _a(AgentTurn), "describe": _facts},
    "tracker": {"begin": _a(str, type(None)), "figures": _anything, "event": _anything, "end": _anything},
    "testbed": {
        "options": _many(Option),
        "knobs": _many(Knob),
        "cells": _many(Cell),
        "cell_of": _a(str, type(None)),
        "request": _anything,
        "read_configuration": _record,
        "random_configuration": _record,
        "project": _a(Projection),
        "group_of": _a(str, type(None)),
        "generate": _instances,
        "read_instance": _record,
        "unlabelled": _anything,
        "identity": _a(bytes),
        "place": _a(Place),
        "set_names": _texts,
        "load_set": _a(InstanceSet),
        "protected_sets": _texts,
        "twin": _a(InstanceSet),
        "shared": _facts,
        "reported": _a(Sequence),
        "reported_arms": _a(Sequence),
        "prompt": _a(str),
        "reply": _many(Message),
        "rollout": _anything,
        "verify": _a(Verdict),
        "reward_terms": _terms,
        "breakdown": _breakdown,
    },
}
_OPTIONAL_METHODS: Mapping[str, Mapping[str, Check]] = {
    "policy": {"notes": _texts},
    "job agent": {"act_all": _many(AgentTurn)},
    "testbed": {"plan": _hashable, "picture": _a(str)},
}
_ATTRIBUTES: Mapping[str, Mapping[str, Check]] = {
    "policy": {"checkpoint": _path},
    "designer": {"settings": _optional, "asks_own_policy": _flag},
    "context module": {"title": _a(str), "settings": _optional, "request": _a(str, type(None))},
    "trainer": {"defaults": _optional, "constants": _optional, "facts": _optional},
    "task family": {
        **dict.fromkeys(("name", "title", "description", "testbed", "teacher"), _a(str)),
        **dict.fromkeys(("bases", "bounds", "start", "fixed"), _a(Mapping)),
        "held_out": _yes_or_no,
    },
    "testbed": {
        "name": _a(str),
        "title": _a(str),
        "group": _a(str),
        "guideline": _a(str),
        "metrics": _many(Metric),
        "checks": _texts,
        "groups": _texts,
        "prompt_formats": lambda value: _texts(value) or (None if value else "which names no prompt format"),
        "sameness": _a(str),
        "reader": _number_from_one,
        "turns": _number_from_one,
        "memoryless": _texts,
        "tools": _many(Tool),
        "rubric": _weights,
        "reward_range": _range,
        "length_term": _yes_or_no,
        "groups_rise": _yes_or_no,
        "joint_cells": _yes_or_no,
        "remedies": _moves,
        "preset": _a(str),
        "baselines": _texts,
        "commands": _text_by_name,
        "file_formats": _text_by_name,
        "observed": _text_by_name,
        "constants": _optional,
    },
}


def missing(kind: str, made: Any) -> Complaint:
    """What an object lacks that a factory of this kind must make; None if it is complete. A testbed may be partial (a bench
    needs no generator): what it lacks is reported when something asks for it."""
    if kind == "context module" and isinstance(made, str):
        return None  # a variant: the modules it stands for
    if kind == "preset":
        return None if isinstance(made, str | os.PathLike) else "which is no path"
    part = kind == "testbed" and any(hasattr(made, name) for name in METHODS[kind])
    for name in METHODS.get(kind, {}):
        if not (part or callable(getattr(made, name, None))):
            return f"which has no {name}()"
    for name, check in _ATTRIBUTES.get(kind, {}).items():
        value = getattr(made, name, None)
        complaint = None if part and value is None else check(value)
        if complaint:
            return f"whose {name} is {ascii(value)[:60]}, {complaint}"
    return None


def strange(kind: str, made: Any) -> Complaint:
    """What is wrong with the first attribute that is not of its kind; None if all are."""
    for name, check in _ATTRIBUTES.get(kind, {}).items():
        if complaint := check(getattr(made, name, None)):
            return f"its {name} is {ascii(getattr(made, name, None))[:60]}, {complaint}"
    return None


def wrong(kind: str, method: str, value: Any) -> Complaint:
    """What is wrong with a value that a method of this kind returned; None if it is fine, or not checked."""
    check = METHODS.get(kind, {}).get(method) or _OPTIONAL_METHODS.get(kind, {}).get(method)
    return check(value) if check else None
