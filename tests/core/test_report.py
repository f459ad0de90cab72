"""The report kit: one document in three renderings. In none of them does a stranger's text have an effect, and figures agree."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from io import StringIO
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from t2t_core.report import html, markdown, svg, terminal
from t2t_core.report.charts import Axis, Dots, Lane, Lines, Point, Scatter, Series, Spot, Stacks
from t2t_core.report.document import (
    Charts,
    Column,
    Divider,
    Document,
    Folded,
    Items,
    Paragraph,
    Row,
    Section,
    Table,
    Words,
)
from t2t_core.report.figures import Figure, points
from t2t_core.text import visible

EVIL = "<script>alert(1)</script>\x1b[31m\u202e | `x` [a](javascript:b) \"'&amp;"
TAGS = {"html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "h3", "p", "ul", "li", "nav", "a"}
TAGS |= {"section", "div", "table", "thead", "tbody", "tr", "th", "td", "small", "span", "figure", "figcaption", "details"}
TAGS |= {"summary", "pre", "svg", "line", "text", "circle", "rect", "polyline", "polygon", "img"}


def document(text: str) -> Document:
    """A document with the text in every place that a text can have."""
    figures = [Figure(50.0, 40.0, 60.0), Figure(None), Figure(12.95, also=13.05, changed=True)]
    table = Table(
        [Column(text, words=True), Column(text, heat=True), Column(text), Column(text, total=True), Column(text, words=True)],
        [
            Row([Words(text, text, "bad", 3), *figures, text]),
            Divider(text),
            Row([text, *figures, Words(text)], "quoted"),
        ],
        text,
    )
    charts = [
        Lines(text, [text, text], [Series(text, figures[:2], 0), Series(text, figures[1:], None)]),
        Dots(text, {text: [Lane(text, [Point(figures[0], True, text)], 1)]}, legend=[(text, 1)]),
        Scatter(text, [Spot(text, 0.01, figures[0], 2)]),
        Stacks(text, [(text, {text: 2})], ["fine", text]),
    ]
    blocks = [Paragraph(text, "bad"), Items([text]), table, Charts(charts), Folded(text, f"{text}\n{text}")]
    return Document(text, [Paragraph(text)], [Section(text, blocks), Section(text, [])])


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def printed(made: Document, width: int) -> str:
    file = StringIO()
    terminal.show(made, Console(file=file, width=width, force_terminal=False, color_system=None))
    return file.getvalue()


@given(st.text(min_size=1, max_size=60) | st.just(EVIL))
@settings(max_examples=60, deadline=None)
def test_a_strangers_text_does_nothing_wherever_it_stands(text: str) -> None:
    made = document(text)
    page = html.render(made)
    seen = Page(page)
    assert set(seen.tags) <= TAGS and seen.tags == Page(html.render(document("plain"))).tags
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("style", "src")]
    assert all(str(value).startswith("#") for name, value in seen.attributes if name in ("href", "xlink:href"))
    controls = {c for c in text if visible(c) != c}
    for shown in (page, markdown.render(made), printed(made, 100)):
        assert not (controls - {"\n"}) & set(shown)
    assert "<script" not in page + markdown.render(made)


def test_a_page_admits_its_own_style_sheet_and_nothing_else() -> None:
    page = html.render(document("x"))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None and policy[1].startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy[1]
    assert page.count("<style>") == 1 and "<script" not in page and "{{" not in page
    assert "color-scheme: light dark" in page and "prefers-color-scheme: dark" in page


MARKS = ["# a", "1. b", "- c", "+", "---", "a_b _c_ __d__", "www.x.y http://z :tada:", "<b>&", "a\\*b*"]


@given(st.text(max_size=40) | st.sampled_from(MARKS))
@settings(max_examples=300, deadline=None)
def test_escaped_markdown_shows_the_text_itself(text: str) -> None:
    shown = visible(text).strip()
    rendered = Page(MarkdownIt("commonmark").render(markdown.escape(shown)))
    assert set(rendered.tags) <= {"p"}
    assert "".join(rendered.texts).strip() == shown


def test_a_table_in_markdown_is_one() -> None:
    rendered = Page(MarkdownIt("commonmark").enable("table").render(markdown.render(document("a | b"))))
    assert rendered.tags.count("tr") == 3 and rendered.tags.count("th") == 5
    assert "".join(rendered.texts).count("a | b") >= 10


@pytest.mark.parametrize(
    ("figure", "text", "interval"),
    [
        (Figure(None, 0.0, 1.0), "–", ""),
        (Figure(94.333, 92.94, 95.5), "94.33", "92.9–95.5"),
        (Figure(12.95, also=13.05), "12.95 / 13.05", ""),
        (Figure(12345.6), "12,346", ""),
        (Figure(0.5, unit="$", digits=4), "$0.5000", ""),
        (Figure(20.0, digits=1, unit=" %"), "20.0 %", ""),
        (points(0.031, -0.005, 0.07), "+3.1", "-0.5 to +7.0"),
        (points(0.031, None, None), "+3.1", ""),
    ],
)
def test_how_a_figure_reads(figure: Figure, text: str, interval: str) -> None:
    assert (figure.text(), figure.interval()) == (text, interval)
    assert figure.full() == (f"{text} [{interval}]" if interval else text)


def board(columns: int) -> Document:
    names = [Column("policy", words=True), *(Column(f"{n}x{n}") for n in range(columns)), Column("total", total=True)]
    rows = [Row([f"policy {i}", *(Figure(10.0 * i, 5.0, 95.0) for _ in range(columns + 1))]) for i in range(5)]
    return Document("Board", [], [Section("one", [Table(names, rows)])])


@pytest.mark.parametrize(("width", "columns"), [(60, 8), (80, 8), (100, 8), (100, 2), (10_000, 8)])
def test_every_value_is_in_the_terminal_and_intervals_as_far_as_there_is_room(width: int, columns: int) -> None:
    shown = printed(board(columns), width)
    assert all(len(line) <= width for line in shown.splitlines())
    lines = shown.splitlines()
    for i in range(5):
        row = next(n for n, line in enumerate(lines) if f"policy {i}" in line)
        assert lines[row].count(f"{10.0 * i:.1f}") == columns + 1
        room = width >= terminal.WIDE
        assert "".join(lines[row : row + 2]).count("5") >= (columns + 1 if room else 1)
    if (width, columns) in ((100, 2), (10_000, 8)):
        assert shown.count("[5.0–95.0]") == 5 * (columns + 1), "beside the figure where that fits"


def marks(picture: str, kind: str) -> int:
    return len(list(ElementTree.fromstring(picture).iter(f"{{http://www.w3.org/2000/svg}}{kind}")))


def test_charts_draw_every_figure_and_leave_gaps() -> None:
    figures = [Figure(50.0, 40.0, 60.0), None, Figure(None), Figure(100.0, 90.0, 100.0)]
    lines = svg.standalone(Lines("t", list("abcd"), [Series("s", figures, 0), Series("quoted", figures, None)]).svg())
    assert marks(lines, "circle") == 4 and marks(lines, "polyline") == 2 and "<style>" in lines
    dots = svg.standalone(Dots("t", {"p": [Lane("a", [Point(figures[0]), Point(Figure(None))], 1)]}).svg())
    assert marks(dots, "circle") == 1
    empty = [Lines("t", [], []), Dots("t", {}), Scatter("t", []), Stacks("t", [], [])]
    assert all(ElementTree.fromstring(svg.standalone(chart.svg())) is not None for chart in empty)


@given(st.lists(st.floats(-1e6, 1e6), max_size=8), st.booleans())
def test_an_axis_holds_its_figures_and_has_round_ticks(values: list[float], fits: bool) -> None:
    low, high = Axis(None if fits else 0.0, None).span([Figure(v) for v in values])
    assert low < high and all(v <= high for v in values) and (not fits or all(v >= low for v in values))
    ticks = svg.ticks(low, high, 5)
    assert 1 <= len(ticks) <= 6 and all(low - 1e-6 <= t <= high + 1e-6 for t in ticks)


@given(st.lists(st.floats(0, 300), max_size=12))
def test_names_beside_lines_keep_apart_and_in_order(heights: list[float]) -> None:
    placed = svg.apart(heights, 14.0, 0.0, 300.0)
    order = sorted(range(len(heights)), key=heights.__getitem__)
    gaps = [placed[b] - placed[a] for a, b in zip(order, order[1:], strict=False)]
    assert all(gap >= min(14.0, 300.0 / len(heights)) - 1e-6 for gap in gaps)
    assert all(-1e-6 <= y <= 300 + 1e-6 for y in placed)
