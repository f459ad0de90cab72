"""The question put to a policy: one instance as text, in a replaceable format (wording and formats are our choice).

A format is a function from an instance to text. `FORMATS` holds them by name; put your own there to use it as
`--prompt-format NAME`. None shows a label: neither stored optima, nor wait flags, nor paths.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Sequence

from t2t_core.errors import T2TError

from .instance import Cell, Instance
from .parser import format_answer

Format = Callable[[Instance], str]

# The worked example of the long formats: it is optimal for both objectives and shows a wait.
EXAMPLE = Instance(size=3, holes=[(0, 2)], starts=[(1, 0), (0, 1)], goals=[(1, 2), (2, 1)])
EXAMPLE_PATHS: tuple[tuple[Cell, ...], ...] = (
    ((1, 0), (1, 1), (1, 2)),
    ((0, 1), (0, 1), (1, 1), (2, 1)),
)

_RULES = """\
Rules
- Time runs in steps. In every step each agent moves to the cell left, right, above or below it, or waits on its cell. \
All agents move at once.
- No agent may leave the grid or enter a hole.
- No two agents may be on the same cell at the same time.
- No two agents may swap cells in one step. Moving into a cell that another agent leaves in the same step is allowed.
- An agent that has reached its goal stays there and still blocks that cell (it may leave its goal and come back).
- At the end every agent is on its own goal."""

_OBJECTIVES = {
    "makespan": "Objective: make the step at which the last agent arrives on its goal for good as small as possible.",
    "sum_of_costs": "Objective: each agent costs the step at which it arrives on its goal for good; make the sum of these costs "
    "as small as possible.",
}

_ANSWER = """\
Answer
Give one line per agent between answer tags: its cell at step 0 (its start), step 1, step 2 and so on, up to its goal. \
To wait, repeat the cell. Paths may have different lengths: an agent whose path has ended stays on its last cell."""


def make_prompt(instance: Instance, format: str = "board") -> str:
    """The prompt of an instance. T2TError for an unknown format, with the nearest names."""
    try:
        write = FORMATS[format]
    except (KeyError, TypeError):
        near = difflib.get_close_matches(str(format), FORMATS, n=1)
        raise T2TError(
            f"there is no prompt format {ascii(format)[:60]}",
            cause=f"did you mean {near[0]}?" if near else "",
            next="use one of: " + ", ".join(FORMATS),
        ) from None
    return write(instance)


def board(instance: Instance) -> str:
    """The default: the map as a board with row and column numbers, starts and goals on it and in words."""
    legend = "`.` ice, `#` hole, `S0` start and `G0` goal of agent 0"
    return _long(instance, f"Map ({legend}; column numbers above, row numbers on the left)\n{_board(instance)}")


def coordinates(instance: Instance) -> str:
    """No picture: the holes as a list of cells."""
    return _long(instance, f"Holes: {_list(instance.holes)}. All other cells are ice.")


def compact(instance: Instance) -> str:
    """For tiny models that learned the rules in training: a few words of a fixed vocabulary, every cell one word.

    The objective is named unless it is the default one.
    """
    objective = "" if instance.objective == "makespan" else f" {instance.objective}"
    holes = " ".join(["holes", *map(_text, instance.holes)])
    agents = [f"Agent {a}: {_text(s)} -> {_text(g)}" for a, s, g in _agents(instance)]
    return "\n".join([f"N {instance.size}{objective}", holes, *agents])


FORMATS: dict[str, Format] = {"board": board, "coordinates": coordinates, "compact": compact}


def _long(instance: Instance, lake: str) -> str:
    n, k = instance.size, instance.num_agents
    agents = "one agent" if k == 1 else f"{k} agents"
    intro = (
        f"Plan paths for {agents} on a frozen lake, a grid of {n} x {n} cells. A cell is written (row,column), counted from 0: "
        f"(0,0) is the top left cell, (0,{n - 1}) the top right one, ({n - 1},0) the bottom left one."
    )
    tasks = "\n".join(f"Agent {a}: start {_text(s)}, goal {_text(g)}" for a, s, g in _agents(instance))
    last = " One line for each agent, Agent 0 to Agent " + f"{k - 1}." if k > 1 else ""
    closing = f"You may think first. End with your answer in exactly this form.{last}"
    return "\n\n".join([intro, lake, tasks, _RULES, _OBJECTIVES[instance.objective], f"{_ANSWER}\n{_example()}", closing])


@functools.cache
def _example() -> str:
    agents = "; ".join(f"agent {a} from {_text(s)} to {_text(g)}" for a, s, g in _agents(EXAMPLE))
    return (
        f"Example, on another lake ({EXAMPLE.size} x {EXAMPLE.size}, hole {_list(EXAMPLE.holes)}, {agents}):\n"
        f"{format_answer(EXAMPLE_PATHS)}"
    )


def _board(instance: Instance) -> str:
    marks = dict.fromkeys(instance.holes, "#")
    for name, cells in (("S", instance.starts), ("G", instance.goals)):
        for agent, cell in enumerate(cells):
            marks[cell] = marks.get(cell, "") + f"{name}{agent}"
    rows = range(instance.size)
    table = [["", *map(str, rows)], *([str(r), *(marks.get((r, c), ".") for c in rows)] for r in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(" ".join(map(str.rjust, line, widths)) for line in table)


def _agents(instance: Instance) -> list[tuple[int, Cell, Cell]]:
    return [(a, s, g) for a, (s, g) in enumerate(zip(instance.starts, instance.goals, strict=True))]


def _list(cells: Sequence[Cell]) -> str:
    return ", ".join(map(_text, cells)) or "none"


def _text(cell: Cell) -> str:
    return f"({cell[0]},{cell[1]})"
