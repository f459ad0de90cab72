"""`learnability`: sampling for learnability (SFL) over cells."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.cells import Cells, mixed, top_shares
from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import no_argument, number, read_settings


class Learnability:
    """Chooses the cells with the highest learnability p (1 - p), mixed with uniform sampling:

        L_c = p_c (1 - p_c);  n = the `top` share of the C cells, rounded, at least one
        s_c = 1 for the n cells with the highest L; cells of equal L that reach beyond the n-th place share the places left
        w_c = uniform / C + (1 - uniform) * s_c / n

    Source: Rutherford et al. 2024 (No Regrets, "Sampling for Learnability", arXiv:2408.15099), where half of the levels come
    from the most learnable ones. Cells instead of levels and the top quarter are our choice.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer learnability")
        readers = {"top": number(0.01, 1), "uniform": number(0, 1)}
        values = read_settings(settings or {}, "designer learnability", readers)
        self.top, self.uniform = values.get("top", 0.25), values.get("uniform", 0.5)

    def propose(self, brief: Brief) -> Proposal:
        cells = Cells.of(brief)
        rates = cells.success_rates(brief.state.rounds[-1].breakdown)
        shares = top_shares({cell: rate * (1 - rate) for cell, rate in rates.items()}, self.top)
        return Proposal("", cells.proposal(mixed(shares, self.uniform)))
