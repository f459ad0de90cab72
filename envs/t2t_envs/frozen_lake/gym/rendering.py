"""The environments' render modes, built on the drawings of `render`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from t2t_core.errors import T2TError

from ..instance import Cell, Instance

RENDER_MODES = ["human", "ansi", "rgb_array"]
FPS = 4
_CLEAR = "\x1b[H\x1b[2J"


def check_render_mode(mode: str | None, known: Sequence[str] = RENDER_MODES) -> str | None:
    """The mode, or None. Raises T2TError for one that is not known."""
    if mode is not None and mode not in known:
        raise T2TError("unknown render_mode", where="option render_mode", next="use one of " + ", ".join(known))
    return mode


def render_frame(instance: Instance, recent: Sequence[Sequence[Cell]], step: int, mode: str | None) -> Any:
    """The positions at `step` as text ("ansi"), as an (height, width, 3) uint8 image ("rgb_array"), or printed ("human":
    on a terminal in colour, each frame over the one before; otherwise as plain text).

    `recent` holds each agent's last cells: the one it is on and, before it, the one it came from, if any.
    """
    if mode is None:
        raise T2TError("the environment has no render mode", where="render()", next='make it with render_mode="ansi"')
    from ..draw.render import render_ansi, render_rgb  # load drawing libraries only if they are used

    shown = len(recent[0]) - 1
    if mode == "rgb_array":
        return render_rgb(instance, recent, shown, cell=max(8, min(48, 4000 // (instance.size + 2))))
    on_terminal = mode == "human" and sys.stdout.isatty()
    text = f"step {step}\n" + render_ansi(instance, recent, shown, color=on_terminal)
    if mode == "ansi":
        return text
    sys.stdout.write(_CLEAR + text if on_terminal else text)
    sys.stdout.flush()
    if on_terminal:
        time.sleep(1 / FPS)
    return None
