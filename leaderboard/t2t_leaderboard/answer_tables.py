"""What answers cost, and why some were not valid: tables and bars of a leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from msgspec import UNSET

from t2t_core.evaluation.row_tables import AnswerCounts, RowTable
from t2t_core.report.charts import Stacks
from t2t_core.report.document import Block, Charts, Column, Row, Table, TableCell, Words, spaced
from t2t_core.report.figures import DASH, Figure
from t2t_leaderboard.named_rows import Named, facets
from t2t_leaderboard.records import MeasuredRow

_CAPTION = "Answers by their first failed check"


def blocks(measured: Sequence[MeasuredRow], metric: str, named: Named) -> Iterator[Block]:
    """The tables and bars. `metric` is the rate that counts an instance as solved."""
    yield _answers(measured, metric, named)
    order = list(dict.fromkeys(name for row in measured for name in row.table.failures))
    if order:
        yield _failures(measured, order, named)
        yield Charts([_bars(measured, order)])


def solved(table: RowTable, metric: str) -> int | None:
    """How many instances have an answer that counts; None if that is not known."""
    repeated = table.repeated
    total = 0.0
    for column, cell in table.cells.items():
        n, value = cell[metric].n, cell[metric].value
        if repeated is not UNSET:
            value = repeated.cells[column].passes[metric][str(repeated.answers)].value
        if value is None:
            return None
        total += value * n / 100
    return round(total)


def _answers(measured: Sequence[MeasuredRow], metric: str, named: Named) -> Table:
    """The number of answers, and what they cost in total and per solved instance."""
    rows = []
    for row in measured:
        answers, right = row.table.answers, solved(row.table, metric) if metric else None
        counts = [f"{tokens:,}" if tokens else DASH for tokens in (answers.tokens, answers.hidden_tokens)]
        per = [_per(answers.cost_usd, right, money=True), _per(answers.tokens or None, right)]
        cells: list[TableCell] = [named.name(row), f"{answers.asked:,}", *counts, _cost(answers.cost_usd), *per, _faults(answers)]
        rows.append(Row(cells, facets=facets(row)))
    titles = ["answers", "tokens", "hidden", "cost", "USD per solved", "tokens per solved"]
    columns = [Column("policy", words=True), *map(Column, titles), Column("errors, truncated, refused", words=True)]
    return Table(columns, rows, "Answers, and what they took for each solved instance", sortable=True)


def _per(spent: float | None, right: int | None, money: bool = False) -> Figure:
    """What was spent on all questions, divided by the number of solved instances."""
    if spent is None or not right:
        return Figure(None)
    value = spent / right
    return Figure(value, digits=(6 if value < 0.01 else 4) if money else 1, unit="$" if money else "")


def _cost(value: float | None) -> str:
    return DASH if value is None else f"${value:,.4f}" if value < 1 else f"${value:,.2f}"


def _faults(answers: AnswerCounts) -> Words:
    """Errors, truncated and refused answers in words."""
    counts = {"errors": answers.errors, "truncated": answers.truncated, "refused": answers.refused}
    words = [f"{count} {name.removesuffix('s') if count == 1 else name}" for name, count in counts.items() if count]
    incomplete = ["incomplete"] if answers.erring else []
    return Words(", ".join([*incomplete, *words]) or "none", tone="bad" if incomplete else "")


def _parts(table: RowTable) -> dict[str, int]:
    """The outcomes of all answers: valid, the check that they failed first, or an error."""
    errors = table.answers.errors
    valid = table.answers.asked - errors - sum(table.failures.values())
    return {"valid": valid, **table.failures, **({"error": errors} if errors else {})}


def _failures(measured: Sequence[MeasuredRow], order: Sequence[str], named: Named) -> Table:
    """Which check answers failed first: a count for each check, linked to those answers, and all counts in words."""
    rows = []
    for row in measured:
        failures, page = row.table.failures, named.page(row)
        counts = [Figure(failures.get(f, 0), digits=0, link=_those(page, f) if failures.get(f) else "") for f in order]
        words = ", ".join(f"{spaced(name)} {count}" for name, count in sorted(failures.items(), key=lambda item: -item[1]))
        cells: list[TableCell] = [named.name(row), *counts, words or "none"]
        rows.append(Row(cells, facets=facets(row)))
    checks = [Column(spaced(f), facets={"failure": spaced(f)}) for f in order]
    return Table([Column("policy", words=True), *checks, Column("commonest", words=True)], rows, _CAPTION, sortable=True)


def _those(page: str, failure: str) -> str:
    """The link to the answers that failed this check, if there is a page of them."""
    return f"{page}#failure={quote(spaced(failure))}" if page else ""


def _bars(measured: Sequence[MeasuredRow], order: Sequence[str]) -> Stacks:
    errors = ["error"] if any(row.table.answers.errors for row in measured) else []
    rows = [(row.label, {spaced(name): count for name, count in _parts(row.table).items()}) for row in measured]
    return Stacks("What became of the answers, by first failed check", rows, ["valid", *map(spaced, order), *errors])
