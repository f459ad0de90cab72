"""Figures that the talk's course reports, carried in `reported_results.json`, as rows that stand beside measured ones.

They are of its authors' games, so they never get an interval of ours.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

_METRICS = ("win", "draw", "loss")


@functools.cache
def data() -> dict[str, Any]:
    """The carried file."""
    text = resources.files("t2t_envs.tictactoe").joinpath("reported_results.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def reported_rows(set_name: str) -> list[dict[str, Any]]:
    """The reported rows of a frozen set: totals only, for it is not said who moved first in how many games."""
    return [
        {
            "policy": policy,
            "source": data()["source"],
            "note": data()["note"],
            "cells": {},
            "total": {metric: {"value": float(share)} for metric, share in zip(_METRICS, sets[set_name], strict=True)},
        }
        for policy, sets in data()["rows"].items()
        if set_name in sets
    ]
