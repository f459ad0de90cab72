"""What the pictures of a game show, board by board. Terminal, SVG and HTML use the same frames, so that they agree."""

from __future__ import annotations

from dataclasses import dataclass

from .. import rules
from ..game import Game, Turn, begin
from ..instance import OPPONENT, POLICY, Instance, board_text

_MISTAKES = {"missed_win": "missed win", "missed_block": "missed block", "fork": "allows a fork"}


@dataclass(frozen=True)
class Frame:
    """One board, as after a turn of the policy and the opponent's answer to it.

    Args:
        board: nine characters, as in `Instance.board`.
        new: the cells that got a stone since the previous frame.
        caption: what happened.
        fault: what was wrong with the policy's turn, "" for nothing.
        missed: the cell on which the policy should have moved, if it missed a win or a block.
        line: the three cells of the line that ended the game.
    """

    board: str
    new: tuple[int, ...]
    caption: str
    fault: str = ""
    missed: int | None = None
    line: tuple[int, ...] = ()


def frames(instance: Instance, game: Game) -> list[Frame]:
    """The start, then one frame for each of the policy's turns."""
    first = begin(instance)
    opened = first.opening
    start = Frame(
        first.board, () if opened is None else (opened,), "start" if opened is None else f"start: {OPPONENT} on {opened}"
    )
    return [start, *(_frame(turn) for turn in game.turns)]


def _frame(turn: Turn) -> Frame:
    policy, opponent = turn.policy, turn.opponent
    if turn.cell is None:
        named = "no move" if turn.move.cell is None else f"{POLICY} on {turn.move.cell}"
        fault = "cannot be read" if turn.move.cell is None else "is not a free cell"
        return Frame(board_text(policy, opponent), (), f"turn {turn.number}: {named}", fault)
    mistake = rules.mistake(policy, opponent, turn.cell)
    missed = None
    if mistake == "missed_win":
        missed = rules.wins(policy, opponent)[0]
    elif mistake == "missed_block":
        missed = rules.wins(opponent, policy)[0]
    policy |= 1 << turn.cell
    new, caption = [turn.cell], f"turn {turn.number}: {POLICY} on {turn.cell}"
    if turn.answer is not None:
        opponent |= 1 << turn.answer
        new, caption = [turn.cell, turn.answer], f"{caption}, {OPPONENT} on {turn.answer}"
    fault = _MISTAKES[mistake] if mistake else ""
    return Frame(board_text(policy, opponent), tuple(new), caption, fault, missed, _line(policy) or _line(opponent))


def _line(stones: int) -> tuple[int, ...]:
    """The cells of a complete line, () if there is none."""
    complete = next((line for line in rules.LINES if stones & line == line), 0)
    return tuple(cell for cell in rules.CELLS if complete >> cell & 1)


def opponent_text(instance: Instance) -> str:
    """How strong the opponent is, in words."""
    share = f"{100 * instance.p:g} % of the opponent's moves are random, the others optimal"
    strength = {0.0: "the opponent plays optimally", 1.0: "the opponent moves at random"}.get(instance.p, share)
    habit = {"first": ", always the first of equal moves", "second": ", with the habits of the second optimal player"}
    return strength + (habit.get(instance.opponent, "") if instance.p < 1 else "")


def result_text(game: Game) -> str:
    """How the game ended, in words."""
    if game.result == "loss" and not rules.has_line(game.opponent):
        return f"lost by {POLICY}, the policy: not over after {len(game.turns)} turns"
    return {"win": f"won by {POLICY}, the policy", "draw": "drawn", "loss": f"lost by {POLICY}, the policy", None: "not over"}[
        game.result
    ]
