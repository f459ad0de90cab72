"""What the words and numbers of a reply mean to its reader: the form asked for, and the knob and value that a key and its text
stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_PERCENT = re.compile(r"\s*+(-?+[0-9]{1,20}+(?:\.[0-9]{1,20}+)?+)\s?+%\s*+")
_DECIMAL = re.compile(r"\s*+-?+(?:[0-9]{1,20}+(?:\.[0-9]{0,20}+)?+|\.[0-9]{1,20}+)\s*+")
_QUANTITY = ("ratio", "share", "fraction", "proportion", "percent", "weight")  # nobody can say of what
_RATIO = ("ratio", "share", "fraction", "proportion", "density", "rate", "probability", "prob", "level")  # without a unit
_UNIT = re.compile(r"%|(?<![a-z])(?:percent(?:age)?s?|pct)(?![a-z])", re.IGNORECASE)
_IN_PARENTHESES = re.compile(r"\s*+\([^()]{0,40}+\)\s*+$")

Values = dict[str, Any]
Groups = dict[str, Values]


@dataclass(frozen=True)
class Form:
    """What a reply may contain.

    Args:
        groups: the names that a configuration has.
        knobs: those of each group, in order.
        group_of: the group that a key means ("the 3rd" -> "3"), None where none.
        known: the configurations that the brief showed, the one in force last, each in exact form and as it was shown.
        of_list: a group's values from a list of numbers, where lists were asked for.
        parts: what a group may hold besides its knobs.
        signed: the knobs that may be negative; a negative value of any other knob means a change.
    """

    groups: Sequence[str]
    knobs: Sequence[str]
    group_of: Callable[[str], str | None]
    known: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]] = ()
    of_list: Callable[[Sequence[Any]], Mapping[str, Any]] | None = None
    parts: Sequence[str] = ()
    signed: Sequence[str] = ()


class Unreadable(Exception):
    """Why a reply cannot be read."""


@dataclass
class Candidate:
    """An object that names groups."""

    groups: Groups
    summary: str | None
    abbreviated: str = ""  # the comment in it that stands for more
    other: str = ""  # the name of a wrapper that says that it is no proposal


@dataclass
class Reader:
    """What a reading needs to know (`form`), and the notes of what it repaired."""

    form: Form
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def set_group(groups: Groups, group: str, values: Values) -> None:
    """Keep the values of a group. Raises Unreadable if it has other values already."""
    if groups.setdefault(group, values) != values:
        raise Unreadable(f"the group {short(group)} stands twice, with two values")


def knob_of(key: str, form: Form) -> str | None:
    """The knob that a key means: in another spelling ("Data ratio", dataRatio), or by the first word that only this knob has,
    with another word for a ratio or none ("data", "size_density" for "size_ratio"). A unit or a remark in parentheses is not
    part of the name."""
    plain = _letters(_UNIT.sub("", _IN_PARENTHESES.sub("", key))).removesuffix("s")
    exact = [knob for knob in form.knobs if _letters(knob) == plain]
    first = [knob for knob in form.knobs if plain in _names(knob)]
    return exact[0] if exact else first[0] if len(first) == 1 else None


def _names(knob: str) -> set[str]:
    word, _, kind = knob.partition("_")
    others = _RATIO if kind in _RATIO else (kind,)
    return {f"{_letters(word)}{plural}{_letters(other)}" for plural in ("", "s") for other in ("", *others)}


def nearest_knob(key: str, values: Values, form: Form) -> str | None:
    """The knob without a value that a key may mean, though it is not its name: it holds the knob's own word ("size_count",
    "no_size_ratio"), or a word for a ratio or its weight ("free_ratio", "proportion")."""
    letters = _letters(key)
    missing = [knob for knob in form.knobs if knob not in values]
    own = (knob for knob in missing if _letters(knob.split("_")[0]) in letters)
    return next(own, missing[0] if missing and any(word in letters for word in _QUANTITY) else None)


def is_a_count(key: str, value: Any) -> bool:
    """Whether a key that has no word for a ratio gives a number that is none: `"sizes": 2` for `size_ratio`."""
    return (
        isinstance(value, (int, float))
        and value > 1
        and not any(word in _letters(key) for word in _RATIO)
        and not _UNIT.search(key)
    )


def with_percent(key: str, value: Any, reader: Reader) -> Any:
    """The value of a key that contains the unit, as text with its sign. Raises Unreadable if the two disagree."""
    if not _UNIT.search(key) or not isinstance(value, (int, float, str)) or isinstance(value, bool):
        return value
    number = number_of(value, reader) if isinstance(value, str) and "%" not in value else value
    if isinstance(number, (int, float)) and 0 < number < 1:
        raise Unreadable(f"{short(key)} is {number}: a ratio or a percentage?")
    return f"{number}%" if isinstance(number, (int, float)) else value


def value_of(name: str, value: Any, reader: Reader) -> float | int | None:
    """A knob's number; None, which Project counts as missing, if the reply has null or no finite number."""
    number = number_of(value, reader)
    if number is not None and (isinstance(number, bool) or not isinstance(number, (int, float))):
        raise Unreadable(f"{name} is {short(str(value))} and no number")
    if number is not None and number < 0 and name.rpartition(".")[2] not in reader.form.signed:
        raise Unreadable(f"{name} is {number}: a change?")
    return number


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def number_of(value: Any, reader: Reader) -> Any:
    """A number, also where it stands as text or as `30%`; anything else as it is. `+0.1` may be a change, and is no number."""
    if not isinstance(value, str):
        return value
    if match := _PERCENT.fullmatch(value):
        reader.note("a percentage was read as a ratio")
        return float(match[1]) / 100
    if _DECIMAL.fullmatch(value):
        reader.note("a number that stood as text was read")
        return float(value)
    return value


def short(text: str) -> str:
    """The beginning of a reply's text, printable, for a note."""
    return ascii(text)[:40]
