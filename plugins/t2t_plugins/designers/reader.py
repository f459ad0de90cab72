"""Reads a designer's reply: the last JSON object in it, mended where that is safe, every mend reported.

Read are JSON objects with these mends: trailing commas, `//` and `/* */` comments, NaN and infinities (they become null: a
missing number). Prose, code fences and thoughts around the object do not matter; an object that is cut off does not count.
The reader never backs up over text it has read, so its time is linear in the length of any reply. (Our choice throughout.)
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

MAX_CHARACTERS = 200_000
MAX_DEPTH = 16
MAX_VALUES = 20_000
MAX_DIGITS = 40
MAX_SUMMARY = 2_000
_SPACE = re.compile(r"[ \t\r\n]*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*+')
_NUMBER = re.compile(r"[-+]?[0-9][0-9.eE+-]*+")
_WORD = re.compile(r"-?[A-Za-z]++")
_LINE = re.compile(r"[^\n]*+")
_WORDS = {"true": True, "false": False, "null": None}
_NOT_FINITE = ("NaN", "Infinity", "-Infinity", "nan", "inf", "-inf")


@dataclass(frozen=True)
class Reading:
    """`data` is the last object, None where there is none; `notes` say what was mended, or why nothing could be read."""

    data: dict[str, Any] | None
    notes: tuple[str, ...] = ()


def read_reply(text: str) -> Reading:
    """The last JSON object of a reply. Never raises; of a longer reply the last 200,000 characters count."""
    text, notes = _answer_part(text)
    best: Reading | None = None
    position, comment_end = 0, text.rfind("*/")
    while (start := text.find("{", position)) >= 0:
        scanner = _Scanner(text, start, comment_end)
        try:
            data = scanner.value(0)
            best = Reading(data, tuple(notes + scanner.notes))
            position = scanner.position
        except _Unreadable:
            position = max(scanner.position, start + 1)
    return best or Reading(None, (*notes, "no complete JSON object in the reply"))


def take_summary(data: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The object without its "summary", and the summary as one printable line of at most 2,000 characters."""
    rest = {key: value for key, value in data.items() if key != "summary"}
    said = data.get("summary")
    if not isinstance(said, str):
        return rest, None
    return rest, "".join(c for c in " ".join(said.split()) if c.isprintable())[:MAX_SUMMARY] or None


def _answer_part(text: str) -> tuple[str, list[str]]:
    """What comes after the thoughts; nothing where the thoughts never end."""
    notes = []
    if len(text) > MAX_CHARACTERS:
        notes.append(f"only the last {MAX_CHARACTERS} of {len(text)} characters were read")
        text = text[-MAX_CHARACTERS:]
    before, marker, after = text.rpartition("</think>")
    if marker:
        return after, notes
    if after.lstrip().startswith("<think>"):
        return "", [*notes, "the reply ends within its thoughts"]
    return after, notes


class _Unreadable(Exception):
    """The text at the scanner's position is no JSON."""


class _Scanner:
    """Reads one value from `start` on; `position` is where it stands, or stopped."""

    def __init__(self, text: str, start: int, comment_end: int) -> None:
        self.text, self.position, self.comment_end = text, start, comment_end
        self.notes: list[str] = []
        self.values = 0

    def value(self, depth: int) -> Any:
        self.values += 1
        if depth > MAX_DEPTH or self.values > MAX_VALUES:
            raise _Unreadable
        character = self._peek()
        if character == "{":
            return self._object(depth)
        if character == "[":
            return self._array(depth)
        if character == '"':
            return self._string()
        return self._number() if character in "+-0123456789" and character else self._word()

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.position += 1
        while not self._closes("}"):
            if self._peek() != '"':
                raise _Unreadable
            key = self._string()
            if self._peek() != ":":
                raise _Unreadable
            self.position += 1
            if key in found:
                self._note(f"the key {_short(key)} stands twice; the last counts")
            found[key] = self.value(depth + 1)
            self._separator("}")
        return found

    def _array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self.position += 1
        while not self._closes("]"):
            found.append(self.value(depth + 1))
            self._separator("]")
        return found

    def _closes(self, bracket: str) -> bool:
        if self._peek() != bracket:
            return False
        self.position += 1
        return True

    def _separator(self, bracket: str) -> None:
        """After an element: a comma, or the closing bracket (left for the caller). A comma before the bracket is mended."""
        if self._peek() == ",":
            self.position += 1
            if self._peek() == bracket:
                self._note("a trailing comma was dropped")
        elif self._peek() != bracket:
            raise _Unreadable

    def _peek(self) -> str:
        """The next character that is neither space nor comment, "" at the end."""
        while True:
            self.position = self._match(_SPACE)
            if self.text.startswith("//", self.position):
                self.position = self._match(_LINE)
            elif self.text.startswith("/*", self.position):
                if self.position + 2 > self.comment_end:  # never closed: known without another search
                    raise _Unreadable
                self.position = self.text.index("*/", self.position + 2) + 2
            else:
                return self.text[self.position : self.position + 1]
            self._note("a comment was dropped")

    def _string(self) -> str:
        start, self.position = self.position, self._match(_STRING)
        if self.text[self.position : self.position + 1] != '"':
            raise _Unreadable
        self.position += 1
        try:
            return str(json.loads(self.text[start : self.position])).encode("utf-8", "replace").decode()
        except ValueError:
            raise _Unreadable from None

    def _number(self) -> Any:
        if self.text.startswith("-I", self.position) or self.text.startswith("-i", self.position):
            return self._word()
        start, self.position = self.position, self._match(_NUMBER)
        digits = self.text[start : self.position]
        if not digits:
            raise _Unreadable
        if len(digits) > MAX_DIGITS:
            self._note(f"a number of {len(digits)} characters counts as missing")
            return None
        try:
            number = float(digits)
        except ValueError:
            raise _Unreadable from None
        if not math.isfinite(number):
            self._note(f"the number {digits} is infinite and counts as missing")
            return None
        return int(digits) if digits.lstrip("+-").isdigit() else number

    def _word(self) -> Any:
        start, self.position = self.position, self._match(_WORD)
        word = self.text[start : self.position]
        if word in _NOT_FINITE:
            self._note(f"{word} counts as missing")
            return None
        if word not in _WORDS:
            raise _Unreadable
        return _WORDS[word]

    def _match(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.position)
        return match.end() if match else self.position

    def _note(self, note: str) -> None:
        if note not in self.notes and len(self.notes) < 20:
            self.notes.append(note)


def _short(text: str) -> str:
    return ascii(text)[:40]
