"""What the solver policies share: one instance in, one answer in the documented format out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_core import __version__
from t2t_core.errors import T2TError
from t2t_core.records import Response, Sampling, Task
from t2t_core.seeding import Stream
from t2t_core.settings import Reader, no_argument, read_settings
from t2t_envs.frozen_lake.instance import Cell, Instance
from t2t_envs.frozen_lake.parser import format_answer

Paths = Sequence[Sequence[Cell]]


class NoPlan(Exception):
    """The planner has no answer at all; its text becomes the response's error."""


class SolverPolicy:
    """A policy that plans on the instance itself and never reads the prompt. It sees the unlabelled instance only and is
    deterministic in (instance, task.seed): whatever it draws comes from the stream of `task.seed` under its own name.

    Subclasses set `name` and, where they have any, `readers` (setting -> reader), and implement `plan`.
    """

    name: str
    readers: Mapping[str, Reader] = {}

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, f"policy {self.name}")
        self.settings: dict[str, Any] = read_settings(settings or {}, f"policy {self.name}", self.readers)

    def plan(self, instance: Instance, stream: Stream) -> Paths:
        """One path per agent, start cell first; NoPlan where there is nothing to answer."""
        raise NotImplementedError

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        """An answer per task, in order. `sampling` plays no part."""
        for position, task in enumerate(tasks):
            yield position, self._answer(task)

    def _answer(self, task: Task) -> Response:
        if not isinstance(task.instance, Instance):
            raise T2TError(
                f"the policy {self.name} plans on MAPF-FrozenLake instances, not on {type(task.instance).__name__}",
                where=f"instance {task.instance_id}",
                next="t2t plugins lists the policies",
            )
        begin = time.perf_counter()
        try:
            text, error = format_answer(self.plan(task.instance, Stream.of(task.seed, self.name))), None
        except NoPlan as reason:
            text, error = "", str(reason)
        seconds = time.perf_counter() - begin
        return Response(text, finish_reason="error" if error else "stop", error=error, seconds=seconds)

    def describe(self) -> Mapping[str, Any]:
        return {"deterministic": True, "batch_size": None, "policy": self.name, "version": __version__, **self.settings}
