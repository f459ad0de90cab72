"""Maps as text: drawn by hand, as in Gymnasium's FrozenLake, and MovingAI's `.map` and `.scen` files.

A map may be any rectangle of up to 256 x 256 cells. Since a lake is a square, the rectangle becomes its upper left corner and the
remaining cells are holes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2t_core.errors import T2TError
from t2t_core.hostile import shown
from t2t_core.store import folders

from .instance import MAX_AGENTS, MAX_SIZE, MIN_SIZE, Cell, Instance

FREE, HOLES = ".F ", "#HT@OW"  # in a map without letters for agents; `S` and `G` are a start and a goal
LETTERED_HOLES = "#@"
_LENGTH = re.compile(r"[0-9]{1,5}")
MAX_LINES = 1_000_000  # in a scenario file
_DESC = 'desc=["S.#.", "..#G"], or with a letter per agent ["a.#.", "B.bA"]: agent a starts on a and goes to A'


@dataclass(frozen=True)
class Layout:
    """A map: its holes, and the agents that it names (none if they are to be drawn).

    Args:
        size: the side of the square, at least 3.
        holes: cells (row, column), including those that fill up the square.
        starts, goals: the cells of agent 0, 1, ..; there are as many starts as goals.
    """

    size: int
    holes: tuple[Cell, ...]
    starts: tuple[Cell, ...] = ()
    goals: tuple[Cell, ...] = ()

    @property
    def grid(self) -> Any:
        """(N, N) uint8, 1 = hole."""
        grid = np.zeros((self.size, self.size), np.uint8)
        if self.holes:
            grid[tuple(zip(*self.holes, strict=True))] = 1
        return grid

    def instance(self, objective: str = "makespan", name: str = "") -> Instance:
        """The instance with the agents that the map names. Raises T2TError if two start, or end, on one cell."""
        return Instance(self.size, self.holes, self.starts, self.goals, objective, name)


def parse_desc(desc: Any) -> Layout:
    """A map from rows of text: a list of strings, one string of several lines, or an array of characters.

    `#` is a hole, `.` is free. There are two ways to name agents. Either each `S` is a start and each `G` a goal, and the first
    start belongs to the first goal in reading order (Gymnasium's `F` is free and `H` a hole). Or each agent has a letter: `a` is
    its start and `A` its goal. If cells are separated by blanks, a cell may hold several letters, such as `bA`, where b starts
    on the goal of a.

    Raises:
        T2TError: rows of different lengths, unknown characters, starts without goals, more than 16 agents or 256 cells a side.
    """
    rows = _rows(desc)
    cells = [row.split() if " " in row.strip() else list(row.strip()) for row in rows]
    lettered = any(character.islower() for row in cells for cell in row for character in cell)
    holes: list[Cell] = []
    starts: dict[str, Cell] = {}
    goals: dict[str, Cell] = {}
    for r, row in enumerate(cells):
        for c, cell in enumerate(row):
            for character in cell:
                _read_character(character, lettered, (r, c), holes, starts, goals)
    agents = sorted(set(starts) | set(goals), key=lambda name: (len(name), name))
    for agent in agents:
        missing = "start" if agent not in starts else "goal" if agent not in goals else None
        if missing:
            raise T2TError(f"agent {agent} has no {missing}", where="option desc", next=_DESC)
    if len(agents) > MAX_AGENTS:
        raise T2TError(f"there are {len(agents)} agents, at most {MAX_AGENTS} fit", where="option desc")
    return _square(cells, holes, [starts[a] for a in agents], [goals[a] for a in agents], "option desc")


def _rows(desc: Any) -> list[str]:
    if isinstance(desc, str):
        return [row for row in desc.splitlines() if row.strip()]
    if isinstance(desc, np.ndarray) and desc.ndim == 2:
        desc = ["".join(c.decode() if isinstance(c, bytes) else str(c) for c in row) for row in desc.tolist()]
    if not isinstance(desc, Sequence) or not all(isinstance(row, str) for row in desc):
        raise T2TError(f"a map is a list of rows of text, not {shown(desc)}", where="option desc", next=_DESC)
    return list(desc)


def _read_character(
    character: str, lettered: bool, cell: Cell, holes: list[Cell], starts: dict[str, Cell], goals: dict[str, Cell]
) -> None:
    if character in (LETTERED_HOLES if lettered else HOLES):
        holes.append(cell)
    elif character in (FREE if not lettered else "."):
        pass
    elif lettered and "a" <= character.lower() <= "p":
        side, name = (starts if character.islower() else goals), character.lower()
        if name in side:
            raise T2TError(f"the letter {character} occurs twice", where="option desc", next=_DESC)
        side[name] = cell
    elif not lettered and character in "SG":
        side = starts if character == "S" else goals
        side[str(len(side))] = cell
    else:
        where = f"option desc, row {cell[0]}, column {cell[1]}"
        raise T2TError(f"{shown(character)} is not a character of a map", where=where, next=_DESC)


def _square(cells: Sequence[Sequence[Any]], holes: list[Cell], starts: list[Cell], goals: list[Cell], where: str) -> Layout:
    height, width = len(cells), len(cells[0]) if cells else 0
    if any(len(row) != width for row in cells):
        row = next(r for r, cells_of_row in enumerate(cells) if len(cells_of_row) != width)
        raise T2TError(f"row {row} has {len(cells[row])} cells, row 0 has {width}", where=where)
    if not (height and width) or max(height, width) > MAX_SIZE:
        raise T2TError(f"a map has 1..{MAX_SIZE} rows and columns, not {height} x {width}", where=where)
    size = max(height, width, MIN_SIZE)
    holes += [(r, c) for r in range(size) for c in range(size) if r >= height or c >= width]
    return Layout(size, tuple(sorted(holes)), tuple(starts), tuple(goals))


def read_map(path: Path) -> Layout:
    """The map of a MovingAI `.map` file: `.`, `G` and `S` are free, all other terrain is a hole.

    Raises:
        T2TError: the file can't be read or is not such a map.
    """
    lines = folders.read_text(path).splitlines()
    header: dict[str, str] = {}
    if "map" not in (line.strip() for line in lines[:20]):
        raise T2TError("the file has no line `map`", where=str(path), cause="it is not a MovingAI map")
    begin = [line.strip() for line in lines[:20]].index("map")
    for line in lines[:begin]:
        key, _, value = line.strip().partition(" ")
        header[key] = value.strip()
    rows = [line for line in lines[begin + 1 :] if line.strip()]
    said = tuple(int(header[name]) if _LENGTH.fullmatch(header.get(name, "")) else None for name in ("height", "width"))
    shape = (len(rows), len(rows[0]) if rows else 0)
    if said != shape:
        raise T2TError(f"the map has {shape[0]} rows of {shape[1]} cells, its header says {said[0]} x {said[1]}", where=str(path))
    holes = [(r, c) for r, row in enumerate(rows) for c, terrain in enumerate(row) if terrain not in ".GS"]
    return _square(rows, holes, [], [], str(path))


def read_scenario(path: Path, num_agents: int, map_path: Path | None = None) -> list[Instance]:
    """The instances of a MovingAI `.scen` file: its first k lines are the agents of the first instance, the next k those of the
    second, and so on. A line is skipped if the instance already has its start or goal, if it begins or ends in a hole, or if
    its start is its goal.

    Args:
        num_agents: k.
        map_path: the map; None means the file that the scenario names, in the scenario's folder.

    Raises:
        T2TError: a file can't be read, a line does not belong in a scenario, or there are fewer than k usable lines.
    """
    lines = folders.read_text(path).splitlines()[1:]
    layout: Layout | None = None
    instances: list[Instance] = []
    pairs: list[tuple[Cell, Cell]] = []
    for number, line in enumerate(lines[:MAX_LINES], 2):
        if not line.strip():
            continue
        name, start, goal = _read_line(line, f"{path}, line {number}")
        if layout is None:
            layout = read_map(map_path or path.parent / name)
            holes = set(layout.holes)
        cells = (*start, *goal)
        if min(cells) < 0 or max(cells) >= layout.size:
            where = f"{path}, line {number}"
            raise T2TError("a start or goal is off the map", where=where, cause="is it the scenario of this map?")
        taken = any(start == s or goal == g for s, g in pairs)
        if taken or start == goal or start in holes or goal in holes:
            continue
        pairs.append((start, goal))
        if len(pairs) == num_agents:
            identity = f"{path.stem}_{len(instances):04d}"
            starts, goals = zip(*pairs, strict=True)
            instances.append(Instance(layout.size, layout.holes, starts, goals, id=_as_id(identity)))
            pairs = []
    if not instances:
        raise T2TError(f"the scenario has no {num_agents} agents", where=str(path), cause=f"only {len(pairs)} lines can be used")
    return instances


def _read_line(line: str, where: str) -> tuple[str, Cell, Cell]:
    """Map, start and goal of a line: bucket, map, width, height, start x, start y, goal x, goal y, optimal length."""
    parts = line.split("\t") if "\t" in line else line.split()
    numbers = parts[4:8]
    if len(parts) < 8 or not all(n.isascii() and n.isdecimal() and len(n) < 6 for n in numbers):
        cause = "a line has a bucket, a map, its width and height, and two cells"
        raise T2TError("this is not a line of a scenario", where=where, cause=cause)
    x, y, goal_x, goal_y = map(int, numbers)
    name = parts[1].replace("\\", "/").rsplit("/", 1)[-1]
    return name, (y, x), (goal_y, goal_x)


def _as_id(text: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_.:+-") else "-" for c in text)[:150]
    return kept if kept[:1].isalnum() else f"m{kept}"
