"""Policy x instances x samples -> answers on disk: concurrent where the policy is, append-only, resumable, flat in memory.

A row's folder holds two files. `log.jsonl` has every answer in the order of arrival and is only ever appended to; an error
is asked again on resume, the last attempt counts and the earlier ones stay. `answers.jsonl` is written from it at the end,
in instance order, each with the testbed's verdict and nothing that depends on when it was asked; with a deterministic
policy its bytes are those of an undisturbed run.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, overload

from t2t_core.errors import BudgetSpent, T2TError
from t2t_core.evaluation.answers import (
    ANSWERS,
    LOG,
    AnswerLog,
    Progress,
    read_response,
    response_fault,
    response_record,
    verdict_record,
)
from t2t_core.hookspecs import AnyTestbed, Policy
from t2t_core.records import Response, Sampling, Scored, Task
from t2t_core.registry import Spec, plain
from t2t_core.seeding import key
from t2t_core.settings import integer, number, one_of, read_settings
from t2t_core.store import folders, jsonlines
from t2t_core.store.paths import SafePath

MAX_TEXT = 16_000_000  # characters of one answer; longer ones are cut and recorded as an error
_THINKING = {"on": True, "true": True, "off": False, "false": False}


@dataclass(frozen=True)
class Evaluation:
    """What is asked: instances in their order, each `samples` times, with one prompt format and one way of sampling."""

    testbed: AnyTestbed
    instances: Sequence[Any]
    samples: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    prompt_format: str = ""
    seed: int = 0

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

    def task(self, index: int) -> Task:
        """The index-th question; `instance` carries no label, and the prompt is made from the unlabelled instance."""
        position, sample = divmod(index, self.samples)
        bare = self.testbed.unlabelled(self.instances[position])
        prompt = self.testbed.prompt(bare, self.prompt_format)
        return Task(bare.id, sample, prompt, bare, key(self.seed, "task", bare.id, sample))

    def prompts_sha256(self) -> str:
        """Identifies every question word for word."""
        digest = hashlib.sha256()
        for instance in self.instances:
            prompt = self.testbed.prompt(self.testbed.unlabelled(instance), self.prompt_format)
            digest.update(jsonlines.canonical([instance.id, prompt]) + b"\n")
        return digest.hexdigest()


class Tasks(Sequence[Task]):
    """Tasks made when they are looked at, so that 100,000 prompts never lie in memory together."""

    def __init__(self, evaluation: Evaluation, indices: Sequence[int]) -> None:
        self._evaluation, self._indices = evaluation, indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, at: int) -> Task: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Task]: ...
    def __getitem__(self, at: int | slice) -> Task | Sequence[Task]:
        if isinstance(at, slice):
            return Tasks(self._evaluation, self._indices[at])
        return self._evaluation.task(self._indices[at])


@dataclass(frozen=True)
class Outcome:
    """How an evaluation ended: `stopped` says why it ended early (None: every question has an answer or an error),
    `notes` what was found on resume, e.g. a torn line."""

    progress: Progress
    stopped: str | None = None
    notes: Sequence[str] = ()

    @property
    def unanswered(self) -> bool:
        """Whether something was asked, and every question failed."""
        return 0 < self.progress.asked == self.progress.errors

    def require_answers(self, what: str) -> None:
        """T2TError where every question failed: what follows would be drawn from nothing."""
        if self.unanswered:
            raise T2TError(
                f"no question of {what} was answered",
                cause=f"the last error: {plain(self.progress.last_error)}",
                next="mend it and give the same command again: it asks only for what is missing",
            )


def read_sampling(spec: Spec, default: Sampling) -> tuple[Spec, Sampling]:
    """Take temperature, max_tokens, thinking and top_p out of a policy's settings: they override `default` for it alone.

    `none` stays where it is: it tells the policy not to send the parameter at all.
    """
    readers = {
        "temperature": number(0, 10),
        "max_tokens": integer(1, 10_000_000),
        "thinking": one_of(list(_THINKING)),
        "top_p": number(0, 1),
    }
    own = {name: text for name, text in spec.settings.items() if name in readers and text != "none"}
    values = read_settings(own, f"policy {spec.name}", readers)
    if "thinking" in values:
        values["thinking"] = _THINKING[values["thinking"]]
    rest = {name: text for name, text in spec.settings.items() if name not in own}
    return replace(spec, settings=rest), replace(default, **values)


def evaluate(
    evaluation: Evaluation,
    policy: Policy,
    folder: Path | SafePath,
    *,
    max_usd: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Ask what `folder` has no answer to yet, then write the export.

    Args:
        evaluation: the questions.
        policy: who answers; it sees prompts and unlabelled instances only.
        folder: of this row; `log.jsonl` and `answers.jsonl` are kept there. The caller holds its lock.
        max_usd: what this row's log may cost. A policy with `spend_at_most` sends nothing that would go beyond it; another one
            is stopped after the answer that reaches it.
        progress: called after each answer.

    Raises:
        T2TError: the policy failed or broke its contract, or the disk refused; every answer recorded before is kept.
        KeyboardInterrupt: on Ctrl-C or SIGTERM; likewise.
    """
    folder = SafePath.of(folder)
    log = AnswerLog(folder / LOG, [i.id for i in evaluation.instances], evaluation.samples)
    with closing(log), folders.Interrupts() as interrupts:
        stopped = _ask_all(evaluation, policy, log, interrupts, max_usd, progress)
        export(evaluation, log, folder / ANSWERS)
        return Outcome(log.progress, stopped, log.notes)


def _ask_all(
    evaluation: Evaluation,
    policy: Policy,
    log: AnswerLog,
    interrupts: folders.Interrupts,
    max_usd: float | None,
    progress: Callable[[Progress], None] | None,
) -> str | None:
    missing = log.missing()
    size = policy.describe().get("batch_size") or max(1, len(missing))
    spends = max_usd is not None and hasattr(policy, "spend_at_most")
    for first in range(0, len(missing), size):
        indices = missing[first : first + size]
        answered = bytearray(len(indices))
        if spent := _spent(log.progress, max_usd):
            return spent
        if spends:
            policy.spend_at_most(max_usd - log.progress.cost_usd)  # type: ignore[attr-defined, operator]

        def record(pair: Any, indices: Sequence[int] = indices, answered: bytearray = answered) -> Response:
            position, response = _pair(pair)
            checked = _checked(response)
            with interrupts.held():
                log.append(indices[_unanswered(position, answered)], checked)
            if progress:
                progress(log.progress)
            return checked

        try:
            with closing(_responses(policy, Tasks(evaluation, indices), evaluation.sampling)) as responses:
                for response in _recorded(responses, record):
                    if max_usd is not None:
                        refuse_unpriced(response, spends)
                    if not spends and (spent := _spent(log.progress, max_usd)):
                        return spent
        except BudgetSpent as end:
            return end.what
        for position in (i for i, done in enumerate(answered) if not done):
            log.append(indices[position], Response("", error="the policy gave no answer", finish_reason="error"))
    return None


def _recorded(responses: Generator[Any, None, None], record: Callable[[Any], Response]) -> Iterator[Response]:
    """Record every answer. On Ctrl-C the policy hands over what had come by then: it may have been paid for."""
    try:
        for pair in responses:
            yield record(pair)
    except KeyboardInterrupt as stop:
        with suppress(KeyboardInterrupt, StopIteration):
            record(responses.throw(stop))
            for pair in responses:
                record(pair)
        raise


def _responses(policy: Policy, tasks: Tasks, sampling: Sampling) -> Generator[Any, None, None]:
    """The policy's answers; what it raises becomes a T2TError, and its generator is closed whatever happens."""
    try:
        yield from policy.respond(tasks, sampling)
    except T2TError:
        raise
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise T2TError(
            f"the policy failed: {type(error).__name__}: {str(error)[:300]}",
            where=f"{at.filename}, line {at.lineno}",
            cause="a fault of the policy; every answer before it is kept",
            next="the same command asks only for the missing answers",
        ) from error


def _pair(pair: Any) -> tuple[Any, Any]:
    if not (isinstance(pair, tuple) and len(pair) == 2):
        raise _broken(f"it yielded {type(pair).__name__}, not (position, response)")
    return pair


def _broken(what: str) -> T2TError:
    return T2TError(
        f"the policy broke its contract: {what}",
        cause="a policy yields (position in tasks, Response), every position exactly once",
        next="t2t_core.testing.check_policy finds such faults; every answer before it is kept",
    )


def _unanswered(position: Any, answered: bytearray) -> int:
    """The position, marked as answered; T2TError where it is none, or was answered before."""
    if type(position) is not int or not 0 <= position < len(answered):
        raise _broken(f"there is no position {ascii(position)[:40]} among {len(answered)} tasks")
    if answered[position]:
        raise _broken(f"it answered position {position} twice")
    answered[position] = 1
    return position


def _checked(response: Any) -> Response:
    fault = response_fault(response) if isinstance(response, Response) else f"type is {type(response).__name__}, not Response"
    if fault:
        raise _broken(f"a response's {fault}")
    checked: Response = response
    if checked.reasoning and len(checked.reasoning) > MAX_TEXT:
        checked = replace(checked, reasoning=checked.reasoning[:MAX_TEXT])
    if len(checked.text) > MAX_TEXT:
        error = f"an answer of {len(checked.text)} characters; {MAX_TEXT} are kept"
        checked = replace(checked, text=checked.text[:MAX_TEXT], error=checked.error or error, finish_reason="error")
    return checked


def _spent(progress: Progress, max_usd: float | None) -> str | None:
    """Why no more may be asked, None while the budget holds."""
    return f"the budget of {max_usd:g} USD is spent" if max_usd is not None and progress.cost_usd >= max_usd else None


def refuse_unpriced(response: Response, spends: bool = True) -> None:
    """T2TError where a budget cannot hold, since nobody knows what `response` cost. `spends`: answers cost money even where no
    tokens are reported. An error is not judged by this, nor a refusal that came before any token."""
    if response.cost_usd is not None or response.error is not None:
        return
    if response.completion_tokens is not None:
        raise T2TError(
            "--max-usd cannot hold: no price of this model is known",
            next="give the prices in the policy's settings (price_in=, price_out=), or leave --max-usd out",
        )
    if spends and response.finish_reason != "refusal":
        raise T2TError(
            "--max-usd cannot hold: the server does not say how many tokens an answer took",
            cause="its replies have no usage, or one of zeros",
            next="leave --max-usd out, and bound the cost with --limit and --max-tokens",
        )


def export(evaluation: Evaluation, log: AnswerLog, path: Path | SafePath) -> None:
    """Write every answer in instance order, with its verdict; a question never asked is there as an error."""
    with folders.replacing(path) as file:
        for index in range(len(evaluation)):
            position, sample = divmod(index, evaluation.samples)
            instance = evaluation.instances[position]
            response = log.response(index) or Response("", error="not asked yet", finish_reason="error")
            verdict = evaluation.testbed.verify(instance, response.text)
            record = {"instance": instance.id, "sample": sample, **response_record(response), "verdict": verdict_record(verdict)}
            file.write(jsonlines.dumps(record).encode() + b"\n")


def scored(evaluation: Evaluation, path: Path | SafePath) -> Iterator[Scored]:
    """The answers of an export, scored afresh from their raw text, in instance order.

    T2TError where the file does not hold exactly the evaluation's questions in their order.
    """
    lines = jsonlines.read(path)
    for index in range(len(evaluation)):
        position, sample = divmod(index, evaluation.samples)
        instance = evaluation.instances[position]
        line = next(lines, None)
        where = f"{path}, line {line.number}" if line else str(path)
        asked, found = (instance.id, sample), line and (line.value.get("instance"), line.value.get("sample"))
        if line is None or found != asked:
            raise T2TError(f"the answer to {asked} is expected, not {ascii(found)[:120]}", where=where)
        response = read_response(line.value, where)
        yield Scored(instance, sample, response, evaluation.testbed.verify(instance, response.text))
    extra = next(lines, None)
    if extra is not None:
        raise T2TError("there are more answers than questions", where=f"{path}, line {extra.number}")
