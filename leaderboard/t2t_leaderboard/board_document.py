"""A leaderboard as a document: what `t2t bench` prints, `leaderboard.md` and `leaderboard.html`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_core.report.charts import Bar, Chart, Dots, Lane, Lines, Point, Scatter, Series, Spot
from t2t_core.report.document import (
    Block,
    Cell,
    Charts,
    Column,
    Divider,
    Document,
    Items,
    Paragraph,
    Row,
    Section,
    Table,
    Tone,
    Words,
    spaced,
)
from t2t_core.report.figures import DASH, Figure

Json = Mapping[str, Any]
_QUOTED = "reported by others, measured on their own instances"
_PROBLEMS = 30  # shown of those that a verification found


def board_document(board: Json, verification: Json | None) -> Document:
    """The document of `leaderboard.json` and what `t2t verify` last said of it."""
    title = f"{board['title'][:1].upper()}{board['title'][1:]}: leaderboard"
    verified = bool(verification and verification["verified"])
    moved = verification and verification.get("moved")
    tone: Tone = "strong" if not verification or (verified and moved) else "good" if verified else "bad"
    lead: list[Block] = [Paragraph(_facts(board), "soft"), Paragraph(status(verification), tone)]
    if verification and verification["problems"]:
        lead.append(Items(verification["problems"][:_PROBLEMS]))
    sections = [Section(table["title"], list(_table(board, table))) for table in board["tables"]]
    return Document(title, lead, [*sections, Section("How to read this", [Items(board["notes"])])])


def status(verification: Json | None) -> str:
    """What is known of the figures: verified, not verified, or what is wrong."""
    if not verification:
        return "not verified: t2t verify has not looked at this folder"
    if verification["verified"] and verification.get("moved"):
        return (
            f"sound, but another version of the reader scored it: {verification['moved']:,} of {verification['answers']:,}"
            f" verdicts are others under reader {verification['reader']}; the same t2t bench scores the answers anew"
        )
    if verification["verified"]:
        return (
            f"verified: {verification['answers']:,} answers of {verification['rows']} row(s) rescored from their raw text"
            f" (t2t-core {verification['version']})"
        )
    if not verification["problems"]:
        return f"incomplete: {verification['unfinished'][0]}"
    return f"NOT VERIFIED: {len(verification['problems'])} problem(s), the first: {verification['problems'][0]}"


def _facts(board: Json) -> str:
    settings = board["settings"]
    facts = [
        f"{sum(s['instances'] for s in settings['sets']):,} instances",
        f"{settings['samples']} answer{'s' * (settings['samples'] > 1)} each",
        f"prompt format {settings['prompt_format']}",
        f"seed {settings['seed']}",
    ]
    if settings["limit"]:
        facts.append(f"the first {settings['limit']} instances of each column")
    return " · ".join(facts)


def _table(board: Json, table: Json) -> Iterator[Block]:
    """Everything of one table: the rates with their intervals, then what stands beside them."""
    measured = [row for row in table["rows"] if row["kind"] == "measured"]
    colours = {row["row"]: number for number, row in enumerate(measured)}
    rates = [metric for metric in board["metrics"] if metric["kind"] == "rate"]
    for one in table["sets"]:
        yield Paragraph(f"Set {one['name']} ({one['kind']}), SHA-256 {one['sha256'][:16]}", "soft")
    if rates and table["rows"]:
        yield Charts(list(_charts(table, [m["name"] for m in rates], colours)))
    for metric in rates:
        yield _rates(table, metric, colours)
    if measured:
        yield _means(board, table, measured, colours)
        yield _answers(measured, colours)


def _name(row: Json, colours: Mapping[str, int]) -> Words:
    if row["kind"] != "measured":
        return Words(row["policy"])
    incomplete = row["incomplete"]
    return Words(row["label"], "incomplete" if incomplete else "", "bad" if incomplete else "", colours[row["row"]])


def _figure(cell: Json | None) -> Figure:
    if not cell:
        return Figure(None)
    return Figure(cell.get("value"), cell.get("low"), cell.get("high"), also=cell.get("mean_of_cells"))


def _rates(table: Json, metric: Json, colours: Mapping[str, int]) -> Table:
    name = metric["name"]
    rows: list[Row | Divider] = []
    for row in table["rows"]:
        quoted = row["kind"] != "measured"
        if quoted and not any(isinstance(r, Divider) for r in rows):
            rows.append(Divider(_QUOTED))
        cells = [_figure(row["cells"].get(column, {}).get(name)) for column in table["columns"]]
        rows.append(Row([_name(row, colours), *cells, _figure(row["total"].get(name))], "quoted" if quoted else ""))
    columns = [Column("policy", words=True), *(Column(c, heat=True) for c in table["columns"]), Column("total", total=True)]
    return Table(columns, rows, f"{metric['title']}, %")


def _means(board: Json, table: Json, measured: Sequence[Json], colours: Mapping[str, int]) -> Table:
    """The means of the measured rows, column by column, each with the number of answers that it is over."""
    rate = next(m["name"] for m in board["metrics"] if m["kind"] == "rate")
    means = [
        m for m in board["metrics"]
        if m["kind"] == "mean" and any(row["total"][m["name"]]["value"] is not None for row in measured)
    ]  # fmt: skip
    rows = []
    for row in measured:
        cells = [*(row["cells"].get(column, {}) for column in table["columns"]), row["total"]]
        counts: list[Cell] = [f"{c[rate]['n']:,}" if rate in c else DASH for c in cells]
        rows.append(Row([_name(row, colours), "instances", *counts]))
        for metric in means:
            title = f"{metric['title']}, {metric['unit']}" if metric["unit"] else metric["title"]
            rows.append(Row([_name(row, colours), title, *(_mean(c.get(metric["name"], {})) for c in cells)]))
    columns = [Column("policy", words=True), Column("mean", words=True), *map(Column, table["columns"])]
    return Table([*columns, Column("total", total=True)], rows, "Means of the measured rows")


def _mean(figure: Json) -> Words:
    """A mean over the answers that have it, and how many those are."""
    value = figure.get("value")
    return Words(DASH) if value is None else Words(Figure(value).text(), f"n {figure['n']:,}")


def _answers(measured: Sequence[Json], colours: Mapping[str, int]) -> Table:
    """How many answers, what they took, and what became of those that were not valid."""
    order = list(dict.fromkeys(name for row in measured for name in row["failures"]))
    rows = []
    for row in measured:
        answers = row["answers"]
        counts = [f"{answers[name]:,}" if answers[name] else DASH for name in ("tokens", "hidden_tokens")]
        rows.append(
            Row([_name(row, colours), f"{answers['asked']:,}", *counts, _cost(answers), _faults(row), _failures(row, order)])
        )
    columns = [Column("policy", words=True), *(Column(name) for name in ("answers", "tokens", "hidden", "cost"))]
    columns += [Column(name, words=True) for name in ("errors, truncated, refused", "first failed check")]
    return Table(columns, rows, "Answers")


def _cost(answers: Json) -> str:
    value = answers["cost_usd"]
    return DASH if value is None else f"${value:,.4f}" if value < 1 else f"${value:,.2f}"


def _faults(row: Json) -> Words:
    """Errors, truncated and refused answers in words."""
    answers = row["answers"]
    names = [name for name in ("errors", "truncated", "refused") if answers[name]]
    words = [f"{answers[name]} {name.removesuffix('s') if answers[name] == 1 else name}" for name in names]
    incomplete = ["incomplete"] if row["incomplete"] else []
    return Words(", ".join([*incomplete, *words]) or "none", tone="bad" if row["incomplete"] else "")


def _failures(row: Json, order: Sequence[str]) -> Words:
    """The first failed checks, the commonest first, and a bar of what became of all answers."""
    failures, answers = row["failures"], row["answers"]
    if not failures:
        return Words("none")
    words = ", ".join(f"{spaced(name)} {count}" for name, count in sorted(failures.items(), key=lambda item: -item[1]))
    valid = answers["asked"] - answers["errors"] - sum(failures.values())
    return Words("", words, chart=Bar("failures by their first failed check", answers["asked"], valid, failures, order))


def _charts(table: Json, rates: Sequence[str], colours: Mapping[str, int]) -> Iterator[Chart]:
    first, *more = rates[:2]
    caption = f"Totals: {first} (filled)" + "".join(f" and {name} (hollow)" for name in more) + ", with 95 % intervals"
    lanes, series, spots = [], [], []
    for row in table["rows"]:
        label, colour = _label(row), _colour(row, colours)
        lanes.append(Lane(label, [Point(_figure(row["total"].get(m)), m != first, m) for m in (*more, first)], colour))
        series.append(Series(label, [_figure(row["cells"].get(c, {}).get(first)) for c in table["columns"]], colour))
        cost, rate = row.get("answers", {}).get("cost_usd"), _figure(row["total"].get(first))
        if cost and rate.value is not None:
            spots.append(Spot(label, cost / row["answers"]["asked"], rate, colour))
    yield Dots(caption, {"": lanes})
    yield Lines(f"{first} by column, %; dashed: reported", table["columns"], series)
    if spots:
        yield Scatter(f"{first}, % against USD per answer", spots)


def _label(row: Json) -> str:
    return str(row.get("label", row["policy"]))


def _colour(row: Json, colours: Mapping[str, int]) -> int | None:
    return colours[row["row"]] if row["kind"] == "measured" else None
