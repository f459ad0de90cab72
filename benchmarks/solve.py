"""How fast the exact solver decides hard instances: sum of costs, five agents, committed instance files.

    python benchmarks/solve.py                 # under a minute
    python benchmarks/solve.py --cbsh2 PATH    # and CBSH2-RTC beside it, on the same instances: some minutes
    python benchmarks/solve.py --draw          # writes benchmarks/instances/ again, byte for byte

Each side decides every instance `--repeats` times on one pinned core, sides and rows taking turns. The time of an instance is the
median over the repeats, in milliseconds of processor time for one call (status and exact cost; calls with the wait flag are
measured separately). Undecided counts as failure. The ten slowest instances of each row are named. Each run writes one JSON file
to benchmarks/results/.

The peer is CBSH2-RTC (github.com/Jiaoyang-Li/CBSH2-RTC, for research only, not part of this suite): build it with CMake and
Boost, and give the path of the program `cbs`. Its time is the runtime that it reports itself (without setting up, the heuristics
of single agents and the start of the process), and it gets `--limit` seconds per instance. If both decide an instance and its
cost is lower, that is an error of ours; every difference is named. (Its corridor reasoning is not always optimal: on
5agents_5x5_0181 it says 29; with --corridorReasoning=None it says 28, as does the search of all joint states.) The ratio is its
time over ours, summed over the instances that it solved.
"""

from __future__ import annotations

import csv
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import ROOT, arguments, pin, spread, text, write

from t2t_core.seeding import Stream
from t2t_envs.frozen_lake import Instance, read_instances, write_instances
from t2t_envs.frozen_lake.solver import DEFAULT_MAX_NODES, flat_arrays, native_core

INSTANCES = ROOT / "benchmarks" / "instances"
COUNT, AGENTS, SUM_OF_COSTS, UNDECIDED = 200, 5, 1, 2
QUOTED = "quoted, not measured here (its own runtime, another machine, other instances): "


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
    """Uniform holes, starts and goals, drawn again until every agent can reach its goal and no agent starts on it."""
    stream = Stream.of(0, "solve benchmark", row.size, row.holes)
    instances: list[Instance] = []
    while len(instances) < COUNT:
        cells = [(r, c) for r in range(row.size) for c in range(row.size)]
        stream.shuffle(cells)
        goals = cells[row.holes :]
        stream.shuffle(goals)
        name = f"{AGENTS}agents_{row.size}x{row.size}_{len(instances):04d}"
        starts = cells[row.holes : row.holes + AGENTS]
        instance = Instance(row.size, cells[: row.holes], starts, goals[:AGENTS], "sum_of_costs", name)
        if all(s != g and _connected(instance, s, g) for s, g in zip(instance.starts, instance.goals, strict=True)):
            instances.append(instance)
    return instances


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


@dataclass(frozen=True)
class Outcome:
    """One call: milliseconds, cost (None: no solution, or none found), and whether that is proven."""

    milliseconds: float
    cost: int | None
    decided: bool


def ours(instance: Instance, wait: bool) -> Outcome:
    """Processor time of one call into the native core."""
    core = native_core()
    if core is None:
        raise SystemExit("the native core is not built")
    call = (*flat_arrays([instance]), np.array([SUM_OF_COSTS], dtype=np.uint8), DEFAULT_MAX_NODES, wait)
    begin = time.thread_time_ns()
    status, cost, answer, *_ = core.solve_many(*call)
    taken = (time.thread_time_ns() - begin) / 1e6
    decided = status[0] != UNDECIDED and not (wait and status[0] == 0 and answer[0] == UNDECIDED)
    return Outcome(taken, int(cost[0]) if status[0] == 0 else None, bool(decided))


class Peer:
    """CBSH2-RTC as a program: it reads a map and a scenario file per instance and writes a line of figures."""

    def __init__(self, program: Path, limit: float, folder: Path) -> None:
        self.program, self.limit, self.folder = program.resolve(), limit, folder

    def prepare(self, row: Row, instances: Sequence[Instance]) -> None:
        for x in instances:
            grid = [["@" if (r, c) in set(x.holes) else "." for c in range(x.size)] for r in range(x.size)]
            lines = ["type octile", f"height {x.size}", f"width {x.size}", "map", *map("".join, grid)]
            self._file(row, x, "map").write_text("\n".join(lines) + "\n")
            ways = [
                f"0\tmap\t{x.size}\t{x.size}\t{s[1]}\t{s[0]}\t{g[1]}\t{g[0]}\t0"
                for s, g in zip(x.starts, x.goals, strict=True)
            ]
            self._file(row, x, "scen").write_text("\n".join(["version 1", *ways]) + "\n")

    def _file(self, row: Row, instance: Instance, kind: str) -> Path:
        return self.folder / f"{row.name}-{instance.id}.{kind}"

    def decide(self, row: Row, instance: Instance) -> Outcome:
        report = self.folder / "report.csv"
        report.unlink(missing_ok=True)
        files = ["-m", self._file(row, instance, "map"), "-a", self._file(row, instance, "scen"), "-o", report]
        command = [self.program, *files, "-k", str(AGENTS), "-t", str(self.limit), "-s", "0"]
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=60 + 10 * self.limit, check=False)
        if not report.exists():  # it died without an answer
            return Outcome(1000 * self.limit, None, False)
        with report.open() as file:
            (line,) = csv.DictReader(file)
        cost = int(line["solution cost"])  # -1: out of time, -2: no solution
        return Outcome(1000 * float(line["runtime"]), cost if cost >= 0 else None, cost >= 0 or cost == -2)


def summary(row: Row, instances: list[Instance], passes: dict[str, list[list[Outcome]]]) -> dict[str, Any]:
    """`passes`: per side, per repeat, per instance."""
    sides = {name: _side(instances, runs) for name, runs in passes.items()}
    own = sides["ours"]
    result = {
        "row": row.name,
        "instances": len(instances),
        "sides": sides,
        "goal": {"mean_ms": row.goal_mean_ms, "worst_ms": row.goal_worst_ms},
        "met": own["undecided"] == 0
        and own["mean_ms"] <= row.goal_mean_ms
        and own["worst_ms"] <= (row.goal_worst_ms or float("inf")),
        "quoted": QUOTED + "CBSH2-RTC " + row.quoted,
    }
    if "CBSH2-RTC" in passes:
        pairs = list(zip(passes["ours"], passes["CBSH2-RTC"], strict=True))
        both = [[(a, b) for a, b in zip(*pair, strict=True) if b.decided] for pair in pairs]
        result["same_costs"] = sum(a.cost == b.cost for a, b in both[0])
        result["different_costs"] = [
            {"id": x.id, "ours": a.cost, "its": b.cost}
            for x, a, b in zip(instances, *pairs[0], strict=True)
            if b.decided and a.cost != b.cost
        ]
        result["its_time_over_ours"] = spread(
            [sum(b.milliseconds for _, b in run) / sum(a.milliseconds for a, _ in run) for run in both]
        )
    return result


def _side(instances: list[Instance], runs: list[list[Outcome]]) -> dict[str, Any]:
    each = [statistics.median(outcome.milliseconds for outcome in tries) for tries in zip(*runs, strict=True)]
    slowest = sorted(zip(each, (x.id for x in instances), strict=True), reverse=True)[:10]
    return {
        "solved": sum(outcome.cost is not None for outcome in runs[0]),
        "proven_infeasible": sum(outcome.decided and outcome.cost is None for outcome in runs[0]),
        "undecided": sum(not outcome.decided for outcome in runs[0]),
        "mean_ms": statistics.fmean(each),
        "median_ms": statistics.median(each),
        "worst_ms": max(each),
        "mean_ms_of_each_pass": spread([statistics.fmean(outcome.milliseconds for outcome in run) for run in runs]),
        "ten_slowest": [{"id": name, "ms": value} for value, name in slowest],
    }


def show(result: dict[str, Any]) -> None:
    worst = "" if result["goal"]["worst_ms"] is None else f", worst {result['goal']['worst_ms']:g}"
    print(f"\n{result['row']}; goal: mean {result['goal']['mean_ms']:g} ms{worst}: {'met' if result['met'] else 'NOT met'}")
    for name, side in result["sides"].items():
        print(f"  {name}: {side['solved']} solved, {side['proven_infeasible']} proven infeasible, {side['undecided']} undecided; "
              f"mean {side['mean_ms']:.3f} ms, of each pass {text(side['mean_ms_of_each_pass'], 3)}, "
              f"median {side['median_ms']:.3f}, worst {side['worst_ms']:.1f}")  # fmt: skip
        print("    slowest: " + ", ".join(f"{slow['id']} {slow['ms']:.1f}" for slow in side["ten_slowest"]))
    if "its_time_over_ours" in result:
        print(f"  where it solved: its time over ours {text(result['its_time_over_ours'], 1)}, "
              f"{result['same_costs']} costs equal, different: {result['different_costs'] or 'none'}")  # fmt: skip
    else:
        print(f"  {result['quoted']}")


def measure(repeats: int, peer: Peer | None) -> list[dict[str, Any]]:
    files = {row: list(read_instances(INSTANCES / f"{row.name}.jsonl")) for row in ROWS}
    names = ["ours", "ours, with the wait flag", *(["CBSH2-RTC"] if peer else [])]
    passes: dict[Row, dict[str, list[list[Outcome]]]] = {row: {name: [] for name in names} for row in ROWS}
    if peer:
        for row, instances in files.items():
            peer.prepare(row, instances)
    for _ in range(repeats):
        for row, instances in files.items():
            passes[row]["ours"].append([ours(x, False) for x in instances])
            passes[row]["ours, with the wait flag"].append([ours(x, True) for x in instances])
            if peer:
                passes[row]["CBSH2-RTC"].append([peer.decide(row, x) for x in instances])
    return [summary(row, files[row], passes[row]) for row in ROWS]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cbsh2", type=Path, metavar="PATH", help="the program `cbs` of CBSH2-RTC")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds that CBSH2-RTC gets for an instance")
    parser.add_argument("--draw", action="store_true", help="write the instance files again and stop")
    given = parser.parse_args()
    if given.draw:
        for row in ROWS:
            write_instances(INSTANCES / f"{row.name}.jsonl", draw(row))
        return
    pin()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(given.repeats, Peer(given.cbsh2, given.limit, Path(folder)) if given.cbsh2 else None)
    for result in results:
        show(result)
    write("solve", given.out, {"rows": results, "max_nodes": DEFAULT_MAX_NODES, "peer_limit_s": given.limit})
    beaten = any(costs["its"] is not None and (costs["ours"] is None or costs["its"] < costs["ours"])
                 for result in results for costs in result.get("different_costs", []))  # fmt: skip
    sys.exit(1 if beaten or any(result["sides"]["ours"]["undecided"] for result in results) else 0)


if __name__ == "__main__":
    main()
