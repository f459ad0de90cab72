"""One self-contained HTML page: the lake, a step slider, play and pause, trajectories, checks. It loads no other file.

The picture, the trajectories and the checks also work without JavaScript; only the slider needs the page's script.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from t2t_core.records import Verdict
from t2t_core.report import frame
from t2t_core.text import plain_lines

from ..instance import Cell, Instance
from .scene import PALETTE, Scene
from .svg import board, centre, svg_element, token

if TYPE_CHECKING:
    from jinja2 import Environment


def render_html(
    instance: Instance,
    paths: Sequence[Sequence[Cell]] | Mapping[int, Sequence[Cell]] | None = None,
    verdict: Verdict | None = None,
    title: str = "",
    notes: Sequence[tuple[str, str]] = (),
) -> str:
    """A whole page that plays the paths step by step. If a `verdict` is given, the page shows its checks; `notes` are pairs of a
    title and a text that unfolds on a click."""
    scene = Scene.of(instance, paths)
    tokens = "".join(token(scene, a, 0, attributes=f' id="agent-{a}" class="move"') for a in range(instance.num_agents))
    return frame.render(
        _environment().get_template("lake.html"),
        plain_lines(title or f"MAPF-FrozenLake {instance.id}".strip()),
        style=frame.sheet("instance.css") + frame.sheet("lake.css", __package__),
        script=frame.sheet("lake.js", __package__),
        scene=scene,
        picture=svg_element(scene, board(scene) + tokens),
        palette=PALETTE,
        verdict=verdict,
        notes=notes,
        moments=_moments(scene),
    )


@functools.cache
def _environment() -> Environment:
    return frame.environment(__package__)


def _moments(scene: Scene) -> dict[str, Any]:
    """For each step: where the agents are on the page, which of them are in a conflict or a hole, and the text that says so."""
    agents, steps = range(scene.instance.num_agents), range(scene.steps + 1)
    conflicts, falls = {step for step, _ in scene.conflicts}, {step for step, *_ in scene.falls}
    return {
        "places": [[centre(scene.spot(agent, step)) for agent in agents] for step in steps],
        "faulty": [sorted(scene.faulty_at(step)) for step in steps],
        "said": [": conflict" * (step in conflicts) + ": fall" * (step in falls) for step in steps],
    }
