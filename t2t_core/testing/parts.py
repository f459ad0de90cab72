"""check_designer, check_context, check_trainer, check_tracker"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2t_core import contract
from t2t_core.hookspecs import AnyTestbed, Brief, RoundState, TrackedRun, TrainingJob
from t2t_core.records import Proposal, Response, Round, TrainingResult
from t2t_core.testing.base import (
    CheckFailed,
    as_json,
    calling,
    facts_of,
    finite,
    is_texts,
    mapping,
    require,
    short,
    some_instances,
    some_state,
)


def check_designer(designer: Any, testbed: AnyTestbed, *, count: int = 12, **brief: Any) -> None:
    """The contract of `hookspecs.Designer`, after one, two and four rounds: it returns a `Proposal` of the right types and
    leaves its brief as it was; Project makes a configuration of it that the generator can fill.

    Args:
        designer: what your factory makes.
        testbed: whose configurations it proposes.
        count: how many instances are asked of the generator.
        brief: further fields of the `Brief` (checkpoint, policy, ...).
    """
    strange = contract.strange("designer", designer)
    require(strange is None, f"of the designer: {strange}")
    for rounds in (1, 2, 4):
        state = some_state(testbed, rounds)
        request = testbed.request(count)
        previous = testbed.random_configuration(request, rounds)
        asked = Brief("Design the next round.", state, previous, request, rounds, **brief)
        before = facts_of(state), as_json(previous.to_dict(), "the configuration")
        with calling(f"propose() after {rounds} rounds"):
            proposal = designer.propose(asked)
        require(
            (facts_of(state), as_json(previous.to_dict(), "the configuration")) == before,
            "propose() changed its brief",
            cause="it edits a breakdown or configuration in place",
            next="copy before you edit",
        )
        _check_proposal(proposal)
        with calling("project() on the proposal"):
            configuration = testbed.project(proposal.parsed, previous, request).configuration
        with calling("generate() from the projected proposal"):
            made = len(testbed.generate(configuration, request, 0))
        require(made == count, f"the projected proposal made {made} instances instead of {count}")


def _check_proposal(proposal: Any) -> None:
    require(isinstance(proposal, Proposal), f"propose() returned {type(proposal).__name__}, not a Proposal")
    require(isinstance(proposal.raw, str), "Proposal.raw is no text", next='give the reply word for word, "" where there is none')
    if proposal.parsed is not None:
        require(
            isinstance(proposal.parsed, Mapping),
            f"Proposal.parsed is {type(proposal.parsed).__name__}, not a mapping",
            next="give configuration.to_dict(), or None where no configuration could be read",
        )
    for name in ("summary", "prompt"):
        value = getattr(proposal, name)
        require(value is None or isinstance(value, str), f"Proposal.{name} is {type(value).__name__}, not text or None")
    require(is_texts(proposal.notes), "Proposal.notes is no list of texts")
    responses = isinstance(proposal.responses, Sequence) and all(isinstance(r, Response) for r in proposal.responses)
    require(responses, "Proposal.responses is no list of Response")


def check_context(module: Any, testbed: AnyTestbed) -> None:
    """The contract of `hookspecs.ContextModule`: a title; in both forms text or None; the same state gives the same text and
    is left as it was; it copes with a first round, with many, and with a state that lacks everything optional."""
    require(
        not isinstance(module, str),
        f"{short(module)} is text, the names of other modules, and no module",
        next="check each of the modules that it names",
    )
    title = getattr(module, "title", None)
    require(isinstance(title, str) and title.strip(), f"the module's title is {short(title)}", next='title = "My section"')
    request = getattr(module, "request", None)
    require(request is None or isinstance(request, str), f"the module's request is {short(request)}, not one sentence")
    full = some_state(testbed, 3)
    hostile = [Round(r.index, r.configuration, r.breakdown, "## Task\n```\n{0} %s \x1b[31m" * 3) for r in full.rounds]
    states = {
        "one round": some_state(testbed, 1),
        "three rounds": full,
        "no examples, bookkeeping or training": RoundState(testbed, full.rounds, knobs=full.knobs),
        "a summary full of markup": replace(full, rounds=hostile),
    }
    for name, state in states.items():
        for compact in (False, True):
            before = facts_of(state)
            with calling(f"render(compact={compact}) on {name}"):
                text, again = module.render(state, compact), module.render(state, compact)
            require(
                text is None or isinstance(text, str),
                f"render(compact={compact}) on {name} returned {type(text).__name__}",
                next="return text, or None where there is nothing to say",
            )
            require(
                text == again,
                f"render(compact={compact}) on {name} gives another text each time",
                cause="it draws or reads a clock",
            )
            require(facts_of(state) == before, f"render(compact={compact}) on {name} changed the state")


def check_tracker(make: Callable[[], Any], folder: Path) -> None:
    """The contract of `hookspecs.Tracker`: it takes figures of both axes and an event, ends, and goes on in a second session.

    Args:
        make: what makes your tracker; called once a session.
        folder: of a run, e.g. pytest's tmp_path; made if it is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run = TrackedRun("0123456789abcdef", "runs/checked", folder, {"seed": 1, "training": {"group": 8}})
    for session in (0, 1):
        tracker = make()
        with calling(f"begin() of session {session}"):
            where = tracker.begin(run)
        require(where is None or isinstance(where, str), f"begin() returned {type(where).__name__}, not a line of text or None")
        with calling("figures()"):
            for update in (1 + session, 2 + session):
                tracker.figures("update", update, {"reward": 0.5 * update, "kl": -1e-9})
            tracker.figures("round", session, {"valid/all": 0.25, "valid/a × b": 1.0, "configuration/knob/a × b": 2.0})
        with calling("event()"):
            tracker.event(session, "design after a round", "mine: proposed\n\n- knob of a: 0.2 → 0.3 <b>\n")
        with calling("end()"):
            tracker.end()


def check_trainer(
    trainer: Any,
    testbed: AnyTestbed,
    folder: Path,
    *,
    checkpoint: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    instances: Sequence[Any] | None = None,
) -> TrainingResult:
    """The contract of `hookspecs.Trainer`: one short training ends in a `TrainingResult` whose checkpoint is there, finite
    metrics and counts; it writes inside its folder only, and the checkpoint it began from is left as it was.

    Args:
        trainer: what your factory makes.
        testbed: whose instances it trains on.
        folder: an empty folder of yours, e.g. pytest's tmp_path.
        checkpoint: what it begins from, None for trainers that need none.
        settings: its settings; choose a training of seconds.
        instances: None: a dozen random ones.
    """
    if instances is None:
        instances = some_instances(testbed)
    target, before = folder / "new", _fingerprint(checkpoint)
    others = {p.name for p in folder.iterdir()}
    seen: list[Any] = []
    job = TrainingJob(checkpoint, instances, testbed, settings or {}, target, 0, progress=seen.append)
    with calling("train()"):
        result = trainer.train(job)
    if not isinstance(result, TrainingResult):
        raise CheckFailed(f"train() returned {type(result).__name__}, not a TrainingResult")
    require(_fingerprint(checkpoint) == before, "train() changed the checkpoint it began from", next="write to job.folder")
    strays = {p.name for p in folder.iterdir()} - others - {"new"}
    require(not strays, f"train() wrote beside its folder: {', '.join(sorted(strays))}", next="write inside job.folder only")
    new = result.checkpoint
    require(new is None or (isinstance(new, Path) and new.exists()), f"the new checkpoint {short(new)} does not exist")
    as_json(dict(mapping(result.metrics, "TrainingResult.metrics")), "TrainingResult.metrics")
    for name, value in result.metrics.items():
        number = not isinstance(value, float) or finite(value)
        require(number, f"the metric {short(name)} is {value}", cause="the training diverged, or a mean is over nothing")
    for name in ("samples", "updates", "tokens"):
        count = getattr(result, name)
        require(type(count) is int and count >= 0, f"TrainingResult.{name} is {short(count)}, not a count")
    for event in seen:
        as_json(dict(mapping(event, "what progress() gets")), "what progress() gets")
    return result


def _fingerprint(path: Path | None) -> str:
    """Names and contents of a checkpoint's files."""
    digest = hashlib.sha256()
    if path:
        for file in sorted(path.rglob("*") if path.is_dir() else [path]):
            digest.update(str(file.relative_to(path.parent)).encode())
            if file.is_file():
                digest.update(file.read_bytes())
    return digest.hexdigest()
