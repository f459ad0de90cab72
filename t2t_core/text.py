"""Text from outside, made fit to show: a server's message, a model's answer, a name in a file that somebody sent.

It cannot control a terminal (every unprintable character is spelt out), holds no key, and is no longer than needed.
`t2t_core.report` makes it just as harmless in Markdown and HTML. On disk it stays word for word, except for keys
(`t2t_core.redaction`).
"""

from __future__ import annotations

CUT = "\N{HORIZONTAL ELLIPSIS}"


def one_line(text: object, limit: int = 200) -> str:
    """On one line, at most `limit` characters."""
    return _cut(_spelt(" ".join(_without_secrets(text).split())), limit)


def plain_lines(text: object, limit: int | None = None) -> str:
    """With its line breaks and tabs, at most `limit` characters."""
    shown = _spelt(_without_secrets(text), "\n\t")
    return shown if limit is None else _cut(shown, limit)


def visible(text: str, limit: int = 200) -> str:
    """On one line with its spaces as they are, of a text whose keys were taken out when it was written down (reports)."""
    return _cut(_spelt(text), limit)


def flowing(text: str, limit: int = 1000) -> str:
    """The same for a text that may span several lines, which are joined into one."""
    return visible(" ".join(text.split()), limit)


def _without_secrets(text: object) -> str:
    from t2t_core.redaction import without_secrets  # `t2t --help` shows nothing that may hold one

    return without_secrets(str(text))


def _spelt(text: str, kept: str = "") -> str:
    """Spell out characters that cannot be printed, or that change the writing direction, as \\x1b or \\u202e."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + CUT
