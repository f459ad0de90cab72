"""A grid of runs over designers, contexts and seeds, each arm forked from one shared round 0 per seed, and its table.

    OUT/run.json            the grid
    OUT/seed_3/shared/      round 0 alone, which all arms of the seed share, and the bench of the untrained policy
    OUT/seed_3/rule_V6/     an arm: a run folder like any other

Every arm goes on where it stopped, so the same command continues an interrupted sweep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from t2t_core import runs
from t2t_core.conduct import conduct
from t2t_core.experiment import Experiment
from t2t_core.forks import Fork
from t2t_core.loop_progress import Reporter
from t2t_core.loop_summary import markdown, unequal

KIND = "sweep"
# The 97.5 % quantile of Student's t distribution by degrees of freedom 1..15; beyond, the one of 15 (a little too wide).
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


@dataclass(frozen=True)
class Grid:
    """What varies: every designer with every context, for every seed."""

    designers: Sequence[str]
    contexts: Sequence[str]
    seeds: Sequence[int]

    def arms(self) -> Iterator[tuple[str, str]]:
        return ((designer, context) for designer in self.designers for context in self.contexts)


def sweep(experiment: Experiment, grid: Grid, folder: Path, reporter: Reporter) -> dict[str, Any]:
    """Do or go on with the grid; the result, which is also in `sweep.json` and `sweep.md`."""
    settings = {**experiment.to_dict(), "grid": {k: list(v) for k, v in vars(grid).items()}}
    with runs.locked(folder):
        runs.open_manifest(folder, KIND, settings)
        arms: dict[str, list[dict[str, Any]]] = {}
        for seed in grid.seeds:
            shared = folder / f"seed_{seed}" / "shared"
            reporter.say(f"seed {seed}: the shared round 0")
            seeded = replace(experiment, seed=seed)
            summary = conduct(replace(seeded, rounds=1, designer="fixed"), shared, reporter, measured=["base"])
            arms.setdefault("base", []).append({"seed": seed, **summary, "rounds": []})
            for designer, context in grid.arms():
                reporter.say(f"seed {seed}: {designer}, context {context}")
                place = shared.parent / arm_name(designer, context)
                arm = replace(seeded, designer=designer, context=context)
                summary = conduct(arm, place, reporter, Fork(shared, 0, "../shared@0"), measured=["designed"])
                arms.setdefault(f"{designer} {context}", []).append({"seed": seed, **summary})
        rows = [_arm(name, summaries) for name, summaries in arms.items()]
        result = {"arms": rows, "unequal": unequal({row["arm"]: row["budget"] for row in rows if row["arm"] != "base"})}
        runs.write_json(folder / "sweep.json", result)
        runs.write_atomic(folder / "sweep.md", render(result))
        return result


def arm_name(designer: str, context: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{designer}_{context}")[:150]


def _arm(name: str, summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One arm over its seeds: mean final validation and bench rates with t intervals over seeds, and its budget."""
    figures: dict[str, list[float]] = {}
    for summary in summaries:
        for metric in ("valid", "optimal") if summary["rounds"] else ():
            figures.setdefault(f"validation {metric}", []).append(summary["rounds"][-1][metric]["value"])
        for table in (summary["bench"] or {"sets": []})["sets"]:
            for metric, rate in table["rows"][0]["rates"].items():
                figures.setdefault(f"{table['name']} {metric}", []).append(rate["value"])
    budgets = [summary["budgets"]["designed"] for summary in summaries]
    return {
        "arm": name,
        "seeds": [summary["seed"] for summary in summaries],
        "figures": {key: {"values": values, **_over_seeds(values)} for key, values in figures.items()},
        "budget": {key: sum(b[key] for b in budgets) for key in budgets[0]},
        "designs_failed": sum(d["outcome"] != "proposed" for summary in summaries for d in summary["designs"]),
    }


def _over_seeds(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and 95 % t interval over seeds; no interval for one seed."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return {"value": mean, "low": None, "high": None}
    half = (_T[min(n - 2, len(_T) - 1)]) * float(np.std(values, ddof=1)) / n**0.5
    return {"value": mean, "low": mean - half, "high": mean + half}


def render(result: Mapping[str, Any]) -> str:
    """The sweep's table as Markdown."""
    names = list(dict.fromkeys(name for arm in reversed(result["arms"]) for name in arm["figures"]))
    rows = []
    for arm in result["arms"]:
        budget = arm["budget"]
        given = [str(budget[k]) if arm["arm"] != "base" else "-" for k in ("samples", "updates", "tokens", "design_tokens")]
        rows.append(
            [
                arm["arm"],
                str(len(arm["seeds"])),
                *(_shown(arm["figures"].get(n)) for n in names),
                *given,
                str(arm["designs_failed"]),
            ]
        )
    head = ["arm", "seeds", *names, "samples", "updates", "tokens", "design tokens", "failed designs"]
    notes = [f"UNEQUAL BUDGETS, the arms do not compare: {line}" for line in result["unequal"]]
    return "\n\n".join([markdown(head, rows), "Percent; 95 % t interval over seeds.", *notes]) + "\n"


def _shown(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return "-"
    value = f"{100 * figure['value']:.1f}"
    return value if figure["low"] is None else f"{value} [{100 * figure['low']:.1f}, {100 * figure['high']:.1f}]"
