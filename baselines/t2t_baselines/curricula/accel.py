"""`accel`: small random edits of the past configuration that taught the most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2t_core.cells import CELLS, Cells, numbers, share_knob
from t2t_core.hookspecs import Brief
from t2t_core.records import Knob, Proposal, Round
from t2t_core.seeding import Stream
from t2t_core.settings import integer, no_argument, number, read_settings


class Accel:
    """Edits the configuration of the past round with the highest mean |advantage| over all its training answers, a stand-in for
    regret; among equals, the latest. `edits` times, a group and a knob are drawn, and the knob moves there by `step` of its
    moderate steps, up or down with equal probability. Levels keep to their bounds, and shares are normalised. Joint cells of the
    group move with it. The trainer must count by cell (`grpo` and `trl-grpo` do).

    Source: Parker-Holder et al. 2022 (Evolving Curricula with Regret-Based Environment Design, arXiv:2203.01302), where single
    levels of high regret are edited; whole configurations, 8 edits and step 2 are our choice.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer accel")
        values: dict[str, float] = {"edits": 8, "step": 2.0}
        readers = {"edits": integer(1, 1000), "step": number(0, 1000)}
        self.settings = values | read_settings(settings or {}, "designer accel", readers)

    def propose(self, brief: Brief) -> Proposal:
        cells, stream = Cells.of(brief), Stream.of(brief.seed, "accel")
        best = max(brief.state.rounds, key=lambda past: (_taught(cells, past), past.index))
        edited: dict[str, dict[str, Any]] = {group: dict(values) for group, values in best.configuration.items()}
        for _ in range(int(self.settings["edits"])):
            group, knob = stream.choice(list(edited)), stream.choice(list(cells.knobs))
            by = self.settings["step"] * knob.moderate * (1 if stream.below(2) else -1)
            edited[group] = _moved(edited[group], knob, by)
        share = share_knob(cells.knobs)
        total = sum(values[share] for values in edited.values())
        if total > 0:
            edited = {group: {**values, share: values[share] / total} for group, values in edited.items()}
        return Proposal("", edited, summary=f"round {best.index} taught most; {int(self.settings['edits'])} random edits of it")


def _taught(cells: Cells, past: Round) -> float:
    facts = cells.trained(past).values()
    answers = sum(fact["answers"] for fact in facts)
    return sum(fact["advantage"] * fact["answers"] for fact in facts) / answers if answers else 0.0


def _moved(group: Mapping[str, Any], knob: Knob, by: float) -> dict[str, Any]:
    def moved(values: Mapping[str, float]) -> dict[str, Any]:
        return {**values, knob.name: min(max(values[knob.name] + by, knob.low), knob.high)}

    parts: Sequence[Mapping[str, float]] = group.get(CELLS, ())
    joint = parts if knob.role == "share" else [moved(part) for part in parts]
    return moved(numbers(group)) | ({CELLS: list(joint)} if parts else {})
