"""How fast labelled instances are made, and whether the sampler draws from the same distribution as plain rejection.

    python benchmarks/generate.py                  # some minutes
    python benchmarks/generate.py --count 400      # fewer instances per row

Rows: sizes 3-10, hole ratio 0.2, wait ratio 0.5, exact labels, 2 to 5 agents, both objectives. Each row is run `--repeats` times
with different seeds on one pinned core, rows and sides taking turns. The peer is the readable sampler, which draws the same
candidates one by one in Python and labels them with the same solver (`reference_sampler`; it makes fewer instances, from the same
cells). Rates are instances per second of processor time, from the Python call to finished `Instance` objects. "together" divides
all instances of all repeats by all their time, so the few hardest weigh most. Undecided candidates count as failure. The goals
are this suite's own; its first prototype made 9.5-12.8 k (2 agents, makespan) down to 0.8-1.1 k (5 agents, sum of costs) on such
a core.

Two threads: wall time of the same call with 1 and 2 threads on two cores, and whether the instances are the same.

The chi-square compares the sampler with plain rejection in Python (the whole instance is drawn with `random`, then labelled): a
two-sample test over classes of instances, per kind. Each run writes one JSON file to benchmarks/results/.
"""

from __future__ import annotations

import math
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from measuring import arguments, pin, spread, text, write

from t2t_core.seeding import key
from t2t_envs.frozen_lake import Configuration, Instance, generate, solver
from t2t_envs.frozen_lake.generation.generator import strata_of
from t2t_envs.frozen_lake.generation.reference_sampler import draw_stratum as readable_draw_stratum
from t2t_envs.frozen_lake.generation.request import Request
from t2t_envs.frozen_lake.generation.sampling import draw_stratum
from t2t_envs.frozen_lake.generation.strata import Quota, Stratum

MIXED = Configuration.uniform(0.2, 0.5)
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
CELLS = ((3, 4, 2), (4, 3, 3), (5, 8, 2))  # size, holes and agents for the chi-square


def ours(objective: str, agents: int, count: int, seed: int) -> tuple[float, int]:
    """Processor seconds, and undecided candidates."""
    begin = time.process_time()
    instances = generate(MIXED, count, agents, seed, objective)
    return time.process_time() - begin, instances.report.undecided


def readable(objective: str, agents: int, count: int, seed: int) -> float:
    """Processor seconds of the readable sampler on the cells of the same configuration."""
    begin = time.process_time()
    for stratum, wait_free, wait in strata_of(MIXED, Request(count, agents, objective)):
        quota = Quota(wait_free, wait)
        instances = readable_draw_stratum(stratum, seed, quota, stratum.stall, solver.DEFAULT_MAX_NODES).instances
        if len(instances) != wait_free + wait:
            raise SystemExit(f"{stratum}: {len(instances)} instances instead of {wait_free + wait}")
    return time.process_time() - begin


def speed(count: int, peer_count: int, repeats: int) -> list[dict[str, Any]]:
    taken: dict[tuple[str, int], list[tuple[float, float]]] = {row: [] for row in GOALS}
    undecided: Counter[tuple[str, int]] = Counter()
    for seed in range(repeats):
        for row in GOALS:
            own, left = ours(*row, count, seed)
            taken[row].append((own, readable(*row, peer_count, seed)))
            undecided[row] += left
    rows = []
    for (objective, agents), goal in GOALS.items():
        pairs = taken[objective, agents]
        rates = spread([count / own for own, _ in pairs])
        rows.append(
            {
                "objective": objective,
                "agents": agents,
                "goal_per_s": goal,
                "per_s": rates,
                "together_per_s": count * len(pairs) / sum(own for own, _ in pairs),
                "readable_per_s": spread([peer_count / other for _, other in pairs]),
                "ours_over_readable": spread([(count / own) / (peer_count / other) for own, other in pairs]),
                "undecided": undecided[objective, agents],
                "met": rates["median"] >= goal and not undecided[objective, agents],
            }
        )
    return rows


def two_threads(count: int, repeats: int) -> list[dict[str, Any]]:
    """Wall time with one thread divided by wall time with two, on the two cores that this needs."""
    rows = []
    for objective in ("makespan", "sum_of_costs"):
        ratios, same = [], True
        for seed in range(repeats):
            walls, draws = [], []
            for threads in (1, 2):
                begin = time.perf_counter()
                draws.append(generate(MIXED, count, 4, seed, objective, threads=threads))
                walls.append(time.perf_counter() - begin)
            ratios.append(walls[0] / walls[1])
            same = same and draws[0] == draws[1]
        rows.append({"objective": objective, "agents": 4, "count": count, "one_over_two": spread(ratios), "same": same})
    return rows


def plain_rejection(stratum: Stratum, source: random.Random, count: int) -> list[Instance]:
    """`count` solvable instances by plain rejection: shuffle all cells, take holes, starts and goals in order, and throw away
    whatever is not a solvable instance."""
    at = [divmod(c, stratum.size) for c in range(stratum.size**2)]
    instances: list[Instance] = []
    while len(instances) < count:
        batch = []
        for _ in range(count):
            source.shuffle(at)
            free = at[stratum.holes :]
            starts, goals = source.sample(free, stratum.num_agents), source.sample(free, stratum.num_agents)
            if all(s != g for s, g in zip(starts, goals, strict=True)):
                batch.append(Instance(stratum.size, at[: stratum.holes], starts, goals, stratum.objective))
        labels = solver.solve_many(batch, wait=True)
        instances += [
            Instance.from_dict(x.to_dict() | {"requires_wait": label.requires_wait, f"optimal_{stratum.objective}": label.cost})
            for x, label in zip(batch, labels, strict=True)
            if label.status == "solved"
        ]
    return instances[:count]


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
            stratum = Stratum(size, holes, agents, objective)
            plain = plain_rejection(stratum, random.Random(size), count)
            classes: Callable[[Instance], Any] = form if size == 3 else shape
            for wait in (False, True):
                theirs = [x for x in plain if x.requires_wait is wait]
                quota = Quota(wait=len(theirs) if wait else 0, wait_free=0 if wait else len(theirs), distinct=False)
                ours = draw_stratum(stratum, key(size, "chi-square"), quota).instances
                statistic, freedom = two_sample(Counter(map(classes, ours)), Counter(map(classes, theirs)))
                z = (statistic - freedom) / math.sqrt(2 * freedom) if freedom else 0.0
                rows.append({"size": size, "holes": holes, "agents": agents, "objective": objective, "wait": wait,
                             "instances": len(theirs), "statistic": statistic, "freedom": freedom, "z": z})  # fmt: skip
    return rows


def show(rows: list[dict[str, Any]], threads: list[dict[str, Any]], checks: list[dict[str, Any]]) -> float:
    """Print everything, and return the largest |z|."""
    for row in rows:
        print(f"{row['objective']:>12} {row['agents']} agents: {text(row['per_s'])} /s, together {row['together_per_s']:,.0f}; "
              f"goal {row['goal_per_s']:,}: {'met' if row['met'] else 'MISSED'}; undecided {row['undecided']}; readable "
              f"{text(row['readable_per_s'])} /s, ours over it {text(row['ours_over_readable'], 1)}")  # fmt: skip
    for row in threads:
        print(f"two threads, {row['objective']}, {row['agents']} agents: {text(row['one_over_two'], 2)} times as fast as one, "
              f"instances {'the same' if row['same'] else 'DIFFER'}")  # fmt: skip
    for check in checks:
        kind = "wait" if check["wait"] else "wait-free"
        print(f"chi-square {check['size']}x{check['size']}, {check['holes']} holes, {check['agents']} agents, "
              f"{check['objective']}, {kind}: {check['statistic']:.1f} on {check['freedom']}, z = {check['z']:+.2f}")  # fmt: skip
    worst = max(abs(check["z"]) for check in checks)
    print(f"largest |z| {worst:.2f}: the samplers {'agree' if worst < 4 else 'DIFFER'}")
    return worst


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--peer-count", type=int, default=160, help="instances of the readable sampler per row and repeat")
    parser.add_argument("--plain", type=int, default=20_000, help="instances per cell of the chi-square")
    given = parser.parse_args()
    several = len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else True
    threads = two_threads(given.count, given.repeats) if several else []
    pin()
    rows = speed(given.count, given.peer_count, given.repeats)
    checks = chi_squares(given.plain)
    worst = show(rows, threads, checks)
    write("generate", given.out, {"count": given.count, "speed": rows, "two_threads": threads, "chi_square": checks})
    wrong = any(row["undecided"] for row in rows) or not all(row["same"] for row in threads)
    sys.exit(0 if worst < 4 and not wrong else 1)


if __name__ == "__main__":
    main()
