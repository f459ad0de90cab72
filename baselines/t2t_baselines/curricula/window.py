"""`success-window`: a window of difficulties that moves up whenever its hardest level is mastered (RLVE)."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.cells import Cells, levels
from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import integer, no_argument, number, read_settings


class SuccessWindow:
    """Each cell has one of K levels of difficulty, the quantiles of the first validation's success rates; level 0 is the easiest.

        h = 0 at first;  after every validation:  h <- h + 1 if the mean shrunk rate on level h is at least `mastered`
        w_c = 1 on the levels max(0, h - width + 1) .. h, 0 elsewhere

    Source: Zeng et al. 2025 (RLVE: Scaling Up Reinforcement Learning with Adaptive Verifiable Environments, arXiv:2511.07317),
    where each environment has such a window, which moves at 90 % success. One window over all cells, 8 levels, width 4, and
    validations instead of training answers are our choice.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer success-window")
        values: dict[str, float] = {"mastered": 0.9, "width": 4, "levels": 8}
        readers = {"mastered": number(0, 1), "width": integer(1, 100), "levels": integer(2, 100)}
        self.settings = values | read_settings(settings or {}, "designer success-window", readers)

    def propose(self, brief: Brief) -> Proposal:
        cells = Cells.of(brief)
        validations = [cells.success_rates(past.breakdown) for past in brief.state.rounds]
        level = levels(validations[0], int(self.settings["levels"]))
        order = sorted(set(level.values()))  # ties may leave levels without a cell
        top = 0
        for rates in validations:
            hardest = [rates[cell] for cell, k in level.items() if k == order[top]]
            mastered = sum(hardest) / len(hardest) >= self.settings["mastered"]
            top = min(len(order) - 1, top + mastered)
        window = order[max(0, top - int(self.settings["width"]) + 1) : top + 1]
        return Proposal("", cells.proposal({cell: float(k in window) for cell, k in level.items()}))
