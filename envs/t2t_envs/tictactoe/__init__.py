"""Tic-tac-toe against an opponent of chosen strength, in turns (see docs, "Tic-tac-toe").

The public names are loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .draw.html import render_html
    from .draw.svg import render_svg
    from .draw.terminal import render_ansi
    from .game import Game, replay
    from .generation.configuration import Configuration
    from .generation.generator import generate
    from .instance import Instance
    from .opponents import opponent_move
    from .parser import format_move, read_move
    from .prompt import make_prompt
    from .verifier import CHECKS, verify

_HOME = {
    "Instance": "instance",
    "Configuration": "generation.configuration",
    "generate": "generation.generator",
    "opponent_move": "opponents",
    "Game": "game",
    "replay": "game",
    "CHECKS": "verifier",
    "verify": "verifier",
    "format_move": "parser",
    "read_move": "parser",
    "make_prompt": "prompt",
    "render_ansi": "draw.terminal",
    "render_html": "draw.html",
    "render_svg": "draw.svg",
}

__all__ = [
    "CHECKS",
    "Configuration",
    "Game",
    "Instance",
    "format_move",
    "generate",
    "make_prompt",
    "opponent_move",
    "read_move",
    "render_ansi",
    "render_html",
    "render_svg",
    "replay",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
