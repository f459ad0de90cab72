"""JSON as language models write it, mended where it can mean one thing only (our choice throughout).

Mended, each with a note: trailing commas; a comma missing before a quoted key or between two objects or lists; comments
(`//`, `/* */`, `#`); strings in single or typographic quotes, or with raw line breaks and other control characters in them;
keys that are bare words or numbers; Python's True, False, None and tuples; NaN and infinities (they become null: a missing
number); full-width commas and colons; Markdown's `\\_` in a text. A bare `30%` is read as the text "30%", and `+1` as "+1": it
may say a change. Whatever else deviates from JSON is refused, and so is a key that stands
twice with two values.

The reader never backs up over text it has read, and bounds depth, values and digits: its time is linear in any text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 16
MAX_VALUES = 20_000
MAX_DIGITS = 40
_MAX_NOTES = 20
_SPACE = re.compile(r"[ \t\r\n\u00a0\u200b\u2060\ufeff]*+")
_MARKDOWN = re.compile(r"\\(?:([_*`#\[\]-])|(.))", re.DOTALL)
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_STRINGS = {opening: re.compile(rf"(?:[^{closing}\\]|\\.)*+", re.DOTALL) for opening, closing in _QUOTES.items()}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?+[0-9.][0-9.eE+-]*+(?:[ ]?%)?+")
_JSON_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"-?+[A-Za-z_$][A-Za-z0-9_$-]*+")
_BARE_KEY = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9_$×-]{0,80}+")
_LINE = re.compile(r"[^\n]*+")
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}
_PYTHON = {"True": True, "False": False, "None": None}
_NOT_FINITE = ("NaN", "Infinity", "-Infinity", "nan", "inf", "-inf", "-NaN", "-nan")
_PLACEHOLDERS = ("...", "…", "<")  # where a form is sketched and not filled in
_CLOSING = {"[": "]", "(": ")"}
_BRACKET = re.compile(r"[][{}()]")


@dataclass(frozen=True)
class Value:
    """A JSON value that stands at `start` in a text and ends before `end`; `notes` say what was mended, `comments` are those in
    it."""

    start: int
    end: int
    data: Any
    notes: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Broken:
    """Something that begins like an object or a list and is none, or is cut off: read up to `end`, where `why` was found.

    `meant`: an object was meant, for a quoted key and its colon stand in it, or a bare key and its value. `sketch`: an ellipsis,
    `<…>` or a word such as x stands where something should, and no number before it: the form is shown and not filled in. Of a
    sketch, `end` is where its brackets close.
    """

    start: int
    end: int
    why: str
    meant: bool
    sketch: bool = False


class Unreadable(Exception):
    """What stands at the scanner's position is no JSON and cannot be mended in one way."""


def values(text: str, starts: re.Pattern[str]) -> Iterator[Value | Broken]:
    """Every outermost value at the places where `starts` matches, in order; after a broken one, from where it broke."""
    comment_end, position = text.rfind("*/"), 0
    while match := starts.search(text, position):
        scanner = _Scanner(text, match.start(), comment_end)
        try:
            data = scanner.value(0)
        except Unreadable as error:
            end = max(scanner.position, match.start() + 1)
            position = _closed(text, end, scanner.open) if scanner.sketch else end
            yield Broken(match.start(), position, str(error), scanner.meant, scanner.sketch)
        else:
            yield Value(match.start(), scanner.position, data, tuple(scanner.notes), tuple(scanner.comments))
            position = scanner.position


def _closed(text: str, position: int, depth: int) -> int:
    """Behind the bracket that closes the `depth` ones which are open."""
    while depth and (bracket := _BRACKET.search(text, position)):
        depth += 1 if bracket[0] in "{[(" else -1
        position = bracket.end()
    return len(text) if depth else position


class _Scanner:
    """Reads one value from `start` on; `position` is where it stands, or stopped."""

    def __init__(self, text: str, start: int, comment_end: int) -> None:
        self.text, self.position, self.comment_end = text, start, comment_end
        self.notes: list[str] = []
        self.comments: list[str] = []
        self.read = self.open = 0
        self.meant = self.sketch = self.numbers = False

    def value(self, depth: int) -> Any:
        self.read += 1
        if depth > MAX_DEPTH or self.read > MAX_VALUES:
            raise Unreadable("it is nested too deeply" if depth > MAX_DEPTH else "it holds too many values")
        character = self._peek()
        if character == "{":
            return self._object(depth)
        if character in _CLOSING:
            return self._array(depth, character)
        if character in _QUOTES:
            return self._string()
        return self._number() if character and character in "+-0123456789." else self._word()

    def _object(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self.position += 1
        self.open += 1
        while not self._closes("}"):
            key, quoted = self._key()
            if self._peek() not in (":", "："):
                raise self._fault("a colon")
            self.position += 1
            self.meant = self.meant or quoted
            value = self.value(depth + 1)
            self.meant = True
            if members.get(key, value) != value:
                raise Unreadable(f"the key {_short(key)} stands twice, with two values")
            if key in members:
                self._note(f"the key {_short(key)} stands twice, with the same value")
            members[key] = value
            self._separator("}", _QUOTES)
        return members

    def _key(self) -> tuple[str, bool]:
        character = self._peek()
        if character in _QUOTES:
            return self._string(), True
        start, self.position = self.position, self._match(_BARE_KEY)
        if self.position == start:
            raise self._fault("a key")
        self._note("a key without quotes was read")
        return self.text[start : self.position], False

    def _array(self, depth: int, opening: str) -> list[Any]:
        closing, items, single = _CLOSING[opening], list[Any](), True
        self.position += 1
        self.open += 1
        while not self._closes(closing):
            items.append(self.value(depth + 1))
            last = items[-1]
            alike = _CLOSING if isinstance(last, list) else "{" if isinstance(last, dict) else ""
            single = self._separator(closing, alike) and len(items) == 1
        if opening == "(":
            if len(items) < 2 and single:
                raise Unreadable("a value stands in parentheses")
            self._note("a tuple was read as a list")
        return items

    def _closes(self, bracket: str) -> bool:
        if self._peek() != bracket:
            return False
        self.position += 1
        self.open -= 1
        return True

    def _separator(self, bracket: str, next_ones: Any) -> bool:
        """After an element: a comma, or the closing bracket (left for the caller); whether there was no comma at all. One before
        the bracket is dropped, one missing before what can only be the next element is put in."""
        character = self._peek()
        if character in (",", "，"):
            self.position += 1
            if self._peek() == bracket:
                self._note("a trailing comma was dropped")
            return False
        if character != bracket:
            if not character or character not in next_ones:
                raise self._fault(f"a comma or {bracket}")
            self._note("a missing comma was put in")
        return True

    def _peek(self) -> str:
        """The next character that is neither space nor comment, "" at the end."""
        while True:
            start = self.position = self._match(_SPACE)
            if self.text.startswith(("//", "#"), self.position):
                self.position = self._match(_LINE)
            elif self.text.startswith("/*", self.position):
                if self.position + 2 > self.comment_end:  # never closed: known without another search
                    raise Unreadable("a comment does not end")
                self.position = self.text.index("*/", self.position + 2) + 2
            else:
                return self.text[self.position : self.position + 1]
            self._note("a comment was dropped")
            if len(self.comments) < _MAX_NOTES:
                self.comments.append(self.text[start : min(self.position, start + 200)])

    def _string(self) -> str:
        opening = self.text[self.position]
        start, self.position = self.position, self._match(_STRINGS[opening], 1)
        if self.text[self.position : self.position + 1] != _QUOTES[opening]:
            raise Unreadable("a text does not end")
        self.position += 1
        raw = self.text[start + 1 : self.position - 1]
        if opening != '"':
            self._note("a text in other quotes was read")
        if any(c < " " for c in raw):
            self._note("a text with a raw line break or control character was read")
        try:
            text = str(json.loads(f'"{raw}"', strict=False)) if opening == '"' else _unescaped(raw)
        except ValueError:
            text = self._without_markdown(raw)
        return text.encode("utf-8", "replace").decode()

    def _without_markdown(self, raw: str) -> str:
        r"""A text with Markdown's escapes in it: `data\_ratio`."""
        plain = _MARKDOWN.sub(lambda escape: escape[1] or escape[0], raw)
        try:
            text = str(json.loads(f'"{plain}"', strict=False))
        except ValueError:
            raise Unreadable("a text holds an escape that is none") from None
        self._note("Markdown's escapes in a text were undone")
        return text

    def _number(self) -> Any:
        if self.text.startswith(("-I", "-i", "-N", "-n"), self.position):
            return self._word()
        start, end = self.position, self._match(_NUMBER)
        digits = self.text[start:end]
        if digits.startswith(".."):
            raise self._fault("a value")
        self.position = end
        if len(digits) > MAX_DIGITS:
            self._note(f"a number of {len(digits)} characters counts as missing")
            return None
        plain = digits.removesuffix("%").rstrip()
        if not _JSON_NUMBER.fullmatch(plain) or self._glued():
            raise Unreadable(f"{_short(digits)} is no number")
        self.numbers = True
        if plain != digits:
            return f"{plain}%"
        if digits.startswith("+"):
            return digits
        number = float(digits)
        if not math.isfinite(number):
            self._note(f"the number {digits} is infinite and counts as missing")
            return None
        return int(digits) if digits.lstrip("+-").isdigit() else number

    def _glued(self) -> bool:
        """Whether the number runs into a word: 4th, 0.5f."""
        return self.text[self.position : self.position + 1].isalnum()

    def _word(self) -> Any:
        start, self.position = self.position, self._match(_WORD)
        word = self.text[start : self.position]
        if word in _NOT_FINITE:
            self._note(f"{word} counts as missing")
            return None
        if word in _PYTHON:
            self._note(f"Python's {word} was read")
            return _PYTHON[word]
        if word not in _WORDS:
            self.position = start
            raise self._fault("a value")
        return _WORDS[word]

    def _match(self, pattern: re.Pattern[str], skip: int = 0) -> int:
        match = pattern.match(self.text, self.position + skip)
        return match.end() if match else self.position

    def _fault(self, expected: str) -> Unreadable:
        there = self.text[self.position : self.position + 12]
        placeholder = there.startswith(_PLACEHOLDERS) or (expected == "a value" and bool(_WORD.match(there)))
        self.sketch = not self.numbers and placeholder
        return Unreadable(f"{expected} is expected, not {_short(there)}" if there else f"it ends where {expected} is expected")

    def _note(self, note: str) -> None:
        if note not in self.notes and len(self.notes) < _MAX_NOTES:
            self.notes.append(note)


def _unescaped(raw: str) -> str:
    """The text of a string in other quotes: the escapes of JSON and Python, and any character that is escaped for no need."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _SIMPLE.get(code, code)

    return _ESCAPE.sub(character, raw)


def _short(text: str) -> str:
    return ascii(text)[:40]
