"""What an evaluation asks: instances in their order, each `samples` times, with one prompt format and one way of sampling."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from t2t_core.conversation import judge, opening_of, replies, said, shown
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Message, Response, Sampling, Task, Verdict
from t2t_core.seeding import key
from t2t_core.store import jsonlines


@dataclass(frozen=True)
class Evaluation:
    """What is asked: instances in their order, each `samples` times, with one prompt format and one way of sampling; where there
    is a `system_prompt`, it is said before everything else, in the role "system"."""

    testbed: AnyTestbed
    instances: Sequence[Any]
    samples: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    prompt_format: str = ""
    seed: int = 0
    system_prompt: str = ""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise T2TError(f"an instance needs at least one answer, not {self.samples}")
        formats = self.testbed.prompt_formats
        if not self.prompt_format:
            object.__setattr__(self, "prompt_format", formats[0])
        elif self.prompt_format not in formats:
            raise T2TError(f"there is no prompt format {ascii(self.prompt_format)[:60]}", cause=f"known: {', '.join(formats)}")
        seen: set[str] = set()
        for instance in self.instances:
            if instance.id in seen or not instance.id:
                what = f"the instance id {instance.id!r} occurs twice" if instance.id else "an instance has no id"
                raise T2TError(what, cause="answers are recorded under the instance's id", next="give each instance its own")
            seen.add(instance.id)

    def __len__(self) -> int:
        return len(self.instances) * self.samples

    def instance(self, index: int) -> Any:
        """The instance of the index-th question, with its labels."""
        return self.instances[index // self.samples]

    def task(self, index: int) -> Task:
        """The index-th question; `instance` carries no label, and the prompt is made from the unlabelled instance."""
        return self.turn(index, ())

    def turn(self, index: int, messages: Sequence[Message]) -> Task:
        """What the policy is asked next in the index-th conversation, after all that was said since its opening."""
        sample = index % self.samples
        bare = self.testbed.unlabelled(self.instance(index))
        first = opening_of(self.testbed, bare, self.prompt_format)
        seen = self._instructed(shown(self.testbed, first, messages, self.prompt_format))
        turn = sum(message.role == "assistant" for message in messages)
        purpose = ("task", bare.id, sample, turn) if turn else ("task", bare.id, sample)
        prompt, seed, bed = seen[-1].content, key(self.seed, *purpose), self.testbed
        return Task(bare.id, sample, prompt, bare, seed, seen, turn, bed.tools, bed.turns, index // self.samples)

    def _instructed(self, seen: Sequence[Message]) -> Sequence[Message]:
        """The conversation with the system prompt before it; a testbed's own system message, if any, follows in the same one."""
        if not self.system_prompt:
            return seen
        own = seen[0].role == "system"
        said_first = "\n\n".join([self.system_prompt, *([seen[0].content] if own else [])])
        return (Message("system", said_first), *(seen[1:] if own else seen))

    def said_so_far(
        self, index: int, turns: Sequence[tuple[Response, Sequence[Message]]], where: str
    ) -> tuple[Message, ...]:
        """All that was said in the index-th conversation after its opening: the policy's turns, each with what the environment
        replied when it was held. Raises T2TError if the environment would reply otherwise now."""
        messages: tuple[Message, ...] = ()
        for response, answer in turns:
            messages = (*messages, said(response))
            now = replies(self.testbed, self.instance(index), messages, self.prompt_format)
            if now != tuple(answer):
                raise T2TError(
                    f"the environment replies otherwise to {self.instance(index).id} than when the conversation was held",
                    where=where,
                    cause="the file was edited by hand, or the testbed is another version of itself",
                    next="hold the conversations again in another folder",
                )
            messages = (*messages, *now)
        return messages

    def verdict(self, index: int, messages: Sequence[Message]) -> Verdict:
        """The verdict of all that was said in the index-th conversation after its opening."""
        return judge(self.testbed, self.instance(index), messages, self.prompt_format)

    def prompts_sha256(self) -> str:
        """Identifies every question word for word."""
        digest = hashlib.sha256()
        if self.system_prompt:
            digest.update(jsonlines.canonical({"system": self.system_prompt}) + b"\n")
        for instance in self.instances:
            prompt = self.testbed.prompt(self.testbed.unlabelled(instance), self.prompt_format)
            digest.update(jsonlines.canonical([instance.id, prompt]) + b"\n")
        return digest.hexdigest()
