"""How a step policy answers a task: it plays the lake in the step environment, and its trajectory is the answer.

Many lakes are played side by side, so that a network is asked once per step for all of them. If an agent moves into a hole or
into another agent's way, it stays where it is (`on_hole="block"`, `on_conflict="block"`), so that never makes a trajectory
invalid. What counts is whether all agents reach their goals at once within 8 N steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from t2t_core import __version__
from t2t_core.errors import T2TError
from t2t_core.records import Response, Sampling, Task
from t2t_core.seeding import Stream
from t2t_envs.frozen_lake.instance import Instance
from t2t_envs.frozen_lake.parser import format_answer

CAVEAT = "plays, bad moves blocked"  # shown beside its name on a board, where most other policies answer blindly
AT_ONCE = 128  # lakes side by side; our choice: answers need not wait for later tasks, and an interrupt loses little
MAX_SIZE = 10  # of the lakes in the frozen sets

# (observations, masks, streams) of several lakes -> a joint action for each
Act = Callable[[Sequence[Any], Sequence[Any], Sequence[Stream]], Sequence[Any]]


class StepPolicy:
    """A policy of the board made from a function that acts.

    Args:
        act: takes one observation, one (k, 5) mask and one stream of random numbers per lake, and returns k actions for each. The
            stream is the task's own: if it is the only source of chance, the same task gets the same answer.
        environment: arguments of the step environment besides size and number of agents, e.g. `observation="flat"`.
        facts: for `describe`: a name, the architecture, a `caveat`.
        deterministic: whether the same task gets the same answer.

    Example:
        evaluate(questions, StepPolicy(from_predict(model.predict), {"observation": "planes"}, {"policy": "mine"}), folder)
    """

    talks = False

    def __init__(
        self, act: Act, environment: Mapping[str, Any], facts: Mapping[str, Any] | None = None, deterministic: bool = True
    ) -> None:
        self.act, self.facts = act, dict(facts or {})
        self.facts["caveat"] = ", ".join(filter(None, (CAVEAT, self.facts.get("caveat"))))
        blocking = {"on_hole": "block", "on_conflict": "block", "labels": False}
        self.environment = blocking | dict(environment)
        self.deterministic = deterministic

    def describe(self) -> Mapping[str, Any]:
        shown = {name: value for name, value in self.environment.items() if name != "labels"}
        return {
            "deterministic": self.deterministic, "batch_size": None, "version": __version__, "environment": shown, **self.facts
        }  # fmt: skip

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        """Answer the tasks by playing them. `sampling` has no effect."""
        for task in tasks:
            if not isinstance(task.instance, Instance):
                raise T2TError(
                    f"the policy {self.facts.get('policy', '')} plays MAPF-FrozenLake and cannot talk",
                    where=f"task {task.instance_id}",
                    cause="it was asked for text, as a designer is",
                    next="let a curriculum, `rule` or llm:POLICY design",
                )
        for first in range(0, len(tasks), AT_ONCE):
            begin, some = time.perf_counter(), tasks[first : first + AT_ONCE]
            answers = self.play([task.instance for task in some], [Stream.of(task.seed, "step policy") for task in some])
            seconds = (time.perf_counter() - begin) / len(some)
            for position, paths in enumerate(answers, first):
                yield position, Response(format_answer(paths), finish_reason="stop", seconds=seconds)

    def play(self, instances: Sequence[Instance], streams: Sequence[Stream]) -> list[Any]:
        """The agents' paths on each lake."""
        envs = [self._start(instance) for instance in instances]
        going = list(range(len(envs)))
        seen: dict[int, Any] = {i: env.reset(options={"instance": instances[i].unlabelled()})[0] for i, env in enumerate(envs)}
        while going:
            masks = [envs[i].action_masks() for i in going]
            actions = self.act([seen[i] for i in going], masks, [streams[i] for i in going])
            left = []
            for i, action in zip(going, actions, strict=True):
                seen[i], _, terminated, truncated, _ = envs[i].step(action)
                if not (terminated or truncated):
                    left.append(i)
            going = left
        return [_without_stay(env.paths) for env in envs]

    def _start(self, instance: Instance) -> Any:
        from t2t_envs.frozen_lake.gym.gym_env import MAPFFrozenLakeEnv

        options: dict[str, Any] = {"pool": [instance.unlabelled()], **self.environment}
        return MAPFFrozenLakeEnv(**options)


def _without_stay(paths: Sequence[Sequence[Any]]) -> list[Any]:
    """Paths without waiting at their end."""
    trimmed = []
    for path in paths:
        end = len(path)
        while end > 1 and path[end - 1] == path[end - 2]:
            end -= 1
        trimmed.append(path[:end])
    return trimmed


def from_predict(predict: Callable[..., Any]) -> Act:
    """An `act` from a library's `predict(observation)`, which may return the action or, as Stable-Baselines3 does, a pair."""

    def act(observations: Sequence[Any], masks: Sequence[Any], streams: Sequence[Stream]) -> list[Any]:
        predictions = (predict(observation) for observation in observations)
        return [action[0] if isinstance(action, tuple) else action for action in predictions]

    return act
