"""A comparison of two rows as a document."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_core.report.document import Column, Document, Items, Paragraph, Row, Section, Table
from t2t_core.report.figures import Figure
from t2t_leaderboard.comparison import ASSUMPTIONS, Comparison


def comparison_document(a: str, b: str, found: Sequence[Comparison], in_common: str = "") -> Document:
    """A row per table and metric: both figures, their difference, and what speaks against chance. `in_common` says what is
    compared where the two answered different instances."""
    rows = []
    for one in found:
        d = one.difference
        low, high = one.interval or (None, None)
        difference = Figure(d.value, low, high, interval_digits=2, signed=True)
        counts = [f"{d.instances:,}", f"{d.higher} / {d.lower}"]
        metric = f"{one.metric}, {one.unit}" if one.unit else one.metric
        rows.append(Row([one.table, metric, Figure(one.a), Figure(one.b), difference, *counts, _p(d.p), _p(one.holm)]))
    columns = [Column("table", words=True), Column("metric", words=True), Column("A"), Column("B"), Column("A - B", total=True)]
    columns += [Column(name) for name in ("n", "A higher / lower", "p", "p (Holm)")]
    tests = ", ".join(sorted({one.difference.test for one in found}))
    notes = Items([*ASSUMPTIONS, f"tests used: {tests}"])
    sides = [Paragraph(f"A: {a}"), Paragraph(f"B: {b}"), *([Paragraph(in_common, "strong")] if in_common else [])]
    return Document("A and B", sides, [Section("Differences", [Table(columns, rows), notes])])


def _p(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"
