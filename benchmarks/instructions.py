"""Where the time goes, in instructions: callgrind for solve, generate and the vector environment's step.

    python benchmarks/instructions.py        # needs valgrind; some minutes

Callgrind counts only the instructions of the native core (from its Python entry point on), so the figures do not depend on what
else the machine does. For each piece of work it shows the instructions per unit, the functions that take most of them, and the
floor: the bytes that a unit must at least read and write (its inputs and outputs, once), and the instructions it takes to move
them 8 bytes at a time. Each run writes one JSON file to benchmarks/results/.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import ROOMS, ROOT, arguments, write

SOLVE = """
import numpy as np
from t2t_envs.frozen_lake import read_instances
from t2t_envs.frozen_lake.solver import flat_arrays, native_core
instances = list(read_instances({path!r}))[:{units}]
native_core().solve_many(*flat_arrays(instances), np.full({units}, 1, np.uint8), 2_000_000, False)
"""
GENERATE = """
from t2t_envs.frozen_lake.generation.strata import Stratum, Quota
from t2t_envs.frozen_lake.generation.sampling import draw_stratum
draw_stratum(Stratum({size}, {holes}, {agents}, {objective!r}), 1, Quota({units} // 2, {units} // 2))
"""
STEP = """
import gymnasium, t2t_envs
envs = gymnasium.make_vec("MAPFFrozenLake-v0", num_envs=256, vectorization_mode="vector_entry_point", size=10, num_agents=5,
                          on_hole="block", on_conflict="block")
envs.action_space.seed(0)
envs.reset(seed=0)
for _ in range({units} // 256): envs.step(envs.action_space.sample())
"""


@dataclass(frozen=True)
class Work:
    name: str
    code: str
    functions: tuple[str, ...]  # counted from the entry into one of these to its return
    units: int
    floor_bytes: int  # per unit
    of_what: str


def solving(row: str, cells: int, agents: int, units: int) -> Work:
    path = str(ROOT / "benchmarks" / "instances" / f"{row}.jsonl")
    code = SOLVE.format(path=path, units=units)
    return Work(f"solve {row}", code, ("*solve_many*",), units, cells + 4 * agents + 13,
                "the map, starts and goals in; status, cost, flag and nodes out")  # fmt: skip


def generating(objective: str, agents: int, size: int, holes: int, units: int) -> Work:
    code = GENERATE.format(size=size, holes=holes, agents=agents, objective=objective, units=units)
    return Work(f"generate {objective}, {agents} agents, {size}x{size}", code, ("*sample_cell*",), units,
                2 * holes + 4 * agents + 9, "holes, starts, goals, optima and flag out")  # fmt: skip


WORKS = (
    solving("5agents_10x10_20holes", 100, 5, 200),
    solving("5agents_5x5_8holes", 25, 5, 60),
    generating("makespan", 2, 8, 13, 2000),
    generating("makespan", 5, 8, 13, 400),
    generating("sum_of_costs", 5, 8, 13, 100),
    Work("vector step, 10x10, 5 agents, blocking", STEP.format(units=25_600), ("*step_vector*", "*observe_vector*"), 25_600,
         5 * 8 + 2 * 100 + 2 * 5 * 2 * 4 + 5 * 2 + 8 + 2, "actions, map and state in; map, cells, step and flags out"),
)  # fmt: skip


def count(work: Work, folder: Path) -> dict[str, Any]:
    out = folder / "callgrind.out"
    toggles = [f"--toggle-collect={name}" for name in work.functions]
    command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", *toggles, f"--callgrind-out-file={out}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOMS)}
    subprocess.run([*command, sys.executable, "-c", work.code], check=True, capture_output=True, env=environment)
    report = subprocess.run(["callgrind_annotate", str(out)], check=True, capture_output=True, text=True).stdout
    total = int(re.search(r"([\d,]+) \([\d.]+%\)  PROGRAM TOTALS", report)[1].replace(",", ""))  # type: ignore[index]
    shares: dict[str, float] = {}
    for instructions, name in re.findall(r"^ *([\d,]+) \([ \d.]+%\)  [^:\n]*:(.+?)(?: \[.*)?$", report, re.MULTILINE):
        function = short(name)
        shares[function] = shares.get(function, 0.0) + int(instructions.replace(",", "")) / total
    most = sorted(shares.items(), key=lambda item: -item[1])[:8]
    moves = work.floor_bytes / 8
    return {
        "work": work.name,
        "units": work.units,
        "instructions_per_unit": total / work.units,
        "floor_bytes": work.floor_bytes,
        "floor_of": work.of_what,
        "times_the_floor": total / work.units / moves,
        "shares": dict(most),
    }


def short(name: str) -> str:
    """A function without its arguments and template arguments."""
    name = name.replace("t2t::", "").replace("(anonymous namespace)::", "")
    while name != (shorter := re.sub(r"<[^<>]*>|\([^()]*\)", "", name)):
        name = shorter
    return name.replace("::{lambda", "").split("::operator")[0].split(" const")[0].strip().split(" ")[-1]


def main() -> None:
    given = arguments(__doc__, repeats=1).parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed")
    rows = []
    for work in WORKS:
        with tempfile.TemporaryDirectory() as folder:
            row = count(work, Path(folder))
        rows.append(row)
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in row["shares"].items() if share >= 0.02)
        print(f"{row['work']}: {row['instructions_per_unit']:,.0f} instructions per unit; floor {row['floor_bytes']} bytes "
              f"({row['floor_of']}), {row['times_the_floor']:,.0f} times the instructions to move them\n  {shares}")  # fmt: skip
    write("instructions", given.out, {"rows": rows})


if __name__ == "__main__":
    main()
