"""A leaderboard as a document: what `t2t bench` prints, `leaderboard.md` and `leaderboard.html`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t2t_core.evaluation.row_tables import MetricFigure
from t2t_core.records import Metric
from t2t_core.report.charts import Chart, Dots, Lane, Lines, Point, Scatter, Series, Spot
from t2t_core.report.document import (
    Block,
    Charts,
    Column,
    Divider,
    Document,
    Filter,
    Items,
    Paragraph,
    Row,
    Section,
    Table,
    TableCell,
    Tone,
    Words,
)
from t2t_core.report.figures import DASH, Figure
from t2t_leaderboard import answer_tables, repeated_tables
from t2t_leaderboard.named_rows import Links, Named, facets, shown
from t2t_leaderboard.records import Board, BoardTable, MeasuredRow
from t2t_leaderboard.schemas import VerificationRecord

_QUOTED = "reported by others, measured on their own instances"
_PROBLEMS = 30  # the most problems shown of a verification


def board_document(board: Board, verification: VerificationRecord | None, links: Links | None = None) -> Document:
    """The document of a board, with what `t2t verify` last said of it. `links` has the pages of the rows' answers."""
    title = f"{board.title[:1].upper()}{board.title[1:]}: leaderboard"
    tone: Tone = "strong"
    if verification and not (verification.verified and verification.moved):
        tone = "good" if verification.verified else "bad"
    lead: list[Block] = [Paragraph(_facts(board), "soft"), Paragraph(status(verification), tone)]
    if verification and verification.problems:
        lead.append(Items(verification.problems[:_PROBLEMS]))
    made = [*sections(board, links), Section("How to read this", [Items(board.notes)])]
    return Document(title, lead, made, filters(board.tables, board.columns))


def filters(tables: Sequence[BoardTable], columns: str) -> list[Filter]:
    """What a reader can filter by. `columns` is the word for a column. If all tables' titles end in the same word, that word
    names the filter of tables."""
    last = {table.title.split()[-1] for table in tables if " " in table.title}
    named = (next(iter(last)) if len(last) == 1 else "table", columns, "first failed check", "family")
    return [Filter(facet, title) for facet, title in zip(("table", "column", "failure", "family"), named, strict=True)]


def sections(board: Board, links: Links | None = None) -> list[Section]:
    """A section for each table of the board."""
    made = []
    for number, table in enumerate(board.tables):
        blocks = list(_table(board, table, Named.of(table, number, links or {})))
        made.append(Section(table.title, blocks, {"table": table.title}))
    return made


def status(verification: VerificationRecord | None) -> str:
    """What is known about the figures: verified, not verified, or what is wrong."""
    if not verification:
        return "not verified: t2t verify has not looked at this folder"
    if verification.verified and verification.moved:
        return (
            f"sound, but another version of the reader scored it: {verification.moved:,} of {verification.answers:,}"
            f" verdicts are others under reader {verification.reader}; the same t2t bench scores the answers anew"
        )
    if verification.verified:
        return (
            f"verified: {verification.answers:,} answers of {verification.rows} row(s) rescored from their raw text"
            f" (t2t-core {verification.version})"
        )
    if not verification.problems:
        return f"incomplete: {verification.unfinished[0]}"
    return f"NOT VERIFIED: {len(verification.problems)} problem(s), the first: {verification.problems[0]}"


def _facts(board: Board) -> str:
    settings = board.settings
    facts = [
        f"{sum(record.instances for record in settings.sets):,} instances",
        f"{settings.samples} answer{'s' * (settings.samples > 1)} each",
        f"prompt format {settings.prompt_format}",
        f"seed {settings.seed}",
    ]
    if settings.limit:
        facts.append(f"the first {settings.limit} instances of each column")
    if settings.system_prompt:
        facts.append(f"system prompt: {settings.system_prompt}")
    return " · ".join(facts)


def _table(board: Board, table: BoardTable, named: Named) -> Iterator[Block]:
    """Everything about one table: the rates with their intervals, then charts, answers and means."""
    rates = board.rates
    for record in table.sets:
        yield Paragraph(f"Set {record.name} ({record.kind}), SHA-256 {record.sha256[:16]}", "soft")
    for metric in rates:
        yield _rates(table, metric, named)
    if rates and table.rows:
        yield Charts(list(_charts(table, [metric.name for metric in rates], named)))
    if table.measured:
        yield from repeated_tables.blocks(rates, table.measured, named)
        yield from answer_tables.blocks(table.measured, rates[0].name if rates else "", named)
        yield _means(board, table, named)


def _rates(table: BoardTable, metric: Metric, named: Named) -> Table:
    name = metric.name
    rows: list[Row | Divider] = []
    for row in table.rows:
        quoted = not isinstance(row, MeasuredRow)
        if quoted and not any(isinstance(above, Divider) for above in rows):
            rows.append(Divider(_QUOTED))
        cells = [shown(row.cell(column, name), named.link(row, column)) for column in table.columns]
        rows.append(Row([named.name(row), *cells, shown(row.total(name))], "quoted" if quoted else "", facets(row)))
    columns = [Column("policy", words=True), *(Column(c, heat=True, facets={"column": c}) for c in table.columns)]
    return Table([*columns, Column("total", total=True)], rows, f"{metric.title}, %", sortable=True)


def _means(board: Board, table: BoardTable, named: Named) -> Table:
    """The means of the measured rows, column by column, each with the number of answers behind it."""
    rate = board.rates[0].name
    means = [
        metric for metric in board.metrics
        if metric.kind == "mean" and any(row.table.total[metric.name].value is not None for row in table.measured)
    ]  # fmt: skip
    rows = []
    for row in table.measured:
        cells = [*(row.table.cells.get(column, {}) for column in table.columns), row.table.total]
        counts: list[TableCell] = [f"{cell[rate].n:,}" if rate in cell else DASH for cell in cells]
        rows.append(Row([named.name(row), "instances", *counts], facets=facets(row)))
        for metric in means:
            title = f"{metric.title}, {metric.unit}" if metric.unit else metric.title
            rows.append(Row([named.name(row), title, *(_mean(cell.get(metric.name)) for cell in cells)], facets=facets(row)))
    columns = [Column("policy", words=True), Column("mean", words=True)]
    columns += [Column(column, facets={"column": column}) for column in table.columns]
    return Table([*columns, Column("total", total=True)], rows, "Means of the measured rows", sortable=True)


def _mean(figure: MetricFigure | None) -> Words:
    """A mean over the answers that have it, and how many those are."""
    if figure is None or figure.value is None:
        return Words(DASH)
    return Words(Figure(figure.value).text(), f"n {figure.n:,}")


def _charts(table: BoardTable, rates: Sequence[str], named: Named) -> Iterator[Chart]:
    first, *more = rates[:2]
    caption = f"Totals: {first} (filled)" + "".join(f" and {name} (hollow)" for name in more) + ", with 95 % intervals"
    lanes, series, spots = [], [], []
    for row in table.rows:
        colour = named.colour(row)
        lanes.append(Lane(row.label, [Point(shown(row.total(m)), m != first, m) for m in (*more, first)], colour))
        series.append(Series(row.label, [shown(row.cell(column, first)) for column in table.columns], colour))
        rate = shown(row.total(first))
        if isinstance(row, MeasuredRow) and row.table.answers.cost_usd and rate.value is not None:
            spots.append(Spot(row.label, row.table.answers.cost_usd / row.table.answers.asked, rate, colour))
    yield Dots(caption, {"": lanes})
    if (families := _families(table, first)) and len(families) < len(lanes):
        yield Dots(f"Families: the total {first} rate of each member", {"": families})
    if spots:
        yield Scatter(f"{first}, % against USD per answer", spots)
    yield Lines(f"{first} by column, %; dashed in grey: reported", table.columns, series, wide=True)


def _families(table: BoardTable, metric: str) -> list[Lane]:
    """A lane for each family with a point for each member. The family with the best member comes first, as the rows do."""
    members: dict[str, list[Point]] = {}
    for row in table.rows:
        point = Point(shown(row.total(metric)), not isinstance(row, MeasuredRow), row.label)
        members.setdefault(row.family, []).append(point)
    best = sorted(members, key=lambda name: -max(point.figure.value or 0.0 for point in members[name]))
    return [Lane(name, members[name], number) for number, name in enumerate(best)]
