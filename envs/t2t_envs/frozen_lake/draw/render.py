"""Drawings of instances, answers and solutions: draws text for the terminal, and offers the functions for SVG, GIF and HTML.

`paths` are one sequence of cells per agent, or a mapping from agent to its path (as `parse_answer` returns it); without
paths only the instance is drawn. `step` is the moment shown; None draws whole paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..instance import Cell, Instance
from .html import render_html
from .image import render_gif, render_rgb
from .scene import PALETTE, Scene, text_on
from .svg import render_svg

__all__ = ["render_ansi", "render_gif", "render_html", "render_rgb", "render_svg"]

Paths = Sequence[Sequence[Cell]] | Mapping[int, Sequence[Cell]]
_RESET = "\x1b[0m"
_ALARM = "\x1b[1;97;41m"
_CELL = 5


def render_ansi(instance: Instance, paths: Paths | None = None, step: int | None = None, color: bool = False) -> str:
    """A board at `step` (None: the start). With paths and no step there is also a table of trajectories, conflicts and falls.

    Agents are numbers; `*2` is agent 2 fallen or in conflict, `g0` the goal of agent 0, and `#` a hole. `color` adds ANSI
    colours.
    """
    scene = Scene.of(instance, paths)
    parts = [_board(scene, 0 if step is None else step, color)]
    if scene.paths and step is None:
        parts += [_table(scene, color), *_notes(scene)]
    return "\n".join(parts) + "\n"


def _board(scene: Scene, step: int, color: bool) -> str:
    size = scene.instance.size
    holes, goals = set(scene.instance.holes), {cell: a for a, cell in enumerate(scene.instance.goals)}
    here: dict[Cell, list[int]] = {}
    for agent in range(scene.instance.num_agents):
        here.setdefault(scene.near(scene.at(agent, step)), []).append(agent)
    wrong = scene.faulty_at(step)
    outside = any(not (0 <= r < size and 0 <= c < size) for r, c in here)
    rows = range(-1, size + 1) if outside else range(size)
    lines = ["    " + "".join(str(c).center(_CELL) if 0 <= c < size else " " * _CELL for c in rows)]
    for row in rows:
        label = f"{row:>3} " if 0 <= row < size else "    "
        lines.append(label + "".join(_cell((row, c), scene, here, goals, holes, wrong, color) for c in rows))
    return "\n".join(line.rstrip() for line in lines)


def _cell(
    cell: Cell,
    scene: Scene,
    here: Mapping[Cell, list[int]],
    goals: Mapping[Cell, int],
    holes: set[Cell],
    wrong: set[int],
    color: bool,
) -> str:
    inside = 0 <= cell[0] < scene.instance.size and 0 <= cell[1] < scene.instance.size
    agents, goal = here.get(cell, []), goals.get(cell)
    ground = "#" if cell in holes else "." if inside else " "
    text = ",".join(map(str, agents)) or (f"g{goal}" if goal is not None else ground)
    if agents and wrong.intersection(agents):
        text, style = f"*{text}", _ALARM
    elif agents:
        style = _paint(PALETTE[agents[0]])
    elif goal is not None:
        style = _ink(PALETTE[goal])
    else:
        style = "\x1b[38;5;25m" if ground == "#" else "\x1b[38;5;250m"
    text = text.center(_CELL)
    return f"{style}{text}{_RESET}" if color and inside | bool(agents) else text


def _rgb(colour: str) -> str:
    return ";".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))


def _paint(colour: str) -> str:
    return f"\x1b[1;48;2;{_rgb(colour)};38;2;{_rgb(text_on(colour))}m"


def _ink(colour: str) -> str:
    return f"\x1b[1;4;38;2;{_rgb(colour)}m"


def _table(scene: Scene, color: bool) -> str:
    """One row per step and one column per agent: a dot after a path's end, `!` at an illegal move, `*` at a conflict or fall."""
    agents = list(scene.paths)
    columns = [[f"agent {a}", *(_entry(scene, a, t) for t in range(scene.steps + 1))] for a in agents]
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for index in range(scene.steps + 2):
        first = "step" if index == 0 else f"{index - 1:>4}"
        cells = [column[index].ljust(width) for column, width in zip(columns, widths, strict=True)]
        if color:
            cells = [_styled(cell, agent, index) for agent, cell in zip(agents, cells, strict=True)]
        lines.append("  ".join([first, *cells]).rstrip())
    return "\n".join(["", *lines])


def _styled(cell: str, agent: int, line: int) -> str:
    style = _ink(PALETTE[agent]) if line == 0 else _ALARM if "*" in cell else ""
    return f"{style}{cell}{_RESET}" if style else cell


def _entry(scene: Scene, agent: int, step: int) -> str:
    if step >= len(scene.paths[agent]):
        text = "."
    else:
        row, column = scene.paths[agent][step]
        text = f"({row},{column})" + ("!" if (agent, step) in scene.jumps else "")
    return text + ("*" if agent in scene.faulty_at(step) and text != "." else "")


def _notes(scene: Scene) -> list[str]:
    notes = [
        f"step {step}: {kind} conflict of agents {agents[0]} and {agents[1]} at ({cell[0]},{cell[1]})"
        for step, (kind, agents, cell) in scene.conflicts[:20]
    ]
    if len(scene.conflicts) > 20:
        notes.append(f"{len(scene.conflicts) - 20} more conflicts")
    notes += [f"step {step}: agent {agent} falls into the hole at ({row},{column})" for step, agent, (row, column) in scene.falls]
    missing = [str(a) for a in range(scene.instance.num_agents) if a not in scene.paths]
    if missing:
        notes.append("no path for agent " + ", ".join(missing))
    if scene.cut:
        notes.append(f"{scene.cut} more steps are not shown")
    return ["", *notes] if notes else []
