"""The leaderboard as Markdown, for a README or an issue."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from t2t_leaderboard.wording import beside, cost, counts, figure, interval, status, visible


def escape(text: str) -> str:
    """Text from anybody as Markdown that shows it and does nothing else."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~$@:-])", r"\\\1", html.escape(visible(text), quote=False))


def render(board: Mapping[str, Any], verification: Mapping[str, Any] | None) -> str:
    lines = [f"# {escape(board['title'])}: leaderboard", "", f"**Status:** {escape(status(verification))}"]
    for table in board["tables"]:
        lines += ["", f"## {escape(table['title'])}", ""]
        lines += [f"Set {escape(s['name'])} ({escape(s['kind'])}), SHA-256 `{s['sha256'][:16]}`" for s in table["sets"]]
        for metric in (m for m in board["metrics"] if m["kind"] == "rate"):
            lines += ["", f"**{escape(metric['title'])}, %**", "", *_rates(table, metric)]
        lines += ["", "**Means of the measured rows**", "", *_means(board, table)]
        lines += ["", "**Answers**", "", *_details(table)]
    lines += ["", *(f"- {escape(note)}" for note in board["notes"]), ""]
    return "\n".join(lines)


def _grid(header: list[str], rows: list[list[str]]) -> list[str]:
    rule = ["---", "---", *["---:"] * (len(header) - 2)]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def _rates(table: Mapping[str, Any], metric: Mapping[str, Any]) -> list[str]:
    def cell(one: Mapping[str, Any] | None) -> str:
        between = interval(one, 1)
        return f"{figure(one)} [{between}]" if between else figure(one)

    name = metric["name"]
    rows = [
        [
            escape(row.get("label", row["policy"])),
            "reported" if row["kind"] == "reported" else "measured, incomplete" if row["incomplete"] else "measured",
            *(cell(row["cells"].get(column, {}).get(name)) for column in table["columns"]),
            f"**{cell(row['total'].get(name))}**",
        ]
        for row in table["rows"]
    ]
    return _grid(["policy", "kind", *(escape(c) for c in table["columns"]), "total"], rows)


def _means(board: Mapping[str, Any], table: Mapping[str, Any]) -> list[str]:
    rows = [
        [escape(row["label"]) if place == 0 else "", escape(title), *texts, f"**{total}**"]
        for row in table["rows"]
        if row["kind"] == "measured"
        for place, (title, texts, total) in enumerate(beside(board, table, row))
    ]
    return _grid(["policy", "mean", *(escape(c) for c in table["columns"]), "total"], rows)


def _details(table: Mapping[str, Any]) -> list[str]:
    rows = []
    for row in (r for r in table["rows"] if r["kind"] == "measured"):
        answers = row["answers"]
        tokens = [f"{answers['tokens']:,}", f"{answers['hidden_tokens']:,}"]
        rows.append([escape(row["label"]), counts(row) or "no errors", str(answers["asked"]), *tokens, cost(row)])
    return _grid(["policy", "errors, truncated, refused", "answers", "tokens", "of them hidden", "cost"], rows)
