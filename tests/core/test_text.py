"""A stranger's text when it is shown: nothing in it controls the terminal or is longer than allowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from t2t_core.text import one_line, plain_lines, visible

ANY = st.text(st.characters(exclude_categories=()))  # lone surrogates too


@given(ANY, st.integers(1, 80))
def test_one_line_is_one_printable_line_of_bounded_length(text: str, limit: int) -> None:
    for shown in (one_line(text, limit), visible(text, limit)):
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
