"""Figures that the talk's course reports, stored in `reported_results.json`, as rows to show beside measured ones.

They come from the authors' own games, so they never get an interval of ours.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

_METRICS = ("win", "draw", "loss")


@functools.cache
def data() -> dict[str, Any]:
    """The content of the stored file."""
    text = resources.files("t2t_envs.tictactoe").joinpath("reported_results.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def reported_rows(set_name: str) -> list[dict[str, Any]]:
    """The reported rows of a frozen set: totals only, because the source does not say who moved first in how many games."""
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
