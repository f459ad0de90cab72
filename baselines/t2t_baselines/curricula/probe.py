"""`probe`: tries configurations before it proposes one, and pays for the trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from t2t_core.cells import numbers, share_knob
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Brief, TrialRun
from t2t_core.records import Proposal
from t2t_core.settings import integer, no_argument, number, read_settings


class Probe:
    """Gives each candidate a short trial run from the current checkpoint, all with the same seed, and proposes the one whose
    trial validates best; among equals, the earlier one, so that a change must gain something:

        c* = argmax_c  valid(train(policy, c, `instances` instances))

    Candidates: the configuration in force; for every group, that group's share raised by `step` of what it lacks of the whole and
    the others lowered alike; for every other knob, its value moved in all groups by `step` of the way to either bound.

    This is what a short-sighted oracle would do (our choice). Trials are training: the run's record has their updates, and their
    tokens count as the design's.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer probe")
        readers = {"instances": integer(1, 10**6), "step": number(0.01, 1)}
        self.settings = {"instances": 64, "step": 0.5} | read_settings(settings or {}, "designer probe", readers)

    def propose(self, brief: Brief) -> Proposal:
        if brief.trial is None:
            raise T2TError("the designer probe needs a run", cause="a brief outside a run trains nothing")
        before = {group: numbers(values) for group, values in brief.previous.to_dict().items()}
        candidates = dict(self._candidates(before, brief))
        valid = {name: _valid(brief.trial(each, int(self.settings["instances"]))) for name, each in candidates.items()}
        best = max(valid, key=lambda name: valid[name])
        said = ", ".join(f"{name} {rate:.1%}" for name, rate in valid.items())
        return Proposal("", candidates[best], summary=f"{best} did best; {said}")

    def _candidates(self, before: Mapping[str, Mapping[str, float]], brief: Brief) -> Iterator[tuple[str, Any]]:
        knobs, step = brief.state.testbed.knobs(brief.request), self.settings["step"]
        share = share_knob(knobs)
        yield "as it is", {group: dict(values) for group, values in before.items()}
        for group in before:
            yield f"more of {group}", {
                other: {**values, share: (1 - step) * values[share] + step * (other == group)} for other, values in before.items()
            }
        for knob in (knob for knob in knobs if knob.role != "share"):
            for way, bound in (("less", knob.low), ("more", knob.high)):
                yield f"{way} {knob.name}", {
                    group: {**values, knob.name: values[knob.name] + step * (bound - values[knob.name])}
                    for group, values in before.items()
                }


def _valid(trial: TrialRun) -> float:
    """The mean of the valid rate over groups, as in the summary of a validation."""
    groups: Any = trial.breakdown["groups"]
    rates = [counts["valid"] / counts["answers"] for counts in groups.values() if counts["answers"]]
    return sum(rates) / len(rates) if rates else 0.0
