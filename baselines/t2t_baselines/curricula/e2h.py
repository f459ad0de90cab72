"""`e2h`: schedules from easy to hard cells (E2H Reasoner), `e2h:cosine` and `e2h:gaussian`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from t2t_core.cells import Cells, levels, normalised
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import integer, number, read_settings

KINDS = ("cosine", "gaussian")


class E2H:
    """Each cell has one of K levels of difficulty, the quantiles of the first validation's success rates; level 0 is the easiest.
    For the next round n of R, with t = n / (R - 1), the cells of level k share

        cosine:    a (K - 1 - k) + (1 - a) k,   a = (1 + cos(pi t)) / 2
        gaussian:  exp(-(x - k)^2 / (2 sigma^2)),   x = (K - 1) t^beta

    normalised over the levels. The schedule depends only on the number of the round.

    Source: Parashar et al. 2025 (Curriculum Reinforcement Learning from Easy to Hard Tasks Improves LLM Reasoning,
    arXiv:2506.06632), E2H-C and E2H-G; four levels by error rate there and here. sigma 0.5 and beta 0.5 are our choice.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        self.kind = argument or "gaussian"
        if self.kind not in KINDS:
            raise T2TError(f"there is no schedule {ascii(argument)[:60]} of e2h", next="e2h:cosine or e2h:gaussian")
        values: dict[str, float] = {"levels": 4, "sigma": 0.5, "beta": 0.5}
        readers = {"levels": integer(2, 100), "sigma": number(0.01, 100), "beta": number(0.01, 100)}
        self.settings = values | read_settings(settings or {}, "designer e2h", readers)

    def propose(self, brief: Brief) -> Proposal:
        cells = Cells.of(brief)
        rounds = int(brief.state.bookkeeping.get("rounds", 1))
        t = min(1.0, (brief.state.rounds[-1].index + 1) / (rounds - 1)) if rounds > 1 else 1.0
        level = levels(cells.success_rates(brief.state.rounds[0].breakdown), int(self.settings["levels"]))
        on = [list(level.values()).count(k) for k in range(int(self.settings["levels"]))]
        return Proposal("", cells.proposal(normalised({cell: self._weight(t, k) / on[k] for cell, k in level.items()})))

    def _weight(self, t: float, k: int) -> float:
        last, sigma, beta = self.settings["levels"] - 1, float(self.settings["sigma"]), float(self.settings["beta"])
        if self.kind == "cosine":
            easy = (1 + math.cos(math.pi * t)) / 2
            return float(easy * (last - k) + (1 - easy) * k)
        frontier = last * math.pow(t, beta)
        return math.exp(-((frontier - k) ** 2) / (2 * sigma**2))
