"""Lets an agent take its turns in one episode or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from t2t_core.errors import BudgetSpent
from t2t_jobs.episode import Episode


def play(episodes: Sequence[Episode], agent: Any, usd_left: Callable[[], float] = lambda: inf) -> None:
    """All turns of these episodes; their jobs are submitted then, and perhaps not through.

    Episodes are asked about all at once where answers cost no money. Where they do, one by one: no answer is paid for and lost
    when the next one is beyond a budget.

    Args:
        usd_left: what all of them together may still cost.

    Raises:
        BudgetSpent: `usd_left` has no room for another turn. Nothing is graded for it: with more money it goes on.
        T2TError: the agent could not be asked; what it said before is kept.
    """
    many = getattr(agent, "act_all", None)
    if many is None or hasattr(agent, "spend_at_most"):
        for episode in episodes:
            while episode.over is None:
                _turn(episode, agent, usd_left())
        return
    while going := [episode for episode in episodes if episode.over is None]:
        for episode, turn in zip(going, many([episode.state() for episode in going]), strict=True):
            episode.take(turn)


def _turn(episode: Episode, agent: Any, usd_left: float) -> None:
    limit = getattr(agent, "spend_at_most", None)
    if limit is not None:
        limit(min(usd_left, episode.usd_left))
    try:
        turn = agent.act(episode.state())
    except BudgetSpent:
        if usd_left < episode.usd_left:
            raise
        episode.stop("usd")
        return
    episode.take(turn)
