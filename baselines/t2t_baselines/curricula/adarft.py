"""`adarft`: a target difficulty that follows the training reward."""

from __future__ import annotations

import math
from collections.abc import Mapping

from t2t_core.cells import Cells, mixed, top_shares
from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import no_argument, number, read_settings


class AdaRft:
    """Chooses the cells whose difficulty is nearest to a target T, which rises while training succeeds and falls while it fails:

        d_c = 1 - p_c, by the first validation's shrunk rates; it never changes
        T = 0 at first;  after every round:  T <- T + step * tanh(sensitivity * (v - reward)), clipped to [min d, max d]
        s_c = 1 for the n cells with the least |d_c - T| (n: the `top` share of the C cells; ties at the n-th place share)
        w_c = uniform / C + (1 - uniform) * s_c / n

    v is the share of valid answers in the round's training. The trainer must count by cell (`grpo` and `trl-grpo` do).

    Source: Shi et al. 2025 (Efficient Reinforcement Finetuning via Adaptive Curriculum Learning, arXiv:2504.05520): target reward
    0.5, step 50 on a scale of 100, sensitivity 2 there and here. Our choice: one update per round instead of per step,
    difficulty from the first validation instead of another model's success, cells, and the top quarter.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer adarft")
        values = {"reward": 0.5, "step": 0.5, "sensitivity": 2.0, "top": 0.25, "uniform": 0.0}
        bounds = {"sensitivity": number(0, 1000), "top": number(0.01, 1)}
        readers = {name: bounds.get(name, number(0, 1)) for name in values}
        self.settings = values | read_settings(settings or {}, "designer adarft", readers)

    def propose(self, brief: Brief) -> Proposal:
        cells, settings = Cells.of(brief), self.settings
        difficulty = {cell: 1 - rate for cell, rate in cells.success_rates(brief.state.rounds[0].breakdown).items()}
        target = 0.0
        for past in brief.state.rounds:
            facts = cells.trained(past).values()
            answers = sum(fact["answers"] for fact in facts)
            if answers:
                valid = sum(fact["valid"] * fact["answers"] for fact in facts) / answers
                target += settings["step"] * math.tanh(settings["sensitivity"] * (valid - settings["reward"]))
            target = min(max(target, min(difficulty.values())), max(difficulty.values()))
        shares = top_shares({cell: -abs(d - target) for cell, d in difficulty.items()}, settings["top"])
        return Proposal("", cells.proposal(mixed(shares, settings["uniform"])))
