"""Keeps the small files of a sweep, without checkpoints, instances and raw answers, so that its figures can be looked up and
recomputed.

    python studies/collect.py SWEEP FOLDER      copy, and write FOLDER/outcomes.json
    python studies/collect.py --runs FOLDER RUN...   of single runs, FOLDER/outcomes.json alone: run -> set -> ...
    python studies/collect.py --check FOLDER    compute the differences anew from outcomes.json; fails where sweep.json differs

sweep.json, sweep.md, *.svg     the result
outcomes.json                   arm -> seed -> set -> metric -> map size -> one digit per instance, in the set's order
seed_1/rule_F/                  an arm: run.json, summary.json, summary.md; metrics.jsonl, every update; designs.jsonl, every
                                design with what the designer saw, its reply word for word, and every correction
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from t2t_core.evaluation.stats import seeded_difference
from t2t_core.loop.sweep import BASE, arm_name
from t2t_core.plugins import installed
from t2t_core.run.closing_bench import measured
from t2t_core.run.round_files import finished_rounds, open_run
from t2t_core.store import folders, jsonlines, schema
from t2t_core.store.paths import SafePath

KEPT = ("run.json", "summary.json", "summary.md")


def collect(source: Path, folder: Path) -> None:
    sweep = SafePath(source)
    result = folders.read_json(sweep / "sweep.json")
    pictures = [entry.name for entry in sweep.entries() if entry.name.endswith(".svg")]
    for name in ("run.json", "sweep.json", "sweep.md", *pictures):
        folders.write_atomic(folder / name, folders.read_bytes(sweep / name))
    for seed in (entry for entry in sweep.entries() if entry.name.startswith("seed_")):
        for arm in seed.entries():
            _arm(arm, folder / seed.name / arm.name)
    outcomes: dict[str, dict[str, Any]] = {}
    for row in result["arms"]:
        for seed in row["seeds"]:
            outcomes.setdefault(row["arm"], {})[str(seed)] = _solved(sweep / f"seed_{seed}", row["arm"])
    folders.write_json(folder / "outcomes.json", outcomes)


def _arm(arm: SafePath, folder: Path) -> None:
    for name in KEPT:
        folders.write_atomic(folder / name, folders.read_bytes(arm / name))
    metrics, designs = [], []
    for files in finished_rounds(arm):
        if files.index or arm.name == "shared" or not (arm.parent / "shared").is_dir():  # else its round 0 is the shared one
            lines = jsonlines.read(files.metrics) if files.metrics.exists() else ()
            metrics += [{"round": files.index, **line.value} for line in lines]
        if files.projection.exists():
            parts = {"proposal": schema.plain(files.read_proposal()), "projection": schema.plain(files.read_projection())}
            designs.append({"after_round": files.index, "saw": folders.read_text(files.context), **parts})
    for name, rows in (("metrics.jsonl", metrics), ("designs.jsonl", designs)):
        if rows:
            folders.write_atomic(folder / name, "".join(jsonlines.dumps(row) + "\n" for row in rows))


def _solved(seed: SafePath, arm: str) -> dict[str, Any]:
    return _measured(_base(seed), "base") if arm == BASE else _measured(seed / arm_name(*arm.split(" ", 1)), "designed")


def _measured(folder: SafePath, name: str) -> dict[str, Any]:
    _, experiment = open_run(folder)
    outcomes = measured(experiment, installed().testbeds.make(experiment.testbed), folder / "bench", name)
    return {
        set_name: {m: {c: "".join(f"{v:.0f}" for v in by_id.values()) for c, by_id in cs.items()} for m, cs in metrics.items()}
        for set_name, metrics in outcomes.items()
    }


def _base(seed: SafePath) -> SafePath:
    """Where the untrained policy was measured: beside the shared round 0, or in one of the arms that share none."""
    arms = [seed / "shared"] if (seed / "shared").is_dir() else list(seed.entries())
    return next(arm for arm in arms if (arm / "bench" / "base").is_dir())


def differences(outcomes: Mapping[str, Any], arm: str, against: str, set_name: str, metric: str) -> dict[str, Any]:
    """One line of the sweep's comparison, from the outcomes alone."""

    def of(seed: str) -> Iterator[list[int]]:
        ours, theirs = (outcomes[name][seed][set_name][metric] for name in (arm, against))
        return ([int(a) - int(b) for a, b in zip(ours[c], theirs[c], strict=True)] for c in ours)

    return asdict(seeded_difference([list(of(seed)) for seed in outcomes[arm]]))


def check(folder: Path) -> int:
    """How many differences were computed again. Exits where one is not what sweep.json says."""
    result, outcomes = (folders.read_json(folder / name) for name in ("sweep.json", "outcomes.json"))
    for line in result["differences"]:
        made = differences(outcomes, line["arm"], line["against"], line["set"], line["metric"])
        if not all(math.isclose(line[k], made[k], abs_tol=1e-9) for k in ("value", "low", "high")):
            sys.exit(f"{line['arm']} - {line['against']}, {line['set']}: sweep.json says {line}, the outcomes {made}")
    return len(result["differences"])


if __name__ == "__main__":
    first, second = sys.argv[1:3]
    if first == "--runs":
        runs = {f"{run.parent.name}/{run.name}": _measured(SafePath(run), "designed") for run in map(Path, sys.argv[3:])}
        folders.write_json(Path(second) / "outcomes.json", runs)
    elif first == "--check":
        print(f"{check(Path(second))} differences, each as computed anew")
    else:
        collect(Path(first), Path(second))
