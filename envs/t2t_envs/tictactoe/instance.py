"""A game to be played: where it starts, who moves, and everything that chance will do in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hostile import as_number, check_fields, shown

from . import rules

EMPTY = "." * 9
POLICY, OPPONENT = "X", "O"  # the policy's stones are X, whoever begins (our choice)
MOVERS = ("policy", "opponent")
OPPONENTS = ("mixed", "second", "first")
MAX_SEED = 2**53 - 1  # the largest integer that every JSON reader keeps exact
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+-]{0,199}|")
_BOARD = re.compile(r"[.XO]{9}")


def stones(board: str, mark: str) -> int:
    """The cells of a board that hold this mark, as a bitmask."""
    return sum(1 << cell for cell, held in enumerate(board) if held == mark)


def board_text(policy: int, opponent: int) -> str:
    """A board of nine characters: `X` the policy's stones, `O` the opponent's, `.` a free cell."""
    return "".join(POLICY if policy >> c & 1 else OPPONENT if opponent >> c & 1 else "." for c in rules.CELLS)


@dataclass(frozen=True)
class Instance:
    """A game to be played. It is checked when it is made.

    Args:
        board: nine characters from the top left, row by row: `X` the policy's stones, `O` the opponent's, `.` a free cell. At
            least two cells are free, nobody has a line, and an opponent to move cannot complete one: the policy always has a
            turn.
        mover: who moves first from there, "policy" or "opponent". That player has as many stones as the other, or one less.
        p: how likely each of the opponent's moves is to be random, 0..1; otherwise the move is optimal.
        opponent: which optimal move it makes: "mixed" a random one; "second" the one that leaves the policy most ways to lose,
            and among equals the last cell; "first" the first cell.
        seed: the game's seed, 0..2^53 - 1. Everything that chance does follows from it and the board.
        seeded: False for games that a study plays with fresh chance in every rollout (see `Testbed.rollout`).
        id: letters, digits and `_.:+-`.

    Raises:
        T2TError: a field is wrong; the error says which, and why.
    """

    board: str = EMPTY
    mover: str = "policy"
    p: float = 0.0
    opponent: str = "mixed"
    seed: int = 0
    seeded: bool = True
    id: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not _ID.fullmatch(self.id):
            raise T2TError(
                f"the instance id {shown(self.id)} is not usable",
                cause="an id has at most 200 letters, digits and _ . : + - and starts with a letter or digit",
            )
        where = f"instance {self.id}" if self.id else ""
        if not isinstance(self.board, str) or not _BOARD.fullmatch(self.board):
            raise T2TError(f"the board {shown(self.board)} is none", where=where, cause="a board is nine of the characters X O .")
        for name, known in (("mover", MOVERS), ("opponent", OPPONENTS)):
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                raise T2TError(f"{name} must be one of {', '.join(known)}, not {shown(getattr(self, name))}", where=where)
        p = as_number(self.p)
        if p is None or not 0 <= p <= 1:
            raise T2TError(f"p must be a number in 0..1, not {shown(self.p)}", where=where)
        object.__setattr__(self, "p", p)
        if type(self.seed) is not int or not 0 <= self.seed <= MAX_SEED:
            raise T2TError(f"seed must be an integer in 0..2^53 - 1, not {shown(self.seed)}", where=where)
        if type(self.seeded) is not bool:
            raise T2TError(f"seeded must be true or false, not {shown(self.seeded)}", where=where)
        fault = start_fault(self.policy_stones, self.opponent_stones, self.mover)
        if fault:
            raise T2TError(f"the game cannot start from the board {self.board}: {fault}", where=where)

    @cached_property
    def policy_stones(self) -> int:
        """As a bitmask."""
        return stones(self.board, POLICY)

    @cached_property
    def opponent_stones(self) -> int:
        """As a bitmask."""
        return stones(self.board, OPPONENT)

    @property
    def starts_empty(self) -> bool:
        """Whether the game starts from an empty board."""
        return self.board == EMPTY

    def identity(self) -> bytes:
        """The position up to the board's 8 symmetries, who moves, and the seed: 2 + 2 + 1 + 8 bytes, big-endian."""
        x, o = rules.canonical(self.policy_stones, self.opponent_stones)
        return x.to_bytes(2, "big") + o.to_bytes(2, "big") + bytes([MOVERS.index(self.mover)]) + self.seed.to_bytes(8, "big")

    def to_dict(self) -> dict[str, Any]:
        """One JSON line."""
        return {
            "id": self.id,
            "board": self.board,
            "mover": self.mover,
            "p": self.p,
            "opponent": self.opponent,
            "seed": self.seed,
            "seeded": self.seeded,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Instance:
        """The inverse of `to_dict`. Raises T2TError on a missing, unknown or nonsensical field."""
        check_fields(data, [field.name for field in fields(cls)], ("board", "mover", "p", "seed"))
        return cls(**data)


def start_fault(policy: int, opponent: int, mover: str) -> str | None:
    """Why no game can start from a position; None if one can."""
    own, other = (policy, opponent) if mover == "policy" else (opponent, policy)
    if other.bit_count() - own.bit_count() not in (0, 1):
        return f"it is not the {mover}'s turn: {policy.bit_count()} X and {opponent.bit_count()} O"
    if rules.has_line(policy) or rules.has_line(opponent):
        return "somebody has won already"
    if len(rules.free_cells(policy | opponent)) < 2:
        return "fewer than two cells are free"
    if mover == "opponent" and rules.wins(opponent, policy):
        return "the opponent would win before the policy has moved"
    return None
