"""A testbed in TRL's own shape, for your training script: a dataset, a reward function and, for conversations, an environment.

    from trl import GRPOConfig, GRPOTrainer
    from t2t_plugins.trl import TestbedSpec

    spec = TestbedSpec("NAME", count=1024)
    trainer = GRPOTrainer("Qwen/Qwen3-0.6B", spec.reward_funcs, GRPOConfig("out"), spec.train_dataset,
                          environment_factory=spec.environment_factory)
    trainer.train()

The closed loop needs none of this: its trainer `trl-grpo` is a plugin. TRL is imported by your script, not here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from t2t_core.conversation import judge, opening, replies
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Message, Verdict
from t2t_core.reward import reward
from t2t_core.run.sets import protected
from t2t_core.store import folders


class TestbedSpec:
    """Training instances of a testbed, and what they pay, in the shape of TRL's own environment specs.

    Args:
        testbed: its name, of those that `t2t plugins` lists; "": the first of them.
        configuration: of the generator: the path of a JSON file, the mapping in one, or "random".
        count: how many instances are drawn.
        seed: what they, and a random configuration, are drawn from.
        instances: train on these instead of drawing any.
        prompt_format: how questions are worded; "": the testbed's first.
        weights: of the reward's terms by name, in place of the testbed's.
        options: of the testbed's request.

    Raises:
        T2TError: an unknown name or option, or instances that a protected evaluation set holds.
    """

    __test__ = False  # pytest takes it for a test

    def __init__(
        self,
        testbed: str = "",
        configuration: str | Path | Mapping[str, Any] = "random",
        *,
        count: int = 1024,
        seed: int = 0,
        instances: Sequence[Any] | None = None,
        prompt_format: str = "",
        weights: Mapping[str, float] | None = None,
        **options: Any,
    ) -> None:
        testbeds = installed().testbeds
        self.testbed: AnyTestbed = testbeds.make(testbed or testbeds.default)
        formats = self.testbed.prompt_formats
        if prompt_format and prompt_format not in formats:
            raise T2TError(f"there is no prompt format {prompt_format!r}", where="TestbedSpec", next=f"use {', '.join(formats)}")
        self.prompt_format = prompt_format or formats[0]
        self.weights = dict(weights or {})
        self.instances = self._drawn(configuration, count, seed, options) if instances is None else instances
        self._refuse_protected()

    def _drawn(self, configuration: Any, count: int, seed: int, options: Mapping[str, Any]) -> Sequence[Any]:
        request = self.testbed.request(count, **options)
        if configuration == "random":
            drawn = self.testbed.random_configuration(request, seed)
        else:
            known = configuration if isinstance(configuration, Mapping) else folders.read_json(Path(configuration))
            drawn = self.testbed.read_configuration(known)
        return self.testbed.generate(drawn, request, seed)

    def _refuse_protected(self) -> None:
        kept = protected(self.testbed)
        shared = [instance for instance in self.instances if self.testbed.identity(instance) in kept]
        if shared:
            raise T2TError(
                f"{len(shared)} of {len(self.instances)} instances are in a set that is kept for evaluation",
                where=f"TestbedSpec, the first is {shared[0].id or 'without a name'}",
                cause="whoever trains on them has nothing left to be measured by",
                next="draw instances instead: those that are drawn are never among them",
            )

    @cached_property
    def train_dataset(self) -> Any:
        """A `datasets.Dataset` with a row per instance: `prompt` (messages), `instance` (JSON, with its labels), `id`."""
        from datasets import Dataset

        return Dataset.from_list([self._row(instance) for instance in self.instances])

    def _row(self, instance: Any) -> dict[str, Any]:
        messages = opening(self.testbed, instance, self.prompt_format)
        prompt = [message.to_dict() for message in messages]
        return {"prompt": prompt, "instance": json.dumps(instance.to_dict()), "id": instance.id}

    @property
    def reward_funcs(self) -> Callable[..., list[float]]:
        """The testbed's reward, between the bounds that its rubric gives. Rates among its metrics are logged beside it."""
        return self._of_games if self.testbed.turns > 1 else self._of_answers

    @property
    def environment_factory(self) -> Callable[[], Conversation] | None:
        """Of a task in several turns: makes the other side of one conversation. None for a one-shot task, as TRL's default."""
        return partial(Conversation, self) if self.testbed.turns > 1 else None

    def _of_answers(self, completions: Sequence[Any], instance: Sequence[str], **columns: Any) -> list[float]:
        pairs = [(self.testbed.read_instance(json.loads(text)), _text(c)) for c, text in zip(completions, instance, strict=True)]
        verdicts = [self.testbed.verify(i, text, self.prompt_format) for i, text in pairs]
        self._log(verdicts, columns.get("log_metric"))
        return [self.pays(i, verdict) for (i, _), verdict in zip(pairs, verdicts, strict=True)]

    def _of_games(self, environments: Sequence[Conversation], **columns: Any) -> list[float]:
        verdicts = [environment._verdict() for environment in environments]
        self._log(verdicts, columns.get("log_metric"))
        return [self.pays(environment.instance, verdict) for environment, verdict in zip(environments, verdicts, strict=True)]

    def pays(self, instance: Any, verdict: Verdict) -> float:
        """The reward of a verdict."""
        return reward(self.testbed, instance, verdict, self.weights)

    def _log(self, verdicts: Sequence[Verdict], log_metric: Callable[[str, float], None] | None) -> None:
        if log_metric and verdicts:
            log_metric("valid", sum(v.valid for v in verdicts) / len(verdicts))
            log_metric("optimal", sum(v.optimal is True for v in verdicts) / len(verdicts))


OVER = "The conversation is over."


class Conversation:
    """The environment's side of a conversation, held by one tool. TRL makes one per rollout, and offers `answer` to the model."""

    def __init__(self, spec: TestbedSpec) -> None:
        self._spec = spec
        self._messages: tuple[Message, ...] = ()
        self.instance: Any = None

    def reset(self, instance: str, **columns: Any) -> None:
        """Begin the conversation of a row; its opening stands in the row's prompt."""
        self.instance = self._spec.testbed.read_instance(json.loads(instance))
        self._messages = ()

    def answer(self, text: str) -> str:
        """
        Give your next answer.

        Args:
            text: Your answer, in the form that the task asks for.

        Returns:
            What the environment says to it, or that the conversation is over.
        """
        testbed, form = self._spec.testbed, self._spec.prompt_format
        if self._messages and not self._goes_on():
            return OVER
        self._messages = (*self._messages, Message("assistant", text))
        said = replies(testbed, self.instance, self._messages, form)
        self._messages = (*self._messages, *said)
        return "\n".join(message.content for message in said) if said else OVER

    def _verdict(self) -> Verdict:  # what has no underscore is a tool of the model's
        return judge(self._spec.testbed, self.instance, self._messages, self._spec.prompt_format)

    def _goes_on(self) -> bool:
        return self._messages[-1].role != "assistant"


def _text(completion: Any) -> str:
    """What the model said: of a conversational dataset the last message, else the text itself."""
    if isinstance(completion, str):
        return completion
    return str(completion[-1]["content"]) if completion else ""
