"""A stranger's text as it is shown: nothing in it steers a terminal, breaks out of markup, or is longer than allowed."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from t2t_core.text import as_html, as_html_lines, as_markdown, one_line, plain_lines

ANY = st.text(st.characters(exclude_categories=()))  # lone surrogates too


@given(ANY, st.integers(1, 80))
def test_one_line_is_one_printable_line_of_bounded_length(text: str, limit: int) -> None:
    shown = one_line(text, limit)
    assert shown.isprintable() and len(shown) <= limit


@given(ANY)
def test_lines_keep_their_breaks_and_show_every_other_control_character(text: str) -> None:
    shown = plain_lines(text)
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    assert shown.count("\n") == text.count("\n") and shown.count("\t") == text.count("\t")


def test_what_steers_a_terminal_or_turns_the_writing_is_spelt_out() -> None:
    assert plain_lines("a\tb\nc\x1b[31m\x07\r\u202e\x9b\ud800") == "a\tb\nc\\x1b[31m\\x07\\r\\u202e\\x9b\\ud800"
    assert one_line("a\tb\nc\x1b[31m  \u202e") == "a b c\\x1b[31m \\u202e"
    assert one_line("x" * 300) == "x" * 199 + "…"


class Seen(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(ANY)
def test_html_shows_the_text_and_nothing_else(text: str) -> None:
    for made, shown in ((as_html(text, 500), one_line(text, 500)), (as_html_lines(text, 5000), plain_lines(text, 5000))):
        seen = Seen(f"<p>{made}</p>")
        assert seen.tags == ["p"] and seen.text == shown
    assert '"' not in as_html(text) and "'" not in as_html(text)


@given(ANY)
def test_markdown_has_no_markup_of_its_own(text: str) -> None:
    made = as_markdown(text, 500)
    assert not re.search(r"[\\`*_{}\[\]()#+!|~<>]", re.sub(r"\\.", "", made))


def test_what_is_left_out_is_counted() -> None:
    assert as_html_lines("a" * 30, 20) == "a" * 20 + "\n… 10 more characters"
