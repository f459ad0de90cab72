"""What the generator is asked for besides the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_core.errors import T2TError
from t2t_core.hostile import shown

from ..instance import OPPONENTS

MAX_COUNT = 10_000_000


@dataclass(frozen=True)
class Request:
    """What the generator is asked for besides the configuration.

    Args:
        count: number of games.
        exclude: identities (`Instance.identity()`) that are never drawn.
        opponent: how the opponent chooses between optimal moves, as in `Instance`.
        seeded: whether all rollouts of a game get the same chance, as in `Instance`.
        stratified: whether consecutive games are spread evenly over the bands, their ranges and who begins; else each game is
            drawn by itself.
    """

    count: int
    exclude: frozenset[bytes] = frozenset()
    opponent: str = "mixed"
    seeded: bool = True
    stratified: bool = True

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= MAX_COUNT:
            raise T2TError(f"count must be an integer in 1..{MAX_COUNT}, not {shown(self.count)}", where="request")
        if isinstance(self.exclude, str | bytes) or not all(isinstance(identity, bytes) for identity in self.exclude):
            raise T2TError("exclude must hold identities, as bytes", next="{x.identity() for x in instances}")
        object.__setattr__(self, "exclude", frozenset(self.exclude))
        if not isinstance(self.opponent, str) or self.opponent not in OPPONENTS:
            raise T2TError(f"opponent must be one of {', '.join(OPPONENTS)}, not {shown(self.opponent)}", where="request")
        for name in ("seeded", "stratified"):
            if type(getattr(self, name)) is not bool:
                raise T2TError(f"{name} must be true or false, not {shown(getattr(self, name))}", where="request")
