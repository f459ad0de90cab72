"""The environments' render modes, over the drawings of `draw`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from t2t_core.errors import T2TError

RENDER_MODES = ["human", "ansi", "rgb_array"]
FPS = 2
_CLEAR = "\x1b[H\x1b[2J"


def check_render_mode(mode: str | None, known: Sequence[str] = RENDER_MODES) -> str | None:
    """The mode, or None. Raises T2TError for one that is not known."""
    if mode is not None and mode not in known:
        raise T2TError("unknown render_mode", where="option render_mode", next="use one of " + ", ".join(known))
    return mode


def render_board(board: str, mode: str | None) -> Any:
    """A board as text ("ansi"), as a (height, width, 3) uint8 image ("rgb_array"), or printed ("human": on a terminal in colour,
    each board over the previous one, else as plain text)."""
    if mode is None:
        raise T2TError("the environment has no render mode", where="render()", next='make it with render_mode="ansi"')
    if mode == "rgb_array":
        from ..draw.image import board_image  # Pillow is loaded only for those who draw

        return board_image(board)
    from ..draw.terminal import board_text

    on_terminal = mode == "human" and sys.stdout.isatty()
    text = board_text(board, color=on_terminal)
    if mode == "ansi":
        return text
    sys.stdout.write(_CLEAR + text if on_terminal else text)
    sys.stdout.flush()
    if on_terminal:
        time.sleep(1 / FPS)
    return None
