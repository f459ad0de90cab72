"""A policy: tasks in, answers out. This one reads the instance; a language model would read `task.prompt`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_core.records import Response, Sampling, Task
from t2t_core.settings import no_argument, read_settings

Cell = tuple[int, int]


class OneByOne:
    """Agent after agent walks a shortest way to its goal while all others stand still. Valid where nobody stands in the way,
    and slow: the agents' times add up."""

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        no_argument(argument, "policy one-by-one")
        read_settings(settings, "policy one-by-one", {})

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        for position, task in enumerate(tasks):
            yield position, Response(text=_answer(task.instance))

    def describe(self) -> Mapping[str, Any]:
        return {"deterministic": True, "batch_size": None, "policy": "one-by-one"}


def _answer(instance: Any) -> str:
    lines = []
    begin = 0
    for agent, (start, goal) in enumerate(zip(instance.starts, instance.goals, strict=True)):
        stand_still = set(instance.goals[:agent]) | set(instance.starts[agent + 1 :])
        walk = _shortest(instance.size, set(instance.holes) | stand_still, start, goal) or [start]
        path = [start] * begin + walk
        begin += len(walk) - 1
        lines.append(f"Agent {agent}: " + " -> ".join(f"({row},{column})" for row, column in path))
    return "\n".join(["<answer>", *lines, "</answer>"])


def _shortest(size: int, blocked: set[Cell], start: Cell, goal: Cell) -> list[Cell] | None:
    """A shortest way as cells, None where there is none."""
    came_from: dict[Cell, Cell] = {start: start}
    waiting = deque([start])
    while waiting and goal not in came_from:
        row, column = waiting.popleft()
        for cell in ((row, column - 1), (row + 1, column), (row, column + 1), (row - 1, column)):
            if 0 <= cell[0] < size and 0 <= cell[1] < size and cell not in blocked and cell not in came_from:
                came_from[cell] = (row, column)
                waiting.append(cell)
    if goal not in came_from:
        return None
    path = [goal]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]
