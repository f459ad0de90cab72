"""A game as the policy's messages played it: turn by turn, with the opponent's moves in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from t2t_core.records import Message

from . import rules
from .instance import Instance, board_text
from .opponents import opponent_move
from .parser import Move, read_move

TURNS = 8  # the policy's turns; our reading of "capped at eight times"
Result = Literal["win", "draw", "loss"]


@dataclass(frozen=True)
class Turn:
    """One message of the policy: the board it saw (both players' stones as bitmasks), the move it named, whether that was legal,
    and the opponent's answer if there was one."""

    number: int
    policy: int
    opponent: int
    move: Move
    legal: bool
    answer: int | None = None

    @property
    def cell(self) -> int | None:
        """The cell of a legal move, None if the board did not change."""
        return self.move.cell if self.legal else None


@dataclass(frozen=True)
class Game:
    """The state of a game: the stones on the board, the opponent's first move if it began, the policy's turns, and the result for
    the policy (None while the game is open). If a game is not over after `TURNS` turns, it is lost."""

    policy: int
    opponent: int
    opening: int | None = None
    turns: tuple[Turn, ...] = ()
    result: Result | None = None

    @property
    def board(self) -> str:
        """The board as nine characters, row by row."""
        return board_text(self.policy, self.opponent)


def begin(instance: Instance) -> Game:
    """The game before the policy's first turn: if the opponent begins, it has moved."""
    policy, opponent = instance.policy_stones, instance.opponent_stones
    if instance.mover == "policy":
        return Game(policy, opponent)
    cell = opponent_move(instance, policy, opponent)
    return Game(policy, opponent | 1 << cell, cell)


def advance(instance: Instance, game: Game, move: Move) -> Game:
    """The game after one more message of the policy and the opponent's answer to it."""
    policy, opponent = game.policy, game.opponent
    number = len(game.turns)
    legal = move.cell is not None and move.cell in rules.free_cells(policy | opponent)
    turn = Turn(number, policy, opponent, move, legal)
    result: Result | None = None
    if turn.cell is not None:
        policy |= 1 << turn.cell
        if not rules.is_over(policy, opponent):
            answer = opponent_move(instance, policy, opponent)
            opponent |= 1 << answer
            turn = Turn(number, game.policy, game.opponent, move, legal, answer)
        if rules.is_over(policy, opponent):
            result = "win" if rules.has_line(policy) else "loss" if rules.has_line(opponent) else "draw"
    if result is None and number + 1 == TURNS:
        result = "loss"
    return Game(policy, opponent, game.opening, (*game.turns, turn), result)


def replay(instance: Instance, messages: Sequence[Message], format: str) -> Game:
    """The game that the policy's messages give, in order, up to its end. The environment's messages follow from them."""
    game = begin(instance)
    for message in messages:
        if game.result is not None:
            break
        if message.role == "assistant":
            game = advance(instance, game, read_move(message.content, format))
    return game
