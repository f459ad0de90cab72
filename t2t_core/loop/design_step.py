"""One design step: the rounds so far -> brief -> the designer's proposal -> Project -> the next configuration.

A designer is somebody else's code: it may raise, hang or return garbage. None of that breaks the loop. The previous
configuration stays in force, and the step's record says what happened.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from t2t_core import guard
from t2t_core.evaluation.lines import response_fault, response_record
from t2t_core.hookspecs import AnyTestbed, Brief, Designer, RoundState, Trainer
from t2t_core.hostile import plain_json
from t2t_core.loop import context
from t2t_core.records import ConfigurationRecord, Projection, Proposal, Request, Response, Round, Scored
from t2t_core.redaction import without_secrets
from t2t_core.run.experiment import Experiment
from t2t_core.run.schemas import Correction, Cost, Design, Projected

MAX_TEXT = 2_000_000  # characters kept of a reply
MAX_NOTES = 100


@dataclass(frozen=True)
class Step:
    """The result of one design. `outcome` is "proposed", "unchanged" (Project turned the proposal into the configuration in
    force), "unreadable" (the reply holds no configuration), "failed" (the designer raised, or its last call failed) or "timed
    out"."""

    proposal: Proposal
    outcome: str
    seconds: float


def round_state(
    testbed: AnyTestbed,
    trainer: Trainer | None,
    experiment: Experiment,
    request: Request,
    rounds: Sequence[Round],
    examples: Sequence[Scored],
) -> RoundState:
    """The state after the last of `rounds`: its failed answers as examples, the run's bookkeeping, and facts about the training
    (what the trainer reports of itself, and its settings)."""
    index = rounds[-1].index
    settings = {**getattr(trainer, "defaults", {}), **experiment.training}
    bookkeeping: dict[str, Any] = {"round_index": index, "rounds": experiment.rounds}
    if isinstance(settings.get("epochs"), int):
        each = settings["epochs"]
        bookkeeping |= {
            "epochs_per_round": each,
            "epochs_so_far": each * (index + 1),
            "total_epochs": each * experiment.rounds,
        }
    plain = {k: v for k, v in settings.items() if isinstance(v, (str, int, float, bool)) and v != ""}
    facts = {"trainer": experiment.trainer, **getattr(trainer, "facts", {}), "samples_per_round": experiment.samples}
    return RoundState(testbed, rounds, examples, bookkeeping, {**facts, **plain}, testbed.knobs(request))


def make_brief(
    experiment: Experiment,
    named: Sequence[context.NamedModule],
    state: RoundState,
    request: Request,
    checkpoint: Path | None,
) -> Brief:
    """Everything a designer gets after the last round of `state`, except the run's policy.

    Raises:
        PluginFault: a context module failed, or took longer than a design may. Without its section the brief would belong to
            another context.
    """
    latest = state.rounds[-1]
    previous = state.testbed.read_configuration(latest.configuration)
    text, compact = guard.within(
        experiment.design_seconds,
        lambda: (context.prompt(named, state, previous, request), context.compact(named, state)),
    )
    return Brief(
        text=text,
        state=state,
        previous=previous,
        request=request,
        seed=experiment.key("design", latest.index),
        checkpoint=checkpoint,
        base=experiment.start(),
        compact=compact,
        anew=lambda other: make_brief(experiment, named, other, request, checkpoint),
    )


def propose(designer: Designer, brief: Brief, seconds: float) -> Step:
    """Ask the designer, for at most `seconds`. Returns a step whatever the designer does."""
    started = time.monotonic()
    shown: list[str] = []

    def ask() -> Any:
        answer = designer.propose(replace(brief, shown=shown.append))
        return _clean(answer) if isinstance(answer, Proposal) else answer

    def without(outcome: str, note: str) -> Step:
        prompt = _text(shown[-1]) if shown else None
        return Step(Proposal("", None, notes=(note,), prompt=prompt), outcome, time.monotonic() - started)

    try:
        answer = guard.within(seconds, ask)
    except guard.TimedOut as error:
        return without("timed out", error.what)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - also SystemExit: a designer's fault is a fact of the round
        return without("failed", without_secrets(f"the designer failed: {type(error).__name__}: {error}")[:500])
    if not isinstance(answer, Proposal):
        return without("failed", f"the designer returned {type(answer).__name__}, not a Proposal")
    taken = time.monotonic() - started
    if answer.parsed is None:
        return Step(answer, "failed" if answer.responses and answer.responses[-1].error else "unreadable", taken)
    return Step(answer, "proposed", taken)


def _clean(proposal: Proposal) -> Proposal:
    """The proposal without anything that JSON cannot hold; the notes say what was removed."""
    notes = [without_secrets(str(n))[:500] for n in list(_items(proposal.notes))[:MAX_NOTES]]
    parsed = None
    if isinstance(proposal.parsed, Mapping):
        try:
            parsed = plain_json(proposal.parsed)
        except ValueError as error:
            notes.append(f"the proposal cannot be kept: {error}")
    elif proposal.parsed is not None:
        notes.append(f"the proposal is {type(proposal.parsed).__name__}, not an object")
    responses = [_kept_call(r) for r in _items(proposal.responses) if isinstance(r, Response) and not response_fault(r)]
    return Proposal(
        raw=_text(proposal.raw) or "",
        parsed=parsed,
        summary=_text(proposal.summary),
        notes=tuple(notes),
        prompt=_text(proposal.prompt),
        responses=tuple(responses),
    )


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _text(value: Any) -> str | None:
    return without_secrets(value)[:MAX_TEXT] if isinstance(value, str) else None


def _kept_call(response: Response) -> Response:
    return replace(response, text=_text(response.text) or "", error=_text(response.error))


@dataclass(frozen=True)
class Decision:
    """The result of a step: the next configuration with Project's changes, and a note if the previous one stays."""

    step: Step
    projection: Projection[ConfigurationRecord]
    note: str | None = None


def decide(testbed: AnyTestbed, step: Step, previous: ConfigurationRecord, request: Request) -> Decision:
    """Project the proposal. The previous configuration stays if nothing was proposed, or if the testbed broke its promise never
    to fail. If Project arrives at the configuration in force, the outcome is "unchanged"."""
    if step.proposal.parsed is None:
        return Decision(step, Projection(previous), f"designer {step.outcome}: the previous configuration stays")
    try:
        projection = testbed.project(step.proposal.parsed, previous, request)
    except Exception as error:  # noqa: BLE001 - a stranger's testbed; one odd proposal must not end a run
        reason = without_secrets(f"{type(error).__name__}: {error}")[:400]
        return Decision(_same(step), Projection(previous), f"Project failed, the previous configuration stays: {reason}")
    same = projection.configuration.to_dict() == previous.to_dict()
    return Decision(_same(step) if same else step, projection)


def _same(step: Step) -> Step:
    return replace(step, outcome="unchanged") if step.outcome == "proposed" else step


def step_record(designer: str, step: Step) -> Design:
    """The part of a step that `proposal.json` keeps."""
    calls = [response_record(r) for r in step.proposal.responses]
    return Design(
        designer=designer,
        outcome=step.outcome,
        parsed=dict(step.proposal.parsed) if step.proposal.parsed is not None else None,
        summary=step.proposal.summary,
        notes=list(step.proposal.notes),
        raw=step.proposal.raw,
        cost=Cost(
            calls=len(calls),
            prompt_tokens=sum(c["prompt_tokens"] or 0 for c in calls),
            completion_tokens=sum(c["completion_tokens"] or 0 for c in calls),
            usd=sum(c["cost_usd"] or 0.0 for c in calls),
        ),
        calls=calls,
    )


def recorded(design: Design) -> Step:
    """Read a step back from `proposal.json`, as far as a decision needs it."""
    return Step(Proposal(design.raw, design.parsed, design.summary, tuple(design.notes)), design.outcome, 0.0)


def projection_record(decision: Decision) -> Projected:
    """The part of a decision that `projection.json` keeps."""
    projection = decision.projection
    changes = [
        Correction(knob=c.knob, proposed=_kept(c.proposed), used=_kept(c.used), reason=c.reason) for c in projection.changes
    ]
    return Projected(configuration=projection.configuration.to_dict(), changes=changes, note=decision.note)


def _kept(value: Any) -> Any:
    try:
        return plain_json(value)
    except ValueError as error:
        return str(error)
