"""`learning-progress`: absolute learning progress (ALP) over cells."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.cells import Cells, mixed, normalised
from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import no_argument, number, read_settings


class LearningProgress:
    """Gives most to the cells whose success rate changes fastest, in either direction:

        w_c = uniform / C + (1 - uniform) * |p_c(r) - p_c(r - 1)| / sum over cells

    with C cells and p the shrunk rates of the last two validations. After the first validation, every cell gets the same.

    Source: absolute learning progress as in Portelas et al. 2019 (ALP-GMM, arXiv:1910.07224) and Colas et al. 2019 (CURIOUS,
    arXiv:1810.06284), with fixed cells instead of a mixture model. The share drawn uniformly is 0.2 there and here.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer learning-progress")
        values = read_settings(settings or {}, "designer learning-progress", {"uniform": number(0, 1)})
        self.uniform = values.get("uniform", 0.2)

    def propose(self, brief: Brief) -> Proposal:
        cells = Cells.of(brief)
        if len(brief.state.rounds) < 2:
            return Proposal("", cells.proposal(dict.fromkeys(cells.names(), 1.0)))
        before, now = (cells.success_rates(past.breakdown) for past in brief.state.rounds[-2:])
        progress = {cell: abs(now[cell] - before[cell]) for cell in cells.names()}
        return Proposal("", cells.proposal(mixed(normalised(progress), self.uniform)))
