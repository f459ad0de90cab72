"""Controls for a study of designers: each wraps another designer, or repeats what a file says (our choice).

`shuffled:DESIGNER` removes from a design which groups it was meant for, `mislabelled:DESIGNER` hides from the designer what
went wrong, and `schedule:FILE` designs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from t2t_core.cells import CELLS
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed, Brief, RoundState
from t2t_core.plugins import installed
from t2t_core.records import Knob, Proposal, Round
from t2t_core.registry import Spec
from t2t_core.seeding import Stream
from t2t_core.settings import read_settings
from t2t_core.store import folders, jsonlines, schema

TRIES = 200  # of so many random permutations, use the one that keeps most of the edit's size
Configuration = Mapping[str, Mapping[str, Any]]


def inner(argument: str, settings: Mapping[str, str], where: str) -> Any:
    """The designer that a control wraps; it gets all the control's settings."""
    spec = Spec.parse(argument)
    if not spec.name:
        raise T2TError(f"{where} needs another designer", next=f"write {where.split()[-1]}:rule, for example")
    return installed().designers.make(replace(spec, settings={**spec.settings, **settings}))


class Shuffled:
    """Applies the wrapped designer's changes to other groups: an edit of the same size that ignores which group it is for. A
    designer that treats every group the same is its own shuffled twin; `mislabelled` is the control for that one.

    The edits of all knobs of a group, C'_g - C_g after Project, move together to another group by a random permutation under
    which some group's edit changes; of 200 drawn, the one that loses least of the edit's size where values meet their bounds.
    Where groups hold joint cells, what was proposed for a group as a whole moves instead.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        self._designer = inner(argument, settings or {}, "designer shuffled")
        self.settings = {"of": argument, **getattr(self._designer, "settings", {})}

    def propose(self, brief: Brief) -> Proposal:
        proposal: Proposal = self._designer.propose(brief)
        if proposal.parsed is None:
            return proposal
        testbed: AnyTestbed = brief.state.testbed
        before = brief.previous.to_dict()
        after = testbed.project(proposal.parsed, brief.previous, brief.request).configuration.to_dict()
        parsed = shuffled(before, after, testbed.knobs(brief.request), Stream.of(brief.seed, "shuffled"))
        return replace(proposal, parsed=parsed, notes=(*proposal.notes, "its groups were permuted"))


def shuffled(before: Configuration, after: Configuration, knobs: Sequence[Knob], stream: Stream) -> Configuration:
    """The configuration that results when the edits from `before` to `after` are made at permuted groups; `after` if all edits
    are alike."""
    groups = list(before)
    if any(CELLS in values for values in after.values()):
        edits = [after[group] for group in groups]
    else:
        edits = [{knob.name: after[group][knob.name] - before[group][knob.name] for knob in knobs} for group in groups]
    best: tuple[float, Configuration] | None = None
    order = list(range(len(groups)))
    for _ in range(TRIES):
        stream.shuffle(order)
        if all(edits[source] == edits[index] for index, source in enumerate(order)):
            continue
        lost, made = _applied(before, {group: edits[source] for group, source in zip(groups, order, strict=True)}, knobs)
        if best is None or lost < best[0] - 1e-12:
            best = (lost, made)
    return after if best is None else best[1]


def _applied(before: Configuration, edits: Configuration, knobs: Sequence[Knob]) -> tuple[float, Configuration]:
    """The share of the edits' size that bounds take away, in shares of the knobs' ranges, and the configuration."""
    if any(CELLS in edit for edit in edits.values()):
        return 0.0, edits
    lost = 0.0
    made: dict[str, dict[str, Any]] = {}
    for group, edit in edits.items():
        made[group] = {}
        for knob in knobs:
            wished = before[group][knob.name] + edit[knob.name]
            made[group][knob.name] = min(max(wished, knob.low), knob.high)
            lost += abs(wished - made[group][knob.name]) / (knob.high - knob.low)
    return lost, made


class Mislabelled:
    """Shows the wrapped designer every failure under another check's name; counts, and so valid rates, stay the same. A design
    that relies on *what* failed gets worse, one that does not stays the same. Failed answers shown as examples are left out,
    since they would give the names away.

    The checks that failed at all are renamed in a circle, by a step drawn for each design.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        self._designer = inner(argument, settings or {}, "designer mislabelled")
        self.settings = {"of": argument, **getattr(self._designer, "settings", {})}

    def propose(self, brief: Brief) -> Proposal:
        seen = mislabelled(brief.state, Stream.of(brief.seed, "mislabelled"))
        if brief.anew is None:
            return self._proposed(replace(brief, state=seen))
        return self._proposed(replace(brief.anew(seen), policy=brief.policy, shown=brief.shown, anew=brief.anew))

    def _proposed(self, brief: Brief) -> Proposal:
        proposal: Proposal = self._designer.propose(brief)
        return proposal


def mislabelled(state: RoundState, stream: Stream) -> RoundState:
    """The state without examples, and with the names of the failed checks changed everywhere."""
    counts = [of_group for past in state.rounds for of_group in _counts(past)]
    failing = [check for check in state.testbed.checks if any(of_group.get(check) for of_group in counts)]
    names = failing if len(failing) > 1 else list(state.testbed.checks)
    step = 1 + stream.below(len(names) - 1) if len(names) > 1 else 0
    new = {check: names[(index + step) % len(names)] for index, check in enumerate(names)}
    rounds = [
        replace(past, breakdown=_renamed(past.breakdown, new), training=_renamed(past.training, new)) for past in state.rounds
    ]
    return replace(state, rounds=rounds, examples=())


_LISTS = ("first_failures", "failures")  # the keys of a breakdown that count by check


def _counts(past: Round) -> list[Mapping[str, int]]:
    """Every table of a round's breakdown that counts failed checks."""
    groups = past.breakdown.get("groups", {}).values()
    return [counts[name] for counts in (past.breakdown.get("total", {}), *groups) for name in _LISTS if name in counts]


def _renamed(value: Any, new: Mapping[str, str]) -> Any:
    if not isinstance(value, Mapping):
        return value
    made = {}
    for name, item in value.items():
        if name in _LISTS and isinstance(item, Mapping):
            renamed = {new.get(check, check): count for check, count in item.items()}
            made[name] = {check: renamed.get(check, 0) for check in dict.fromkeys((*item, *renamed))}
        else:
            made[name] = _renamed(item, new)
    return made


Numbers = dict[str, int | float]  # by knob
Step = Annotated[dict[str, dict[str, int | float | list[Numbers]]], Meta(min_length=1)]
Steps = Annotated[list[Step], Meta(min_length=1)]
SHAPE = "a schedule is {group: {knob: number}}, a configuration, or a list of such"


class Schedule:
    """`schedule:FILE` proposes what the JSON file holds, whatever happens: one configuration, or a list of them for the rounds
    after the first, of which the last stays in force. It expresses a baseline or a target for designs: only what is too hard,
    say, or a ladder from easy to hard."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        read_settings(settings or {}, "designer schedule", {})
        if not argument:
            raise T2TError("the designer schedule needs a file", next="write schedule:FILE.json")
        try:
            data = jsonlines.loads(folders.read_bytes(Path(argument)))
        except jsonlines.Unreadable as error:
            raise T2TError("the file is no JSON", where=argument, cause=str(error)) from None
        self.steps = schema.check(data if isinstance(data, list) else [data], Steps, argument, SHAPE)
        self.settings = {"file": argument, "sha256": folders.sha256(Path(argument)), "steps": len(self.steps)}

    def propose(self, brief: Brief) -> Proposal:
        return Proposal("", self.steps[min(brief.state.rounds[-1].index, len(self.steps) - 1)])
