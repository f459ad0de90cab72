"""Policy x instances x samples -> answers on disk: concurrent where the policy is, append-only, resumable, flat in memory.

A row's folder holds two files. `log.jsonl` has every answer in the order of arrival and is only ever appended to; an error
is asked again on resume, the last attempt counts and the earlier ones stay. `answers.jsonl` is written from it at the end,
in instance order, each with the testbed's verdict and nothing that depends on when it was asked; with a deterministic
policy its bytes are those of an undisturbed run.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from t2t_core.errors import BudgetSpent, T2TError
from t2t_core.evaluation.answers import ANSWERS, LOG, AnswerLog, Progress
from t2t_core.evaluation.export import Drafts, export
from t2t_core.evaluation.lines import response_fault
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.turns import Questions, Tasks, broken
from t2t_core.hookspecs import Policy
from t2t_core.records import Response, Sampling
from t2t_core.registry import Spec
from t2t_core.settings import integer, number, one_of, read_settings
from t2t_core.store.interrupts import Interrupts
from t2t_core.store.paths import SafePath
from t2t_core.text import one_line, plain_lines

MAX_TEXT = 16_000_000  # characters of one answer; longer ones are cut and recorded as an error
_THINKING = {"on": True, "true": True, "off": False, "false": False}


@dataclass(frozen=True)
class Outcome:
    """How an evaluation ended: `stopped` says why it ended early (None: every question has an answer or an error),
    `notes` what was found on resume, e.g. a torn line, and what the policy has to tell."""

    progress: Progress
    stopped: str | None = None
    notes: Sequence[str] = ()

    @property
    def unanswered(self) -> bool:
        """Whether something was asked, and every question failed."""
        return 0 < self.progress.asked == self.progress.errors

    def require_answers(self, what: str) -> None:
        """Raise T2TError if every question failed: what follows would be drawn from nothing."""
        if self.unanswered:
            raise T2TError(
                f"no question of {what} was answered",
                cause=f"the last error: {one_line(self.progress.last_error)}",
                next="mend it and give the same command again: it asks only for what is missing",
            )


def read_sampling(spec: Spec, default: Sampling) -> tuple[Spec, Sampling]:
    """Take temperature, max_tokens, thinking, top_p, top_k and min_p out of a policy's settings: they override `default` for it
    alone.

    `none` stays where it is: it tells the policy not to send the parameter at all.
    """
    readers = {
        "temperature": number(0, 10),
        "max_tokens": integer(1, 10_000_000),
        "thinking": one_of(list(_THINKING)),
        "top_p": number(0, 1),
        "top_k": integer(0, 10_000_000),
        "min_p": number(0, 1),
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
    to_ask: Callable[[int], bool] | None = None,
) -> Outcome:
    """Ask what `folder` has no answer to yet, then write the export.

    Args:
        evaluation: the questions.
        policy: who answers; it sees prompts and unlabelled instances only.
        folder: of this row; `log.jsonl` and `answers.jsonl` are kept there. The caller holds its lock.
        max_usd: what this row's log may cost. A policy with `spend_at_most` sends nothing that would go beyond it; another one
            is stopped after the answer that reaches it.
        progress: called after each answer.
        to_ask: which questions are asked now, by their index; None: all of them.

    Raises:
        T2TError: the policy failed or broke its contract, or the disk refused; every answer recorded before is kept and exported.
        KeyboardInterrupt: on Ctrl-C or SIGTERM; likewise.
    """
    folder = SafePath.of(folder)
    ids = [instance.id for instance in evaluation.instances]
    log = AnswerLog(folder / LOG, ids, evaluation.samples, evaluation.testbed.turns, to_ask)
    with closing(log), closing(Drafts(evaluation, log)) as drafts, Interrupts() as interrupts:
        try:
            stopped = _ask_all(evaluation, policy, log, drafts, interrupts, max_usd, progress)
        except (KeyboardInterrupt, T2TError):
            if not log.empty:
                with suppress(T2TError):  # a full disk, say: what is told is why it ended
                    export(evaluation, log, folder / ANSWERS, drafts)
            raise
        export(evaluation, log, folder / ANSWERS, drafts)
        return Outcome(log.progress, stopped, [*log.notes, *_notes(policy)])


def _notes(policy: Policy) -> Sequence[str]:
    tell = getattr(policy, "notes", None)
    return [one_line(note, 400) for note in tell()] if callable(tell) else []


def _ask_all(
    evaluation: Evaluation,
    policy: Policy,
    log: AnswerLog,
    drafts: Drafts,
    interrupts: Interrupts,
    max_usd: float | None,
    progress: Callable[[Progress], None] | None,
) -> str | None:
    questions = Questions(evaluation, log, policy.describe().get("batch_size"))
    spends = max_usd is not None and hasattr(policy, "spend_at_most")
    while (spent := _spent(log.progress, max_usd)) is None:
        tasks = questions.batch(getattr(policy, "open_at_once", None))
        if tasks is None:
            return None
        if spends:
            policy.spend_at_most(max_usd - log.progress.cost_usd)  # type: ignore[attr-defined, operator]

        def record(pair: Any, tasks: Tasks = tasks) -> Response:
            position, response = _pair(pair)
            checked = _checked(response)
            with interrupts.held():
                questions.record(tasks, position, checked)
            if progress:
                progress(log.progress)
            drafts.add(tasks.questions[position])
            return checked

        try:
            with closing(_responses(policy, tasks, evaluation.sampling)) as responses:
                for response in _recorded(responses, record):
                    if max_usd is not None:
                        refuse_unpriced(response, spends)
                    if not spends and (spent := _spent(log.progress, max_usd)):
                        return spent
        except BudgetSpent as end:
            return end.what
        questions.close(tasks)
    return spent


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
            f"the policy failed: {type(error).__name__}: {plain_lines(error, 300)}",
            where=f"{at.filename}, line {at.lineno}",
            cause="a fault of the policy; every answer before it is kept",
            next="the same command asks only for the missing answers",
        ) from error


def _pair(pair: Any) -> tuple[Any, Any]:
    if not (isinstance(pair, tuple) and len(pair) == 2):
        raise broken(f"it yielded {type(pair).__name__}, not (position, response)")
    return pair


def _checked(response: Any) -> Response:
    fault = response_fault(response) if isinstance(response, Response) else f"type is {type(response).__name__}, not Response"
    if fault:
        raise broken(f"a response's {fault}")
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
    """Raise T2TError if a budget cannot hold, since nobody knows what `response` cost. `spends`: answers cost money even where no
    tokens are reported. An error is not judged by this, nor a refusal that came before any token."""
    if response.cost_usd is not None or response.error is not None:
        return
    if response.completion_tokens is not None:
        raise T2TError(
            "--max-usd cannot hold: no price of this model is known",
            next="give the prices in the policy's settings (price_in=0,price_out=0 where answers cost nothing), or no --max-usd",
        )
    if spends and response.finish_reason != "refusal":
        raise T2TError(
            "--max-usd cannot hold: the server does not say how many tokens an answer took",
            cause="its replies have no usage, or one of zeros",
            next="leave --max-usd out, and bound the cost with --limit and --max-tokens",
        )
