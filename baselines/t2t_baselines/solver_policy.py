"""What planning policies share: one task in, one answer in the documented format out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from t2t_core import __version__
from t2t_core.errors import T2TError
from t2t_core.records import Response, Sampling, Task
from t2t_core.seeding import Stream
from t2t_core.settings import Reader, no_argument, read_settings
from t2t_envs.frozen_lake.instance import Cell, Instance
from t2t_envs.frozen_lake.parser import format_answer

Paths = Sequence[Sequence[Cell]]


class NoPlan(Exception):
    """The planner has no answer at all; the exception's text becomes the response's error."""


class Planner:
    """A policy that plans on the instance and what it is shown, and reads no prose. It sees only the unlabelled instance and is
    deterministic in (task, task.seed): all its draws come from the stream of `task.seed` under its own name.

    Subclasses set `name`, `world` (what it plans on, in words), `instances` (their type) and, if they have settings, `readers`
    (setting -> reader), and implement `answer`.
    """

    name: ClassVar[str]
    world: ClassVar[str]
    instances: ClassVar[type[Any]]
    readers: Mapping[str, Reader] = {}
    talks = False

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, f"policy {self.name}")
        self.settings: dict[str, Any] = read_settings(settings or {}, f"policy {self.name}", self.readers)

    def answer(self, task: Task, stream: Stream) -> str:
        """The text of one answer. Raises NoPlan if there is nothing to answer."""
        raise NotImplementedError

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        """An answer per task, in order. `sampling` has no effect."""
        for position, task in enumerate(tasks):
            yield position, self.respond_to(task)

    def respond_to(self, task: Task) -> Response:
        """One answer, timed. Raises T2TError for a task from another world."""
        if not isinstance(task.instance, self.instances):
            raise T2TError(
                f"the policy {self.name} plans on {self.world} instances, not on {type(task.instance).__name__}",
                where=f"instance {task.instance_id}",
                next="t2t plugins lists the policies",
            )
        begin = time.perf_counter()
        try:
            text, error = self.answer(task, Stream.of(task.seed, self.name)), None
        except NoPlan as reason:
            text, error = "", str(reason)
        seconds = time.perf_counter() - begin
        return Response(text, finish_reason="error" if error else "stop", error=error, seconds=seconds)

    def describe(self) -> Mapping[str, Any]:
        return {"deterministic": True, "batch_size": None, "policy": self.name, "version": __version__, **self.settings}


class SolverPolicy(Planner):
    """A planner on frozen lakes, which never reads the prompt; subclasses implement `plan`."""

    world, instances = "MAPF-FrozenLake", Instance

    def plan(self, instance: Instance, stream: Stream) -> Paths:
        """One path per agent, start cell first. Raises NoPlan if there is nothing to answer."""
        raise NotImplementedError

    def answer(self, task: Task, stream: Stream) -> str:
        return format_answer(self.plan(task.instance, stream))
