"""The frozen evaluation sets, or an endless stream of fresh training lakes that never meets them.

The stream reads its generator configuration anew before each batch, so whoever rewrites the file (a designer) steers a training
that is under way.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import verifiers.v1 as vf

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.records import Verdict
from t2t_core.reward import reward
from t2t_envs.frozen_lake import format_answer, solve

BED = installed().testbeds.make("mapf-frozenlake")


class Data(vf.TaskData):
    """A task's data; the prompt shows no label."""

    instance: dict[str, Any]
    """The instance with its labels, as `t2t generate` writes it."""
    set: str = ""
    place: str = ""
    """Number of agents and size of the map."""
    prompt_format: str = "board"


class MAPFTask(vf.Task[Data]):
    """One lake, asked once and answered with the agents' paths."""

    @property
    def key(self) -> str:
        return f"{self.data.set}/{self.data.id}" if self.data.id else self.hash

    def _judged(self, trace: vf.Trace) -> tuple[Any, Verdict]:
        instance = BED.read_instance(self.data.instance)
        return instance, BED.verify(instance, trace.last_reply or "", self.data.prompt_format)

    @vf.reward(weight=1.0)
    async def accuracy(self, trace: vf.Trace) -> float:
        """The testbed's reward: 1 for an optimal plan, less for a longer one, 0 for one that is not valid."""
        return reward(BED, *self._judged(trace), {})

    @vf.metric
    async def verdict(self, trace: vf.Trace) -> dict[str, float]:
        """The board's rates, the eight checks, and how far a valid plan is from the optimum."""
        _, verdict = self._judged(trace)
        gap = {} if verdict.gap is None else {"gap": float(verdict.gap)}
        checks = {name: float(held) for name, held in verdict.checks.items()}
        return {"valid": float(verdict.valid), "optimal": float(verdict.optimal is True), **gap, **checks}

    async def validate(self, runtime: Any) -> bool | None:
        """Whether the exact solver's plan is judged optimal."""
        instance = BED.read_instance(self.data.instance)
        return BED.verify(instance, format_answer(solve(instance).paths)).optimal


class Config(vf.TasksetConfig):
    split: Literal["eval", "train"] = "eval"
    agents: str = "3,4,5"
    """eval: which frozen sets. train: the first number is that of the agents; give 2 for the paper's training."""
    prompt_format: str = "board"
    seed: int = 0
    batch: int = 256
    """train: instances drawn at a time, and so how often the configuration is read."""
    configuration: str | None = None
    """train: a generator configuration, a JSON file that may be rewritten at any time; None: a random one."""


class MAPFFrozenLakeTaskset(vf.Taskset[MAPFTask, Config]):
    """Multi-agent path finding on frozen lakes."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.INFINITE = config.split == "train"

    def load(self) -> Iterator[MAPFTask]:
        if self.config.split == "train":
            yield from self._stream()
            return
        options = {option.name: option.parse(self.config.agents) for option in BED.options()}
        for name in BED.set_names(options):
            for instance in BED.load_set(name).instances:
                yield self._task(instance, name)

    def _stream(self) -> Iterator[MAPFTask]:
        agents = int(self.config.agents.split(",")[0])
        request = BED.request(self.config.batch, agents=agents)  # it leaves out what is kept for measuring
        configuration = BED.random_configuration(request, self.config.seed)
        number = self.config.seed
        while True:
            configuration = self._read(configuration)
            for instance in BED.generate(configuration, request, number):
                yield self._task(instance, f"train_{number}")
            number += 1

    def _read(self, former: Any) -> Any:
        """The configuration in the file as it is now; the former one where somebody is just writing it, or wrote nonsense."""
        if self.config.configuration is None:
            return former
        try:
            return BED.read_configuration(json.loads(Path(self.config.configuration).read_text()))
        except (OSError, ValueError, T2TError) as error:
            warnings.warn(f"{self.config.configuration}: {error}; the former configuration stays", stacklevel=2)
            return former

    def _task(self, instance: Any, name: str) -> MAPFTask:
        form, place = self.config.prompt_format, BED.place(instance)
        prompt = BED.prompt(BED.unlabelled(instance), form)
        where = {"set": name, "place": f"{place.table}, {place.column}", "prompt_format": form}
        data = Data(id=instance.id, name=instance.id, prompt=prompt, instance=instance.to_dict(), **where)
        return MAPFTask(data, self.config.task)
