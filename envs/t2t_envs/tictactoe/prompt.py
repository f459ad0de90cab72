"""What the environment says, in two formats, and how a planning policy reads the board from it (the wording is our choice).

`think` states the rules once and asks for a thought before each move. `compact` is for a policy that learnt the game in training:
each message is the board alone, in nine characters, and the answer is one digit. Both show nothing about the opponent except its
moves.
"""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple

from t2t_core.errors import T2TError

from .game import TURNS, Game, begin
from .instance import OPPONENT, POLICY, Instance
from .parser import FORMATS

MEMORYLESS = ("compact",)
_RULES = f"""\
Let's play tic-tac-toe. You are {POLICY}, your opponent is {OPPONENT}. The cells are numbered

0 1 2
3 4 5
6 7 8

and the board shows the number of every free cell. You take turns; whoever has three in a row, column or diagonal wins, and a \
full board without one is a draw. A move that is not on a free cell does not count, and it is your turn again; you have at \
most {TURNS} turns, and a game that is not over by then is lost.

In each turn, think first, then name the cell you move on, in exactly this form:
<think>your thoughts</think>
<move>a number from 0 to 8</move>"""
_ROW = re.compile(r"^([0-8XO]) ([0-8XO]) ([0-8XO])$", re.MULTILINE | re.ASCII)
_COMPACT = re.compile(r"[.XO]{9}")


class Seen(NamedTuple):
    """What a message of the environment shows: its format, and the board as in `Instance.board`."""

    format: str
    board: str


def make_prompt(instance: Instance, format: str = "think") -> str:
    """The environment's first message. Raises T2TError for an unknown format, with the nearest name."""
    game = begin(instance)
    if format == "compact":
        return game.board
    if format != "think":
        near = difflib.get_close_matches(str(format), FORMATS, n=1)
        raise T2TError(
            f"there is no prompt format {ascii(format)[:60]}",
            cause=f"did you mean {near[0]}?" if near else "",
            next="use one of: " + ", ".join(FORMATS),
        )
    begun = "" if instance.starts_empty else "The game has begun already. "
    first = "You move first." if game.opening is None else f"{OPPONENT} moves first, on cell {game.opening}."
    return f"{_RULES}\n\n{begun}{first}\n\n{_board(game)}"


def make_reply(game: Game, format: str) -> str:
    """The environment's message after the policy's last turn, if the game continues."""
    if format == "compact":
        return game.board
    last = game.turns[-1]
    if last.legal:
        return f"{OPPONENT} moves on cell {last.answer}.\n\n{_board(game)}"
    if last.move.cell is None:
        what = "No move can be read in your message: end it with <move>, the number of one free cell, and </move>."
    else:
        what = f"Cell {last.move.cell} is {'not free' if last.move.cell < 9 else 'not on the board'}: that move does not count."
    return f"{what} It is your turn again.\n\n{_board(game)}"


def make_end(game: Game, format: str) -> str:
    """The final board of a game, and how it ended. It asks nothing, so only environments that must show the end use it."""
    if format == "compact":
        return game.board
    ended = {"win": "you have won", "draw": "it is a draw", "loss": "you have lost", None: "it is not over"}[game.result]
    return f"The game is over: {ended}.\n\n{_board(game)}"


def read_board(text: str) -> Seen | None:
    """The board that a message of the environment shows; None if it shows none."""
    if _COMPACT.fullmatch(text):
        return Seen("compact", text)
    rows = [match.groups() for match in _ROW.finditer(text)][-3:]
    if len(rows) < 3:
        return None
    return Seen("think", "".join(mark if mark in (POLICY, OPPONENT) else "." for row in rows for mark in row))


def _board(game: Game) -> str:
    marks = [str(cell) if mark == "." else mark for cell, mark in enumerate(game.board)]
    return "\n".join(" ".join(marks[row : row + 3]) for row in (0, 3, 6))
