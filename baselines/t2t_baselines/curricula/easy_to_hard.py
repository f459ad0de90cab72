"""`easy-to-hard`: a hand-made schedule that depends only on the number of the round (our choice)."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.cells import numbers, share_knob
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Brief
from t2t_core.records import Knob, Proposal
from t2t_core.settings import no_argument, number, read_settings


class EasyToHard:
    """Moves from the first groups and low levels to all groups and high levels. For the next round n of R, with t = n / (R - 1)
    (1 if R is 1), and the groups numbered from 0 to G - 1:

    frontier = 2 + t * (G - 3)
    share    = 1 for a group up to the frontier, `rest` beyond (default 0.1), normalised
    level    = a fifth of the knob's range + two fifths * t, from its easy end; a knob with no end known to be easy stays
               as it is

    It needs a testbed whose groups are in order of difficulty.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer easy-to-hard")
        self.rest = read_settings(settings or {}, "designer easy-to-hard", {"rest": number(0, 1)}).get("rest", 0.1)

    def propose(self, brief: Brief) -> Proposal:
        testbed, previous = brief.state.testbed, brief.previous.to_dict()
        if not testbed.groups_rise:
            raise T2TError(
                f"the designer easy-to-hard cannot work on {testbed.name}",
                cause=f"its groups ({testbed.group}) are not in an order of difficulty",
            )
        knobs = testbed.knobs(brief.request)
        share = share_knob(knobs)
        rounds = int(brief.state.bookkeeping.get("rounds", 1))
        t = min(1.0, (brief.state.rounds[-1].index + 1) / (rounds - 1)) if rounds > 1 else 1.0
        frontier = min(2, len(previous) - 1) + t * max(0, len(previous) - 3)
        weights = [1.0 if index <= frontier + 1e-9 else self.rest for index in range(len(previous))]
        return Proposal(
            "",
            {
                group: {
                    knob.name: weight / sum(weights) if knob.name == share else _level(knob, numbers(values)[knob.name], t)
                    for knob in knobs
                }
                for weight, (group, values) in zip(weights, previous.items(), strict=True)
            },
        )


def _level(knob: Knob, before: float, t: float) -> float:
    if not knob.harder:
        return before
    part = 0.2 + 0.4 * t
    return knob.low + (part if knob.harder > 0 else 1 - part) * (knob.high - knob.low)
