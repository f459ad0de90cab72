"""The study of a toy agent that writes training jobs: what its plan names, and the tables from what came of it.

python studies/agents.py run FOLDER [--plan studies/agents/tiny.toml] [--pool local:2]     continues where it stopped
python studies/agents.py table FOLDER                                                     FOLDER/table.md from the files

FOLDER/seed_501/training/      t2t train-agent
FOLDER/seed_501/agents/        t2t bench-agents: the agent before and after, on every family
FOLDER/seed_501/searches/      t2t bench-agents: each search with as many jobs as the agent had
FOLDER/seed_501/searches_cpu/  the same until its jobs took as many CPU-seconds as the agent's
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from t2t_core.evaluation.stats import t_interval
from t2t_core.plugins import installed
from t2t_core.run.experiment import read_toml
from t2t_core.store import folders, schema
from t2t_core.store.paths import SafePath
from t2t_jobs.bench import RESULT, BenchPlan, BenchResult, Entry, run_bench
from t2t_jobs.room import Room
from t2t_jobs.training.figures import StepRecord
from t2t_jobs.training.outer import OuterPlan, read_steps, train_agent
from t2t_jobs.training.settings import OuterSettings

PLAN = Path(__file__).parent / "agents" / "tiny.toml"
HELD_OUT = "held-out reward"
CPU = ", equal CPU"
HALVED = 4  # a job of successive halving costs about a quarter of one on all samples: 3 (n / 9) of n + n / 3 + n / 9


class Compared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One agent minus another: "trained", "untrained", or a search."""

    measure: str
    agent: str
    against: str


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plan's file."""

    title: str
    question: str
    seeds: list[int]
    agent: str
    searches: list[str]
    episodes: int
    margin: float
    outer: dict[str, Any]
    primary: Compared
    secondary: list[Compared] = []

    @property
    def settings(self) -> OuterSettings:
        return OuterSettings(**self.outer)


def read_plan(path: Path) -> Plan:
    return schema.check(read_toml(path), Plan, str(path))


def families() -> tuple[list[str], list[str]]:
    """Those that train the agent, and those that are held out."""
    made = {entry.name: installed().families.make(entry.name) for entry in installed().families}
    return [n for n, family in made.items() if not family.held_out], [n for n, family in made.items() if family.held_out]


def run(plan: Plan, folder: Path, pool: str) -> None:
    """Seed by seed, whatever is not there yet."""
    trained, held_out = families()
    jobs = plan.settings.steps * plan.settings.groups * plan.settings.group
    tries = jobs // len(trained)
    for seed in plan.seeds:
        seed_folder = SafePath.absolute(folder) / f"seed_{seed}"

        def room(where: SafePath, seed: int = seed) -> Room:
            return Room(where, pool, secret=seed)

        outer = OuterPlan(plan.agent, trained, seed, plan.settings)
        train_agent(outer, seed_folder / "training", room, lambda line: print(line, flush=True))
        after = f"{plan.agent.partition(':')[0]}:{(seed_folder / 'training' / 'versions' / str(plan.settings.steps)).path}"
        both = BenchPlan([plan.agent, after], [*trained, *held_out], plan.episodes, 0, [seed])
        run_bench(both, seed_folder / "agents", room, lambda line: print(line, flush=True))
        searches = BenchPlan(_searches(plan, tries), trained, plan.episodes, tries, [seed])
        run_bench(searches, seed_folder / "searches", room, print)
        taken = sum(step.cpu_seconds for step in read_steps(seed_folder / "training")) / len(trained)
        equal = BenchPlan(_searches(plan, HALVED * tries), trained, plan.episodes, HALVED * tries, [seed], taken)
        run_bench(equal, seed_folder / "searches_cpu", room, print)


def _searches(plan: Plan, jobs: int) -> list[str]:
    return [f"{name}:jobs={jobs}" if name == "successive-halving" else name for name in plan.searches]


# --- the tables


def entries(plan: Plan, folder: Path, seed: int) -> dict[str, list[Entry]]:
    """What each agent came to, by the plan's names for them."""
    seed_folder = SafePath.absolute(folder) / f"seed_{seed}"
    agents = folders.read_record(seed_folder / "agents" / RESULT, BenchResult)
    named = {"untrained": agents.agents[0], "trained": agents.agents[1]}
    by_name = {name: [entry for entry in agents.entries if entry.agent == spec] for name, spec in named.items()}
    for name, suffix in (("searches", ""), ("searches_cpu", CPU)):
        searches = folders.read_record(seed_folder / name / RESULT, BenchResult)
        for spec in searches.agents:
            by_name[spec.partition(":")[0] + suffix] = [entry for entry in searches.entries if entry.agent == spec]
    return by_name


def mean_of(rows: Sequence[Entry], measure: str) -> float:
    """The mean over families of the mean over episodes."""
    return fmean(fmean(entry.rewards) for entry in rows if entry.held_out == (measure == HELD_OUT))


def table(plan: Plan, folder: Path) -> str:
    seeds = {seed: entries(plan, folder, seed) for seed in plan.seeds}
    steps = {seed: read_steps(SafePath.absolute(folder) / f"seed_{seed}" / "training") for seed in plan.seeds}
    return "\n".join([*_compared(plan, seeds), "", *_arms(plan, seeds), "", *_steps(steps)]) + "\n"


def _compared(plan: Plan, seeds: Mapping[int, Mapping[str, list[Entry]]]) -> Iterator[str]:
    yield f"| {plan.title} | difference in reward | says |"
    yield "|---|---:|---|"
    for role, pair in [("primary", plan.primary), *(("secondary", other) for other in plan.secondary)]:
        ours = [mean_of(by_arm[pair.agent], pair.measure) for by_arm in seeds.values()]
        theirs = [mean_of(by_arm[pair.against], pair.measure) for by_arm in seeds.values()]
        deltas = [a - b for a, b in zip(ours, theirs, strict=True)]
        estimate = t_interval(deltas)
        says = "better" if estimate.low > plan.margin else "worse" if estimate.high < -plan.margin else "not decided"
        if -plan.margin < estimate.low and estimate.high < plan.margin:
            says = "no difference that matters"
        name = f"{role}: {pair.agent} - {pair.against}, {pair.measure}"
        yield f"| {name} | {estimate.value:+.3f} [{estimate.low:+.3f}, {estimate.high:+.3f}] | {says} |"


def _arms(plan: Plan, seeds: Mapping[int, Mapping[str, list[Entry]]]) -> Iterator[str]:
    yield "| agent | reward | held-out reward | hidden score | jobs | CPU seconds |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name in next(iter(seeds.values())):
        rows = [entry for by_arm in seeds.values() for entry in by_arm[name]]
        held = [mean_of(by_arm[name], HELD_OUT) for by_arm in seeds.values() if any(entry.held_out for entry in by_arm[name])]
        scores = [score for entry in rows if not entry.held_out for score in entry.scores if score is not None]
        cells = [_interval([mean_of(by_arm[name], "reward") for by_arm in seeds.values()]), _interval(held) if held else "-"]
        cells += [f"{fmean(scores):.3f}" if scores else "-", str(sum(entry.jobs for entry in rows))]
        yield f"| {name} | {' | '.join(cells)} | {sum(entry.cpu_seconds for entry in rows):.0f} |"


def _steps(seeds: Mapping[int, Sequence[StepRecord]]) -> Iterator[str]:
    """Means over the seeds: does validity come first, and quality second?"""
    yield "| outer step | reward | validation | quality | valid | hidden score | stronger base |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for rows in zip(*seeds.values(), strict=True):
        parts = [[row.reward for row in rows], [row.validation for row in rows], [row.quality for row in rows]]
        parts += [[row.valid for row in rows], [row.score for row in rows], [row.stronger for row in rows]]
        cells = [f"{fmean(known):.3f}" if (known := [v for v in part if v is not None]) else "-" for part in parts]
        yield f"| {rows[0].step} | {' | '.join(cells)} |"


def _interval(values: Sequence[float]) -> str:
    estimate = t_interval(values)
    return f"{estimate.value:.3f}" + (f" [{estimate.low:.3f}, {estimate.high:.3f}]" if len(values) > 1 else "")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plan", type=Path, default=PLAN)
    parser.add_argument("--pool", default="local:2", help="who does the jobs (default local:2)")
    options = parser.parse_args(arguments)
    plan = read_plan(options.plan)
    if options.command == "run":
        run(plan, options.folder, options.pool)
    else:
        folders.write_atomic(options.folder / "table.md", table(plan, options.folder))
        print(table(plan, options.folder))


if __name__ == "__main__":
    main()
