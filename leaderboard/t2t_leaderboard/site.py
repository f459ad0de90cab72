"""The site of results: one folder of static pages with all submissions that pass their check, overall and by world.

    index.html              every world: its submissions with their totals, notes on contamination, how to send one
    WORLD.html              the boards of a world, one for each question that was asked
    history.html            what was sent when, and the best so far
    designers.html          the board of designers, if studies are given
    answers/                a page for each submission and table with every answer

The same submissions give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from t2t_core.report import html
from t2t_core.report.charts import Lines, Series
from t2t_core.report.document import (
    Block,
    Charts,
    Column,
    Document,
    Filter,
    Items,
    Links,
    Paragraph,
    Row,
    Section,
    Table,
    TableCell,
    Words,
)
from t2t_core.report.figures import Figure
from t2t_core.store import folders
from t2t_core.study.comparing import StudyResult
from t2t_leaderboard import answer_pages, board_document
from t2t_leaderboard.designers import leaderboard
from t2t_leaderboard.joined import Contamination, Joined, Question, answers, contamination
from t2t_leaderboard.named_rows import facets, shown
from t2t_leaderboard.records import BoardTable

INDEX, HISTORY, DESIGNERS = "index.html", "history.html", "designers.html"
_SEND = (
    "measure your model: t2t bench --policy openai:MODEL --out runs/mine",
    "make the submission: t2t submit runs/mine --name my-model",
    "check it as everybody can: t2t verify leaderboard/results/DATE_my-model",
    "open a pull request with that one folder; the site is built from all folders that pass the same check",
)
_CHECKED = (
    "Every verdict, count, figure and interval is computed anew from the raw texts of the answers and the suite's own instances;"
    " a changed, dropped, added or moved answer is found, and so is a renamed model or another setting. What no check can find is"
    " that the texts came another way than by asking the named model once, and that the model has seen the frozen instances; a"
    " twin, a fresh set of the same distribution, tells the latter."
)


def write(out: Path, joined: Joined, studies: Sequence[StudyResult]) -> list[str]:
    """Write the site, and return the names of its files. Files of the same names are replaced, others stay."""
    names = []
    for name, page in pages(joined, studies):
        folders.write_atomic(out / name, page)
        names.append(name)
    return names


def pages(joined: Joined, studies: Sequence[StudyResult]) -> Iterator[tuple[str, str]]:
    """Yield every file of the site as its name and its page."""
    leads = _leads(joined, bool(studies))
    yield INDEX, html.render(_index(joined, leads))
    yield HISTORY, html.render(_history(joined, leads))
    for world, questions in joined.worlds.items():
        yield _page(world), html.render(_world(questions, leads))
        for question in questions:
            for entry in question.submissions:
                yield from answer_pages.pages(answers(entry), question.board.tables, f"../{_page(world)}")
    if studies:
        made = leaderboard(studies)
        yield DESIGNERS, html.render(Document(made.title, [Links(leads), *made.lead], made.sections))


def _page(world: str) -> str:
    return f"world-{re.sub(r'[^a-z0-9]+', '-', world.lower()).strip('-')}.html"


def _leads(joined: Joined, designers: bool) -> list[tuple[str, str]]:
    worlds = [(questions[0].world.title, _page(world)) for world, questions in joined.worlds.items()]
    return [("all worlds", INDEX), *worlds, ("history", HISTORY), *([("designers", DESIGNERS)] if designers else [])]


def _index(joined: Joined, leads: Sequence[tuple[str, str]]) -> Document:
    sent = sum(len(question.submissions) for question in joined.questions)
    counted = f"{sent} submissions to {len(joined.worlds)} worlds, every one checked."
    lead: list[Block] = [Paragraph(counted, "good"), Links(leads)]
    if joined.refused:
        lead.append(Paragraph(f"{len(joined.refused)} did not pass the check and are not shown: see below.", "bad"))
    sections = [_overall(questions) for questions in joined.worlds.values()]
    sections.append(Section("Has the model seen the frozen sets?", list(_contamination(contamination(joined)))))
    sections.append(Section("Send yours", [Items(_SEND), Paragraph(_CHECKED)]))
    if joined.refused:
        told = [f"{name}: {problem}" for name, problems in joined.refused.items() for problem in problems[:3]]
        sections.append(Section("Not shown", [Items(told)]))
    return Document("Results", lead, sections, [Filter("world", "world"), Filter("family", "family")])


def _overall(questions: Sequence[Question]) -> Section:
    """A table of one world: every submission with its totals by table, best first within each question."""
    world, rows = questions[0].world, list[Row]()
    metric = _rate(questions[0])
    titles = list(dict.fromkeys(table.title for question in questions for table in question.board.tables))
    for question in questions:
        tables = {table.title: table for table in question.board.tables}
        best = next(iter(tables.values()))
        for row in best.measured:
            name = row.policy.row
            totals = [_total(tables.get(title), name, metric) for title in titles]
            link = answer_pages.name_of(name, 0)
            cells: list[TableCell] = [Words(row.label, link=link), name[:10], question.said or "frozen sets", *totals]
            rows.append(Row(cells, facets=facets(row)))
    columns = [Column("submission", words=True), Column("date", words=True), Column("asked", words=True)]
    table = Table([*columns, *(Column(title, heat=True) for title in titles)], rows, f"{metric}, %: totals", sortable=True)
    blocks: list[Block] = [Links([("tables, curves, failures and every answer", _page(world.name))]), table]
    return Section(f"{world.title[:1].upper()}{world.title[1:]}", blocks, {"world": world.name})


def _rate(question: Question) -> str:
    return next((metric.name for metric in question.world.metrics if metric.kind == "rate"), "")


def _total(table: BoardTable | None, submission: str, metric: str) -> Figure:
    """The submission's total in a table, or a dash if it has none."""
    rows = table.measured if table else ()
    return shown(next((row.total(metric) for row in rows if row.policy.row == submission), None))


def _world(questions: Sequence[Question], leads: Sequence[tuple[str, str]]) -> Document:
    sections: list[Section] = []
    for question in questions:
        links = answer_pages.links_of(question.board)
        for made in board_document.sections(question.board, links):
            title = f"{made.title}: {question.said}" if question.said else made.title
            sections.append(Section(title, made.blocks, made.facets))
    notes = list(dict.fromkeys(note for question in questions for note in question.board.notes))
    world = questions[0].world
    tables = [table for question in questions for table in question.board.tables]
    filters = board_document.filters(tables, questions[0].board.columns)
    title = f"{world.title[:1].upper()}{world.title[1:]}: results"
    return Document(title, [Links(leads)], [*sections, Section("How to read this", [Items(notes)])], filters)


def _history(joined: Joined, leads: Sequence[tuple[str, str]]) -> Document:
    """What was sent when, newest first, and the best so far of every question."""
    sections = [
        Section(f"{q.world.title[:1].upper()}{q.world.title[1:]}{': ' * bool(q.said)}{q.said}", list(_dated(q)))
        for q in joined.questions
    ]
    return Document("History", [Links(leads)], sections)


def _dated(question: Question) -> Iterator[Block]:
    metric, tables = _rate(question), question.board.tables
    sent = sorted(question.submissions, key=lambda entry: (entry.record.date, entry.name))
    days = list(dict.fromkeys(entry.record.date for entry in sent))
    series, record = [], set[tuple[str, str]]()
    for number, table in enumerate(tables):
        best, points = -1.0, list[Figure | None]()
        for day in days:
            for entry in (entry for entry in sent if entry.record.date == day):
                value = _total(table, entry.name, metric).value
                if value is not None and value > best:
                    best = value
                    record.add((entry.name, table.title))
            points.append(Figure(best) if best >= 0 else None)
        series.append(Series(table.title, points, number))
    if len(days) > 1:
        yield Charts([Lines(f"{metric}, %: the best so far", days, series, wide=True)])
    rows = []
    for entry in reversed(sent):
        totals = [_total(table, entry.name, metric) for table in tables]
        firsts = [title for name, title in sorted(record) if name == entry.name]
        rows.append(Row([entry.record.name, entry.record.date, *totals, ", ".join(firsts), entry.record.seal[:16]]))
    columns = [Column("submission", words=True), Column("date", words=True)]
    columns += [Column(table.title, heat=True) for table in tables]
    columns += [Column("best when sent", words=True), Column("seal", words=True)]
    yield Table(columns, rows, f"{metric}, %: totals", sortable=True)


def _contamination(estimates: Sequence[Contamination]) -> Iterator[Block]:
    yield Paragraph(
        "The frozen sets are public. A twin is a fresh set of the same distribution, drawn by a seed: a score that is lower"
        " there was remembered, at least in part. Difference: frozen minus twin, in points, with an interval for two independent"
        " rates."
    )
    if not estimates:
        yield Paragraph("No model was sent with both.", "soft")
        return
    rows = []
    for estimate in estimates:
        gap = estimate.difference
        verdict = "lower on the twin" if gap.low > 0 else "higher on the twin" if gap.high < 0 else "no difference seen"
        figures = [Figure(rate.value, rate.low, rate.high) for rate in (estimate.frozen, estimate.twin)]
        difference = Figure(gap.value, gap.low, gap.high, 1, 1, signed=True)
        rows.append(Row([estimate.name, estimate.table, *figures, difference, f"{verdict} (seed {estimate.seed})"]))
    columns = [Column("submission", words=True), Column("table", words=True), Column("frozen, %"), Column("twin, %")]
    columns += [Column("difference", total=True), Column("seen", words=True)]
    yield Table(columns, rows, "Frozen sets and twins", sortable=True)
