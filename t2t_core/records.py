"""The frozen records that travel between plugins.

They flow one way: configuration -> instances -> tasks -> responses -> verdicts -> breakdown -> brief -> proposal ->
configuration. Nothing here knows any environment: instances and configurations are the testbed's own objects, which turn
into JSON with `to_dict()`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

Json = Any
Request = Any  # a testbed's own: what is wanted of its generator. Nobody but the testbed looks into it.


class InstanceRecord(Protocol):
    """An instance, as far as everybody but its testbed knows it."""

    @property
    def id(self) -> str:
        """Its name, different from that of every other instance of the same list."""
        ...
    def to_dict(self) -> dict[str, Json]:
        """The instance as one JSON object, labels included; `Testbed.read_instance` is the inverse."""
        ...


class ConfigurationRecord(Protocol):
    """A configuration, as far as everybody but its testbed knows it: {group: {knob: number}} as JSON."""

    def to_dict(self) -> dict[str, Json]:
        """{group: {knob: number}}, every group with every knob; `Testbed.read_configuration` is the inverse."""
        ...


ConfigurationT = TypeVar("ConfigurationT", bound=ConfigurationRecord)


@dataclass(frozen=True)
class ToolCall:
    """A policy's wish to use a tool: `arguments` is the JSON text that the policy wrote, readable or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Tool:
    """A tool that a testbed offers: `parameters` is a JSON Schema of its arguments, as chat models expect it."""

    name: str
    description: str
    parameters: Mapping[str, Json]

    def to_dict(self) -> dict[str, Json]:
        """The tool as chat models and their servers take it."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class Message:
    """One message of a conversation, in the roles of chat models: "system", "user" (the environment speaks), "assistant"
    (the policy speaks, perhaps with tool calls) or "tool" (a tool's result, with the id of the call it answers)."""

    role: str
    content: str
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str | None = None

    def to_dict(self) -> dict[str, Json]:
        """The message as chat models and their servers take it."""
        data: dict[str, Json] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            calls = [{"name": call.name, "arguments": call.arguments} for call in self.tool_calls]
            data["tool_calls"] = [
                {"id": call.id, "type": "function", "function": function}
                for call, function in zip(self.tool_calls, calls, strict=True)
            ]
        if self.tool_call_id is not None:
            data["tool_call_id"] = self.tool_call_id
        return data


@dataclass(frozen=True)
class Task:
    """One question to a policy: its next turn in the `sample`-th conversation about one instance.

    `messages` is the conversation so far and ends with the environment's words; a one-shot task has one user message, and
    `turn` is 0. `prompt` is the text of the last message. `instance` is unlabelled: stored optima, flags and solutions are
    never shown to a policy. `seed` derives from the evaluation's seed, the instance id, the sample and the turn, so that a
    rerun asks the same question. `tools` may be called in the answer. `turns` is the most turns the policy may have, `index` the
    number of the instance among all that the evaluation asks about, from 0.
    """

    instance_id: str
    sample: int
    prompt: str
    instance: Any
    seed: int
    messages: Sequence[Message] = ()
    turn: int = 0
    tools: Sequence[Tool] = ()
    turns: int = 1
    index: int = 0

    def __post_init__(self) -> None:
        if not self.messages:
            object.__setattr__(self, "messages", (Message("user", self.prompt),))
        elif self.messages[-1].content != self.prompt:  # `replace(task, prompt=...)` words the last message anew
            last = dataclasses.replace(self.messages[-1], content=self.prompt)
            object.__setattr__(self, "messages", (*self.messages[:-1], last))


LATER_SAMPLING = frozenset({"top_k", "min_p"})  # what the records of earlier versions do not have


@dataclass(frozen=True)
class Sampling:
    """How a language model answers. Defaults the paper does not give are our choice.

    temperature: 0 is greedy. max_tokens: at most so many response tokens. thinking: None leaves the model's default,
    True or False sets its switch where it has one. Of the words that may come next, top_k keeps so many of the likeliest (0:
    all), then top_p the likeliest that together have that share (1: all), then min_p those that have at least that share of
    the likeliest one's probability (0: all).
    """

    temperature: float = 0.0
    max_tokens: int = 4096
    thinking: bool | None = None
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0

    def recorded(self) -> dict[str, Any]:
        """As JSON; what earlier versions did not know is left out if it changes nothing, so that their folders go on."""
        return {name: value for name, value in asdict(self).items() if value or name not in LATER_SAMPLING}


@dataclass(frozen=True)
class Response:
    """One turn of a policy, or the error that came instead (then `error` is not None, and `text` is whatever arrived).

    Token counts are as the policy reports them, None if it has no tokens or they are not known; `reasoning_tokens` are
    hidden ones and part of `completion_tokens`, `reasoning` their text where it was sent. `finish_reason` is "stop" (ended by
    the model, perhaps without text), "length", "refusal", "aborted" (broken off by the server, always an error) or "error".
    `seconds` is wall time, `cost_usd` None if it is not known, `model` the one that served. `detail` is what a server said
    beside its answer, a refusal's reason say. `lasting`: the error would come again, so that asking again at once is in vain.
    `earlier` are the replies to the same question that came before and were no answer, where they cost something or may have.
    """

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    finish_reason: str = "stop"
    error: str | None = None
    seconds: float | None = None
    cost_usd: float | None = None
    model: str | None = None
    reasoning: str | None = None
    detail: str | None = None
    lasting: bool = False
    earlier: Sequence[Response] = ()
    tool_calls: Sequence[ToolCall] = ()


@dataclass(frozen=True)
class Fault:
    """Where a failed check first failed, for people (`message`) and as facts in the testbed's own terms: `kind` where a check
    can fail in several ways, `where` what locates it (a step, a turn, a line)."""

    message: str
    kind: str | None = None
    where: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """What a testbed says of one answer.

    checks: every strict check by name, in the testbed's order. valid: all of them hold. optimal: valid and at the stored
    optimum; None (not False) where valid but no optimum is stored. cost: of the instance's objective, None unless valid.
    costs: every cost the testbed knows, empty unless valid. gap: cost minus stored optimum, None if either is missing.
    gaps: the same for each of `costs` whose optimum is stored. faults: for failed checks, where they first failed; also, under a
    name that is no check, what is wrong with the instance itself. figures: what else the testbed counts of an answer, valid or
    not, for its metrics and reward terms.
    """

    checks: Mapping[str, bool]
    valid: bool
    optimal: bool | None
    cost: int | None
    costs: Mapping[str, int] = field(default_factory=dict)
    gap: int | None = None
    faults: Mapping[str, Fault] = field(default_factory=dict)
    gaps: Mapping[str, int] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def failure(self) -> str | None:
        """The first failed check, None for a valid answer."""
        return next((name for name, passed in self.checks.items() if not passed), None)


@dataclass(frozen=True)
class Metric:
    """One figure a testbed reports. `value` maps (verdict, response) to a number, or None if it does not apply.

    kind "rate": the value is 0 or 1 and every instance counts (an instance without an answer is 0); the figure is a
    percentage with an interval. kind "mean": the mean over the answers where the value is not None.
    """

    name: str
    title: str
    kind: str
    value: Callable[[Verdict, Response], float | None]
    unit: str = ""
    higher_is_better: bool = True


@dataclass(frozen=True)
class Place:
    """Where an instance stands: in the tables one table per `table` and one column per `column`; `group` is what the knobs of
    a configuration are set for, `cell` the finest cell, which breakdowns and curricula use."""

    table: str
    column: str
    cell: str = ""
    group: str = ""


@dataclass(frozen=True)
class InstanceSet:
    """A named list of instances. `name` and `sha256` (of the file's bytes, or of the canonical JSON lines) identify it;
    `kind` is "evaluation", "validation", "twin" or "file"; `notes` are facts a report must show (shortfalls, reuse)."""

    name: str
    kind: str
    sha256: str
    instances: Sequence[Any]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Option:
    """An option a testbed adds to `t2t bench` and to a run's evaluation; `parse` turns its text into a value, T2TError if it
    cannot."""

    name: str
    help: str
    default: str
    parse: Callable[[str], Any]


@dataclass(frozen=True)
class Knob:
    """One number that a designer sets for every group of a configuration.

    Args:
        name: its key in a group of `Configuration.to_dict()`.
        description: one sentence, for people and for language models.
        low, high: its bounds; Project clips to them.
        role: "share" of the round's instances that the group gets (a configuration has exactly one, and over the groups it
            sums to 1); "level", a property of every instance drawn for the group; or "mixture", the share of the group's
            instances that have some property.
        form: how a value is shown: "percent" (0.2 reads 20 %), "number" or "whole".
        unit: of a number, e.g. "steps".
        harder: 1 if higher values make harder instances, -1 if lower ones do, 0 if neither is known. Schedules and
            rules move a level knob by it, and leave one of 0 alone.
        step: a moderate change, in the knob's own unit; None: a twentieth of the range.
    """

    name: str
    description: str
    low: float
    high: float
    role: Literal["share", "level", "mixture"] = "level"
    form: Literal["percent", "number", "whole"] = "number"
    unit: str = ""
    harder: int = 0
    step: float | None = None

    @property
    def moderate(self) -> float:
        """A moderate change of this knob."""
        return self.step if self.step is not None else (self.high - self.low) / 20

    def shown(self, value: float, digits: int = 1) -> str:
        """A value as people read it, with its unit."""
        if self.form == "percent":
            return f"{100 * value:.{digits}f} %"
        number = f"{value:.0f}" if self.form == "whole" else f"{value:.{digits + 2}f}".rstrip("0").rstrip(".")
        return f"{number} {self.unit}".rstrip()


@dataclass(frozen=True)
class Cell:
    """The finest choice that a curriculum makes: one value for every knob of one group but its share (0 or 1 of a mixture)."""

    name: str
    group: str
    levels: Mapping[str, float]


@dataclass(frozen=True)
class Change:
    """One correction Project made to a proposal: which knob, from what, to what, and why."""

    knob: str
    proposed: Json
    used: Json
    reason: str


@dataclass(frozen=True)
class Projection(Generic[ConfigurationT]):
    """A configuration that satisfies every constraint, and what was changed to get there."""

    configuration: ConfigurationT
    changes: Sequence[Change] = ()


@dataclass(frozen=True)
class Scored:
    """One answered (or failed) instance of an evaluation: what was asked, what came, what it is worth. Of a conversation,
    `response` sums the policy's turns up, and `messages` are all that was said after the opening."""

    instance: Any
    sample: int
    response: Response
    verdict: Verdict
    messages: Sequence[Message] = ()


@dataclass(frozen=True)
class Round:
    """What happened in one finished round, as facts: configurations and breakdowns are JSON (the testbed's `to_dict`).
    `summary` is the designer's own explanation of this round's configuration, None if it gave none; `training` holds what
    the trainer counted, per cell among other things."""

    index: int
    configuration: Mapping[str, Json]
    breakdown: Mapping[str, Json]
    summary: str | None = None
    training: Mapping[str, Json] = field(default_factory=dict)


ASKED_AGAIN = "asked once more, for the JSON alone"  # the note of a designer that needed a second call; a summary counts them


@dataclass(frozen=True)
class Proposal:
    """What a designer returns; the loop projects it (`loop.design_step`).

    `raw` is its reply word for word, or its replies one after the other if it was asked twice: the last one is what was read.
    `parsed` is the configuration it proposes as JSON, None if none could be read. `notes` say what its reader repaired.
    `responses` are all calls that it made, including failed ones.
    """

    raw: str
    parsed: Mapping[str, Json] | None
    summary: str | None = None
    notes: Sequence[str] = ()
    prompt: str | None = None
    responses: Sequence[Response] = ()


@dataclass(frozen=True)
class TrainingResult:
    """The new checkpoint (the old one where nothing was trained), figures of the round, and what it consumed: responses sampled,
    optimizer steps, tokens. `keep_updates`: the next round continues from what is in `updates` (the optimizer's state)."""

    checkpoint: Path | None
    metrics: Mapping[str, Json] = field(default_factory=dict)
    samples: int = 0
    updates: int = 0
    tokens: int = 0
    keep_updates: bool = False


@dataclass(frozen=True)
class AgentTurn:
    """What a job agent says and does in one turn: a text, tool calls in their order, and the answer of the policy that it asked,
    where it asked one (its tokens and its price are charged to the episode)."""

    text: str = ""
    calls: Sequence[ToolCall] = ()
    response: Response | None = None
