"""What a run came to, as a pure function of its folder: validation per round, configurations and what changed in them, the
bench, and what each arm was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from t2t_core.cells import numbers
from t2t_core.evaluation.stats import Rate, stratified
from t2t_core.report.training import training_rows, training_summary
from t2t_core.run.closing_bench import read_table
from t2t_core.run.round_files import RoundFiles, finished_rounds, open_run
from t2t_core.store.paths import SafePath

EQUAL = ("rounds", "instances", "samples", "updates")  # what two arms must have been given alike


def summarize(path: Path | SafePath) -> dict[str, Any]:
    """The summary of a run, shares with 95 % intervals: {"rounds", "training", "designs", "budgets", "unequal", "shared",
    "bench"}."""
    folder = SafePath.of(path)
    _, experiment = open_run(folder)
    arms = {"designed": folder} | ({"control": folder / "control"} if (folder / "control").exists() else {})
    budgets = {name: budget(place) for name, place in arms.items()}
    bench = folder / "bench" / "table.json"
    return {
        "experiment": experiment.to_dict(),
        "rounds": [round_summary(files) for files in finished_rounds(folder)],
        "training": {name: list(training_summary(list(finished_rounds(place)))) for name, place in arms.items()},
        "designs": list(designs(folder)),
        "budgets": budgets,
        "unequal": unequal(budgets),
        "shared": {name: [files.shared() for files in finished_rounds(place)] for name, place in arms.items()},
        "bench": read_table(bench) if bench.exists() else None,
    }


def round_summary(files: RoundFiles) -> dict[str, Any]:
    """Validation of one round: totals as unweighted mean over the groups, and per group."""
    groups = files.read_breakdown()["groups"]
    rates = {name: asdict(stratified([_rate(counts, name) for counts in groups.values()])) for name in ("valid", "optimal")}
    per_group = {g: {n: _share(c, n) for n in ("valid", "optimal")} for g, c in groups.items()}
    return {"round": files.index, **rates, "groups": per_group, "configuration": files.read_configuration()}


def _rate(counts: Mapping[str, Any], name: str) -> Rate:
    return Rate(1, counts["answers"], counts[name], counts[name])


def _share(counts: Mapping[str, Any], name: str) -> float | None:
    return counts[name] / counts["answers"] if counts["answers"] else None


def designs(folder: SafePath) -> Iterator[dict[str, Any]]:
    """Each design step: who, how it went, what it cost, every cell that changed, and every correction."""
    files = RoundFiles(folder, 0)
    while files.projection.exists():
        proposal, projection = files.read_proposal(), files.read_projection()
        before = files.read_configuration()
        yield {
            "after_round": files.index,
            "designer": proposal["designer"],
            "outcome": proposal["outcome"],
            "notes": [*proposal["notes"], *([projection["note"]] if projection["note"] else [])],
            "cost": proposal["cost"],
            "changed": changed_cells(before, projection["configuration"]),
            "corrections": projection["changes"],
            "summary": proposal["summary"],
        }
        files = RoundFiles(folder, files.index + 1)


def changed_cells(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The knobs that differ between two configurations, group by group; where joint cells do, "cells" beside them."""
    return [
        {"group": group, "knob": knob, "before": before.get(group, {}).get(knob), "after": value}
        for group, knobs in after.items()
        for knob, value in {**dict.fromkeys(before.get(group, {})), **knobs}.items()
        if before.get(group, {}).get(knob) != value
    ]


def budget(folder: SafePath) -> dict[str, Any]:
    """What an arm was given and used: rounds, instances drawn, samples, updates and tokens of training, and design calls."""
    total = dict.fromkeys(("rounds", "instances", "samples", "updates", "tokens", "design_calls", "design_tokens"), 0)
    total["design_usd"] = 0
    for files in finished_rounds(folder):
        training = files.read_training()
        total["rounds"] += 1
        total["instances"] += files.instances_drawn()
        for name in ("samples", "updates", "tokens"):
            total[name] += training[name]
        if files.proposal.exists():
            cost = files.read_proposal()["cost"]
            total["design_calls"] += cost["calls"]
            total["design_tokens"] += cost["prompt_tokens"] + cost["completion_tokens"]
            total["design_usd"] += cost["usd"]
    return total


def unequal(budgets: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Where the arms were not given the same; empty means that they compare."""
    found = []
    for name in EQUAL:
        values = {arm: given[name] for arm, given in budgets.items()}
        if len(set(values.values())) > 1:
            found.append(f"{name} differ: " + ", ".join(f"{arm} {value}" for arm, value in values.items()))
    return found


# --- as text


def render(summary: Mapping[str, Any]) -> str:
    """The summary as Markdown."""
    parts = ["# Validation per round", _rounds_table(summary["rounds"]), "# Configurations (percent; * changed by the design)"]
    parts.append(_configurations(summary["rounds"]))
    parts += [_design(design) for design in summary["designs"]]
    parts += _training(summary["training"])
    if summary["bench"]:
        parts += ["# Bench (percent, 95 % interval)", *(_bench(s) for s in summary["bench"]["sets"])]
    parts += ["# What each arm was given", _budgets(summary["budgets"])]
    parts += [f"UNEQUAL BUDGETS, the arms do not compare: {line}" for line in summary["unequal"]]
    parts += _shared(summary["shared"])
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    table = [list(header), ["---"] * len(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    table[1] = ["-" * w for w in widths]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in table)


def figure(estimate: Mapping[str, float]) -> str:
    """A rate in percent with its interval."""
    return f"{100 * estimate['value']:.1f} [{100 * estimate['low']:.1f}, {100 * estimate['high']:.1f}]"


def _rounds_table(rounds: Sequence[Mapping[str, Any]]) -> str:
    groups = list(rounds[0]["groups"]) if rounds else []
    rows = []
    for r in rounds:
        per = [_percent(r["groups"].get(g, {}).get("valid")) for g in groups]
        rows.append([str(r["round"]), figure(r["valid"]), figure(r["optimal"]), *per])
    return markdown(["round", "valid % [95 %]", "optimal % [95 %]", *(f"valid {g}" for g in groups)], rows)


def _percent(share: Any) -> str:
    return f"{100 * share:.0f}" if isinstance(share, (int, float)) else "-"


def _configurations(rounds: Sequence[Mapping[str, Any]]) -> str:
    if not rounds:
        return ""
    first = rounds[0]["configuration"]
    rows = []
    for group, knobs in first.items():
        for knob in numbers(knobs):
            values = [r["configuration"].get(group, {}).get(knob) for r in rounds]
            marks = ["", *("*" if b != a else "" for a, b in zip(values, values[1:], strict=False))]
            rows.append(
                [group, knob, *(f"{100 * v:.1f}{m}" if v is not None else "-" for v, m in zip(values, marks, strict=True))]
            )
    return markdown(["group", "knob", *(f"round {r['round']}" for r in rounds)], rows)


def _design(design: Mapping[str, Any]) -> str:
    lines = [
        f"After round {design['after_round']}: {design['designer']} {design['outcome']}, {len(design['changed'])} cells changed"
    ]
    lines += [f"- note: {note}" for note in design["notes"]]
    lines += [f"- corrected {c['knob']}: {c['proposed']} -> {c['used']} ({c['reason']})" for c in design["corrections"]]
    return printable("\n".join(lines))


def _training(arms: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    header, rows = training_rows(arms)
    return ["# Training (means of a round's first and last fifth of updates)", printable(markdown(header, rows))] if rows else []


def _bench(table: Mapping[str, Any]) -> str:
    lines = [f"{table['name']}: {table['instances']} instances", "", markdown(*bench_rows(table)), ""]
    for d in table["differences"]:
        one, other = d["arms"]
        lines.append(f"{one} - {other}, {d['metric']}: {figure(d)} points, p = {d['p']:.3g} ({d['test']})")
    return "\n".join(lines)


def bench_rows(table: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of one set of a bench: rates in percent with intervals, then means over the answers that have them."""
    rates, means = (list(table["rows"][0][kind]) if table["rows"] else [] for kind in ("rates", "means"))
    rows = []
    for row in table["rows"]:
        shown = ["-" if row["means"][m] is None else f"{row['means'][m]:.2f}" for m in means]
        rows.append([row["arm"], *(figure(row["rates"][m]) for m in rates), *shown])
    return ["arm", *rates, *(f"mean {m.replace('_', ' ')}" for m in means)], rows


def _budgets(budgets: Mapping[str, Mapping[str, Any]]) -> str:
    names = list(next(iter(budgets.values())))
    return markdown(
        ["arm", *(n.replace("_", " ") for n in names)], [[a, *(f"{b[n]:g}" for n in names)] for a, b in budgets.items()]
    )


def _shared(arms: Mapping[str, Sequence[Mapping[str, Mapping[str, int]]]]) -> list[str]:
    """What a round's training instances share with each set, from the round with least to that with most."""
    names = list(dict.fromkeys(n for rounds in arms.values() for shared in rounds for counts in shared.values() for n in counts))
    rows = []
    for arm, rounds in arms.items():
        for one in dict.fromkeys(name for shared in rounds for name in shared):
            counts = [[shared[one].get(n, 0) for shared in rounds if one in shared] for n in names]
            rows.append([arm, one, *(f"{min(c)}-{max(c)}" if min(c) < max(c) else f"{c[0]}" for c in counts)])
    table = markdown(["arm", "set", *(n.replace("_", " ") for n in names)], rows)
    return ["# Shared by a round's instances and a set, short of the same instances", printable(table)] if rows else []


def printable(text: str) -> str:
    """Strangers' text without control characters: nothing a model says may steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
