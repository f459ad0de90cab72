"""Keep keys out of every file and message: what this process knows to be a secret, and how it is removed from a text.

A secret is the value of an environment variable whose name says so, a password in an address there, or any key that was read
for a policy (`remember`). Text from outside is redacted first and cut afterwards, since half a key is still a key. If somebody
else cut a key, every stretch of 15 of its characters is removed.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

LEAST = 12  # characters of a secret in the environment; what is shorter is a placeholder and may occur in honest text
_LEAST_KEY = 8  # of a key that a policy really sends
_PART = 8  # characters that are looked for; a common stretch of 15 holds one of the key's parts that begin at multiples of 8
_STRETCH = 2 * _PART - 1
_MANY = 1000  # finds of parts in one text; beyond it every part goes, whatever stands around it
_ENDING = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)S?$", re.IGNORECASE)
_WORD = re.compile(
    r"(^|[_.-])(API_?)?(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PASSPHRASE|CREDENTIAL|AUTH|AUTHORIZATION|BEARER|PAT|COOKIE)S?([_.\d-]|$)",
    re.IGNORECASE,
)
_HEADERS = re.compile(r"HEADER", re.IGNORECASE)
_remembered: dict[str, str] = {}  # value -> name
# What of the environment is compared before each text: its own table in CPython, whose copy costs a hundredth of decoding it.
_variables: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_known: tuple[Mapping[Any, Any], int, Redactor] | None = None


def remember(name: str, value: str) -> None:
    """From now on `value` is never shown or kept: [name] stands in its place."""
    if len(value) >= _LEAST_KEY:
        _remembered[value] = name


class Redactor:
    """Removes secrets from texts: those known when it is made, or the given ones (value -> name)."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._names: dict[str, str] = {}  # of every form
        self._legible: list[str] = []  # forms of which a long stretch gives something away; the longest first
        known = secrets.items() if secrets is not None else _known_secrets()
        for value, name in known:
            legible, encoded = forms(value)
            self._legible += [form for form in legible if form not in self._names]
            for form in (*legible, *encoded):
                self._names.setdefault(form, name)
        self._legible.sort(key=len, reverse=True)
        self._longest_first = sorted(self._names, key=len, reverse=True)

    def redact(self, text: str, cut: bool = False) -> str:
        """The text with every secret replaced by its name. `cut`: the text was cut off, perhaps within a secret."""
        for form in self._longest_first:  # whole secrets first: a stretch of one form may be the beginning of another
            text = text.replace(form, f"[{self._names[form]}]")
        for form in self._legible:
            label = f"[{self._names[form]}]"
            text = _without_stretches(text, form, label) if len(form) >= _STRETCH else text
            text = _without_beginning(text, form, label) if cut else text
        return text

    def everywhere(self, value: Any) -> Any:
        """A JSON value with every text in it redacted, including names."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact(name) if isinstance(name, str) else name: self.everywhere(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.everywhere(item) for item in value]
        return value

    def found_in(self, text: str) -> str | None:
        """The name of a secret that the text holds, or a long stretch of one; None if it holds none."""
        for form in self._longest_first:
            if form in text:
                return self._names[form]
        for form in self._legible:
            if len(form) >= _STRETCH and _without_stretches(text, form, "") != text:
                return self._names[form]
        return None


def without_secrets(text: str, cut: bool = False) -> str:
    """The text with every secret replaced by its name, for the secrets known now."""
    global _known
    variables = dict(_variables)
    if _known is None or _known[0] != variables or _known[1] != len(_remembered):
        _known = variables, len(_remembered), Redactor()
    return _known[2].redact(text, cut)


@lru_cache(maxsize=256)
def forms(secret: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Every way in which a secret is written: legible, that is as it is, in an address, in HTML or JSON; and letter by letter as
    these may write it, in hexadecimal, in other capitals, and as base64, also from within a longer text (`Authorization: Basic`
    holds a name before the password)."""
    legible = (secret, quote(secret), quote(secret, safe=""), html.escape(secret), json.dumps(secret)[1:-1])
    data = secret.encode("utf-8", "replace")
    encoded = (form for form in (*_base64(data), *_letter_by_letter(secret, data)) if len(form) >= _LEAST_KEY)
    return tuple(dict.fromkeys(legible)), tuple(dict.fromkeys(encoded))


def _letter_by_letter(secret: str, data: bytes) -> Iterator[str]:
    yield from (secret.lower(), secret.upper(), data.hex(), data.hex().upper(), "".join(f"&#{ord(c)};" for c in secret))
    for number in ("{:02x}", "{:02X}"):
        yield "".join(f"%{number.format(byte)}" for byte in data)
        yield "".join(f"&#x{number.format(ord(c))};" for c in secret)
        yield "".join(f"\\x{number.format(byte)}" for byte in data)
        yield "".join(f"\\u{number.format(ord(c)).rjust(4, '0')}" for c in secret)


def _base64(secret: bytes) -> Iterator[str]:
    """The letters that stand for the secret alone, wherever it begins among groups of three bytes."""
    for before, mixed in ((0, 0), (1, 2), (2, 3)):
        letters = base64.b64encode(b"\0" * before + secret).decode().rstrip("=")
        whole = letters[mixed:] if (before + len(secret)) % 3 == 0 else letters[mixed:-1]
        yield from (whole, whole.translate({ord("+"): "-", ord("/"): "_"}))


def _known_secrets() -> Iterator[tuple[str, str]]:
    """Value and name of every secret of this process."""
    yield from ((value, name) for name, value in _of_environment(os.environ))
    yield from _remembered.items()


def _of_environment(variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in variables.items():
        yield from ((name, secret) for secret in _values(name, value.strip()) if len(secret) >= LEAST)


def _values(name: str, value: str) -> Iterator[str]:
    if "://" in value:
        try:
            password = urlsplit(value).password
        except ValueError:
            password = None
        yield from (password, unquote(password)) if password else ()
    if _HEADERS.search(name):
        yield from (word for word in re.split(r"[\s,;:=\"']+", value) if len(word) >= _STRETCH)
    elif (_ENDING.search(name) or _WORD.search(name)) and not _is_path(value):
        yield value


def _is_path(value: str) -> bool:
    """SSH_AUTH_SOCK, GOOGLE_APPLICATION_CREDENTIALS: where a secret is, which is none."""
    return value.startswith(("/", "~")) and os.path.isdir(os.path.dirname(os.path.expanduser(value)))


def _without_stretches(text: str, secret: str, label: str) -> str:
    spans: list[tuple[int, int]] = []
    count = 0
    for begin in range(0, len(secret) - _PART + 1, _PART):
        part = secret[begin : begin + _PART]
        at = text.find(part)
        while at >= 0:
            count += 1
            if count > _MANY:  # somebody is probing: no time for a close look
                return _without_parts(text, secret, label)
            left, right = _widened(text, at, secret, begin)
            if right - left >= _STRETCH:
                spans.append((left, right))
            at = text.find(part, at + 1)
    for left, right in _merged(spans):
        text = text[:left] + label + text[right:]
    return text


def _widened(text: str, at: int, secret: str, begin: int) -> tuple[int, int]:
    """How far text and secret agree around text[at] and secret[begin]."""
    left, right, first, last = at, at, begin, begin
    while left > 0 and first > 0 and text[left - 1] == secret[first - 1]:
        left, first = left - 1, first - 1
    while right < len(text) and last < len(secret) and text[right] == secret[last]:
        right, last = right + 1, last + 1
    return left, right


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans from the last to the first, those that overlap as one."""
    merged: list[tuple[int, int]] = []
    for left, right in sorted(spans):
        if merged and left < merged[-1][1]:
            merged[-1] = merged[-1][0], max(right, merged[-1][1])
        else:
            merged.append((left, right))
    return merged[::-1]


def _without_parts(text: str, secret: str, label: str) -> str:
    for begin in range(0, len(secret) - _PART + 1, _PART):
        text = text.replace(secret[begin : begin + _PART], label)
    return text


def _without_beginning(text: str, secret: str, label: str) -> str:
    """Without the beginning of the secret, of four characters or more, with which the text ends."""
    for length in range(min(len(secret) - 1, len(text)), 3, -1):
        if text.endswith(secret[:length]):
            return text[:-length] + label
    return text
