"""What a line of `log.jsonl` and `answers.jsonl` holds of a response, a turn and a verdict: written, and read with suspicion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from t2t_core.records import Message, Response, ToolCall, Verdict
from t2t_core.store import schema

Finish = Literal["stop", "length", "refusal", "aborted", "error"]
Tokens = Annotated[int, Meta(ge=0, lt=1 << 50)]
Amount = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]  # an integer stays one: it is written again as it was read
DAMAGED = "the file was damaged or edited by hand"
_ALWAYS = ("text", "prompt_tokens", "completion_tokens", "reasoning_tokens", "finish_reason", "error", "cost_usd")
_WHERE_KNOWN = ("model", "reasoning", "detail", "lasting")  # written if there is something to write


class CallRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call."""

    id: str
    name: str
    arguments: str


class MessageRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the environment says."""

    role: Literal["user", "tool", "system"]
    content: str
    tool_call_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What every reply of a policy says (`records.Response`)."""

    text: str
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    reasoning_tokens: Tokens | None = None
    finish_reason: Finish = "stop"
    seconds: Amount | None = None
    cost_usd: Amount | None = None
    model: str | None = None
    reasoning: str | None = None
    detail: str | None = None
    lasting: bool = False
    tool_calls: Sequence[CallRecord] = ()


@dataclass(frozen=True, kw_only=True)
class FailedReply(Reply):
    """A reply that was no answer; none came before it."""

    error: str
    earlier: Annotated[Sequence[Any], Meta(max_length=0)] = ()


@dataclass(frozen=True, kw_only=True)
class ResponseRecord(Reply):
    """A response: the last reply, and those before it that were no answer."""

    error: str | None = None
    earlier: Sequence[FailedReply] = ()


@dataclass(frozen=True, kw_only=True)
class TurnRecord(ResponseRecord):
    """A turn of a conversation: what the policy said, and what the environment replied."""

    replies: Sequence[MessageRecord]


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """The part of a line that holds a whole conversation."""

    turns: list[TurnRecord]


@dataclass(frozen=True, kw_only=True)
class VerdictRecord:
    """A verdict, its faults aside; `figures` are left out if there are none."""

    checks: dict[str, bool]
    valid: bool
    optimal: bool | None
    cost: int | None
    costs: dict[str, int]
    gap: int | None
    gaps: dict[str, int]
    figures: dict[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JudgedLine:
    """The part of a line that holds the verdict."""

    verdict: VerdictRecord


Turn = tuple[Response, tuple[Message, ...]]


def read_response(record: Mapping[str, Any], where: str) -> Response:
    """The response in a line of a log or an export; T2TError names the field that has no right type (files are hostile)."""
    return _response(schema.check(record, ResponseRecord, where, DAMAGED))


def read_turn(record: Mapping[str, Any], where: str) -> Turn:
    """A turn in a line of a log, and what the environment replied; T2TError as in `read_response`."""
    return _turn(schema.check(record, TurnRecord, where, DAMAGED))


def read_turns(record: Mapping[str, Any], where: str) -> list[Turn]:
    """The turns of the conversation in a line of an export; T2TError as in `read_response`."""
    return [_turn(turn) for turn in schema.check(record, Conversation, where, DAMAGED).turns]


def read_verdict(record: Mapping[str, Any], where: str) -> Verdict:
    """The verdict in a line of an export, its faults aside; T2TError as in `read_response`."""
    return Verdict(**vars(schema.check(record, JudgedLine, where).verdict))


def _turn(turn: TurnRecord) -> Turn:
    replies = tuple(Message(said.role, said.content, (), said.tool_call_id) for said in turn.replies)
    return _response(turn), replies


def _response(reply: Reply) -> Response:
    known = dict(vars(reply))
    known.pop("replies", None)
    if reply.tool_calls:
        known["tool_calls"] = tuple(ToolCall(call.id, call.name, call.arguments) for call in reply.tool_calls)
    if known.get("earlier"):
        known["earlier"] = tuple(_response(failed) for failed in known["earlier"])
    return Response(**known)


def response_record(response: Response) -> dict[str, Any]:
    """What is exported of a response: everything that does not depend on when it came."""
    record = {name: getattr(response, name) for name in _ALWAYS}
    record.update({name: getattr(response, name) for name in _WHERE_KNOWN if getattr(response, name)})
    if response.tool_calls:
        record["tool_calls"] = [asdict(call) for call in response.tool_calls]
    if response.earlier:
        record["earlier"] = [response_record(reply) for reply in response.earlier]
    return record


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON, faults left out: they follow from the text and the instance."""
    return {
        "checks": dict(verdict.checks),
        "valid": verdict.valid,
        "optimal": verdict.optimal,
        "cost": verdict.cost,
        "costs": dict(verdict.costs),
        "gap": verdict.gap,
        "gaps": dict(verdict.gaps),
        **({"figures": dict(verdict.figures)} if verdict.figures else {}),
    }


def response_fault(response: Response) -> str | None:
    """What is wrong with the types of a response that a plugin made, None if all is well."""
    if not isinstance(response.text, str):
        return f"text is {type(response.text).__name__}, not a string"
    if response.finish_reason not in get_args(Finish):
        return f"finish_reason is {ascii(response.finish_reason)[:40]}, not one of {', '.join(get_args(Finish))}"
    for name in ("error", "model", "reasoning", "detail"):
        if not isinstance(getattr(response, name), str | None):
            return f"{name} is {type(getattr(response, name)).__name__}, not a string or None"
    for name in ("prompt_tokens", "completion_tokens", "reasoning_tokens"):
        count = getattr(response, name)
        if count is not None and (type(count) is not int or not 0 <= count < 1 << 50):
            return f"{name} is not a count"
    for name in ("seconds", "cost_usd"):
        value = getattr(response, name)
        if value is not None and (type(value) not in (int, float) or not (math.isfinite(value) and value >= 0)):
            return f"{name} is not a number of at least 0"
    if type(response.lasting) is not bool:
        return "lasting is not True or False"
    calls = response.tool_calls
    if not isinstance(calls, list | tuple) or not all(isinstance(call, ToolCall) and _texts(call) for call in calls):
        return "tool calls are not all ToolCalls of texts"
    return _earlier_fault(response.earlier)


def _texts(call: ToolCall) -> bool:
    return all(isinstance(value, str) for value in (call.id, call.name, call.arguments))


def _earlier_fault(earlier: Any) -> str | None:
    for reply in earlier if isinstance(earlier, list | tuple) else [None]:
        if not isinstance(reply, Response) or reply.earlier or reply.error is None:
            return "earlier replies are not all responses with an error"
        if fault := response_fault(reply):
            return f"earlier reply's {fault}"
    return None
