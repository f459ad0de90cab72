"""Judges what an answer says beside its cells. If it says something about time that the cells don't, the cells are not the path
that was meant.

There are two standards. Text that belongs to a path (a label's remark, a field of JSON, a column of a table, a mark within the
path) must be understood: a number must be a known quantity that agrees with the path, and words must not speak of time or
repetition. Free prose cannot be held to that, so there only a wait or a repetition that is mentioned counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .tokens import Path

_WAIT = (
    r"(?:wait|delay|paus|idl(?:e|ing)|stay|hold|held|linger|halt|sleep|dwell|hesitat|postpon|defer|stand(?:s|ing)?\b|"
    r"stop|remain|rest(?:s|ed|ing)\b|frozen|freez|等|停|待|ожид|жд[её]|пауз|대기|지연|espera|aguard|attend[sre]|warte|aspett|pausa)"
)
_CELL = re.compile(r"[(\[{<]\s*+-?+[0-9]++\s*+,\s*+-?+[0-9]++\s*+[)\]}>]")
# Remarks on waiting that take no time: there is no wait, or the agent waits on its goal.
_FREE = re.compile(
    rf"\b(?:no|not|never|without|zero|0|does\s?n['’]?t|need\s?n['’]?t|n['’]t)\s(?:[a-z]+\s){{0,4}}{_WAIT}[a-z]{{0,9}}"
    rf"|{_WAIT}[a-z]{{0,9}}\s(?:is|was)\s(?:not|un)[a-z]{{0,9}}|{_WAIT}[a-z]{{0,9}}\s(?:[a-z]+\s){{0,3}}after\s(?:arriv|reach)[a-z]{{0,9}}"
    rf"|{_WAIT}[a-z]{{0,9}}\s(?:there\s|put\s|forever\s)?(?:(?:at|on|in|until|till)\s)?(?:(?:its|the|their)\s)?(?:goal|target|destination|end)\b",
    re.IGNORECASE,
)
_WAITS = re.compile(
    rf"(?<![a-z]){_WAIT}|\b(?:(?:start|begin|depart|leave)(?:s|ing)?\s(?:\w+\s)?(?:at|after|on)|from)\s(?:t\b|time|step|tick|turn)"
    r"|\b(?:start|departure|begin)[a-z]{0,4}\s(?:time|step|t)\s?[1-9]"
    r"|\b(?:start|begin|depart|leave|go|move)[a-z]{0,9}\s(?:\w+\s)?after\b|\blate(?:r|ly)?\b|\boffset\b|\bhead start\b",
    re.IGNORECASE,
)
_TWICE = re.compile(r"(?<![a-z0-9])(?:[x×✕][ ]?[0-9]+|[0-9]+[ ]?[x×✕]|twice|thrice|[0-9]+ times)(?![a-z0-9])", re.IGNORECASE)
_HOW_LONG_A_WAIT = re.compile(rf"{_WAIT}[a-z]{{0,9}}\W{{1,3}}(?:for\s)?([0-9]{{1,6}})", re.IGNORECASE)
# After a path's last cell, waiting takes no time unless the words refer to an earlier part of the path.
_BEFORE = re.compile(
    r"\b(?:start|first|initial|before|begin|origin|midway|after|until|once|let)|delay|\blate|offset|head start|[(\[]",
    re.IGNORECASE,
)
_ONCE = re.compile(r"\s*(?:but\s|only\s)?(?:once|after|until|as soon as)\b(?!\s(?:[0-9]+\s|arriv|reach))", re.IGNORECASE)
_QUANTITY = re.compile(
    r"(?:\b(?:cost|length|makespan|total|moves?|steps?|cells?|distance|arrival)(?:\s(?:is|of))?\s?[:=]?\s?([0-9]{1,6})\b"
    r"|(?<!for )(?<!by )(?<!after )\b([0-9]{1,6})[\s-](?:moves?|steps?|timesteps?|time steps?|cells?|positions?|actions?)\b)",
    re.IGNORECASE,
)
_STEPS = re.compile(r"\b([0-9]{1,6})[\s-](?:steps?|timesteps?|time steps?)\b", re.IGNORECASE)
_TIME = re.compile(
    r"\b(?:later?|lag|after|before|until|till|again|twice|thrice|once|doubl\w*|repeat\w*|duplicat\w*|times?|ticks?|seconds?|steps?"
    r"|timesteps?|offset|shift\w*|skip\w*|yield\w*|lets?|letting|queue\w*|slow\w*|depart\w*|extra|additional|more|another|plus|behind"
    r"|still|duration|head start|no-?op|one|two|three|four|five|six|seven|eight|nine|ten)\b|[⏸⏳⌛⏱⏲💤…]|\.{2,}|[×✕]|\d",
    re.IGNORECASE,
)
# What says that the cells are written in another order, or are not the answer.
_COLUMN_FIRST = re.compile(r"\b(?:col(?:umn)?s?\W{1,2}rows?|c\W{1,2}r|x\W{1,2}y)\b", re.IGNORECASE)
_REVERSED = re.compile(r"\brevers\w*|\bbackwards?\b|\b(?:goal|end) to start\b", re.IGNORECASE)
_NO_ANSWER = re.compile(
    r"(?<!\bno )(?<!\bany )(?<!\bavoid )(?<!\bavoids )(?<!\bavoiding )\b(?:drafts?|old|previous|rejected|discarded|invalid|wrong"
    r"|incorrect|obsolete|superseded|retracted|abandoned|infeasible|example|for instance|hypothetical"
    r"|not (?:final|valid|allowed|the answer))\b",
    re.IGNORECASE,
)
_HOLDS = re.compile(r"(?:is_)?(?:valid|final|accepted|correct|feasible|legal)")
_FIRST_NUMBER = re.compile(r"[^\W\d]?-?[0-9]+")
_AGENT = re.compile(r"\b(?:agents?|robots?)[ _#]{0,2}[0-9]{1,3}\b(?! ?[x×%])", re.IGNORECASE)
_THOUGHTS = re.compile(r"(?:reasoning|thoughts?|thinking|thought_process|chain_of_thought|cot|scratchpad|analysis)(?:_steps)?")
_PROSE = re.compile(r"(?:explanation|description|summary|note|comment|remark|reason|verification|strategy|detail)s?")
_MOVES = re.compile(r"(?:action|direction|move|instruction)s?(?:_(?:taken|list|sequence))?")
_NO_MOVE = re.compile(r"(?:(?:start|begin|goal|end|done|finish|arrived?|reached|none)(?:s|ed)?|-)?", re.IGNORECASE)
_LETTERS = re.compile(r"[LRUDNESWH]{2,}(?:\s?[LRUDNESWH]{2,})*|[LRUDNESWH](?:[\s,;>-]{1,4}[LRUDNESWH])+")
_WAITING = re.compile(rf"(?:^|_){_WAIT}|^(?:start|departure|begin)_?(?:time|step|t)$|^(?:time_?)?offset$")
_TIMES = re.compile(r"(?:^|_)(?:duration|time|arrives?|arrival|finish|t)(?:_|$)")
_NOTHING = ("", "0", "0.0", "-", "no", "none", "false", "null", "n/a", "—", "–")

# Fields and columns that say nothing about time, grouped by their contents.
_SCORES = re.compile(
    r"(?:agent|robot)?_?(?:id|index|number|name|label)|priority|score|confidence|probability|reward|size|grid_?size|seed|rank|#"
)
_COUNTS = re.compile(
    r"(?:(?:total|num|number|n|path|optimal|final|max|sum|of|individual|arrival|finish|end|goal|completion|time)_)*"
    r"(?:cost|costs|length|len|makespan|moves|steps?|time|timesteps?|cells|distance|arrival|arrives?|total|actions|duration|agents)"
)
_PLACES = re.compile(
    r"(?:start|goal|target|end|destination|origin|from|to|first|last|initial|final)(?:_?(?:cell|pos|position|location))?s?"
    r"|holes?|grid|map"
)
_SAYINGS = re.compile(
    r"(?:action|direction|move|instruction|note|comment|remark|explanation|reason|description|detail|summary|conflict)s?"
    r"|colou?r|status|valid|optimal|reached|type|objective|verification|check|notes?_.*|result|steps|strategy|plan|agents?|robots?"
)


def repeats(path: Path | Sequence[Any]) -> int:
    """How many steps of a path stay on the same cell."""
    return sum(cell == other for cell, other in zip(path, path[1:], strict=False))


def _arrival(path: Path | Sequence[Any]) -> int:
    """The step at which a path reaches its last cell for good."""
    index = len(path) - 1
    while index > 0 and path[index - 1] == path[-1]:
        index -= 1
    return index


def names_a_wait(words: str) -> bool:
    """Whether prose says that an agent waits on the way, or that something is done more than once."""
    rest = _FREE.sub(" ", words)
    return _WAITS.search(rest) is not None or _TWICE.search(rest) is not None


def puts_columns_first(words: str) -> bool:
    """Whether words say that cells are (column, row), or (x, y), where x might be either."""
    return _COLUMN_FIRST.search(words) is not None


def waits_before(words: str) -> bool:
    """Whether words after a path's last cell mention a wait before that cell."""
    rest = _FREE.sub(" ", words)
    return _ONCE.match(rest) is not None or (_WAITS.search(rest) is not None and _BEFORE.search(rest) is not None)


def of_label(written: str) -> str:
    """What a label says apart from its number."""
    return _FIRST_NUMBER.sub(" ", written, count=1)


class Beside:
    """Judges text beside one path, or several: `clashes` says whether it contradicts them or is not understood."""

    def __init__(self, *paths: Path | Sequence[Any]) -> None:
        self._waits = sum(repeats(path) for path in paths)
        self._most = sum(map(len, paths))  # an upper bound on any sum of times
        self._moves = self._most - len(paths)
        self._times = {time for path in paths for time in (len(path), len(path) - 1, _arrival(path))}
        self._times |= {sum(map(_arrival, paths)), self._most - len(paths)}

    def clashes(self, remark: str) -> bool:
        """Whether a remark says something about time that the path does not, or something that is not understood."""
        text = _FREE.sub(" ", _AGENT.sub(" ", _CELL.sub(" ", remark)))
        if puts_columns_first(remark) or _REVERSED.search(text) or _NO_ANSWER.search(text):
            return True
        if any(int(number) > self._waits for number in _HOW_LONG_A_WAIT.findall(text)):
            return True
        if _WAITS.search(text):
            return not self._waits
        if any(int(before or behind) > self._most for before, behind in _QUANTITY.findall(text)):
            return True
        if any(int(number) not in self._times for number in _STEPS.findall(text)):
            return True
        return _TIME.search(_QUANTITY.sub(" ", text)) is not None

    def field_clashes(self, name: str, value: Any) -> bool:
        """The same for a field or a column, given its name and its JSON value."""
        name = name.strip().lower().replace(" ", "_")
        if _HOLDS.fullmatch(name) and (value is False or (isinstance(value, str) and value.strip().lower() in ("false", "no"))):
            return True
        if _THOUGHTS.fullmatch(name) or value is None or value is False or (type(value) in (int, float) and not value):
            return False
        if isinstance(value, str) and (value.strip().lower() in _NOTHING):
            return False
        if isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) < 7:
            value = int(value)
        if type(value) in (int, float):
            return self._number_clashes(name, value)
        if isinstance(value, list):
            return self._list_clashes(name, value)
        if isinstance(value, dict):
            return any(self.field_clashes(f"{name}_{key}" if key.isdecimal() else key, inner) for key, inner in value.items())
        if _PROSE.fullmatch(name) and isinstance(value, str) and value.count(" ") > 3:
            return not self._waits and names_a_wait(value)
        if _MOVES.fullmatch(name) and _LETTERS.fullmatch(str(value).strip()):
            return sum(letter.isalpha() for letter in str(value)) > self._moves
        known = any(names.fullmatch(name) for names in (_SAYINGS, _PLACES, _SCORES, _COUNTS))
        words = "" if value is True else str(value)
        return self.clashes(words if known else f"{name.replace('_', ' ')}: {words}")

    def _number_clashes(self, name: str, value: float) -> bool:
        if _WAITING.search(name):
            return value > self._waits
        if _SCORES.fullmatch(name):
            return False
        if _TIMES.search(name):
            return value not in self._times
        return not (_COUNTS.fullmatch(re.sub(r"_\d+$", "", name)) and value <= self._most)

    def _list_clashes(self, name: str, values: list[Any]) -> bool:
        if _PLACES.fullmatch(name):
            return any(isinstance(value, str) and self.clashes(value) for value in values)
        named = [value for value in values if not (isinstance(value, str) and _NO_MOVE.fullmatch(value.strip()))]
        most = self._moves if _MOVES.fullmatch(name) else self._most
        if len(named) > most and all(isinstance(value, str) for value in values):
            return True
        return any(self.field_clashes(name, value) for value in values)
