"""`random`: the floor of every world that has one, under one name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_core.records import Response, Sampling, Task

from .random_walk import RandomWalk
from .tictactoe import RandomMoves


class RandomPlay:
    """Random legal play in the world that a task belongs to: a random walk on a frozen lake (its settings: `max_steps`), a random
    free cell in tic-tac-toe."""

    talks = False

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        self._walk, self._moves = RandomWalk(argument, settings), RandomMoves()

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        for position, task in enumerate(tasks):
            planner = self._moves if isinstance(task.instance, self._moves.instances) else self._walk
            yield position, planner.respond_to(task)

    def describe(self) -> Mapping[str, Any]:
        return self._walk.describe()
