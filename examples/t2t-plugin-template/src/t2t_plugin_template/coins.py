"""The task itself, without the suite: coins, amounts, and the fewest coins that pay one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from t2t_core.errors import T2TError

SYSTEMS = {"usual": (2, 5, 10, 20, 50), "strange": (3, 4, 7, 9, 12, 15, 25, 30)}
HIGHEST = 200  # the most cents that an instance may ask for


@dataclass(frozen=True)
class Payment:
    """Pay `amount` cents exactly with `coins`, as many of each as you like. `fewest`: how many coins that takes at least, None
    where it is not stored."""

    id: str
    system: str
    coins: tuple[int, ...]
    amount: int
    fewest: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "coins": list(self.coins)}

    @classmethod
    def from_dict(cls, data: Any) -> Payment:
        """The inverse of `to_dict`; T2TError for anything that is no payment."""
        try:
            coins, fewest = tuple(data["coins"]), data.get("fewest")
            numbers = [*coins, data["amount"], *([] if fewest is None else [fewest])]
            right = all(type(n) is int and 1 <= n <= HIGHEST for n in numbers) and 1 < len(set(coins)) == len(coins)
            if right and data["system"] in SYSTEMS and isinstance(data["id"], str):
                return cls(data["id"], data["system"], coins, data["amount"], fewest)
        except (TypeError, KeyError, AttributeError):
            pass
        raise T2TError("this is no payment", cause=f"it needs an id, a system ({', '.join(SYSTEMS)}), coins and an amount")

    def without_label(self) -> Payment:
        return replace(self, fewest=None)


def fewest_coins(coins: Sequence[int], highest: int) -> list[list[int] | None]:
    """For every amount in 0..highest the fewest coins that pay it, None if nothing does."""
    best: list[list[int] | None] = [[]]
    for amount in range(1, highest + 1):
        ways = [[*way, coin] for coin in coins if coin <= amount and (way := best[amount - coin]) is not None]
        best.append(min(ways, key=len, default=None))
    return best
