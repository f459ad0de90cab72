"""A grid of runs over designers, contexts and seeds, each arm forked from one shared round 0 per seed, and its table.

    OUT/run.json            the grid
    OUT/seed_3/shared/      round 0 alone, which all arms of the seed share, and the bench of the untrained policy
    OUT/seed_3/rule_V6/     an arm: a run folder like any other

Every arm goes on where it stopped, so the same command continues an interrupted sweep.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from t2t_core import transport
from t2t_core.evaluation.stats import seeded_difference, t_interval
from t2t_core.loop import context
from t2t_core.loop.design_step import READ
from t2t_core.loop.whole_run import run_experiment
from t2t_core.plugins import installed
from t2t_core.report import plots
from t2t_core.report.plots import Interval
from t2t_core.report.summary import markdown, unequal
from t2t_core.run.closing_bench import Values, measured
from t2t_core.run.experiment import Experiment
from t2t_core.run.forks import Fork
from t2t_core.run.progress import Reporter
from t2t_core.store import folders, locks
from t2t_core.store.paths import SafePath

KIND = "sweep"
BASE = "base"
CONTROL = "fixed"  # the designer every other one is compared with: it leaves round 0's configuration as it is


@dataclass(frozen=True)
class Grid:
    """What varies: every designer with every context, for every seed."""

    designers: Sequence[str]
    contexts: Sequence[str]
    seeds: Sequence[int]

    def arms(self) -> Iterator[tuple[str, str]]:
        return ((designer, context) for designer in self.designers for context in self.contexts)


def sweep(experiment: Experiment, grid: Grid, out: Path, reporter: Reporter) -> dict[str, Any]:
    """Do or go on with the grid; the result, which is also in `sweep.json` and `sweep.md`, its differences drawn beside them."""
    for designer, seen in grid.arms():  # a misspelt arm is better said before hours of training
        installed().designers.make(designer)
        context.modules(seen, installed().contexts)
    settings = {**experiment.to_dict(), "grid": {k: list(v) for k, v in vars(grid).items()}}
    folder = SafePath(out)
    with locks.locked(folder):
        folders.open_manifest(folder, KIND, settings, asked=transport.asked)
        arms: dict[str, list[dict[str, Any]]] = {}
        answers: dict[str, list[dict[str, Values]]] = {}
        for seed in grid.seeds:
            for name, summary, found in _of_seed(replace(experiment, seed=seed), grid, folder / f"seed_{seed}", reporter):
                arms.setdefault(name, []).append({"seed": seed, **summary})
                answers.setdefault(name, []).append(found)
        rows = [_arm(name, summaries) for name, summaries in arms.items()]
        unlike = _unequal(grid.seeds, {name: found for name, found in arms.items() if name != BASE})
        differences = list(_differences(answers))
        result = {"arms": rows, "differences": differences, "unequal": unlike}
        folders.write_json(folder / "sweep.json", result)
        folders.write_atomic(folder / "sweep.md", render(result))
        for against, picture in drawn(differences).items():
            folders.write_atomic(folder / f"minus_{arm_name(*against.split(' ', 1))}.svg", picture)
        return result


def _of_seed(
    experiment: Experiment, grid: Grid, folder: SafePath, reporter: Reporter
) -> Iterator[tuple[str, dict[str, Any], dict[str, Values]]]:
    """Every arm of one seed, the untrained policy first: its name, its summary and its answers to every evaluation set."""
    shared, seed = folder / "shared", experiment.seed
    testbed = installed().testbeds.make(experiment.testbed)
    reporter.say(f"seed {seed}: the shared round 0")
    summary = run_experiment(replace(experiment, rounds=1, designer=CONTROL), shared, reporter, measured=["base"])
    yield BASE, {**summary, "rounds": []}, measured(experiment, testbed, shared / "bench", "base")
    for designer, seen in grid.arms():
        reporter.say(f"seed {seed}: {designer}, context {seen}")
        place = folder / arm_name(designer, seen)
        arm = replace(experiment, designer=designer, context=seen)
        summary = run_experiment(arm, place, reporter, Fork(shared, 0, "../shared@0"), measured=["designed"])
        yield f"{designer} {seen}", summary, measured(arm, testbed, place / "bench", "designed")


def _differences(answers: Mapping[str, Sequence[dict[str, Values]]]) -> Iterator[dict[str, Any]]:
    """Every arm against the untrained policy, and against the control where the grid has one, set by set and metric by metric:
    paired on the instances and pooled over the seeds."""
    controls = [name for name in answers if name.split()[0] == CONTROL]
    for against in (BASE, *controls[:1]):
        for arm in answers:
            if arm in (BASE, against):
                continue
            for chosen, metrics in answers[arm][0].items():
                for metric in metrics:
                    pairs = [(one[chosen][metric], other[chosen][metric]) for one, other in _paired(answers, arm, against)]
                    deltas = [[[v - b[c][i] for i, v in a[c].items()] for c in a] for a, b in pairs]
                    figures = _plain(asdict(seeded_difference(deltas)))
                    yield {"arm": arm, "against": against, "set": chosen, "metric": metric, **figures}


def _paired(answers: Mapping[str, Sequence[dict[str, Values]]], arm: str, against: str) -> Iterator[Any]:
    return zip(answers[arm], answers[against], strict=True)


def _unequal(seeds: Sequence[int], arms: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Where the arms of a seed were not given the same; equal sums over seeds would not show it."""
    return [
        f"seed {seed}, {line}"
        for number, seed in enumerate(seeds)
        for line in unequal({name: summaries[number]["budgets"]["designed"] for name, summaries in arms.items()})
    ]


def arm_name(*words: str) -> str:
    """The folder of an arm from its designer and its context."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "_".join(words))[:150]


def _arm(name: str, summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One arm over its seeds: mean final validation and bench rates with t intervals over seeds, and its budget."""
    figures: dict[str, list[float]] = {}
    for summary in summaries:
        for metric in ("valid", "optimal") if summary["rounds"] else ():
            figures.setdefault(f"validation {metric}", []).append(summary["rounds"][-1][metric]["value"])
        for table in (summary["bench"] or {"sets": []})["sets"]:
            for metric, rate in table["rows"][0]["rates"].items():
                figures.setdefault(f"{table['name']} {metric}", []).append(rate["value"])
    budgets = [summary["budgets"]["designed"] for summary in summaries]
    outcomes = [design["outcome"] for summary in summaries for design in summary["designs"]]
    return {
        "arm": name,
        "seeds": [summary["seed"] for summary in summaries],
        "figures": {key: {"values": values, **_over_seeds(values)} for key, values in figures.items()},
        "budget": {key: sum(b[key] for b in budgets) for key in budgets[0]},
        "designs_failed": sum(outcome not in READ for outcome in outcomes),
        "designs_unchanged": outcomes.count("unchanged"),
    }


def _over_seeds(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and 95 % t interval over seeds; no interval for one seed."""
    return _plain(asdict(t_interval(values)))


def _plain(figures: Mapping[str, Any]) -> dict[str, Any]:
    """None for what one seed cannot say: JSON has no NaN."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in figures.items()}


def render(result: Mapping[str, Any]) -> str:
    """The sweep's table as Markdown."""
    names = list(dict.fromkeys(name for arm in reversed(result["arms"]) for name in arm["figures"]))
    rows = []
    for arm in result["arms"]:
        budget = arm["budget"]
        given = [str(budget[k]) if arm["arm"] != BASE else "-" for k in ("samples", "updates", "tokens", "design_tokens")]
        rows.append(
            [
                arm["arm"],
                str(len(arm["seeds"])),
                *(_shown(arm["figures"].get(n)) for n in names),
                *given,
                str(arm["designs_failed"]),
                str(arm.get("designs_unchanged", "-")),
            ]
        )
    head = ["arm", "seeds", *names, "samples", "updates", "tokens", "design tokens", "failed designs", "unchanged"]
    notes = [f"UNEQUAL BUDGETS, the arms do not compare: {line}" for line in result["unequal"]]
    parts = [markdown(head, rows), "Percent; 95 % t interval over seeds.", _compared(result["differences"]), *notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def _compared(differences: Sequence[Mapping[str, Any]]) -> str:
    """The paired differences as a table: a row for every two arms, a column for every set and metric."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for d in differences:
        cells.setdefault((d["arm"], d["against"]), {})[f"{d['set']} {d['metric']}"] = _points(d)
    if not cells:
        return ""
    columns = list(next(iter(cells.values())))
    rows = [[f"{arm} - {against}", *(found[c] for c in columns)] for (arm, against), found in cells.items()]
    note = "Percentage points, paired on the instances; 95 % interval over seeds and instances, each comparison for itself."
    return markdown(["difference", *columns], rows) + "\n\n" + note


def drawn(differences: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The paired differences as pictures, one for each arm that the others are compared with."""
    panels: dict[str, dict[str, dict[str, Interval]]] = {}
    for d in differences:
        panel = panels.setdefault(d["against"], {}).setdefault(f"{d['set']} {d['metric']}", {})
        panel[d["arm"]] = Interval(d["value"], d["low"], d["high"])
    title = "minus {}: percentage points, 95 % intervals over seeds and instances"
    return {against: plots.differences(title.format(against), found) for against, found in panels.items()}


def _points(difference: Mapping[str, Any]) -> str:
    value = f"{100 * difference['value']:+.1f}"
    low, high = difference["low"], difference["high"]
    return value if low is None else f"{value} [{100 * low:+.1f}, {100 * high:+.1f}]"


def _shown(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return "-"
    value = f"{100 * figure['value']:.1f}"
    return value if figure["low"] is None else f"{value} [{100 * figure['low']:.1f}, {100 * figure['high']:.1f}]"


def runs_of(path: Path) -> list[SafePath]:
    """The arms of a sweep, begun or finished, seed by seed; any other folder as it is."""
    folder = SafePath(path)
    manifest = folder / folders.MANIFEST
    if not manifest.exists() or folders.read_json(manifest).get("kind") != KIND:
        return [folder]
    seeds = sorted((s for s in folder.entries() if s.name.startswith("seed_")), key=lambda s: (len(s.name), s.name))
    arms = (arm for seed in seeds for arm in seed.entries() if arm.name != "shared")
    return [arm for arm in arms if (arm / folders.MANIFEST).exists()]
