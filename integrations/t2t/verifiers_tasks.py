"""A testbed as a taskset of verifiers. Each of the Hub's packages in `integrations/verifiers/` adds a few lines to this.

The tasks are the frozen evaluation sets, or an endless stream of fresh training instances that are not in them. The stream reads
its generator configuration again before each batch, so a designer can steer a running training by rewriting the file.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import verifiers.v1 as vf

from t2t_core.conversation import judge, opening, play, replies
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Message, Sampling, Task, Verdict
from t2t_core.store import folders


class Data(vf.TaskData):
    """A task's data; the prompt shows no label."""

    testbed: str
    instance: dict[str, Any]
    """The instance with its labels, as `t2t generate` writes it."""
    set: str = ""
    place: str = ""
    """Table and column of the board."""
    prompt_format: str = ""


class TestbedTask(vf.Task[Data]):
    """One instance: a question with its answer, or a game from its opening to its end."""

    __test__ = False  # else pytest takes it for a test
    solver: ClassVar[str] = ""
    """The policy whose answer shows that a task can be solved, as `t2t plugins` lists it; "" if there is none."""

    @property
    def key(self) -> str:
        """The task's name in results: its set and instance."""
        return f"{self.data.set}/{self.data.id}" if self.data.id else self.hash

    @property
    def bed(self) -> AnyTestbed:
        """The testbed, made anew in each process."""
        bed: AnyTestbed = installed().testbeds.make(self.data.testbed)
        return bed

    def judged(self, trace: vf.Trace) -> tuple[Any, Verdict]:
        """The instance and the verdict on what the model said. The other side's words are played again from the model's."""
        bed, form = self.bed, self.data.prompt_format
        instance, said = bed.read_instance(self.data.instance), list[Message]()
        for message in trace.assistant_messages[-1:] if bed.turns == 1 else trace.assistant_messages:
            said.append(Message("assistant", message.content or ""))
            answer = replies(bed, instance, said, form)
            if not answer:
                break
            said += answer
        return instance, judge(bed, instance, said, form)

    @vf.reward(weight=1.0)
    async def terms(self, trace: vf.Trace) -> dict[str, float]:
        """The terms of the testbed's reward, each with its weight in the rubric; their sum is the reward."""
        terms = self.bed.reward_terms(*self.judged(trace))
        return {name: float(self.bed.rubric[name] * value) for name, value in terms.items()}

    @vf.metric
    async def verdict(self, trace: vf.Trace) -> dict[str, float]:
        """The strict checks, whether all of them hold, whether the answer is optimal, and whatever else the testbed counts."""
        _, verdict = self.judged(trace)
        gap = {} if verdict.gap is None else {"gap": float(verdict.gap)}
        checks = {name: float(held) for name, held in verdict.checks.items()}
        return {"valid": float(verdict.valid), "optimal": float(verdict.optimal is True), **gap, **verdict.figures, **checks}

    async def validate(self, runtime: Any) -> bool | None:
        """Whether the solver's answer is judged optimal."""
        if not self.solver:
            return None
        bed, policy = self.bed, installed().policies.make(self.solver)
        instance, turns = bed.read_instance(self.data.instance), iter(range(bed.turns))

        def speak(messages: Any) -> Message:
            seen = (self.data.id or "", 0, messages[-1].content, bed.unlabelled(instance), 0, tuple(messages))
            ((_, response),) = policy.respond([Task(*seen, turn=next(turns), turns=bed.turns)], Sampling())
            return Message("assistant", response.text)

        form = self.data.prompt_format
        return judge(bed, instance, play(bed, instance, form, speak), form).optimal


class TestbedConfig(vf.TasksetConfig):
    """The settings of all our tasksets, given as `--env.taskset.NAME`."""

    __test__ = False
    split: Literal["eval", "train"] = "eval"
    prompt_format: str = ""
    """How questions are worded; "": the testbed's first form."""
    seed: int = 0
    batch: int = 256
    """train: instances drawn at a time, and so how often the configuration is read."""
    configuration: str | None = None
    """train: a generator configuration, a JSON file that may be rewritten at any time; None: a random one."""


class TestbedTaskset(vf.Taskset[TestbedTask, TestbedConfig]):
    """Base class: a subclass gives the name of a testbed."""

    __test__ = False
    testbed: ClassVar[str]

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.INFINITE = config.split == "train"
        self.bed: AnyTestbed = installed().testbeds.make(self.testbed)
        forms = [form for form in self.bed.prompt_formats if form not in self.bed.memoryless]
        self.form = config.prompt_format or forms[0]
        if self.form not in forms:
            what = f"there is no prompt format {self.form!r} here"
            raise T2TError(what, where="env.taskset.prompt_format", next=f"use {', '.join(forms)}")

    def set_options(self) -> Mapping[str, str]:
        """The testbed's options that select the evaluation sets, as `t2t bench` takes them."""
        return {}

    def request_options(self) -> Mapping[str, Any]:
        """What the generator is asked for besides the number of instances."""
        return {}

    def load(self) -> Iterator[TestbedTask]:
        """The tasks: a stream of drawn ones for the split "train", those of the testbed's sets otherwise."""
        if self.config.split == "train":
            yield from self._stream()
            return
        given = self.set_options()
        options = {option.name: option.parse(given.get(option.name, option.default)) for option in self.bed.options()}
        for name in self.bed.set_names(options):
            for instance in self.bed.load_set(name).instances:
                yield self._task(instance, name)

    def _stream(self) -> Iterator[TestbedTask]:
        request = self.bed.request(self.config.batch, **self.request_options())  # without evaluation instances
        configuration = self.bed.random_configuration(request, self.config.seed)
        number = self.config.seed
        while True:
            configuration = self._read(configuration)
            for instance in self.bed.generate(configuration, request, number):
                yield self._task(instance, f"train_{number}")
            number += 1

    def _read(self, former: Any) -> Any:
        """The configuration in the file as it is now, or the former one if the file is being written or holds nonsense."""
        path = self.config.configuration
        if path is None:
            return former
        try:
            return self.bed.read_configuration(folders.read_json(Path(path)))
        except T2TError as error:
            warnings.warn(f"{path}: {error}; the former configuration stays", stacklevel=2)
            return former

    def _task(self, instance: Any, name: str) -> TestbedTask:
        place = self.bed.place(instance)
        (prompt,) = opening(self.bed, instance, self.form)
        where = {"testbed": self.bed.name, "set": name, "place": f"{place.table}, {place.column}", "prompt_format": self.form}
        data = Data(id=instance.id, name=instance.id, prompt=prompt.content, instance=instance.to_dict(), **where)
        task: TestbedTask = type(self).task_type()(data, self.config.task)
        return task


class GameConfig(vf.EnvConfig):
    """One seat: the model."""

    agent: vf.AgentConfig = vf.AgentConfig()


class GameEnv(vf.Env[GameConfig]):
    """Plays a testbed's conversations: the model speaks and the testbed replies until the conversation is over."""

    async def run(self, task: TestbedTask, agents: Any) -> None:
        bed, form = task.bed, task.data.prompt_format
        instance, said = bed.read_instance(task.data.instance), list[Message]()
        async with agents.agent.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                said.append(Message("assistant", segment.last_reply))
                answer = replies(bed, instance, said, form)
                if not answer:
                    break
                said += answer
                segment = await interaction.turn("\n\n".join(message.content for message in answer))
