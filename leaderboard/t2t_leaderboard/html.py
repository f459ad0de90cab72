"""The leaderboard as one self-contained page: no script, no address, a content security policy, everything escaped."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from t2t_leaderboard import plots
from t2t_leaderboard.wording import DASH, beside, cost, counts, figure, interval, status, visible

Json = Mapping[str, Any]
_DIVIDER = "reported in the paper, measured on its authors' instances"


@functools.cache
def _style() -> tuple[str, str]:
    """The style sheet, and the policy that admits it and nothing else."""
    text = resources.files("t2t_leaderboard").joinpath("report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return text, f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def show(text: str, width: int = 200) -> str:
    """Text from anybody, visible and harmless in HTML."""
    return escape(visible(text, width))


def render(board: Json, verification: Json | None) -> str:
    """The page."""
    style, policy = _style()
    sections = "".join(_section(board, table, place) for place, table in enumerate(board["tables"]))
    tone = "good" if verification and verification["verified"] else "bad"
    problems = "".join(f"<li>{show(p, 400)}</li>" for p in (verification or {}).get("problems", [])[:30])
    links = "".join(f'<a href="#t{i}">{show(t["title"], 40)}</a>' for i, t in enumerate(board["tables"]))
    notes = "".join(f"<li>{show(note, 400)}</li>" for note in board["notes"])
    title = f"{board['title'][:1].upper()}{board['title'][1:]}: leaderboard"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{show(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
<header>
<h1>{show(title)}</h1>
<p class="soft">{_facts(board)}</p>
<span class="pill {tone}">{show(status(verification), 400)}</span>
{f"<ul>{problems}</ul>" if problems else ""}
<nav>{links}<a href="#notes">How to read this</a></nav>
</header>
{sections}
<section id="notes">
<h2>How to read this</h2>
<ul>{notes}</ul>
</section>
</main>
</body>
</html>
"""


def _facts(board: Json) -> str:
    settings = board["settings"]
    facts = [
        f"{sum(s['instances'] for s in settings['sets']):,} instances",
        f"{settings['samples']} answer{'s' * (settings['samples'] > 1)} each",
        f"prompt format {visible(str(settings['prompt_format']), 40)}",
        f"seed {settings['seed']}",
    ]
    if settings["limit"]:
        facts.append(f"the first {settings['limit']} instances of each column")
    return escape(" · ".join(facts))


def _section(board: Json, table: Json, place: int) -> str:
    colours = {row["row"]: i % 8 for i, row in enumerate(r for r in table["rows"] if r["kind"] == "measured")}
    rates = [m for m in board["metrics"] if m["kind"] == "rate"]
    sets = "".join(
        f'<p class="set">Set {show(s["name"], 60)} ({show(s["kind"], 20)}), SHA-256 <code>{show(s["sha256"][:16], 16)}</code></p>'
        for s in table["sets"]
    )
    grids = "".join(f"<h3>{show(m['title'], 40)}, %</h3>{_rates(table, m, colours)}" for m in rates)
    return f"""<section id="t{place}">
<h2>{show(table["title"], 60)}</h2>
{sets}
<div class="plots">{_plots(table, rates, colours)}</div>
{grids}
<h3>Means</h3>
{_means(board, table, colours)}
<h3>Answers</h3>
{_details(table, colours)}
</section>
"""


def _plots(table: Json, rates: Sequence[Json], colours: Mapping[str, int]) -> str:
    if not rates or not table["rows"]:
        return ""
    first, second = rates[0]["name"], rates[1]["name"] if len(rates) > 1 else None
    caption = f"Totals: {first} (filled)" + (f" and {second} (hollow)" if second else "") + ", with 95 % intervals"
    figures = [(caption, plots.totals(table["rows"], first, second, colours))]
    figures.append((f"{first} by column, %; dashed: reported", plots.by_column(table, first, colours)))
    priced = plots.cost_against(table["rows"], first, colours)
    if priced:
        figures.append((f"{first}, % against USD per answer", priced))
    return "".join(f"<figure><figcaption>{show(text)}</figcaption>{drawn}</figure>" for text, drawn in figures)


def _heat(value: float | None) -> str:
    step = 0 if value is None else min(10, round(value / 10))
    return f' class="h{step}"' if step else ""


def _rates(table: Json, metric: Json, colours: Mapping[str, int]) -> str:
    name = metric["name"]
    head = "".join(f"<th>{show(c, 12)}</th>" for c in table["columns"])
    body, divided = [], False
    for row in table["rows"]:
        if row["kind"] == "reported" and not divided:
            divided = True
            body.append(f'<tr class="divider"><th colspan="{len(table["columns"]) + 2}">{escape(_DIVIDER)}</th></tr>')
        cells = [row["cells"].get(column, {}).get(name) for column in table["columns"]]
        shown = "".join(f"<td{_heat((c or {}).get('value'))}>{_cell(c)}</td>" for c in cells)
        total = f'<td class="total">{_cell(row["total"].get(name))}</td>'
        body.append(f'<tr class="{row["kind"]}"><th>{_name(row, colours)}</th>{shown}{total}</tr>')
    return _grid(f"<th>policy</th>{head}<th>total</th>", body)


def _grid(head: str, body: Sequence[str], kind: str = "rates") -> str:
    return f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def _cell(cell: Json | None) -> str:
    between = interval(cell)
    return figure(cell) + (f"<small>{between}</small>" if between else "")


def _name(row: Json, colours: Mapping[str, int]) -> str:
    if row["kind"] == "reported":
        return show(row["policy"], 60)
    mark = f'<span class="dot c{colours[row["row"]]}"></span>'
    return mark + show(row["label"], 80) + ('<small class="bad">incomplete</small>' if row["incomplete"] else "")


def _means(board: Json, table: Json, colours: Mapping[str, int]) -> str:
    """n and the means of the measured rows, column by column."""
    body = []
    for row in (r for r in table["rows"] if r["kind"] == "measured"):
        lines = beside(board, table, row)
        for place, (title, texts, total) in enumerate(lines):
            name = f'<th rowspan="{len(lines)}">{_name(row, colours)}</th>' if place == 0 else ""
            cells = "".join(f"<td>{text}</td>" for text in texts)
            body.append(f'<tr>{name}<td class="left">{show(title, 40)}</td>{cells}<td class="total">{total}</td></tr>')
    head = "".join(f"<th>{show(c, 12)}</th>" for c in table["columns"])
    return _grid(f'<th>policy</th><th class="left">mean</th>{head}<th>total</th>', body, "details")


def _details(table: Json, colours: Mapping[str, int]) -> str:
    rows = [row for row in table["rows"] if row["kind"] == "measured"]
    order = list(dict.fromkeys(name for row in rows for name in row["failures"]))
    body = []
    for row in rows:
        answers = row["answers"]
        asked, failed = answers["asked"], sum(row["failures"].values())
        valid = asked - answers["errors"] - failed
        words = ", ".join(f"{show(n, 40)} {c}" for n, c in sorted(row["failures"].items(), key=lambda item: -item[1]))
        bar = plots.failures(row["failures"], valid, asked, order) if words else ""
        tokens = "".join(f"<td>{answers[n]:,}</td>" if answers[n] else f"<td>{DASH}</td>" for n in ("tokens", "hidden_tokens"))
        body.append(
            f"<tr><th>{_name(row, colours)}</th><td>{asked:,}</td>{tokens}<td>{cost(row)}</td>"
            f'<td class="left">{show(counts(row)) or "none"}</td><td class="left">{bar}<small>{words or "none"}</small></td></tr>'
        )
    words = '<th class="left">errors, truncated, refused</th><th class="left">first failed check</th>'
    return _grid(f"<th>policy</th><th>answers</th><th>tokens</th><th>hidden</th><th>cost</th>{words}", body, "details")
