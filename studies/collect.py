"""Keeps the small files of a sweep, without checkpoints, instances and raw answers, so that its figures can be looked up and
recomputed: what was configured, trained, proposed and corrected, and for every arm which instances it solved.

    python studies/collect.py SWEEP FOLDER      copy, and write FOLDER/outcomes.json
    python studies/collect.py --check FOLDER    compute the differences anew from outcomes.json; fails where sweep.json differs

outcomes.json: arm -> seed -> set -> metric -> map size -> one digit per instance, in the set's order.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from t2t_core import runs
from t2t_core.arms import measured
from t2t_core.plugins import installed
from t2t_core.round_files import open_run
from t2t_core.stats import seeded_difference
from t2t_core.sweeping import BASE, arm_name

KEPT = ("run.json", "summary.json", "summary.md", "table.json", "sweep.json", "sweep.md", "metrics.jsonl", "context.md")
KEPT += ("configuration.json", "generation.json", "training.json", "breakdown.json", "proposal.json", "projection.json")


def collect(sweep: Path, folder: Path) -> None:
    for path in sorted(sweep.rglob("*")):
        shared = "round_0" in path.parts and "shared" not in path.parts and path.name not in ("proposal.json", "projection.json")
        if path.name in KEPT and not shared and not path.is_symlink():
            runs.write_atomic(folder / path.relative_to(sweep), path.read_bytes())
    result = json.loads((sweep / "sweep.json").read_text())
    outcomes: dict[str, dict[str, Any]] = {}
    for row in result["arms"]:
        for seed in row["seeds"]:
            outcomes.setdefault(row["arm"], {})[str(seed)] = _solved(sweep / f"seed_{seed}", row["arm"])
    runs.write_json(folder / "outcomes.json", outcomes)


def _solved(seed: Path, arm: str) -> dict[str, Any]:
    place, name = (seed / "shared", "base") if arm == BASE else (seed / arm_name(*arm.split(" ", 1)), "designed")
    _, experiment = open_run(place)
    found = measured(experiment, installed().testbeds.make(experiment.testbed), place / "bench", name)
    return {
        chosen: {m: {c: "".join(f"{v:.0f}" for v in by_id.values()) for c, by_id in cs.items()} for m, cs in metrics.items()}
        for chosen, metrics in found.items()
    }


def differences(outcomes: Mapping[str, Any], arm: str, against: str, chosen: str, metric: str) -> dict[str, Any]:
    """One line of the sweep's comparison, from the outcomes alone."""

    def of(seed: str) -> Iterator[list[int]]:
        ours, theirs = (outcomes[name][seed][chosen][metric] for name in (arm, against))
        return ([int(a) - int(b) for a, b in zip(ours[c], theirs[c], strict=True)] for c in ours)

    return asdict(seeded_difference([list(of(seed)) for seed in outcomes[arm]]))


def check(folder: Path) -> int:
    """How many differences were computed anew. Exits where one is not what sweep.json says."""
    result, outcomes = (json.loads((folder / name).read_text()) for name in ("sweep.json", "outcomes.json"))
    for line in result["differences"]:
        made = differences(outcomes, line["arm"], line["against"], line["set"], line["metric"])
        if not all(math.isclose(line[k], made[k], abs_tol=1e-9) for k in ("value", "low", "high")):
            sys.exit(f"{line['arm']} - {line['against']}, {line['set']}: sweep.json says {line}, the outcomes {made}")
    return len(result["differences"])


if __name__ == "__main__":
    first, second = sys.argv[1:3]
    if first == "--check":
        print(f"{check(Path(second))} differences, each as computed anew")
    else:
        collect(Path(first), Path(second))
