"""MovingAI's benchmark files: a `.map` with the terrain, and a `.scen` with a line for each agent.

Maps hold no labels and scenarios no objective, so an exported instance comes back without its optima. `t2t solve` finds them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import InstanceSet
from t2t_core.store import folders
from t2t_core.store.formats import About, FileFormat

from .instance import MAX_AGENTS, Cell, Instance
from .maps import read_scenario


def read(testbed: AnyTestbed, path: Path, argument: str) -> list[Instance]:
    """The instances of a scenario. `argument` is the number of agents per instance ("room.scen@4"). If it is "", all lines are
    the agents of one instance, which is named after the file."""
    if path.suffix.lower() == ".map":
        raise T2TError("a map alone names no agents", where=str(path), next="give its scenario, room.scen or room.scen@4")
    if argument:
        if not (argument.isascii() and argument.isdecimal() and 1 <= int(argument[:4]) <= MAX_AGENTS and len(argument) < 4):
            what = f"{ascii(argument)[:40]} is not a number of agents from 1 to {MAX_AGENTS}"
            raise T2TError(what, where=f"{path}@{argument[:40]}", next=f"{path.name}@4 takes four lines an instance")
        return read_scenario(path, int(argument))
    lines = sum(bool(line.strip()) for line in folders.read_text(path).splitlines()[1:])
    if lines > MAX_AGENTS:
        what = f"the scenario has {lines} lines, and an instance at most {MAX_AGENTS} agents"
        raise T2TError(what, where=str(path), next=f"{path.name}@4 takes four lines an instance")
    return [replace(instance, id=path.stem) for instance in read_scenario(path, max(lines, 1))]


def map_text(instance: Instance) -> str:
    """The `.map` of an instance: `@` is a hole."""
    holes, cells = set(instance.holes), range(instance.size)
    rows = ["".join("@" if (row, column) in holes else "." for column in cells) for row in cells]
    return "\n".join(["type octile", f"height {instance.size}", f"width {instance.size}", "map", *rows, ""])


def scenario_text(instance: Instance, map_name: str) -> str:
    """The `.scen` of an instance. The last column is the length of each agent's shortest path alone, in moves along rows and
    columns."""
    lines = ["version 1"]
    for start, goal in zip(instance.starts, instance.goals, strict=True):
        alone = _distance(instance, start, goal)
        facts = (0, map_name, instance.size, instance.size, start[1], start[0], goal[1], goal[0], f"{alone:.8f}")
        lines.append("\t".join(map(str, facts)))
    return "\n".join(lines) + "\n"


def _distance(instance: Instance, start: Cell, goal: Cell) -> int:
    """Moves from start to goal without other agents. Raises T2TError if there is no path, since the format can't say so."""
    holes, seen, waiting = set(instance.holes), {start}, deque([(start, 0)])
    while waiting:
        (row, column), steps = waiting.popleft()
        if (row, column) == goal:
            return steps
        for cell in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            if cell not in seen and cell not in holes and min(cell) >= 0 and max(cell) < instance.size:
                seen.add(cell)
                waiting.append((cell, steps + 1))
    raise T2TError(f"an agent has no path from {start} to {goal}", where=instance.id or "an instance without a name")


def write(testbed: AnyTestbed, sets: Sequence[InstanceSet], out: Path, about: About) -> None:
    """Write a `.map` and a `.scen` for each instance into the folder `out`; with several sets, each gets its own subfolder."""
    for each in sets:
        folder = out if len(sets) == 1 else out / each.name
        for name, instance in named(each.instances):
            folders.write_atomic(folder / f"{name}.map", map_text(instance))
            folders.write_atomic(folder / f"{name}.scen", scenario_text(instance, f"{name}.map"))


def named(instances: Sequence[Instance]) -> list[tuple[str, Instance]]:
    """Each instance with the name of its file, which is its id or else its number."""
    return [((i.id or f"instance_{number:04d}").replace(":", "-"), i) for number, i in enumerate(instances)]


FILES = FileFormat((".scen", ".map"), read, write)
