"""A game as text: its boards side by side, with ANSI colours if asked for."""

from __future__ import annotations

from ..game import Game, begin
from ..instance import OPPONENT, POLICY, Instance
from .frames import Frame, frames, result_text

_RESET = "\x1b[0m"
_STYLES = {POLICY: "\x1b[1;38;2;0;119;170m", OPPONENT: "\x1b[1;38;2;221;102;0m", ".": "\x1b[38;5;245m"}
_NEW, _MISSED, _ALARM = "\x1b[48;2;255;243;196m", "\x1b[1;97;41m", "\x1b[1;31m"
_WIDTH = 24  # columns of one board with its captions
_ACROSS = 4  # boards side by side


def render_ansi(instance: Instance, game: Game | None = None, color: bool = False) -> str:
    """The boards of a game, or only its start. Free cells show their number, and `!` precedes a missed cell. With `color`, the
    text has ANSI colours."""
    shown = frames(instance, game or begin(instance))
    parts = []
    for first in range(0, len(shown), _ACROSS):
        blocks = [_block(frame, color) for frame in shown[first : first + _ACROSS]]
        parts.append("\n".join("".join(line).rstrip() for line in zip(*blocks, strict=True)))
    ended = f"\n{result_text(game)}\n" if game is not None else ""
    return "\n\n".join(parts) + "\n" + ended


def board_text(board: str, color: bool = False) -> str:
    """One board as three lines."""
    frame = Frame(board, (), "")
    return "".join(_row(frame, row, color).rstrip() + "\n" for row in (0, 3, 6))


def _block(frame: Frame, color: bool) -> list[str]:
    """Five lines of the same visible width: three rows, what happened, and what was wrong."""
    rows = [_row(frame, row, color) + " " * (_WIDTH - 9) for row in (0, 3, 6)]
    fault = frame.fault.ljust(_WIDTH)
    return [*rows, frame.caption.ljust(_WIDTH), f"{_ALARM}{fault}{_RESET}" if color and frame.fault else fault]


def _row(frame: Frame, row: int, color: bool) -> str:
    """One row, in nine columns."""
    text = ""
    for cell in range(row, row + 3):
        mark = frame.board[cell]
        shown = f"{'!' if cell == frame.missed else ' '}{cell if mark == '.' else mark} "
        if color:
            back = _MISSED if cell == frame.missed else _NEW if cell in frame.new else ""
            shown = f"{_STYLES[mark]}{back}{shown}{_RESET}"
        text += shown
    return text
