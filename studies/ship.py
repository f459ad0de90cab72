"""Puts the last checkpoints of the first seed's arms `checkpoint` and `fixed` in the package: `tiny:designed` and `tiny:control`.

python studies/ship.py SWEEP
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from t2t_baselines.tiny.policy import shipped
from t2t_core.loop.sweep import arm_name
from t2t_core.run.closing_bench import read_table
from t2t_core.run.round_files import RoundFiles, open_run
from t2t_core.store import folders
from t2t_core.store.paths import SafePath

SEED, CONTEXT = 6, "F"
SHIPPED = {"designed": "checkpoint", "control": "fixed"}


def recipe(folder: SafePath, designer: str) -> dict[str, Any]:
    """Where a checkpoint comes from and what it was measured at."""
    manifest, experiment = open_run(folder)
    environment = manifest["sessions"][-1]["environment"]
    rounds = [RoundFiles(folder, index).read_training() for index in range(experiment.rounds)]
    return {
        "what": f"a toy policy that shows the pipeline: tiny:base after {experiment.rounds} rounds of GRPO, designer {designer}",
        "command": f"t2t run --preset tiny --seed {experiment.seed} --designer {designer} --agents 3 "
        f"--set evaluation.instances={experiment.evaluation['instances']}",
        "seed": experiment.seed,
        "commit": environment["git_commit"],
        "updates": sum(r.updates for r in rounds),
        "samples": sum(r.samples for r in rounds),
        "versions": environment["packages"],
        "measured": {
            record["name"]: {"instances": record["instances"]}
            | {m: round(100 * rate["value"], 2) for m, rate in record["rows"][0]["rates"].items()}
            for record in read_table(folder / "bench" / "table.json")["sets"]
        },
    }


def main(sweep: Path) -> None:
    for shipment, designer in SHIPPED.items():
        arm, target = SafePath(sweep) / f"seed_{SEED}" / arm_name(designer, CONTEXT), shipped(shipment)
        _, experiment = open_run(arm)
        made = RoundFiles(arm, experiment.rounds - 1).checkpoint
        for file in SafePath(shipped()).entries():  # tokenizer, template and configuration are the warm-up's
            if file.name not in ("model.safetensors", "recipe.json", "metrics.jsonl"):
                folders.write_atomic(target / file.name, folders.read_bytes(file))
        for name in ("model.safetensors", "adaptive_weights.json"):
            folders.write_atomic(target / name, folders.read_bytes(made / name))
        folders.write_json(target / "recipe.json", recipe(arm, designer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
