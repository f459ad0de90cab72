"""JSON values made from a fuzzer's bytes, because far more of them than of random texts reach the rules behind a reader."""

from __future__ import annotations

from typing import Any

ODD: tuple[Any, ...] = (None, True, False, 0, -0.0, 1, -1, 0.5, 2**63, 10**400, 1e308, -1e308, 5e-324, "", "0.5", "\x1b[2J")
KEYS = ("3", "10", "11", "data_ratio", "", "id", "\x00")
NOT_JSON = (float("nan"), float("inf"), float("-inf"), b"x", object())


class Values:
    """Takes bytes from the front; once they are used up, every value is zero."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def byte(self) -> int:
        self.position += 1
        return self.data[self.position - 1] if self.position <= len(self.data) else 0

    def choice(self, among: Any) -> Any:
        return among[self.byte() % len(among)]

    def number(self) -> float:
        return (self.byte() * 256 + self.byte()) / 65535

    def any(self, depth: int = 0) -> Any:
        """A JSON value with at most four levels, or sometimes something that JSON cannot hold."""
        kind = self.byte() % 8
        if kind == 0 and depth < 4:
            return {self.choice(KEYS): self.any(depth + 1) for _ in range(self.byte() % 4)}
        if kind == 1 and depth < 4:
            return [self.any(depth + 1) for _ in range(self.byte() % 4)]
        if kind == 2:
            return self.choice(NOT_JSON)
        return self.number() if kind < 5 else self.choice(ODD)
