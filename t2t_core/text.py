"""A stranger's text as it may be shown: a server's message, a model's answer, a name in a file somebody sent.

Nothing in it steers a terminal (every character that is not printable is spelt out), no key is in it, it is not longer than
needed, and in Markdown and HTML it shows itself and does nothing else. What is kept on the disk stays word for word but for the
keys (`t2t_core.redaction`).
"""

from __future__ import annotations

import html
import re

from t2t_core.redaction import without_secrets

CUT = "\N{HORIZONTAL ELLIPSIS}"
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~$@:-])")


def one_line(text: object, limit: int = 200) -> str:
    """On one line, at most `limit` characters."""
    return _cut(_spelt(" ".join(without_secrets(str(text)).split())), limit)


def plain_lines(text: object, limit: int | None = None) -> str:
    """With its line breaks and tabs, at most `limit` characters."""
    shown = _spelt(without_secrets(str(text)), "\n\t")
    return shown if limit is None else _cut(shown, limit)


def as_markdown(text: object, limit: int = 200) -> str:
    """On one line of Markdown, with no markup of its own."""
    return _MARKUP.sub(r"\\\1", html.escape(one_line(text, limit), quote=False))


def as_html(text: object, limit: int = 200) -> str:
    """On one line of HTML, also within an attribute's quotes."""
    return html.escape(one_line(text, limit))


def as_html_lines(text: object, limit: int) -> str:
    """With its line breaks, for <pre>; what is left out is counted."""
    shown = plain_lines(text)
    left_out = len(shown) - limit
    return html.escape(shown if left_out <= 0 else f"{shown[:limit]}\n{CUT} {left_out} more characters")


def _spelt(text: str, kept: str = "") -> str:
    """Characters that cannot be printed, or turn the direction of writing, as \\x1b or \\u202e."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + CUT
