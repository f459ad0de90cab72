"""Lets an agent take its turns in one episode or many, all that are under way asked at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t2t_core.errors import BudgetSpent
from t2t_core.hookspecs import EpisodeState
from t2t_core.records import AgentTurn
from t2t_jobs.episode import Episode


def play(episodes: Sequence[Episode], agent: Any) -> None:
    """All turns of these episodes; their jobs are submitted then, and perhaps not through.

    Raises:
        T2TError: the agent could not be asked; what it said before is kept.
    """
    while going := [episode for episode in episodes if episode.over is None]:
        _limit(agent, going)
        try:
            turns = _ask(agent, [episode.state() for episode in going])
        except BudgetSpent:
            for episode in going:
                episode.stop("usd")
            return
        for episode, turn in zip(going, turns, strict=True):
            episode.take(turn)


def _ask(agent: Any, states: Sequence[EpisodeState]) -> list[AgentTurn]:
    if callable(many := getattr(agent, "act_all", None)):
        return list(many(states))
    return [agent.act(state) for state in states]


def _limit(agent: Any, episodes: Sequence[Episode]) -> None:
    """What the next turns may cost together, as far as the agent takes money."""
    if callable(limit := getattr(agent, "spend_at_most", None)):
        limit(min(episode.usd_left for episode in episodes) * len(episodes))
