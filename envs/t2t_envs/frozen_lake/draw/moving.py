"""A small moving picture of an answer, for pages with thousands of them: it has a third of the bytes of `render_svg`'s animation.

Goals are frames in the agents' colours, holes dark squares, conflicts and falls red rings; every agent carries its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ..instance import Cell, Instance
from .scene import ALARM, GRID, HOLE, ICE, PALETTE, Scene, text_on

_CELL, _RIM = 32, 10  # user units per cell, and around the board
_SECONDS, _HOLD = 0.6, 3  # seconds per step; for how many steps the end is held


def render_moving(instance: Instance, paths: Sequence[Sequence[Cell]] | Mapping[int, Sequence[Cell]] | None = None) -> str:
    """One <svg> element: the agents move along their paths over and over (SMIL). Without paths they stand on their starts."""
    scene = Scene.of(instance, paths)
    side = instance.size * _CELL + 2 * _RIM
    agents = range(instance.num_agents)
    parts = [_board(scene), *(_goal(scene, agent) for agent in agents), *(_trail(scene, agent) for agent in scene.paths)]
    parts += [_agent(scene, agent) for agent in agents]
    if scene.steps:
        parts += [_ring(scene, conflict.cell, step) for step, conflict in scene.conflicts]
        parts += [_ring(scene, cell, step) for step, _, cell in scene.falls]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}" width="{side}" height="{side}" '
        f'font-family="sans-serif" font-size="11" text-anchor="middle"><title>{escape(instance.id)}</title>'
        f'<path d="M0 0h{side}v{side}H0z" fill="#fff"/>{"".join(parts)}</svg>'
    )


def _middle(cell: tuple[float, float]) -> tuple[float, float]:
    return _RIM + (cell[1] + 0.5) * _CELL, _RIM + (cell[0] + 0.5) * _CELL


def _board(scene: Scene) -> str:
    n, side = scene.instance.size, scene.instance.size * _CELL
    lines = "".join(f"M{_RIM + i * _CELL} {_RIM}v{side}M{_RIM} {_RIM + i * _CELL}h{side}" for i in range(1, n))
    wide = _CELL - 6
    square = f"h{wide}v{wide}h-{wide}z"
    holes = "".join(f"M{_RIM + c * _CELL + 3} {_RIM + r * _CELL + 3}{square}" for r, c in scene.instance.holes)
    ice = f'<path d="M{_RIM} {_RIM}h{side}v{side}h-{side}z" fill="{ICE}"/><path d="{lines}" stroke="{GRID}" stroke-width="2"/>'
    return ice + (f'<path d="{holes}" fill="{HOLE}"/>' if holes else "")


def _goal(scene: Scene, agent: int) -> str:
    row, column = scene.instance.goals[agent]
    x, y, wide, colour = _RIM + column * _CELL + 3, _RIM + row * _CELL + 3, _CELL - 6, PALETTE[agent]
    frame = f'<path d="M{x} {y}h{wide}v{wide}h-{wide}z" fill="none" stroke="{colour}" stroke-width="3"/>'
    return frame + f'<text x="{x + wide - 6}" y="{y + 12}" font-size="9" fill="{colour}">{agent}</text>'


def _trail(scene: Scene, agent: int) -> str:
    aside = 0.0 if scene.instance.num_agents == 1 else (agent / (scene.instance.num_agents - 1) - 0.5) * 8
    points = [_middle(scene.near(cell)) for cell in scene.paths[agent]]
    line = "L".join(f"{x + aside:.4g} {y + aside:.4g}" for x, y in points)
    return f'<path d="M{line}" fill="none" stroke="{PALETTE[agent]}" stroke-width="2" opacity=".55"/>'


def _agent(scene: Scene, agent: int) -> str:
    spots = [_middle(scene.spot(agent, step)) for step in range(scene.steps + 1)]
    colour, (x, y) = PALETTE[agent], spots[0]
    motion = ""
    if len(set(spots)) > 1:
        values = ";".join(f"{x:g} {y:g}" for x, y in [*spots, *[spots[-1]] * _HOLD])
        motion = f'<animateTransform attributeName="transform" type="translate" values="{values}" {_turn(scene)}/>'
    disc = f'<circle r="9" fill="{colour}" stroke="#fff" stroke-width="2"/><text y="4" fill="{text_on(colour)}">{agent}</text>'
    return f'<g transform="translate({x:g} {y:g})">{disc}{motion}</g>'


def _turn(scene: Scene) -> str:
    return f'dur="{(scene.steps + _HOLD) * _SECONDS:g}s" repeatCount="indefinite"'


def _ring(scene: Scene, cell: Cell, step: int) -> str:
    """A red ring around a conflict or fall, from its step on."""
    x, y = _middle(scene.near(cell))
    values = ";".join("1" if at >= step else "0" for at in range(scene.steps + _HOLD + 1))
    flash = f'<animate attributeName="opacity" calcMode="discrete" values="{values}" {_turn(scene)}/>'
    return f'<circle cx="{x:g}" cy="{y:g}" r="13" fill="none" stroke="{ALARM}" stroke-width="4" opacity="0">{flash}</circle>'
