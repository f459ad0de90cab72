"""Reads and writes the YAML of libMultiRobotPlanning and other path finding solvers: agents, and a map with obstacles.

    agents:
    - {name: agent0, start: [0, 2], goal: [2, 1]}
    map: {dimensions: [3, 3], obstacles: [[1, 0]]}

Cells are [x, y], x to the right. The format has no place for the objective and the stored optima, so they are written under
`t2t`, which those solvers ignore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_core import advice
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.hostile import shown
from t2t_core.records import InstanceSet
from t2t_core.store import folders, jsonlines
from t2t_core.store.formats import About, FileFormat

from .instance import MAX_SIZE, MIN_SIZE, Cell, Instance
from .movingai import named

MAX_BYTES = 4 << 20  # of a file (our choice): a map of 256 x 256 cells needs a tenth of it
_OWN = ("id", "objective", "optimal_makespan", "optimal_sum_of_costs", "requires_wait")


def read(testbed: AnyTestbed, path: Path, argument: str) -> list[Instance]:
    """The one instance of a file. A map that is not square becomes the upper left corner of a square; the rest are holes."""
    data = _mapping(_load(path), "the file", str(path))
    world = _mapping(data.get("map"), "map", str(path))
    width, height = _pair(world.get("dimensions"), "map.dimensions", str(path))
    if not (1 <= width <= MAX_SIZE and 1 <= height <= MAX_SIZE):
        raise T2TError(f"map.dimensions must lie in 1..{MAX_SIZE}", where=str(path))
    holes = [_cell(item, "map.obstacles", width, height, str(path)) for item in _list(world, "obstacles", str(path))]
    size = max(width, height, MIN_SIZE)
    holes += [(r, c) for r in range(size) for c in range(size) if r >= height or c >= width]
    agents = [_mapping(item, "an agent", str(path)) for item in _list(data, "agents", str(path))]
    ends = {
        end: [_cell(agent.get(end), f"agents.{end}", width, height, str(path)) for agent in agents] for end in ("start", "goal")
    }
    said = data.get("t2t")
    own = said if isinstance(said, Mapping) else {}
    labels = {name: own[name] for name in _OWN if own.get(name) is not None}
    facts = {"id": _name(path.stem), "size": size, "holes": holes, "starts": ends["start"], "goals": ends["goal"], **labels}
    try:
        return [Instance.from_dict(facts)]
    except T2TError as error:
        raise T2TError(error.what, where=str(path), cause=error.cause, next=error.next) from None


def _load(path: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise T2TError("YAML needs PyYAML, which is not installed", where=str(path), next=advice.extra("data")) from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # some solvers write cells as Python tuples
        pass

    def sequence(loader: Any, node: Any) -> list[Any]:
        return list(loader.construct_sequence(node))

    Loader.add_constructor("tag:yaml.org,2002:python/tuple", sequence)
    text = folders.read_text(path, MAX_BYTES)
    try:
        return yaml.load(text, Loader)  # noqa: S506  (a SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        raise T2TError("the YAML cannot be read", where=str(path), cause=" ".join(str(error).split())[:200]) from None


def _mapping(value: Any, what: str, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise T2TError(f"{what} must be a mapping, not {shown(value)}", where=where, next="agents: [...] and map: {...}")
    return value


def _list(holder: Mapping[str, Any], name: str, where: str) -> list[Any]:
    value = holder.get(name)
    value = [] if value is None and name == "obstacles" else value
    if not isinstance(value, list) or len(value) > MAX_SIZE * MAX_SIZE:
        raise T2TError(f"{name} must be a list, not {shown(value)}", where=where)
    return value


def _pair(value: Any, what: str, where: str) -> tuple[int, int]:
    whole = isinstance(value, list | tuple) and len(value) == 2 and all(type(item) is int for item in value)
    if not whole:
        raise T2TError(f"{what} must be two whole numbers [x, y], not {shown(value)}", where=where)
    return value[0], value[1]


def _cell(value: Any, what: str, width: int, height: int, where: str) -> Cell:
    x, y = _pair(value, what, where)
    if not (0 <= x < width and 0 <= y < height):
        raise T2TError(f"{what}: {shown(value)} lies off the map", where=where, cause="cells are [x, y] from [0, 0]")
    return y, x


def _name(stem: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_.+-") else "-" for c in stem)[:150]
    return kept if kept[:1].isalnum() else f"m{kept}"


def text(instance: Instance) -> str:
    """The YAML of an instance, in JSON's notation with one agent per line, so that it does not depend on a library's style."""
    lines = ["agents:"]
    for number, (start, goal) in enumerate(zip(instance.starts, instance.goals, strict=True)):
        lines.append(f"- {{name: agent{number}, start: {_xy(start)}, goal: {_xy(goal)}}}")
    lines += ["map:", f"  dimensions: [{instance.size}, {instance.size}]"]
    lines += ["  obstacles:", *(f"  - {_xy(cell)}" for cell in instance.holes)] if instance.holes else ["  obstacles: []"]
    own = {name: getattr(instance, name) for name in _OWN if getattr(instance, name) not in (None, "")}
    return "\n".join([*lines, f"t2t: {jsonlines.dumps(own)}", ""])


def _xy(cell: Cell) -> str:
    return f"[{cell[1]}, {cell[0]}]"


def write(testbed: AnyTestbed, sets: Sequence[InstanceSet], out: Path, about: About) -> None:
    """Write a file for each instance into the folder `out`; with several sets, each gets its own subfolder."""
    for each in sets:
        folder = out if len(sets) == 1 else out / each.name
        for name, instance in named(each.instances):
            folders.write_atomic(folder / f"{name}.yaml", text(instance))


FILES = FileFormat((".yaml", ".yml"), read, write)
