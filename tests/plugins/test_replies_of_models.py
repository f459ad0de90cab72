"""Designers' replies in shapes that public models write, collected by somebody who had read only the docs: each is read as it was
meant, or is unreadable if it could mean two things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from t2t_envs.frozen_lake.testbed import make
from t2t_plugins.designers.reader import Form, read_reply

KNOBS = ("data_ratio", "hole_ratio", "wait_ratio")
IN_FORCE = {"3": dict(zip(KNOBS, (0.25018, 0.1, 0.5), strict=True)), "4": dict(zip(KNOBS, (0.74982, 0.2, 0.0), strict=True))}
SHOWN = {group: {knob: round(value, 3) for knob, value in knobs.items()} for group, knobs in IN_FORCE.items()}
FORM = Form(("3", "4"), KNOBS, make().group_of, [(IN_FORCE, SHOWN)])
KEPT = [json.loads(line) for line in (Path(__file__).parent / "replies_of_models.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("reply", KEPT, ids=lambda reply: reply["name"])
def test_what_models_write_is_read_as_kept(reply: dict[str, Any]) -> None:
    reading = read_reply(reply["text"], FORM)
    assert reading.data == reply["data"], reading.notes
