"""`comfort-zone` and `too-hard`: what a designer must beat, the cells with the most and the least success."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.cells import Cells, top_shares
from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import no_argument, number, read_settings


class Extreme:
    """Puts all weight on the `top` share of the cells with the highest shrunk success rate (`towards` 1) or the lowest (-1) in
    the latest validation; cells of equal rate at the last place share it. These are negative controls, our choice: if
    success is near 1 or near 0, answers earn almost the same, and a policy learns little."""

    def __init__(self, towards: int, settings: Mapping[str, str]) -> None:
        self.towards = towards
        self.settings = {"top": 0.25} | read_settings(settings, "designer " + NAMES[towards], {"top": number(0.01, 1)})

    def propose(self, brief: Brief) -> Proposal:
        cells = Cells.of(brief)
        rates = cells.success_rates(brief.state.rounds[-1].breakdown)
        return Proposal("", cells.proposal(top_shares({c: self.towards * p for c, p in rates.items()}, self.settings["top"])))


NAMES = {1: "comfort-zone", -1: "too-hard"}


def comfort_zone(argument: str = "", settings: Mapping[str, str] | None = None) -> Extreme:
    """The easiest cells (our choice): see `Extreme`."""
    no_argument(argument, "designer comfort-zone")
    return Extreme(1, settings or {})


def too_hard(argument: str = "", settings: Mapping[str, str] | None = None) -> Extreme:
    """The hardest cells (our choice): see `Extreme`."""
    no_argument(argument, "designer too-hard")
    return Extreme(-1, settings or {})
