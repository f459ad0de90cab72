"""What the requests of one batch may cost together, bounded before they are sent.

A request is let through only where everything spent, everything the requests under way may still cost, and the most it may cost
itself stay within the budget. The most is worked out from the length of the question and the limit on tokens where prices are
given; where the service only says afterwards what a reply cost, it is the dearest reply so far. Until one reply has said what it
cost, questions are asked one by one, so that a server that never says so is found out at the first.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from t2t_core.errors import BudgetSpent


@dataclass
class Budget:
    """`usd` for this batch, None for no limit. `spent`: what replies are known to have cost; `unknown`: the most that requests
    without a whole reply may have cost."""

    usd: float | None = None
    spent: float = 0.0
    unknown: float = 0.0
    _under_way: float = 0.0
    _requests: int = 0
    _dearest: float = 0.0
    _learnt: bool = False  # whether a reply has said what it cost
    _closed: bool = False
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, most: float | None) -> float:
        """Wait until one more request fits; returns what is kept back for it, which `settle` gives back.

        Args:
            most: USD that the request can cost, None if no price is known.

        Raises:
            BudgetSpent: it does not fit, and nothing is under way that could make room.
        """
        if self.usd is None:
            return 0.0
        while not self._closed:
            reserve = max(most or 0.0, self._dearest)
            gone = self.spent + self.unknown
            fits = gone < self.usd and gone + self._under_way + reserve <= self.usd
            if fits and (self._learnt or not self._requests):
                self._under_way += reserve
                self._requests += 1
                return reserve
            if not self._requests:
                raise BudgetSpent(self._why(reserve))
            self._settled.clear()
            await self._settled.wait()
        raise BudgetSpent("the evaluation has ended")

    def close(self) -> None:
        """Let nothing more through: what waits must not slip in before it is told that the evaluation has ended."""
        self._closed = True

    def settle(self, reserve: float, cost: float | None, unknown: bool) -> None:
        """A request has ended. cost: what it cost, as far as is known; unknown: it may have cost something that nobody said."""
        if self.usd is None:
            return
        self._under_way -= reserve
        self._requests -= 1
        if cost is not None:
            self.spent, self._learnt = self.spent + cost, True
            self._dearest = max(self._dearest, cost)
        elif unknown:
            self.unknown += reserve
        self._settled.set()

    def _why(self, reserve: float) -> str:
        said = f"{self.spent:.4g} USD of {self.usd:.4g} are spent"
        if self.unknown:
            said += f", up to {self.unknown:.4g} more by requests that ended without saying what they cost"
        return f"the budget has no room for another answer: {said}; the next one may cost {reserve:.4g}"
