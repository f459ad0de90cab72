"""Draws SVG as strings: a still picture of whole paths or of one step, or an animation that plays by itself. No dependency."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..instance import Cell, Instance
from .scene import ALARM, GRID, HOLE, ICE, INK, MUTED, PALETTE, Scene, text_on

CELL = 60.0  # user units per cell
RIM = 34.0  # around the board, for row and column numbers and agents that left the grid
STEP_SECONDS = 0.7
_FLAG = "h11.5a10 10 0 0 1 10 10v9.5h-15a6.5 6.5 0 0 1 -6.5 -6.5z"
_NUMBER = 'font-weight="700" text-anchor="middle"'
HOLD_SECONDS = 1.4  # the pause at the end of each turn of the animation


def render_svg(
    instance: Instance,
    paths: Sequence[Sequence[Cell]] | Mapping[int, Sequence[Cell]] | None = None,
    step: int | None = None,
    animate: bool = False,
) -> str:
    """One <svg> element with starts, goals and holes. With paths it shows whole paths (`step` None), the moment `step` or, with
    `animate`, the agents moving along their paths (SMIL, which browsers and README pages play). Conflicts and falls are red."""
    scene = Scene.of(instance, paths)
    moving = animate and scene.steps > 0
    body = [_board(scene), *_goals(scene)]
    if scene.paths and (moving or step is None):
        body += [_path(scene, agent) for agent in scene.paths]
    for agent in range(instance.num_agents):
        body.append(token(scene, agent, step or 0, _motion(scene, agent) if moving else ""))
    if scene.paths and not moving and step is None:
        body += _pauses(scene)
        body += [_burst(scene, *mishap) for mishap in _mishaps(scene)]
    if moving:
        body += [_flash(scene, cell, when) for when, cell, _ in _mishaps(scene)]
    return svg_element(scene, "".join(body))


def svg_element(scene: Scene, body: str) -> str:
    """The outermost element, with a title and a description that screen readers read."""
    side = scene.instance.size * CELL + 2 * RIM
    instance = scene.instance
    name = f"MAPF-FrozenLake {instance.id}".strip()
    title = f"{name}, {instance.size}x{instance.size}, {instance.num_agents} agents"
    about = "; ".join(f"agent {a} from {s} to {g}" for a, (s, g) in enumerate(zip(instance.starts, instance.goals, strict=True)))
    if scene.conflicts:
        about += f"; {len(scene.conflicts)} conflicts"
    if scene.falls:
        about += f"; {len(scene.falls)} falls"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side:g} {side:g}" width="{side:g}" height="{side:g}" role="img" '
        f'font-family="system-ui, sans-serif"><title>{title}</title><desc>{about}</desc>'
        f'<rect width="{side:g}" height="{side:g}" rx="14" fill="#ffffff"/>{body}</svg>'
    )


def centre(cell: tuple[float, float]) -> tuple[float, float]:
    """x and y of the middle of a cell, or of a place between cells."""
    return RIM + (cell[1] + 0.5) * CELL, RIM + (cell[0] + 0.5) * CELL


def board(scene: Scene) -> str:
    """Everything that does not move: ice, holes, numbers, goals."""
    return _board(scene) + "".join(_goals(scene))


def _board(scene: Scene) -> str:
    n = scene.instance.size
    side = n * CELL
    parts = [f'<rect x="{RIM:g}" y="{RIM:g}" width="{side:g}" height="{side:g}" rx="8" fill="{ICE}"/>']
    lines = "".join(f"M{RIM + i * CELL:g} {RIM:g}v{side:g}M{RIM:g} {RIM + i * CELL:g}h{side:g}" for i in range(1, n))
    parts.append(f'<path d="{lines}" stroke="{GRID}" stroke-width="2.5" fill="none"/>')
    for hole in scene.instance.holes:
        x, y = centre(hole)
        half = CELL / 2 - 6
        box = f'x="{x - half:g}" y="{y - half:g}" width="{2 * half:g}" height="{2 * half:g}"'
        parts.append(f'<rect {box} rx="12" fill="{HOLE}"/>')
        parts.append(f'<path d="M{x - 12:g} {y - 3:g}q6 -6 12 0t12 0M{x - 12:g} {y + 7:g}q6 -6 12 0t12 0" stroke="#7ba3c4" '
                     f'stroke-width="2" fill="none" stroke-linecap="round"/>')  # fmt: skip
    for i in range(n):
        middle = RIM + (i + 0.5) * CELL
        style = f'font-size="13" fill="{MUTED}" text-anchor="middle"'
        parts.append(f'<text x="{middle:g}" y="{RIM - 11:g}" {style}>{i}</text>')
        parts.append(f'<text x="{RIM - 15:g}" y="{middle + 4.5:g}" {style}>{i}</text>')
    return "".join(parts)


def _goals(scene: Scene) -> list[str]:
    """A goal is a frame in the agent's colour with a small flag that carries its number."""
    parts = []
    for agent, cell in enumerate(scene.instance.goals):
        x, y = centre(cell)
        colour, half = PALETTE[agent], CELL / 2 - 5
        box = f'x="{x - half:g}" y="{y - half:g}" width="{2 * half:g}" height="{2 * half:g}" rx="9"'
        parts.append(f'<rect {box} fill="{colour}" fill-opacity="0.16" stroke="{colour}" stroke-width="3"/>')
        parts.append(
            f'<path d="M{x + half - 20:g} {y - half - 1.5:g}{_FLAG}" fill="{colour}"/>'
            f'<text x="{x + half - 9:g}" y="{y - half + 13:g}" font-size="12" font-weight="700" text-anchor="middle" '
            f'fill="{text_on(colour)}">{agent}</text>'
        )
    return parts


def _lane(scene: Scene, agent: int) -> float:
    """How far an agent's line is shifted, so that lines through the same cell do not cover each other."""
    k = scene.instance.num_agents
    return 0.0 if k == 1 else (agent / (k - 1) - 0.5) * min(22.0, 7.0 * (k - 1))


def _path(scene: Scene, agent: int) -> str:
    """The line of one path; illegal moves are red and dashed."""
    colour, lane = PALETTE[agent], _lane(scene, agent)
    cells = [scene.near(cell) for cell in scene.paths[agent]]
    points = [(x + lane, y + lane) for x, y in map(centre, cells)]
    line = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    round_ends = 'stroke-linecap="round" stroke-linejoin="round" fill="none"'
    parts = [f'<path d="{line}" stroke="#ffffff" stroke-width="8" stroke-opacity="0.85" {round_ends}/>']
    parts.append(f'<path d="{line}" stroke="{colour}" stroke-width="4" {round_ends}/>')
    for step in range(1, len(points)):
        if (agent, step) in scene.jumps:
            (x, y), (u, v) = points[step - 1], points[step]
            dashes = f'stroke="{ALARM}" stroke-width="4" stroke-dasharray="2 8" {round_ends}'
            parts.append(f'<path d="M{x:g} {y:g}L{u:g} {v:g}" {dashes}/>')
    if len(set(points)) > 1:
        parts.append(_arrow(points, colour))
    return f"<g>{''.join(parts)}<title>agent {agent}</title></g>"


def _pauses(scene: Scene) -> list[str]:
    """A pause sign on every cell where an agent waits one step; if it waits longer, the number of steps instead."""
    parts: list[str] = []
    taken: dict[Cell, int] = {}  # signs on the same cell are drawn side by side
    for agent, step, count in [(a, step, count) for a in scene.paths for step, count in _waits(scene, a)]:
        cell = scene.near(scene.paths[agent][step])
        x, y = centre(cell)
        x, y = x - 19 + 19 * taken.get(cell, 0), y + 19
        taken[cell] = taken.get(cell, 0) + 1
        bars = f"M{x - 2.5:g} {y - 3.5:g}v7M{x + 2.5:g} {y - 3.5:g}v7"
        sign = f'<path d="{bars}" stroke="{INK}" stroke-width="2.2" stroke-linecap="round"/>'
        number = f'<text x="{x:g}" y="{y + 3.8:g}" font-size="11" {_NUMBER} fill="{INK}">{count}</text>'
        parts.append(
            f'<g><circle cx="{x:g}" cy="{y:g}" r="8" fill="#ffffff" stroke="{PALETTE[agent]}" stroke-width="2.5"/>'
            f"{sign if count == 1 else number}<title>agent {agent} waits {count} steps from step {step}</title></g>"
        )
    return parts


def _waits(scene: Scene, agent: int) -> list[tuple[int, int]]:
    """(first step, number of waits) of every stay before the path reaches its last cell for good."""
    path = scene.paths[agent]
    last = len(path) - 1
    while last and path[last - 1] == path[last]:
        last -= 1
    waits: list[tuple[int, int]] = []
    step = 0
    while step < last:
        stay = step
        while stay < last and path[stay + 1] == path[step]:
            stay += 1
        if stay > step:
            waits.append((step, stay - step))
        step = stay + 1
    return waits


def _arrow(points: Sequence[tuple[float, float]], colour: str) -> str:
    end = points[-1]
    before = next(p for p in reversed(points) if p != end)
    length = max(abs(end[0] - before[0]), abs(end[1] - before[1]))
    dx, dy = (end[0] - before[0]) / length, (end[1] - before[1]) / length
    x, y = end[0] + 5 * dx, end[1] + 5 * dy
    wing = f"L{x - 13 * dx - 7 * dy:g} {y - 13 * dy + 7 * dx:g}L{x - 13 * dx + 7 * dy:g} {y - 13 * dy - 7 * dx:g}z"
    return f'<path d="M{x:g} {y:g}{wing}" fill="{colour}" stroke="#ffffff" stroke-width="1.5" stroke-linejoin="round"/>'


def token(scene: Scene, agent: int, step: int, motion: str = "", attributes: str = "") -> str:
    """An agent at a step: a disc in its colour with its number. `motion` is an animation to put inside."""
    x, y = centre(scene.spot(agent, step))
    colour = PALETTE[agent]
    ring = ALARM if not motion and agent in scene.faulty_at(step) else "#ffffff"
    return (
        f'<g{attributes} transform="translate({x:g} {y:g})">{motion}'
        f'<circle r="16" fill="{colour}" stroke="{ring}" stroke-width="3"/>'
        f'<text y="5.5" font-size="16" {_NUMBER} fill="{text_on(colour)}">{agent}</text>'
        f"<title>agent {agent}</title></g>"
    )


def _turn(scene: Scene) -> float:
    """Seconds of one turn of the animation."""
    return scene.steps * STEP_SECONDS + HOLD_SECONDS


def _motion(scene: Scene, agent: int) -> str:
    """Where the agent is at each step; at the end of the turn it stands still for a while."""
    spots = [centre(scene.spot(agent, step)) for step in range(scene.steps + 1)]
    spots.append(spots[-1])
    turn = _turn(scene)
    times = [*(step * STEP_SECONDS / turn for step in range(scene.steps + 1)), 1.0]
    values = ";".join(f"{x:g} {y:g}" for x, y in spots)
    keys = ";".join(f"{time:.5g}" for time in times)
    return (
        f'<animateTransform attributeName="transform" type="translate" values="{values}" keyTimes="{keys}" dur="{turn:g}s" '
        f'repeatCount="indefinite"/>'
    )


def _star(x: float, y: float) -> str:
    """A star-shaped burst around a point."""
    points = " ".join(f"{x + r * dx:g},{y + r * dy:g}" for r, dx, dy in _RAYS)
    return f'<polygon points="{points}" fill="{ALARM}" stroke="#ffffff" stroke-width="2"/>'


_RAYS = tuple((15.0 - 7.0 * (i % 2), math.sin(i * math.pi / 8), -math.cos(i * math.pi / 8)) for i in range(16))


def _mishaps(scene: Scene) -> list[tuple[int, Cell, str]]:
    """Step, cell and name of every conflict and fall."""
    conflicts = [(step, conflict.cell, "conflict") for step, conflict in scene.conflicts]
    return conflicts + [(step, cell, f"agent {agent} falls") for step, agent, cell in scene.falls]


def _burst(scene: Scene, step: int, cell: Cell, name: str) -> str:
    x, y = centre(scene.near(cell))
    return (
        f'<g>{_star(x, y)}<text x="{x:g}" y="{y + 4:g}" font-size="11" {_NUMBER} fill="#ffffff">{step}</text>'
        f"<title>{name} at step {step}</title></g>"
    )


def _flash(scene: Scene, cell: Cell, step: int) -> str:
    """A burst that is visible only during its step."""
    turn = _turn(scene)
    start, end = step * STEP_SECONDS / turn, min((step + 1) * STEP_SECONDS / turn, 0.9999)
    x, y = centre(scene.near(cell))
    return (
        f'<g opacity="0">{_star(x, y)}<animate attributeName="opacity" values="0;1;0" '
        f'keyTimes="0;{max(start, 1e-4):.5g};{end:.5g}" calcMode="discrete" dur="{turn:g}s" repeatCount="indefinite"/></g>'
    )
