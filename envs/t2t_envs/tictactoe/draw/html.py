"""One self-contained HTML page: the boards of a game, its transcript word for word, and the verdict. It loads no file and runs no
script."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from t2t_core.records import Message, Verdict
from t2t_core.report import frame
from t2t_core.text import plain_lines

from ..game import Game
from ..instance import Instance
from .frames import opponent_text, result_text
from .svg import render_svg

if TYPE_CHECKING:
    from jinja2 import Environment


def render_html(
    instance: Instance, game: Game, verdict: Verdict, transcript: Sequence[Message], title: str = ""
) -> str:
    """A whole page. `transcript` is everything that was said, with the environment's opening first."""
    return frame.render(
        _environment().get_template("game.html"),
        plain_lines(title or f"Tic-tac-toe {instance.id}".strip()),
        style=frame.sheet("instance.css") + frame.sheet("game.css", __package__),
        result=result_text(game),
        opponent=opponent_text(instance),
        instance=instance,
        boards=render_svg(instance, game),
        verdict=verdict,
        transcript=transcript,
    )


@functools.cache
def _environment() -> Environment:
    return frame.environment(__package__)
