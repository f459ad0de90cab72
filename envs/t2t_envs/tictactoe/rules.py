"""Tic-tac-toe: the board as two sets of cells, its exact value, and what a move does to it.

Cells are 0..8 from the top left, row by row. A player's stones are a bitmask, so a position is `(own, other)` as the player to
move sees it, and nothing here distinguishes X from O. Values are computed on first use and kept: all 5,478 reachable positions
take a few milliseconds.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

CELLS = range(9)
FULL = 0b111_111_111
LINES = (0o7, 0o70, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124)  # rows, columns, diagonals
_HAS_LINE = bytes(any(stones & line == line for line in LINES) for stones in range(FULL + 1))
# Where each of the 8 symmetries of the square puts cell 0, cell 1, ...
SYMMETRIES = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8), (2, 1, 0, 5, 4, 3, 8, 7, 6), (6, 7, 8, 3, 4, 5, 0, 1, 2), (8, 7, 6, 5, 4, 3, 2, 1, 0),
    (0, 3, 6, 1, 4, 7, 2, 5, 8), (2, 5, 8, 1, 4, 7, 0, 3, 6), (6, 3, 0, 7, 4, 1, 8, 5, 2), (8, 5, 2, 7, 4, 1, 6, 3, 0),
)  # fmt: skip

Mistake = Literal["missed_win", "missed_block", "fork"]


def has_line(stones: int) -> bool:
    """Whether these stones hold three in a row, column or diagonal."""
    return bool(_HAS_LINE[stones])


@cache
def free_cells(stones: int) -> tuple[int, ...]:
    """The cells without a stone, in order; `stones` are those of both players."""
    return tuple(cell for cell in CELLS if not stones >> cell & 1)


def is_over(own: int, other: int) -> bool:
    """Whether somebody has a line, or no cell is free."""
    return has_line(own) or has_line(other) or own | other == FULL


@cache
def wins(own: int, other: int) -> tuple[int, ...]:
    """The cells on which the owner of `own` would complete a line at once."""
    return tuple(cell for cell in free_cells(own | other) if has_line(own | 1 << cell))


@cache
def value(own: int, other: int) -> int:
    """What best play gives the player to move, the owner of `own`: 1 a win, 0 a draw, -1 a loss. Nobody may have a line yet."""
    return max((value_after(own, other, cell) for cell in free_cells(own | other)), default=0)


def value_after(own: int, other: int, cell: int) -> int:
    """The value of a move on a free cell, for the player who makes it."""
    stones = own | 1 << cell
    return 1 if has_line(stones) else -value(other, stones)


@cache
def optimal_moves(own: int, other: int) -> tuple[int, ...]:
    """Every move that keeps the value of the position, in the order of the cells; slow wins are as good as quick ones."""
    best = value(own, other)
    return tuple(cell for cell in free_cells(own | other) if value_after(own, other, cell) == best)


def ways_to_lose(own: int, other: int, cell: int) -> int:
    """How many of the other player's answers to this move lose by force. A move that wins at once leaves no answer."""
    stones = own | 1 << cell
    if has_line(stones):
        return 0
    return sum(value_after(other, stones, answer) < 0 for answer in free_cells(stones | other))


@cache
def mistake(own: int, other: int, cell: int) -> Mistake | None:
    """What is wrong with a legal move; None if none of these names applies:

    * "missed_win": the player could have completed a line and did not;
    * "missed_block": no line could be completed; the other player threatened to complete one, on one cell, and still can;
    * "fork": neither; the position was not lost, and now the other player wins by force. There is no threat on the board yet, so
      the win comes by two threats at once.

    A move that gives away a more distant forced win, or loses nothing in a lost position, has no name.
    """
    own_wins, threats = wins(own, other), wins(other, own)
    if own_wins:
        return None if cell in own_wins else "missed_win"
    if len(threats) == 1 and cell not in threats:
        return "missed_block"
    return "fork" if value(own, other) >= 0 > value_after(own, other, cell) else None


def canonical(own: int, other: int) -> tuple[int, int]:
    """The smallest of the position's 8 symmetric forms."""
    return min((_moved(own, cells), _moved(other, cells)) for cells in SYMMETRIES)


@cache
def _moved(stones: int, cells: tuple[int, ...]) -> int:
    return sum(1 << cells[cell] for cell in CELLS if stones >> cell & 1)
