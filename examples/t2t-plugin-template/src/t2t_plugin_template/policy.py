"""A policy with a checkpoint: it starts with the coins that it remembers, then keeps taking the largest coin that fits.

This one reads the instance; a language model would read `task.messages`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_core.records import Response, Sampling, Task, ToolCall
from t2t_core.settings import one_of, read_settings
from t2t_core.store import folders

MEMORY = "memory.json"  # {"3,4,7": {"11": [4, 7]}}: for these coins, a good way to pay that amount
Memory = dict[str, dict[str, list[int]]]


class TakesCoins:
    """Args:
    argument: the folder of a checkpoint (`coins:FOLDER`), "" for an empty memory.
    settings: `check=true` asks the testbed's tool what the coins come to before it answers.
    """

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        known = read_settings(settings, "policy coins", {"check": one_of(("true", "false"))})
        self.check = known.get("check") == "true"
        self.memory = read_memory(Path(argument)) if argument else {}

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        for position, task in enumerate(tasks):
            coins = pay(task.instance.coins, task.instance.amount, self.memory)
            if self.check and task.turn == 0:
                call = ToolCall("check", task.tools[0].name, json.dumps({"coins": coins}))
                yield position, Response(text="Let me check.", tool_calls=(call,))
            else:
                yield position, Response(text=f"I pay {coins}")

    def describe(self) -> Mapping[str, Any]:
        return {"deterministic": True, "batch_size": None, "remembers": sum(map(len, self.memory.values()))}


def read_memory(folder: Path) -> Memory:
    return folders.read_json(folder / MEMORY)


def remembered(coins: Sequence[int]) -> str:
    """The key of these coins in a memory; their order does not matter."""
    return ",".join(map(str, sorted(coins)))


def pay(coins: Sequence[int], amount: int, memory: Memory) -> list[int]:
    """The best of: the largest coins first, and every remembered way with the rest paid by the largest coins first."""
    known = memory.get(remembered(coins), {}).values()
    ways = [way + largest_first(coins, amount - sum(way)) for way in ([], *known) if sum(way) <= amount]
    return min(ways, key=lambda way: (sum(way) != amount, len(way)))


def largest_first(coins: Sequence[int], amount: int) -> list[int]:
    way = []
    for coin in sorted(coins, reverse=True):
        way += [coin] * (amount // coin)
        amount %= coin
    return way
