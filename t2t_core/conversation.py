"""Conversations: the environment opens, then policy and environment take turns. A one-shot task is a conversation of one turn.

What the environment says depends only on the instance and the policy's messages, so a conversation can be replayed from what
the policy said.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Message, Response, Verdict


def opening(testbed: AnyTestbed, instance: Any, format: str) -> tuple[Message, ...]:
    """The environment's first words about the unlabelled instance."""
    return opening_of(testbed, testbed.unlabelled(instance), format)


def opening_of(testbed: AnyTestbed, bare: Any, format: str) -> tuple[Message, ...]:
    """The same for an instance that is already unlabelled."""
    return (Message("user", testbed.prompt(bare, format)),)


def said(response: Response) -> Message:
    """A policy's turn as a message."""
    return Message("assistant", response.text, tuple(response.tool_calls))


def replies(testbed: AnyTestbed, instance: Any, messages: Sequence[Message], format: str) -> tuple[Message, ...]:
    """The environment's answer to the last of `messages`, which holds everything said after the opening. Nothing if the
    conversation is over, or the policy has used up its turns."""
    if sum(message.role == "assistant" for message in messages) >= testbed.turns:
        return ()
    answer = tuple(testbed.reply(testbed.unlabelled(instance), messages, format))
    for message in answer:
        if not isinstance(message, Message) or message.role not in ("system", "user", "tool"):
            raise T2TError(
                f"the testbed {testbed.name} replied {ascii(message)[:80]}, not a Message of the environment",
                next="t2t_core.testing.check_testbed finds such faults",
            )
    return answer


def shown(testbed: AnyTestbed, first: Sequence[Message], messages: Sequence[Message], format: str) -> tuple[Message, ...]:
    """What the policy sees before its next turn: everything, or only the latest message in a format whose messages are
    self-contained."""
    whole = (*first, *messages)
    return whole[-1:] if format in testbed.memoryless else whole


def judge(testbed: AnyTestbed, instance: Any, messages: Sequence[Message], format: str = "") -> Verdict:
    """The testbed's verdict on everything said after the opening, in a conversation with that prompt format."""
    if testbed.turns > 1:
        return testbed.verify(instance, tuple(messages), format)
    return testbed.verify(instance, messages[-1].content if messages else "", format)


def plan_of(testbed: AnyTestbed, instance: Any, messages: Sequence[Message], text: str = "") -> Hashable | None:
    """What was proposed after the opening, according to `Testbed.plan`; `text` is the answer if no messages are kept."""
    if testbed.turns > 1:
        return testbed.plan(instance, tuple(messages))
    return testbed.plan(instance, messages[-1].content if messages else text)


def play(testbed: AnyTestbed, instance: Any, format: str, speak: Callable[[Sequence[Message]], Message]) -> tuple[Message, ...]:
    """A whole conversation after the opening: `speak` gets what the policy sees and returns its next message."""
    first = opening(testbed, instance, format)
    messages: tuple[Message, ...] = ()
    while True:
        messages = (*messages, speak(shown(testbed, first, messages, format)))
        answer = replies(testbed, instance, messages, format)
        if not answer:
            return messages
        messages = (*messages, *answer)


def total(responses: Sequence[Response]) -> Response:
    """The policy's turns of one conversation as one response: the last text, tokens and cost over all turns (None if a turn has
    no figure), and "error", else "length" or "refusal", if a turn ended that way."""
    last = responses[-1]
    if len(responses) == 1:
        return last
    endings = [response.finish_reason for response in responses]
    worst = next((reason for reason in ("error", "aborted", "length", "refusal") if reason in endings), last.finish_reason)
    sums = {name: _sum(getattr(response, name) for response in responses) for name in _SUMMED}
    return replace(last, finish_reason=worst, **sums)


_SUMMED = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "seconds", "cost_usd")


def _sum(values: Iterable[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
