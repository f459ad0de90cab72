"""How fast labelled instances are made, and whether the sampler draws what plain rejection draws.

    python benchmarks/generate.py                  # some minutes
    python benchmarks/generate.py --count 400      # fewer instances per row

Rows: sizes 3-10, hole ratio 0.2, wait ratio 0.5, exact labels, 2 to 5 agents, both objectives; each row is run `--repeats` times
with different seeds on one pinned core, rows taking turns. Rates are instances per second of processor time, from the Python
call `generate` to finished `Instance` objects. Undecided candidates count as failure. The goals are this suite's own; its
first prototype made 9.5-12.8 k (2 agents, makespan) down to 0.8-1.1 k (5 agents, sum of costs) on such a core.
The chi-square compares the sampler with plain rejection in Python (whole instance drawn with `random`, then labelled): a
two-sample test over classes of instances, per kind. One JSON per run goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / room) for room in ("", "envs")]

from t2t_core import runs  # noqa: E402 - the rooms are found from a plain checkout
from t2t_core.seeding import key  # noqa: E402
from t2t_envs.frozen_lake import Configuration, Instance, generate, solver  # noqa: E402
from t2t_envs.frozen_lake.sampling import GridCell, Wanted, draw_cell  # noqa: E402

GOALS = {
    ("makespan", 2): 30_000,
    ("makespan", 3): 25_000,
    ("makespan", 4): 18_000,
    ("makespan", 5): 10_000,
    ("sum_of_costs", 2): 25_000,
    ("sum_of_costs", 3): 12_000,
    ("sum_of_costs", 4): 3_000,
    ("sum_of_costs", 5): 2_000,
}
CELLS = ((3, 4, 2), (4, 3, 3), (5, 8, 2))  # size, holes, agents of the chi-square


def rate(objective: str, agents: int, count: int, seed: int) -> tuple[float, int]:
    """Instances per second of processor time, and undecided candidates."""
    begin = time.process_time()
    instances = generate(Configuration.uniform(0.2, 0.5), count, agents, seed, objective)
    return count / (time.process_time() - begin), instances.report.undecided


def speed(count: int, repeats: int) -> list[dict[str, Any]]:
    rates: dict[tuple[str, int], list[float]] = {row: [] for row in GOALS}
    undecided: Counter[tuple[str, int]] = Counter()
    for seed in range(repeats):
        for row in GOALS:
            value, left = rate(*row, count, seed)
            rates[row].append(value)
            undecided[row] += left
    return [
        {
            "objective": objective,
            "agents": agents,
            "goal": goal,
            "median": statistics.median(rates[objective, agents]),
            "all": rates[objective, agents],
            "undecided": undecided[objective, agents],
        }
        for (objective, agents), goal in GOALS.items()
    ]


def plain_rejection(cell: GridCell, source: random.Random, count: int) -> list[Instance]:
    """`count` solvable instances, as they come: shuffle all cells, cut holes, starts and goals off, throw away what is none."""
    at = [divmod(c, cell.size) for c in range(cell.size**2)]
    found: list[Instance] = []
    while len(found) < count:
        batch = []
        for _ in range(count):
            source.shuffle(at)
            free = at[cell.holes :]
            starts, goals = source.sample(free, cell.num_agents), source.sample(free, cell.num_agents)
            if all(s != g for s, g in zip(starts, goals, strict=True)):
                batch.append(Instance(cell.size, at[: cell.holes], starts, goals, cell.objective))
        labels = solver.solve_many(batch, wait=True)
        found += [
            Instance.from_dict(x.to_dict() | {"requires_wait": label.requires_wait, f"optimal_{cell.objective}": label.cost})
            for x, label in zip(batch, labels, strict=True)
            if label.status == "solved"
        ]
    return found[:count]


def two_sample(ours: Counter[Any], theirs: Counter[Any]) -> tuple[float, int]:
    """The chi-square statistic of two samples over classes, and its degrees of freedom; rare classes are pooled."""
    pooled: list[tuple[int, int]] = []
    rest = [0, 0]
    for name in ours | theirs:
        if ours[name] + theirs[name] >= 10:
            pooled.append((ours[name], theirs[name]))
        else:
            rest = [rest[0] + ours[name], rest[1] + theirs[name]]
    if sum(rest) >= 10:
        pooled.append((rest[0], rest[1]))
    a, b = sum(x for x, _ in pooled), sum(y for _, y in pooled)
    statistic = sum((x * math.sqrt(b / a) - y * math.sqrt(a / b)) ** 2 / (x + y) for x, y in pooled)
    return statistic, len(pooled) - 1


def form(instance: Instance) -> Any:
    return instance.canonical()


def shape(instance: Instance) -> Any:
    """Classes for grids with too many forms: the optimum, the sum of the agents' distances, holes on the border."""
    border = sum(r in (0, instance.size - 1) or c in (0, instance.size - 1) for r, c in instance.holes)
    pairs = zip(instance.starts, instance.goals, strict=True)
    return instance.optimum, sum(abs(a - x) + abs(b - y) for (a, b), (x, y) in pairs), border


def chi_squares(count: int) -> list[dict[str, Any]]:
    rows = []
    for size, holes, agents in CELLS:
        for objective in ("makespan", "sum_of_costs"):
            cell = GridCell(size, holes, agents, objective)
            plain = plain_rejection(cell, random.Random(size), count)
            classes: Callable[[Instance], Any] = form if size == 3 else shape
            for wait in (False, True):
                theirs = [x for x in plain if x.requires_wait is wait]
                wanted = Wanted(wait=len(theirs) if wait else 0, wait_free=0 if wait else len(theirs), distinct=False)
                ours = draw_cell(cell, key(size, "chi-square"), wanted).instances
                statistic, freedom = two_sample(Counter(map(classes, ours)), Counter(map(classes, theirs)))
                z = (statistic - freedom) / math.sqrt(2 * freedom) if freedom else 0.0
                rows.append({"size": size, "holes": holes, "agents": agents, "objective": objective, "wait": wait,
                             "instances": len(theirs), "statistic": statistic, "freedom": freedom, "z": z})  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--plain", type=int, default=20_000, help="instances per cell of the chi-square")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = speed(given.count, given.repeats)
    for row in rows:
        spread = f"{min(row['all']):,.0f} to {max(row['all']):,.0f}"
        print(f"{row['objective']:>12} {row['agents']} agents: {row['median']:>9,.0f} /s ({spread}), goal {row['goal']:,}, "
              f"undecided {row['undecided']}")  # fmt: skip
    checks = chi_squares(given.plain)
    for check in checks:
        kind = "wait" if check["wait"] else "wait-free"
        print(f"chi-square {check['size']}x{check['size']}, {check['holes']} holes, {check['agents']} agents, "
              f"{check['objective']}, {kind}: {check['statistic']:.1f} on {check['freedom']}, z = {check['z']:+.2f}")  # fmt: skip
    worst = max(abs(check["z"]) for check in checks)
    print(f"largest |z| {worst:.2f}: the samplers {'agree' if worst < 4 else 'DIFFER'}")
    result = {"what": "generate", "count": given.count, "speed": rows, "chi_square": checks, "at": runs.now(),
              "machine": platform.processor() or platform.machine(), "environment": runs.environment()}  # fmt: skip
    runs.write_json(given.out / f"generate-{result['at'].replace(':', '')}.json", result)
    sys.exit(0 if worst < 4 and not any(row["undecided"] for row in rows) else 1)


if __name__ == "__main__":
    main()
