"""Figures that the paper reports, stored in `reported_results.json`, as rows to show beside measured ones.

The authors measured them on their own instances, which are not public; ours follow the same distribution as far as the paper
describes it. So we never give them a confidence interval. If the printed total and the mean of a row's own cells disagree by
more than rounding, both are shown.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

_ARMS: dict[str, dict[str, tuple[str, str]]] = {  # per ablation of the file: the arm of a sweep that each row belongs to
    "designer": {"untrained base": ("designer", "base"), "current checkpoint": ("designer", "checkpoint")},
    "training_details": {
        "full RL details": ("context", "F,G,H:no_round_0,T:full"),
        "bookkeeping only": ("context", "F,G,H:no_round_0,T:bookkeeping"),
    },
}
_ROUNDING = 0.0101  # printed to two decimals: each cell and the sum may be off by half of the last digit


@functools.cache
def data() -> dict[str, Any]:
    """The contents of the file."""
    text = resources.files("t2t_envs.frozen_lake").joinpath("reported_results.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def reported_rows(set_name: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The reported rows of a frozen set such as "3agents", with cells under the columns of the same size; empty for other
    sets."""
    key = re.fullmatch(r"([0-9]{1,2})agents", set_name)
    table = data()["sets"].get(key[1]) if key else None
    if table is None:
        return []
    sizes = {re.findall(r"[0-9]+", column)[0]: column for column in columns if re.search(r"[0-9]", column)}
    return [_row(policy, printed, sizes) for policy, printed in table["rows"].items()]


def reported_arms(set_name: str) -> list[dict[str, Any]]:
    """The paper's ablations on a frozen set such as "3agents": the designer, and what the context says about the training."""
    key = re.fullmatch(r"([0-9]{1,2})agents", set_name)
    return [
        {_ARMS[name][arm][0]: _ARMS[name][arm][1], "arm": arm, "source": data()["source"], "total": printed[key[1]]}
        for name, arms in data()["ablations"].items()
        for arm, printed in arms.items()
        if key and key[1] in printed
    ]


def _row(policy: str, printed: dict[str, Any], sizes: dict[str, str]) -> dict[str, Any]:
    metrics = [name for name in printed if name != "sum"]
    cells: dict[str, dict[str, Any]] = {}
    for name in metrics:
        for size, value in printed[name].items():
            if size in sizes:
                cells.setdefault(sizes[size], {})[name] = {"value": value}
    total = {name: {"value": printed["sum"][name]} for name in metrics if name in printed["sum"]}
    for name, figure in total.items():
        mean = round(sum(printed[name].values()) / len(printed[name]), 2)
        if abs(mean - figure["value"]) > _ROUNDING:
            figure["mean_of_cells"] = mean
    return {"policy": policy, "source": data()["source"], "cells": cells, "total": total}
