"""How fast the exact solver decides hard instances: sum of costs, five agents, committed instance files.

    python benchmarks/solve.py                 # under a minute
    python benchmarks/solve.py --draw          # writes benchmarks/instances/ again, byte for byte

Every instance is solved `--repeats` times on one pinned core, rows taking turns; its time is the median over the repeats, in
milliseconds of processor time for one call (status and exact cost). The second figure also decides `requires_wait`. Undecided
counts as failure. The ten slowest instances of each row are named. One JSON per run goes to benchmarks/results/.

The peer is CBSH2-RTC, a C++ program that no package registry carries: its figures are quoted (its own runtime, another machine,
other instances of the same distribution), not measured here, and its means are over the instances it solved.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / room) for room in ("", "envs")]

from t2t_core import runs  # noqa: E402 - the rooms are found from a plain checkout
from t2t_core.seeding import Stream  # noqa: E402
from t2t_envs.frozen_lake import Instance, read_instances, write_instances  # noqa: E402
from t2t_envs.frozen_lake.solver import DEFAULT_MAX_NODES, flat_arrays, native_core  # noqa: E402

INSTANCES = ROOT / "benchmarks" / "instances"
COUNT, AGENTS, SUM_OF_COSTS, UNDECIDED = 200, 5, 1, 2


@dataclass(frozen=True)
class Row:
    size: int
    holes: int
    goal_mean_ms: float
    goal_worst_ms: float | None
    quoted: str

    @property
    def name(self) -> str:
        return f"{AGENTS}agents_{self.size}x{self.size}_{self.holes}holes"


ROWS = (
    Row(10, 20, 0.35, None, "mean 0.69 ms, all 200 solved"),
    Row(10, 50, 18.0, 1000.0, "mean 18 ms, 189 of 200 within 1 s, 4 more within 10 s"),
    Row(5, 8, 18.0, 1000.0, "mean 24 ms, 185 of 200 within 1 s"),
)


def draw(row: Row) -> list[Instance]:
    """Uniform holes, starts and goals, drawn again until every agent can reach its goal and none starts on it."""
    stream = Stream.of(0, "solve benchmark", row.size, row.holes)
    found: list[Instance] = []
    while len(found) < COUNT:
        cells = [(r, c) for r in range(row.size) for c in range(row.size)]
        stream.shuffle(cells)
        goals = cells[row.holes :]
        stream.shuffle(goals)
        name = f"{AGENTS}agents_{row.size}x{row.size}_{len(found):04d}"
        starts = cells[row.holes : row.holes + AGENTS]
        instance = Instance(row.size, cells[: row.holes], starts, goals[:AGENTS], "sum_of_costs", name)
        if all(s != g and _connected(instance, s, g) for s, g in zip(instance.starts, instance.goals, strict=True)):
            found.append(instance)
    return found


def _connected(instance: Instance, start: tuple[int, int], goal: tuple[int, int]) -> bool:
    free = {(r, c) for r in range(instance.size) for c in range(instance.size)} - set(instance.holes)
    reached, stack = {start}, [start]
    while stack:
        r, c = stack.pop()
        for cell in ((r, c - 1), (r + 1, c), (r, c + 1), (r - 1, c)):
            if cell in free and cell not in reached:
                reached.add(cell)
                stack.append(cell)
    return goal in reached


def label(instance: Instance, wait: bool) -> tuple[float, tuple[int, int, int]]:
    """Milliseconds of processor time of one call into the native core, and status, cost and wait flag."""
    core = native_core()
    if core is None:
        raise SystemExit("the native core is not built")
    arguments = (*flat_arrays([instance]), np.array([SUM_OF_COSTS], dtype=np.uint8), DEFAULT_MAX_NODES, wait)
    begin = time.thread_time_ns()
    status, cost, answer, _ = core.solve_many(*arguments)
    return (time.thread_time_ns() - begin) / 1e6, (int(status[0]), int(cost[0]), int(answer[0]))


def measure(row: Row, instances: list[Instance], times: dict[bool, list[list[float]]]) -> list[tuple[int, int, int]]:
    """One pass over a row with and without the wait flag; appends each instance's times."""
    labels = []
    for wait in (False, True):
        for instance, own in zip(instances, times[wait], strict=True):
            milliseconds, found = label(instance, wait)
            own.append(milliseconds)
            if wait:
                labels.append(found)
    return labels


def summary(row: Row, instances: list[Instance], times: dict[bool, list[list[float]]], labels: list[Any]) -> dict[str, Any]:
    each = {wait: [statistics.median(own) for own in times[wait]] for wait in times}
    passes = [sum(own[i] for own in times[False]) / len(instances) for i in range(len(times[False][0]))]
    slowest = sorted(zip(each[False], (x.id for x in instances), strict=True), reverse=True)[:10]
    undecided = sum(UNDECIDED in (status, answer if status == 0 else 0) for status, _, answer in labels)
    return {
        "row": row.name,
        "instances": len(instances),
        "solved": sum(status == 0 for status, _, _ in labels),
        "infeasible": sum(status == 1 for status, _, _ in labels),
        "undecided": undecided,
        "mean_ms": statistics.fmean(each[False]),
        "median_ms": statistics.median(each[False]),
        "worst_ms": max(each[False]),
        "mean_ms_of_each_pass": passes,
        "with_wait_flag": {"mean_ms": statistics.fmean(each[True]), "worst_ms": max(each[True])},
        "ten_slowest": [{"id": name, "ms": value} for value, name in slowest],
        "goal": {"mean_ms": row.goal_mean_ms, "worst_ms": row.goal_worst_ms},
        "peer_quoted_not_measured": f"CBSH2-RTC: {row.quoted}",
        "met": not undecided
        and statistics.fmean(each[False]) <= row.goal_mean_ms
        and max(each[False]) <= (row.goal_worst_ms or float("inf")),
    }


def show(result: dict[str, Any]) -> None:
    worst = "" if result["goal"]["worst_ms"] is None else f", worst {result['goal']['worst_ms']:g}"
    print(f"{result['row']}: {result['solved']} solved, {result['infeasible']} proven infeasible, "
          f"{result['undecided']} undecided")  # fmt: skip
    print(f"  mean {result['mean_ms']:.3f} ms (passes {min(result['mean_ms_of_each_pass']):.3f} to "
          f"{max(result['mean_ms_of_each_pass']):.3f}), median {result['median_ms']:.3f}, worst {result['worst_ms']:.1f}; "
          f"with the wait flag mean {result['with_wait_flag']['mean_ms']:.3f}, "
          f"worst {result['with_wait_flag']['worst_ms']:.1f}")  # fmt: skip
    print(f"  goal: mean {result['goal']['mean_ms']:g}{worst}: {'met' if result['met'] else 'NOT met'}")
    print(f"  quoted, not measured: {result['peer_quoted_not_measured']}")
    print("  slowest: " + ", ".join(f"{slow['id']} {slow['ms']:.1f}" for slow in result["ten_slowest"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--draw", action="store_true", help="write the instance files again and stop")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    given = parser.parse_args()
    if given.draw:
        for row in ROWS:
            write_instances(INSTANCES / f"{row.name}.jsonl", draw(row))
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    files = {row: list(read_instances(INSTANCES / f"{row.name}.jsonl")) for row in ROWS}
    times: dict[Row, dict[bool, list[list[float]]]] = {
        row: {wait: [[] for _ in files[row]] for wait in (False, True)} for row in ROWS
    }
    labels: dict[Row, list[Any]] = {}
    for _ in range(given.repeats):
        for row in ROWS:
            labels[row] = measure(row, files[row], times[row])
    results = [summary(row, files[row], times[row], labels[row]) for row in ROWS]
    for result in results:
        show(result)
    record: dict[str, Any] = {
        "what": "solve, sum of costs, processor time per instance",
        "rows": results,
        "max_nodes": DEFAULT_MAX_NODES,
        "at": runs.now(),
        "machine": platform.processor() or platform.machine(),
        "environment": runs.environment(),
    }
    runs.write_json(given.out / f"solve-{record['at'].replace(':', '')}.json", record)
    sys.exit(1 if any(result["undecided"] for result in results) else 0)


if __name__ == "__main__":
    main()
