"""Lets an agent take its turns in one episode or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from t2t_core.errors import BudgetSpent, T2TError
from t2t_jobs.episode import Episode


def play(episodes: Sequence[Episode], agent: Any, usd_left: Callable[[], float] = lambda: inf) -> None:
    """Play all turns of these episodes. Their jobs are submitted then, but may still be running.

    If answers cost no money, an agent with `act_all` is asked about all episodes at once. If they do, it is asked about one at
    a time, so that no paid answer is lost when the next one exceeds a budget.

    Args:
        usd_left: what all of them together may still cost.

    Raises:
        BudgetSpent: `usd_left` does not cover another turn. The episode is not graded, and continues once there is more money.
        T2TError: the agent could not be asked, or its turns are not one for each episode; what it said before is kept.
    """
    many = getattr(agent, "act_all", None)
    if many is None or hasattr(agent, "spend_at_most"):
        for episode in episodes:
            while episode.over is None:
                _turn(episode, agent, usd_left())
        return
    while going := [episode for episode in episodes if episode.over is None]:
        turns = many([episode.state() for episode in going])
        if len(turns) != len(going):
            raise T2TError(
                f"{agent!r} returned {len(turns)} turns for {len(going)} episodes",
                where="act_all()",
                cause="it must return one turn for each state, in their order",
                next="t2t_core.testing.check_agent checks an agent",
            )
        for episode, turn in zip(going, turns, strict=True):
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
