"""`level-replay`: prioritized level replay (PLR), with cells instead of levels."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.cells import Cells, normalised, ranked
from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import no_argument, number, read_settings


class LevelReplay:
    """Ranks cells by the expected L1 value loss, mixed with staleness:

        S_c = 2 p_c (1 - p_c)        the mean of |R - V| for a reward R of 0 or 1 and a value V = p_c
        P_S = rank(S_c)^(-1/temperature), normalised;   rank 1 is the highest score; tied cells share what their ranks get
        P_C = rounds since the cell was last trained on, normalised
        w   = (1 - staleness) P_S + staleness P_C

    Source: Jiang, Grefenstette, Rocktaeschel 2021 (Prioritized Level Replay, arXiv:2010.03934): rank prioritisation, temperature
    0.1, staleness 0.1 there. Cells instead of levels and the temperature's default of 1 are our choice: at 0.1, one cell would
    get everything.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer level-replay")
        readers = {"temperature": number(0.01, 100), "staleness": number(0, 1)}
        values = read_settings(settings or {}, "designer level-replay", readers)
        self.temperature, self.staleness = values.get("temperature", 1.0), values.get("staleness", 0.1)

    def propose(self, brief: Brief) -> Proposal:
        cells = Cells.of(brief)
        rates = cells.success_rates(brief.state.rounds[-1].breakdown)
        priority: dict[str, float] = {}
        for tied in ranked({cell: 2 * rate * (1 - rate) for cell, rate in rates.items()}):
            ranks = range(len(priority) + 1, len(priority) + len(tied) + 1)
            together = sum(rank ** (-1 / self.temperature) for rank in ranks)
            priority.update(dict.fromkeys(tied, together / len(tied)))
        priority = normalised(priority)
        stale = normalised({cell: float(age) for cell, age in cells.rounds_since_sampled(brief.state.rounds).items()})
        weights = {c: (1 - self.staleness) * priority[c] + self.staleness * stale[c] for c in cells.names()}
        return Proposal("", cells.proposal(weights))
