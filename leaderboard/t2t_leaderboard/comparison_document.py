"""A comparison of two rows as a document."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_core.report.document import Column, Document, Items, Paragraph, Row, Section, Table
from t2t_core.report.figures import Figure
from t2t_leaderboard.comparison import ASSUMPTIONS, Comparison


def comparison_document(a: str, b: str, comparisons: Sequence[Comparison], in_common: str = "") -> Document:
    """A row per table and metric: both figures, their difference, and its p-values. `in_common` says what is
    compared if the two answered different instances."""
    rows = []
    for comparison in comparisons:
        d = comparison.difference
        low, high = comparison.interval or (None, None)
        difference = Figure(d.value, low, high, interval_digits=2, signed=True)
        counts = [f"{d.instances:,}", f"{d.higher} / {d.lower}"]
        metric = f"{comparison.metric}, {comparison.unit}" if comparison.unit else comparison.metric
        sides = (Figure(comparison.a), Figure(comparison.b))
        rows.append(Row([comparison.table, metric, *sides, difference, *counts, _p(d.p), _p(comparison.holm)]))
    columns = [Column("table", words=True), Column("metric", words=True), Column("A"), Column("B"), Column("A - B", total=True)]
    columns += [Column(name) for name in ("n", "A higher / lower", "p", "p (Holm)")]
    tests = ", ".join(sorted({comparison.difference.test for comparison in comparisons}))
    notes = Items([*ASSUMPTIONS, f"tests used: {tests}"])
    lead = [Paragraph(f"A: {a}"), Paragraph(f"B: {b}"), *([Paragraph(in_common, "strong")] if in_common else [])]
    return Document("A and B", lead, [Section("Differences", [Table(columns, rows), notes])])


def _p(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"
