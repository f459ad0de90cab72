"""Demonstrations: answers of any policy that the verifier passed, as a file to learn from (`t2t generate --answers-from`).

One JSON object a line, for the trainer `trl-sft` or any other that takes chat messages:

    {"instance": {...}, "sample": 0, "policy": "cbs", "prompt": [{"role": "user", "content": "..."}],
     "completion": [{"role": "assistant", "content": "..."}], "completion_tokens": null, "verdict": {"valid": true, ...}}

Of a task that is played in turns the completion holds the whole conversation, the environment's messages included, and
`prompt_format` says in which form it was held.

The answers themselves are kept beside it in FILE.asked, in the form of a bench row: an append-only log, so that no finished
answer is ever asked twice, and the choice between valid and optimal can be made again without asking.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from t2t_core import transport
from t2t_core.closing import close
from t2t_core.conversation import judge, opening, replies
from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS, Progress
from t2t_core.evaluation.evaluate import evaluate, read_sampling
from t2t_core.evaluation.lines import DAMAGED, verdict_record
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Message, Sampling, Scored, ToolCall, Verdict
from t2t_core.registry import Spec
from t2t_core.settings import refuse_secrets
from t2t_core.store import folders, jsonlines, locks, schema
from t2t_core.store.paths import SafePath

KIND = "demonstrations"
KEEP = ("valid", "optimal")
INSTANCES = "instances.jsonl"


@dataclass(frozen=True)
class Request:
    """Whose answers are wanted: `policy` as `t2t plugins` lists them (sampling settings in it come before `sampling`),
    `samples` answers per instance, asked in `prompt_format` ("": the one the policy was taught, else the testbed's first)."""

    policy: str
    keep: str = "valid"
    samples: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    prompt_format: str = ""
    seed: int = 0
    max_usd: float | None = None


@dataclass
class Counts:
    """What became of the questions: `questions` = `unanswered` + answers; `asked` of them in this session; `stopped` says why
    it ended early."""

    questions: int
    asked: int = 0
    unanswered: int = 0
    valid: int = 0
    optimal: int = 0
    kept: int = 0
    stopped: str | None = None
    last_error: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Demonstration:
    """One line of the file, its verdict computed afresh. `messages` are all that was said after the prompt; `answer` is the
    text of the last."""

    instance: Any
    prompt: Sequence[dict[str, str]]
    answer: str
    verdict: Verdict
    messages: Sequence[Message] = ()
    prompt_format: str = ""


@dataclass(frozen=True, kw_only=True)
class ChatMessage:
    """A message in a line of the file; nothing else of it is kept."""

    role: str
    content: str
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the file, as far as it is read: policy, sample and verdict are for people."""

    instance: dict[str, Any]
    prompt: Annotated[list[ChatMessage], Meta(min_length=1)]
    completion: Annotated[list[ChatMessage], Meta(min_length=1)]
    prompt_format: str = ""


@dataclass(frozen=True, kw_only=True)
class Function:
    """The tool that is called, and the text of its arguments."""

    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call as chat models write it."""

    id: str
    function: Function


@dataclass(frozen=True, kw_only=True)
class Calling:
    """The tool calls of a message."""

    tool_calls: Sequence[Call] = ()


def collect(
    testbed: AnyTestbed,
    instances: Sequence[Any],
    request: Request,
    out: Path,
    progress: Callable[[Progress], None] | None = None,
) -> Counts:
    """Ask what is not answered yet, then write the answers worth keeping to `out`, whole.

    Args:
        testbed: whose instances and verdicts these are.
        instances: with labels (the policy sees none); none of them of a protected set.
        request: who is asked and how.
        out: the file; its work folder is `out` + ".asked". The same call again goes on where the last one stopped.
        progress: called after each answer.

    Raises:
        T2TError: a mistake in the request, an instance of a protected set, a work folder of another request, or the policy
            failed; every answer that came is kept.
    """
    if request.keep not in KEEP:
        raise T2TError(f"keep must be {' or '.join(KEEP)}, not {ascii(request.keep)[:40]}")
    refuse_secrets(vars(Spec.parse(request.policy)), "--answers-from")
    spec, sampling = read_sampling(Spec.parse(request.policy), request.sampling)
    policy = installed().policies.make(spec)
    form = request.prompt_format or str(policy.describe().get("prompt_format") or "")
    evaluation = Evaluation(testbed, instances, request.samples, sampling, form, request.seed)
    refuse_protected(testbed, instances)
    folder = SafePath(out.parent) / f"{out.name}.asked"
    with locks.locked(folder):
        _open(folder, evaluation, request.policy)
        try:
            outcome = evaluate(evaluation, policy, folder, max_usd=request.max_usd, progress=progress)
        finally:
            close(policy)  # a training may be next
        counts = Counts(len(evaluation), outcome.progress.asked, stopped=outcome.stopped, notes=outcome.notes)
        counts.last_error = outcome.progress.last_error
        with folders.replacing(out) as file:
            for answer in scored(evaluation, folder / ANSWERS):
                if _counted(answer, counts, request.keep):
                    file.write(jsonlines.dumps(_line(evaluation, answer, request.policy)).encode() + b"\n")
    return counts


def _open(folder: SafePath, evaluation: Evaluation, policy: str) -> None:
    lines = b"".join(jsonlines.dumps(i.to_dict()).encode() + b"\n" for i in evaluation.instances)
    settings = {
        "testbed": evaluation.testbed.name,
        "policy": policy,
        "sampling": evaluation.sampling.recorded(),
        "samples": evaluation.samples,
        "seed": evaluation.seed,
        "prompt_format": evaluation.prompt_format,
        "instances_sha256": hashlib.sha256(lines).hexdigest(),
        "prompts_sha256": evaluation.prompts_sha256(),
    }
    reader = {"reader": evaluation.testbed.reader}
    folders.open_manifest(folder, KIND, settings, "question", transport.asked, reader)
    if not (folder / INSTANCES).exists():
        folders.write_atomic(folder / INSTANCES, lines)


def _counted(answer: Scored, counts: Counts, keep: str) -> bool:
    """Count an answer; whether it is to be kept. One that was cut off or came with an error is not: what is learnt must end."""
    if answer.response.error is not None:
        counts.unanswered += 1
        return False
    optimal = answer.verdict.optimal is True
    counts.valid += answer.verdict.valid
    counts.optimal += optimal
    kept = answer.response.finish_reason == "stop" and (optimal if keep == "optimal" else answer.verdict.valid)
    counts.kept += kept
    return kept


def _line(evaluation: Evaluation, answer: Scored, policy: str) -> dict[str, Any]:
    testbed = evaluation.testbed
    form = {"prompt_format": evaluation.prompt_format} if testbed.turns > 1 else {}
    return {
        "instance": answer.instance.to_dict(),
        "sample": answer.sample,
        "policy": policy,
        **form,
        "prompt": [message.to_dict() for message in opening(testbed, answer.instance, evaluation.prompt_format)],
        "completion": [message.to_dict() for message in answer.messages],
        "completion_tokens": answer.response.completion_tokens,
        "verdict": verdict_record(answer.verdict),
    }


def read(testbed: AnyTestbed, path: Path) -> Iterator[Demonstration]:
    """The demonstrations of a file, which may be edited, merged from several, or a stranger's: every answer is verified again.

    Raises:
        T2TError: with file and line: no instance of this testbed, no prompt and completion of messages (one each, where the
            task has one turn), or a conversation that this testbed would not have held.
    """
    for line in jsonlines.read(path):
        where = f"{path}, line {line.number}"
        held = schema.check(line.value, Line, where, DAMAGED)
        try:
            instance = testbed.read_instance(line.value["instance"])
        except T2TError as error:
            raise T2TError(error.what, where=where, cause=error.cause, next=error.next) from None
        prompt, completion = ([message.to_dict() for message in said] for said in (held.prompt, held.completion))
        if testbed.turns == 1 and len(completion) > 1:
            cause = f"{testbed.name} is answered in one message"
            raise T2TError(f"completion: {len(completion)} messages", where=where, cause=cause)
        form = held.prompt_format
        if testbed.turns > 1 and form not in testbed.prompt_formats:
            raise T2TError(f"there is no prompt format {ascii(form)[:60]}", where=where)
        messages = _replayed(testbed, instance, completion, form, where) if testbed.turns > 1 else ()
        answer = completion[-1]["content"]
        verdict = judge(testbed, instance, messages or (Message("assistant", answer),), form)
        yield Demonstration(instance, prompt, answer, verdict, messages, form)


def _replayed(testbed: AnyTestbed, instance: Any, completion: Sequence[Any], form: str, where: str) -> tuple[Message, ...]:
    """The conversation of these messages, if the environment would have said what they say it did."""
    messages: tuple[Message, ...] = ()
    for row in completion:
        if row["role"] == "assistant":
            messages = (*messages, Message("assistant", row["content"], _calls(row, where)))
            messages = (*messages, *replies(testbed, instance, messages, form))
    if [message.to_dict() for message in messages] != list(completion):
        raise T2TError(
            "the environment would not have held this conversation",
            where=where,
            cause="the line was edited, or the testbed is another version of itself",
        )
    return messages


def _calls(message: dict[str, Any], where: str) -> tuple[ToolCall, ...]:
    """The tool calls of a message, as chat models write them."""
    called = schema.check(message, Calling, where, DAMAGED).tool_calls
    return tuple(ToolCall(call.id, call.function.name, call.function.arguments) for call in called)


def refuse_protected(testbed: AnyTestbed, instances: Sequence[Any]) -> None:
    """Raise T2TError if an instance to learn from is, up to the testbed's symmetries, one of a protected (evaluation or
    validation) set."""
    learnt = {testbed.identity(instance): instance.id for instance in instances}
    for name in testbed.protected_sets():
        kept = ((testbed.identity(instance), instance.id) for instance in testbed.load_set(name).instances)
        both = [(learnt[identity], theirs) for identity, theirs in kept if identity in learnt]
        if both:
            shown = ", ".join(f"{mine} is {theirs}" for mine, theirs in both[:5])
            raise T2TError(
                f"{len(both)} training instances belong to the set {name}",
                where=shown,
                cause=f"{testbed.sameness} they are the same",
                next="generate them with that set's instances excluded",
            )
