"""How many greedy answers of the toy policies change when their weights are rounded to half the bytes.

    python benchmarks/rounding.py          # about 1,375 questions of the frozen sets for each checkpoint; some minutes

The wheel would be half as large with such weights, but a committed figure holds only as long as no answer changes.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from t2t_baselines.tiny.policy import shipped
from t2t_core.evaluation.questions import Evaluation
from t2t_core.plugins import installed
from t2t_core.records import Sampling

CHECKPOINTS = ("base", "designed", "control", "weak", "2agents")
TYPES = ("float16", "bfloat16")
LEAST = 400  # questions from each set


def rounded(name: str, dtype: str, folder: Path) -> Path:
    """A copy of a checkpoint with its weights rounded to that type."""
    import torch
    from safetensors.torch import load_file, save_file

    copy = folder / f"{name}-{dtype}"
    shutil.copytree(shipped(name), copy)
    weights = load_file(shipped(name) / "model.safetensors")
    save_file({k: v.to(getattr(torch, dtype)) for k, v in weights.items()}, copy / "model.safetensors", {"format": "pt"})
    return copy


def answers(checkpoint: Path, evaluation: Evaluation) -> list[str]:
    policy = installed().policies.make(f"hf:{checkpoint},dtype=float32,threads=1")
    tasks = [evaluation.task(number) for number in range(len(evaluation))]
    responses = dict(policy.respond(tasks, Sampling(max_tokens=400)))
    return [responses[number].text for number in range(len(tasks))]


def main() -> None:
    lake = installed().testbeds.make("mapf-frozenlake")
    for name in CHECKPOINTS:
        for set_name in ("3agents", "4agents", "5agents"):
            instances = lake.load_set(set_name).instances
            evaluation = Evaluation(lake, instances[:: len(instances) // LEAST], prompt_format="compact")
            original = answers(shipped(name), evaluation)
            with tempfile.TemporaryDirectory() as folder:
                for dtype in TYPES:
                    other = answers(rounded(name, dtype, Path(folder)), evaluation)
                    changed = sum(before != after for before, after in zip(original, other, strict=True))
                    print(f"{name:>9} {set_name} {dtype:>8}: {changed:>3} of {len(original)} answers change", flush=True)


if __name__ == "__main__":
    main()
