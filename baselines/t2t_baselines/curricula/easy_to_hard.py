"""`easy-to-hard`: a hand-made schedule that looks at the calendar alone (our choice)."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.records import Brief, Proposal
from t2t_core.settings import no_argument, number, read_settings

from .cells import facts


class EasyToHard:
    """From small open maps to large narrow ones. For the next round n of R, with t = n / (R - 1) (1 where R is 1):

    frontier   = smallest size + 2 + t * (largest size - smallest size - 2)
    data ratio = 1 for a size up to the frontier, `rest` beyond (default 0.1), normalised
    hole ratio = 0.1 + 0.2 t,   wait ratio = 0.2 + 0.4 t
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer easy-to-hard")
        self.rest = read_settings(settings or {}, "designer easy-to-hard", {"rest": number(0, 1)}).get("rest", 0.1)

    def propose(self, brief: Brief) -> Proposal:
        previous, _ = facts(brief)
        rounds = int(brief.state.bookkeeping.get("rounds", 1))
        t = min(1.0, (brief.state.rounds[-1].index + 1) / (rounds - 1)) if rounds > 1 else 1.0
        sizes = [int(size) for size in previous]
        frontier = min(sizes) + 2 + t * (max(sizes) - min(sizes) - 2)
        weights = {size: 1.0 if size <= frontier + 1e-9 else self.rest for size in sizes}
        total = sum(weights.values())
        return Proposal(
            "",
            {
                str(size): {"data_ratio": w / total, "hole_ratio": 0.1 + 0.2 * t, "wait_ratio": 0.2 + 0.4 * t}
                for size, w in weights.items()
            },
        )
