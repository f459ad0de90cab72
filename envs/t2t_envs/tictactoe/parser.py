"""Read the move in what a policy said: the one move that a message can mean, or none.

Thoughts and struck-out text are set aside first, because a draft there never counts. In the rest, a `<move>` tag takes
precedence. Without one, the message must be nothing but a move ("4", "Move: 4", "I play cell 4.", `{"move": 4}`). Two different
moves, or a number among other words, are not a move: nothing is guessed. (Our choice.)
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from t2t_core.reading.struck import without_struck
from t2t_core.reading.thoughts import set_aside_thoughts

# Version of this rule, recorded with all verdicts. 1 knew fewer marks of thought, and counted a move that was struck out.
READER = 2
FORMATS = ("think", "compact")
_TAG = re.compile(r"<move\s{0,9}>([^<]{0,80}+)", re.IGNORECASE | re.ASCII)
_WORDS = "i'll i will play choose take pick on at in to my the next best final answer move is x cell square position number boxed"
_MOVE = re.compile(
    rf"[^\w]{{0,40}}+(?:(?:{'|'.join(_WORDS.split())})\b[^\w]{{1,20}}+){{0,12}}+(?<![-−.,])([0-9]{{1,3}})[^\w]{{0,40}}",
    re.IGNORECASE,
)
_THINK = re.compile(
    r"\s*+(?:<think>)?+(?P<thought>[^<]*+(?:<(?!/?think>)[^<]*+)*+)</think>\s*+<move>\s*+[0-8]\s*+</move>\s*+", re.ASCII
)
_COMPACT = re.compile(r"\s*+[0-8]\s*+", re.ASCII)


class Move(NamedTuple):
    """What a message says: the `cell` (None: no move can be read; it may be off the board), and whether it has the `form` asked
    for."""

    cell: int | None
    form: bool


@lru_cache(maxsize=64)  # each turn reads the whole game again; the cache is small because texts may be long
def read_move(text: str, format: str = "think") -> Move:
    """The move of one message. Time is linear in its length.

    Args:
        text: word for word.
        format: the prompt format. In "think" the form is one thought in `<think>…</think>` that is not blank, then one
            `<move>0-8</move>`, and nothing else; the opening mark may be missing, since chat templates often write it. In
            "compact" it is one digit.
    """
    return Move(_cell(text), _has_form(text, format))


def _has_form(text: str, format: str) -> bool:
    if format == "compact":
        return bool(_COMPACT.fullmatch(text))
    match = _THINK.fullmatch(text)
    return bool(match and match["thought"].strip())


def _cell(text: str) -> int | None:
    said = without_struck(set_aside_thoughts(text).text)
    tagged = [match for content in _TAG.findall(said) if (match := _MOVE.fullmatch(content))]
    bare = _MOVE.fullmatch(said.strip())
    cells = {int(match[1]) for match in tagged or ([bare] if bare else [])}
    return cells.pop() if len(cells) == 1 else None


def format_move(cell: int, format: str = "think", thought: str = "") -> str:
    """A move in the form that was asked for; only the format "think" writes the thought."""
    return str(cell) if format == "compact" else f"<think>{thought}</think>\n<move>{cell}</move>"
