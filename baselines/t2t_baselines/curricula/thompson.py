"""`thompson`: Thompson sampling, where cells are arms and a group of answers that teaches is a success."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t2t_core.cells import Cells, mixed
from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import no_argument, number, read_settings

GRID = 4001  # points in [0, 1] at which posteriors are compared


class Thompson:
    """A group of answers is a success if it is not dead (its answers do not all earn the same). Each cell has a posterior:

        alive_c = sum over rounds r of memory^(R - r) * groups_c(r) * (1 - dead_c(r)),   dead_c likewise;   R: the latest round
        theta_c ~ Beta(1 + alive_c, 1 + dead_c)
        w_c = uniform / C + (1 - uniform) * P(theta_c is the highest)

    Thompson sampling draws theta and takes the best cell. A configuration is a mixture, so it holds the shares that such draws
    would have in the long run. They are computed on a grid, without a draw, so cells with equal evidence get equal shares. The
    trainer must count by cell (`grpo` does).

    Source: Thompson 1933; Raj and Kalyani 2017 (discounted, for arms that change, arXiv:1707.09727). Living groups as success,
    memory 0.5 and the share drawn uniformly, 0.2, are our choice.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer thompson")
        values = {"memory": 0.5, "uniform": 0.2}
        self.settings = values | read_settings(settings or {}, "designer thompson", {name: number(0, 1) for name in values})

    def propose(self, brief: Brief) -> Proposal:
        cells = Cells.of(brief)
        alive, dead = (dict.fromkeys(cells.names(), 0.0) for _ in range(2))
        for past in brief.state.rounds:
            facts = cells.trained(past)
            for cell in alive:
                groups, share = (facts[cell]["groups"], facts[cell]["dead"]) if cell in facts else (0.0, 0.0)
                alive[cell] = self.settings["memory"] * alive[cell] + groups * (1 - share)
                dead[cell] = self.settings["memory"] * dead[cell] + groups * share
        best = best_of([(1 + alive[cell], 1 + dead[cell]) for cell in alive])
        return Proposal("", cells.proposal(mixed(dict(zip(alive, best, strict=True)), self.settings["uniform"])))


def best_of(posteriors: list[tuple[float, float]]) -> list[float]:
    """For independent Beta(a, b) with a and b at least 1, the probability that each is the highest."""
    x = (np.arange(GRID) + 0.5) / GRID
    logs = np.array([(a - 1) * np.log(x) + (b - 1) * np.log1p(-x) for a, b in posteriors])
    density = np.exp(logs - logs.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    below = np.log(np.maximum(np.cumsum(density, axis=1) - density / 2, 1e-300))
    others = below.sum(axis=0) - below
    chances = (density * np.exp(others)).sum(axis=1)
    total = float(chances.sum())
    return [float(chance) / total for chance in chances]
