"""A leaderboard as a document: what `t2t bench` prints, `leaderboard.md` and `leaderboard.html`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_core.report.charts import Chart, Dots, Lane, Lines, Point, Scatter, Series, Spot
from t2t_core.report.document import (
    Block,
    Cell,
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
    Tone,
    Words,
)
from t2t_core.report.figures import DASH, Figure
from t2t_leaderboard import answer_tables, repeated_tables
from t2t_leaderboard.families import family
from t2t_leaderboard.named_rows import Links, Named

Json = Mapping[str, Any]
_QUOTED = "reported by others, measured on their own instances"
_PROBLEMS = 30  # shown of those that a verification found


def board_document(board: Json, verification: Json | None, links: Links | None = None) -> Document:
    """The document of `leaderboard.json` and what `t2t verify` last said of it; `links` has the pages of the rows' answers."""
    title = f"{board['title'][:1].upper()}{board['title'][1:]}: leaderboard"
    verified = bool(verification and verification["verified"])
    moved = verification and verification.get("moved")
    tone: Tone = "strong" if not verification or (verified and moved) else "good" if verified else "bad"
    lead: list[Block] = [Paragraph(_facts(board), "soft"), Paragraph(status(verification), tone)]
    if verification and verification["problems"]:
        lead.append(Items(verification["problems"][:_PROBLEMS]))
    made = [*sections(board, links), Section("How to read this", [Items(board["notes"])])]
    return Document(title, lead, made, filters(board))


def filters(board: Json) -> list[Filter]:
    """What a reader may choose by. Where the tables' titles end in one word, they are told by it."""
    last = {table["title"].split()[-1] for table in board["tables"] if " " in table["title"]}
    named = (next(iter(last)) if len(last) == 1 else "table", board["columns"], "first failed check", "family")
    return [Filter(facet, title) for facet, title in zip(("table", "column", "failure", "family"), named, strict=True)]


def sections(board: Json, links: Links | None = None) -> list[Section]:
    """A section for each table of the board."""
    made = []
    for number, table in enumerate(board["tables"]):
        blocks = list(_table(board, table, Named.of(table, number, links or {})))
        made.append(Section(table["title"], blocks, {"table": table["title"]}))
    return made


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
    if said := settings.get("system_prompt"):
        facts.append(f"system prompt: {said}")
    return " · ".join(facts)


def _table(board: Json, table: Json, named: Named) -> Iterator[Block]:
    """Everything of one table: the rates with their intervals, then what stands beside them."""
    measured = [row for row in table["rows"] if row["kind"] == "measured"]
    rates = [metric for metric in board["metrics"] if metric["kind"] == "rate"]
    for one in table["sets"]:
        yield Paragraph(f"Set {one['name']} ({one['kind']}), SHA-256 {one['sha256'][:16]}", "soft")
    for metric in rates:
        yield _rates(table, metric, named)
    if rates and table["rows"]:
        yield Charts(list(_charts(table, [m["name"] for m in rates], named)))
    if measured:
        yield from repeated_tables.blocks(rates, measured, named)
        yield from answer_tables.blocks(measured, rates[0]["name"] if rates else "", named)
        yield _means(board, table, measured, named)


def _figure(cell: Json | None, link: str = "") -> Figure:
    if not cell:
        return Figure(None)
    return Figure(cell.get("value"), cell.get("low"), cell.get("high"), also=cell.get("mean_of_cells"), link=link)


def _rates(table: Json, metric: Json, named: Named) -> Table:
    name = metric["name"]
    rows: list[Row | Divider] = []
    for row in table["rows"]:
        quoted = row["kind"] != "measured"
        if quoted and not any(isinstance(r, Divider) for r in rows):
            rows.append(Divider(_QUOTED))
        cells = [_figure(row["cells"].get(c, {}).get(name), named.link(row, c)) for c in table["columns"]]
        facets = {"family": row.get("family") or family(row["policy"])}
        rows.append(Row([named.name(row), *cells, _figure(row["total"].get(name))], "quoted" if quoted else "", facets))
    columns = [Column("policy", words=True), *(Column(c, heat=True, facets={"column": c}) for c in table["columns"])]
    return Table([*columns, Column("total", total=True)], rows, f"{metric['title']}, %", sortable=True)


def _means(board: Json, table: Json, measured: Sequence[Json], named: Named) -> Table:
    """The means of the measured rows, column by column, each with the number of answers that it is over."""
    rate = next(m["name"] for m in board["metrics"] if m["kind"] == "rate")
    means = [
        m for m in board["metrics"]
        if m["kind"] == "mean" and any(row["total"][m["name"]]["value"] is not None for row in measured)
    ]  # fmt: skip
    rows = []
    for row in measured:
        cells, facets = [*(row["cells"].get(column, {}) for column in table["columns"]), row["total"]], named.facets(row)
        counts: list[Cell] = [f"{c[rate]['n']:,}" if rate in c else DASH for c in cells]
        rows.append(Row([named.name(row), "instances", *counts], facets=facets))
        for metric in means:
            title = f"{metric['title']}, {metric['unit']}" if metric["unit"] else metric["title"]
            rows.append(Row([named.name(row), title, *(_mean(c.get(metric["name"], {})) for c in cells)], facets=facets))
    columns = [Column("policy", words=True), Column("mean", words=True)]
    columns += [Column(c, facets={"column": c}) for c in table["columns"]]
    return Table([*columns, Column("total", total=True)], rows, "Means of the measured rows", sortable=True)


def _mean(figure: Json) -> Words:
    """A mean over the answers that have it, and how many those are."""
    value = figure.get("value")
    return Words(DASH) if value is None else Words(Figure(value).text(), f"n {figure['n']:,}")


def _charts(table: Json, rates: Sequence[str], named: Named) -> Iterator[Chart]:
    first, *more = rates[:2]
    caption = f"Totals: {first} (filled)" + "".join(f" and {name} (hollow)" for name in more) + ", with 95 % intervals"
    lanes, series, spots = [], [], []
    for row in table["rows"]:
        label, colour = _label(row), named.colour(row)
        lanes.append(Lane(label, [Point(_figure(row["total"].get(m)), m != first, m) for m in (*more, first)], colour))
        series.append(Series(label, [_figure(row["cells"].get(c, {}).get(first)) for c in table["columns"]], colour))
        cost, rate = row.get("answers", {}).get("cost_usd"), _figure(row["total"].get(first))
        if cost and rate.value is not None:
            spots.append(Spot(label, cost / row["answers"]["asked"], rate, colour))
    yield Dots(caption, {"": lanes})
    if (families := _families(table, first)) and len(families) < len(lanes):
        yield Dots(f"Families: the total {first} rate of each member", {"": families})
    if spots:
        yield Scatter(f"{first}, % against USD per answer", spots)
    yield Lines(f"{first} by column, %; dashed in grey: reported", table["columns"], series, wide=True)


def _families(table: Json, metric: str) -> list[Lane]:
    """A lane for each family with a point for each member, the family with the best member first (the rows are in that order)."""
    members: dict[str, list[Point]] = {}
    for row in table["rows"]:
        point = Point(_figure(row["total"].get(metric)), row["kind"] != "measured", _label(row))
        members.setdefault(row.get("family") or family(row["policy"]), []).append(point)
    best = sorted(members, key=lambda name: -max(point.figure.value or 0.0 for point in members[name]))
    return [Lane(name, members[name], number) for number, name in enumerate(best)]


def _label(row: Json) -> str:
    return str(row.get("label", row["policy"]))
