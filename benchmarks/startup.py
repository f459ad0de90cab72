"""How fast the suite starts: `t2t --help` and `import t2t_envs` in fresh interpreters, beside a bare Python and Gymnasium.

    python benchmarks/startup.py

The sides take turns `--repeats` times on one pinned core, after one round that warms the disk cache. Seconds are wall time; the
JSON has processor time too. The benchmark also checks what was imported on the way: torch must not be. Each run writes one JSON
file to benchmarks/results/.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from typing import Any

from measuring import ROOMS, arguments, pin, spread, text, write

HELP = "import sys; sys.argv = ['t2t', '--help']; from t2t_core.cli import main; main()"
SIDES = {  # name: (code, goal in seconds)
    "t2t --help": (HELP, 0.25),
    "import t2t_envs": ("import t2t_envs", 0.5),
    "import t2t_envs; gymnasium.make of ours": ("import gymnasium, t2t_envs; gymnasium.make('MAPFFrozenLake-v0')", None),
    "import gymnasium (the peer)": ("import gymnasium", None),
    "an empty program (the floor)": ("pass", None),
}
HEAVY = ("torch", "transformers", "trl", "vllm")


def run(code: str) -> tuple[float, float]:
    """The wall and processor seconds of a fresh interpreter."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=_environment())
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def heavy(code: str) -> list[str]:
    """Which of the heavy packages the code imports."""
    report = f"import atexit, sys; atexit.register(lambda: print('|', *({set(HEAVY)!r} & sys.modules.keys())))\n"
    done = subprocess.run([sys.executable, "-c", report + code], check=True, capture_output=True, text=True, env=_environment())
    return done.stdout.rsplit("|", 1)[1].split()


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(ROOMS)}


def main() -> None:
    given = arguments(__doc__, repeats=11).parse_args()
    pin()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in SIDES}
    for round_ in range(given.repeats + 1):
        for name, (code, _) in SIDES.items():
            taken = run(code)
            if round_:
                times[name].append(taken)
    floor = [wall for wall, _ in times["an empty program (the floor)"]]
    rows: list[dict[str, Any]] = []
    for name, (code, goal) in SIDES.items():
        wall = [w for w, _ in times[name]]
        row = {
            "side": name,
            "goal_s": goal,
            "wall_s": spread(wall),
            "processor_s": spread([p for _, p in times[name]]),
            "over_the_floor": spread([w / f for w, f in zip(wall, floor, strict=True)]),
            "heavy_packages_imported": heavy(code),
        }
        rows.append(row)
        verdict = "" if goal is None else f", goal {goal}: {'met' if row['wall_s']['median'] <= goal else 'MISSED'}"
        print(f"{name:>40}: {text(row['wall_s'], 3)} s{verdict}; of it {row['processor_s']['median']:.3f} s on the processor; "
              f"over the floor {text(row['over_the_floor'], 1)}; "
              f"heavy packages: {', '.join(row['heavy_packages_imported']) or 'none'}")  # fmt: skip
    write("startup", given.out, {"rows": rows})


if __name__ == "__main__":
    main()
