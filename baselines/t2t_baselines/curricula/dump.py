"""`dump`: upper confidence bounds on the size of the advantages."""

from __future__ import annotations

import math
from collections.abc import Mapping

from t2t_core.cells import Cells, softmax
from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import no_argument, number, read_settings


class Dump:
    """Prefers cells where advantages are large or that were seldom tried:

        U_c = L_c + sqrt(2 ln(n + 1) / (n_c + 1))
        w_c = exp(U_c / temperature), normalised

    L_c is the mean |advantage| of the cell's answers in the latest round that sampled it (0 if none did), n_c the groups of
    answers sampled from it in all rounds, n their sum. The trainer must count by cell (`grpo` and `trl-grpo` do).

    Source: Wang et al. 2025 (DUMP: Automated Distribution-Level Curriculum Learning, arXiv:2504.09710), where L is taken over a
    window of answers. The latest round as the window and the temperature's default, 0.3, are our choice.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer dump")
        readers = {"temperature": number(0.001, 1000)}
        self.settings = {"temperature": 0.3} | read_settings(settings or {}, "designer dump", readers)

    def propose(self, brief: Brief) -> Proposal:
        cells = Cells.of(brief)
        learnability, tried = (dict.fromkeys(cells.names(), 0.0) for _ in range(2))
        for past in brief.state.rounds:
            for cell, facts in cells.trained(past).items():
                learnability[cell] = facts["advantage"]
                tried[cell] += facts["groups"]
        everything = math.log(sum(tried.values()) + 1)
        bounds = {cell: learnability[cell] + math.sqrt(2 * everything / (tried[cell] + 1)) for cell in tried}
        return Proposal("", cells.proposal(softmax(bounds, self.settings["temperature"])))
