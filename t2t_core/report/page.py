"""A run as one self-contained HTML page: no script, no request to anywhere, every text of a stranger escaped.

The page's content security policy allows nothing but its own style sheet, by hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from t2t_core.cells import numbers
from t2t_core.report.behaviour import MEASURES, analyze
from t2t_core.report.plots import lines
from t2t_core.report.run_plots import run_plots
from t2t_core.report.summary import bench_rows, figure, summarize
from t2t_core.report.training import training_rows, updates
from t2t_core.run.round_files import RoundFiles, finished_rounds
from t2t_core.store import folders
from t2t_core.store.paths import SafePath

MAX_SHOWN = 20_000  # characters of a prompt or reply on the page
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: .8rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); text-align: right; }
th:first-child, td:first-child { text-align: left; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .6rem; border: 1px solid #8884; border-radius: .3rem; }
td.changed { font-weight: 700; color: light-dark(#a03, #f88); }
.warning { border: 2px solid #c33; padding: .5rem; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; }
svg { max-width: 100%; height: auto; }
"""


def page(path: Path | SafePath) -> str:
    """The page of a run; a pure function of its folder."""
    folder = SafePath.of(path)
    summary = summarize(folder)
    experiment = summary["experiment"]
    title = f"{experiment['designer']} designs {experiment['testbed']}"
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    parts = [
        f"<h1>{_text(title)}</h1>",
        f"<p>Context {_text(experiment['context'])}, trainer {_text(experiment['trainer'])}, "
        f"policy {_text(experiment['policy'])}, seed {_text(experiment['seed'])}. "
        f"{len(summary['rounds'])} of {_text(experiment['rounds'])} rounds are finished.</p>",
        *(f'<p class="warning">Unequal budgets, the arms do not compare: {_text(line)}</p>' for line in summary["unequal"]),
        *_rounds(folder, summary),
        *_bench(summary["bench"]),
        "<h2>What each arm was given</h2>",
        _table(
            ["arm", *_words(next(iter(summary["budgets"].values())))], ([a, *b.values()] for a, b in summary["budgets"].items())
        ),
        *_designs(folder, summary["designs"]),
        *_behaviour(folder),
        *_training(folder, summary),
        *_manifest(folder),
    ]
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{_text(title)}</title>\n'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _rounds(folder: SafePath, summary: Mapping[str, Any]) -> Iterable[str]:
    rounds = summary["rounds"]
    yield "<h2>Validation per round</h2>"
    yield _table(
        ["round", "valid % [95 %]", "optimal % [95 %]"], ([r["round"], figure(r["valid"]), figure(r["optimal"])] for r in rounds)
    )
    yield '<div class="plots">' + "\n".join(run_plots(folder).values()) + "</div>"
    yield "<h2>Configurations, in percent</h2><p>Bold: changed by the design.</p>"
    if rounds:
        yield _configurations(rounds)


def _configurations(rounds: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for group, knobs in rounds[0]["configuration"].items():
        for knob in numbers(knobs):
            values = [r["configuration"].get(group, {}).get(knob) for r in rounds]
            cells = [f"<td>{_text(group)} {_text(knob.replace('_', ' '))}</td>"]
            for before, value in zip([values[0], *values], values, strict=False):
                mark = ' class="changed"' if value != before else ""
                cells.append(f"<td{mark}>{_percent(value)}</td>")
            rows.append("<tr>" + "".join(cells) + "</tr>")
    head = "".join(f"<th>round {_text(r['round'])}</th>" for r in rounds)
    return f"<table><thead><tr><th>knob</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _bench(bench: Mapping[str, Any] | None) -> Iterable[str]:
    for table in (bench or {"sets": []})["sets"]:
        yield f"<h2>Bench: {_text(table['name'])}, {_text(table['instances'])} instances</h2>"
        yield _table(*bench_rows(table))
        rows = ([" - ".join(d["arms"]), d["metric"], figure(d), f"{d['p']:.3g}", d["test"]] for d in table["differences"])
        yield _table(["difference", "metric", "points [95 %]", "p", "test"], rows)


def _designs(folder: SafePath, designs: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for design in designs:
        files = RoundFiles(folder, design["after_round"])
        yield f"<h2>Design after round {_text(design['after_round'])}: {_text(design['outcome'])}</h2>"
        yield f"<p>{len(design['changed'])} cells changed; {_text(design['cost']['completion_tokens'])} tokens written.</p>"
        notes = [
            *design["notes"],
            *(f"{c['knob']}: {c['proposed']} -> {c['used']} ({c['reason']})" for c in design["corrections"]),
        ]
        yield "<ul>" + "".join(f"<li>{_text(note)}</li>" for note in notes) + "</ul>" if notes else ""
        seen, raw = folders.read_text(files.context), files.read_proposal()["raw"]
        yield f"<details><summary>What the designer saw</summary><pre>{_long(seen)}</pre></details>"
        yield f"<details><summary>Its reply</summary><pre>{_long(raw)}</pre></details>" if raw else ""


def _behaviour(folder: SafePath) -> Iterable[str]:
    result = analyze(folder)
    if result["steps"]:
        yield "<h2>Behaviour</h2>"
        head = ["number", *(f"after {s['after_round']}" for s in result["steps"]), "formula", "the paper saw"]
        yield _table(head, ([m.name, *(_number(s[m.name]) for s in result["steps"]), m.formula, m.paper] for m in MEASURES))


def _training(folder: SafePath, summary: Mapping[str, Any]) -> Iterable[str]:
    header, rows = training_rows(summary["training"])
    if rows:
        yield "<h2>Training</h2><p>Means of a round's first and last fifth of updates.</p>"
        yield _table(header, rows)
    curves = {}
    for files in finished_rounds(folder):
        values = [figures.get("reward") for figures in updates(files)]
        if any(isinstance(v, (int, float)) for v in values):
            curves[f"round {files.index}"] = [v if isinstance(v, (int, float)) else None for v in values]
    if curves:
        length = max(map(len, curves.values()))
        names = [str(i + 1) if i % max(1, length // 6) == 0 else "" for i in range(length)]
        yield f'<div class="plots">{lines("mean reward per update", names, curves)}</div>'


def _manifest(folder: SafePath) -> Iterable[str]:
    manifest = folders.read_json(folder / folders.MANIFEST)
    yield "<details><summary>Configuration, versions, seeds</summary>"
    yield f"<pre>{_long(folders.document(manifest))}</pre></details>"


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    header = "".join(f"<th>{_text(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{_text(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def _words(names: Iterable[str]) -> list[str]:
    return [name.replace("_", " ") for name in names]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: Any) -> str:
    return f"{100 * value:.1f}" if isinstance(value, (int, float)) else "-"


def _text(value: Any) -> str:
    """A value as HTML text; control characters become visible marks."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(value)))


def _long(text: str) -> str:
    shown = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + f"\n... {len(text) - MAX_SHOWN} more characters"
    return escape("".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in shown))
