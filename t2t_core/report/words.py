"""How a stranger's text and our own names read, the same in terminal, Markdown and HTML."""

from __future__ import annotations

import unicodedata


def visible(text: str, width: int = 200) -> str:
    """A text from anybody as one harmless line: control characters, bidirectional overrides and escapes are spelt out."""
    shown = "".join(c if c == " " or unicodedata.category(c)[0] not in "CZ" else f"\\u{ord(c):04x}" for c in text[:width])
    return shown + ("…" if len(text) > width else "")


def flowing(text: str, width: int = 1000) -> str:
    """The same of a text that may run over several lines: they become one."""
    return visible(" ".join(text[: 4 * width].split()), width)


def printable(text: str) -> str:
    """A text of several lines without control characters: nothing a model says may steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def spaced(name: str) -> str:
    """A name of the code as words: `first_failures` is "first failures"."""
    return name.replace("_", " ")
