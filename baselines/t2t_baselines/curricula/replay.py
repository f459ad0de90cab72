"""`level-replay`: prioritized level replay (PLR) with cells for levels."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.records import Brief, Proposal
from t2t_core.settings import no_argument, number, read_settings

from .cells import Cell, facts, marginal, normalised, ranked, rounds_since_sampled, success_rates


class LevelReplay:
    """Cells ranked by the expected L1 value loss, mixed with staleness:

        S_c = 2 p_c (1 - p_c)        the mean of |R - V| for a reward R of 0 or 1 and a value V = p_c
        P_S = rank(S_c)^(-1/temperature), normalised;   rank 1 is the highest score; tied cells share what their ranks get
        P_C = rounds since the cell was last trained on, normalised
        w   = (1 - staleness) P_S + staleness P_C

    Source: Jiang, Grefenstette, Rocktaeschel 2021 (Prioritized Level Replay, arXiv:2010.03934): rank prioritisation, temperature
    0.1, staleness 0.1 there. Cells for levels and the temperature's default of 1 are our choice: at 0.1 one cell gets it all.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer level-replay")
        readers = {"temperature": number(0.01, 100), "staleness": number(0, 1)}
        values = read_settings(settings or {}, "designer level-replay", readers)
        self.temperature, self.staleness = values.get("temperature", 1.0), values.get("staleness", 0.1)

    def propose(self, brief: Brief) -> Proposal:
        previous, cells = facts(brief)
        rates = success_rates(cells, brief.state.rounds[-1].breakdown)
        priority: dict[Cell, float] = {}
        for tied in ranked({cell: 2 * rates[cell] * (1 - rates[cell]) for cell in cells}):
            ranks = range(len(priority) + 1, len(priority) + len(tied) + 1)
            together = sum(rank ** (-1 / self.temperature) for rank in ranks)
            priority.update(dict.fromkeys(tied, together / len(tied)))
        priority = normalised(priority)
        stale = normalised({c: float(age) for c, age in rounds_since_sampled(cells, brief.state.rounds).items()})
        weights = {c: (1 - self.staleness) * priority[c] + self.staleness * stale[c] for c in cells}
        return Proposal("", marginal(weights, previous))
