"""Jobs drawn at random within a family's bounds, and the turn that submits one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from t2t_core.records import AgentTurn, ToolCall
from t2t_core.seeding import Stream
from t2t_jobs.family import Family, Value, nested, path_of
from t2t_jobs.job import FILE, document, make_job
from t2t_jobs.tools import SUBMIT

_TRIES = 1000  # attempts to draw a job within the budget


def submit(changes: Mapping[str, Any], why: str) -> AgentTurn:
    """The turn that writes a job with these values, by dotted key, and submits it."""
    written = json.dumps({"path": FILE, "content": document(nested(changes))})
    return AgentTurn(why, (ToolCall("write", "write_file", written), ToolCall("submit", SUBMIT, "{}")))


def draw(family: Family, stream: Stream) -> dict[str, Value]:
    """Draw a value for everything that may be edited, the way its bound says; shares are scaled to sum to 1. A job that exceeds
    the budget of conversations is drawn again; if none fits, the last one is returned."""
    changes: dict[str, Value] = {}
    for _ in range(_TRIES):
        changes = with_shares({key: bound.draw(stream) for key, bound in family.bounds.items()}, family)
        if conversations(family, changes) <= family.budget.conversations:
            break
    return changes


def conversations(family: Family, changes: Mapping[str, Any]) -> int:
    """How many conversations the job with these values trains on."""
    return make_job(family, changes).conversations


def with_shares(changes: Mapping[str, Value], family: Family) -> dict[str, Value]:
    """The same values with the groups' shares scaled to sum to 1, rounded to four digits."""
    keys = share_keys(family)
    drawn = [max(float(changes[key]), 1e-3) for key in keys if key in changes]
    if len(drawn) < len(keys) or not keys:
        return dict(changes)
    scaled = [round(share / sum(drawn), 4) for share in drawn]
    largest = scaled.index(max(scaled))
    scaled[largest] = round(1 - sum(scaled[:largest] + scaled[largest + 1 :]), 4)
    return {**changes, **dict(zip(keys, scaled, strict=True))}


def share_keys(family: Family) -> list[str]:
    """The keys of the groups' shares that may be edited."""
    world = family.world()
    options = {name: value for name, value in family.start["generation"].items() if name != "samples"}
    request = world.request(int(family.start["generation"]["samples"]), **options)
    shares = {knob.name for knob in world.knobs(request) if knob.role == "share"}
    paths = {key: path_of(key) for key in family.bounds}
    return [key for key, path in paths.items() if len(path) == 3 and path[0] == "configuration" and path[2] in shares]
