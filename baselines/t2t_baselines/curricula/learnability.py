"""`learnability`: sampling for learnability (SFL) over cells."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.records import Brief, Proposal
from t2t_core.settings import no_argument, number, read_settings

from .cells import facts, marginal, mixed, success_rates


class Learnability:
    """The cells with the highest learnability p (1 - p), beside uniform sampling:

        L_c = p_c (1 - p_c);  T = the `top` share of all cells with the highest L (ties in the order of the cells)
        w_c = uniform / C + (1 - uniform) * [c in T] / |T|

    Source: Rutherford et al. 2024 (No Regrets, "Sampling for Learnability", arXiv:2408.15099), where half of the levels come
    from the most learnable ones; cells for levels and the top quarter are our choice.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer learnability")
        readers = {"top": number(0.01, 1), "uniform": number(0, 1)}
        values = read_settings(settings or {}, "designer learnability", readers)
        self.top, self.uniform = values.get("top", 0.25), values.get("uniform", 0.5)

    def propose(self, brief: Brief) -> Proposal:
        previous, cells = facts(brief)
        rates = success_rates(cells, brief.state.rounds[-1].breakdown)
        ranked = sorted(cells, key=lambda cell: (-rates[cell] * (1 - rates[cell]), cell))
        best = set(ranked[: max(1, round(self.top * len(cells)))])
        shares = {cell: 1 / len(best) if cell in best else 0.0 for cell in cells}
        return Proposal("", marginal(mixed(shares, self.uniform), previous))
