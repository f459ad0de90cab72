"""A job agent: the state of an episode in, tool calls out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from t2t_core.hookspecs import EpisodeState
from t2t_core.records import AgentTurn, ToolCall
from t2t_core.settings import no_argument, read_settings


class BestBase:
    """Asks what the untrained bases score, and submits the job that it found with the best base. It keeps nothing between turns,
    because the state says which turn it is."""

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        no_argument(argument, "agent best-base")
        read_settings(settings, "agent best-base", {})

    def act(self, state: EpisodeState) -> AgentTurn:
        if not state.exchanges:
            return AgentTurn("Which base is best?", (ToolCall("scores", "get_baseline_scores", "{}"),))
        scores = dict(line.split(": ") for line in state.exchanges[0].results[0].splitlines())
        best = max(scores, key=lambda base: float(scores[base]))
        job = {"path": "job.toml", "content": f"base = {json.dumps(best)}\n"}
        calls = ToolCall("write", "write_file", json.dumps(job)), ToolCall("submit", "submit_job", "{}")
        return AgentTurn(f"It is {best}.", calls)

    def describe(self) -> Mapping[str, Any]:
        return {}
