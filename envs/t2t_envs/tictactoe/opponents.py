"""The policy's opponent. Its strength is the instance's, and its moves depend only on the game's seed and the board."""

from __future__ import annotations

from functools import lru_cache

from t2t_core.seeding import Stream

from . import rules
from .instance import Instance


def opponent_move(instance: Instance, policy: int, opponent: int) -> int:
    """The cell on which the opponent moves.

    It is a random free cell with probability `instance.p`, else an optimal one by the rule that `instance.opponent` names. All
    draws come from the instance's seed and the board, so two games of one instance differ only by the policy's moves.

    Args:
        instance: the game.
        policy, opponent: both players' stones as bitmasks; it is the opponent's turn and nobody has won.
    """
    return _move(instance.seed, instance.p, instance.opponent, policy, opponent)


@lru_cache(maxsize=1 << 16)  # a conversation is replayed at each of its turns, and by every rollout of a group
def _move(seed: int, p: float, rule: str, policy: int, opponent: int) -> int:
    chance = Stream(seed).fork(policy << 9 | opponent)
    if chance.uniform() < p:
        return chance.choice(rules.free_cells(policy | opponent))
    best = rules.optimal_moves(opponent, policy)
    if rule == "mixed":
        return chance.choice(best)
    return best[0] if rule == "first" else second_choice(opponent, policy)


def second_choice(own: int, other: int) -> int:
    """The optimal move of the second player: an immediate win, else the move that leaves the other player most ways to lose;
    among equals, the last cell (our choice of tie-breaks). It shows whether a policy has learnt the game or just one opponent."""
    at_once = rules.wins(own, other)
    if at_once:
        return at_once[-1]
    return max(rules.optimal_moves(own, other), key=lambda cell: (rules.ways_to_lose(own, other, cell), cell))
