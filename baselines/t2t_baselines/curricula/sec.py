"""`sec`: a self-evolving curriculum, a bandit whose reward is the size of the advantages."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.cells import Cells, softmax
from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import no_argument, number, read_settings


class SelfEvolving:
    """Cells are arms of a non-stationary bandit. A cell's reward in a round is the mean |advantage| of its sampled answers:

        Q_c = 0 at first;  after a round that sampled c:  Q_c <- (1 - rate) Q_c + rate * mean |A|_c
        w_c = exp(Q_c / temperature), normalised

    A dead group (all answers earn the same) counts with |A| = 0. The trainer must count by cell (`grpo` and `trl-grpo` do).

    Source: Chen et al. 2025 (Self-Evolving Curriculum for LLM Reasoning, arXiv:2505.14970), with an update per round instead of
    per training step. The defaults, rate 0.5 and temperature 0.3, are our choice.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer sec")
        values = {"rate": 0.5, "temperature": 0.3}
        readers = {"rate": number(0, 1), "temperature": number(0.001, 1000)}
        self.settings = values | read_settings(settings or {}, "designer sec", readers)

    def propose(self, brief: Brief) -> Proposal:
        cells, rate = Cells.of(brief), self.settings["rate"]
        values = dict.fromkeys(cells.names(), 0.0)
        for past in brief.state.rounds:
            for cell, facts in cells.trained(past).items():
                values[cell] += rate * (facts["advantage"] - values[cell])
        return Proposal("", cells.proposal(softmax(values, self.settings["temperature"])))
