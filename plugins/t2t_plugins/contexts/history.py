"""H: a short list of earlier (failure, configuration) pairs (paper section "context modules", letter H)."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.errors import T2TError
from t2t_core.hookspecs import RoundState
from t2t_core.loop.context import readable
from t2t_core.records import Round
from t2t_core.settings import integer, read_settings
from t2t_plugins.contexts.compact import configuration_lines, failure_lines
from t2t_plugins.contexts.failures import counts_lines


class History:
    """The rounds before the latest, newest last, at most `last` of them (default 3, our choice): the configuration of each and
    how it failed. The latest round is not repeated, since F and the task statement already show it.

    `no_round_0` leaves out the random configuration of round 0 and keeps its failures (the paper's V4 onwards; keeping the
    failures is our reading, since a run of three rounds would have no history otherwise).
    """

    title = "Earlier rounds"

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        if argument not in ("", "no_round_0"):
            raise T2TError(f"context H knows no option {argument[:60]!r}", next="H, H:no_round_0 or H:no_round_0,last=3")
        self.no_round_0 = argument == "no_round_0"
        self.last = read_settings(settings or {}, "context H", {"last": integer(1, 100)}).get("last", 3)
        self.settings = {"last": self.last}

    def render(self, state: RoundState, compact: bool) -> str | None:
        earlier = list(state.rounds[:-1])[-self.last :]
        lines = [self._compact(state, r) if compact else self._prose(state, r) for r in earlier]
        if compact and lines:
            lines.insert(0, "history")
        return "\n".join(lines) or None

    def _hidden(self, earlier: Round) -> bool:
        return self.no_round_0 and earlier.index == 0

    def _prose(self, state: RoundState, earlier: Round) -> str:
        parts = [f"Round {earlier.index}"]
        if not self._hidden(earlier):
            parts.append(f"trained with {readable(earlier.configuration)}")
        parts.append("validated afterwards:")
        return "\n".join([*parts, *counts_lines(state, earlier.breakdown)])

    def _compact(self, state: RoundState, earlier: Round) -> str:
        parts = [str(earlier.index), failure_lines(earlier.breakdown)]
        if not self._hidden(earlier):
            parts.insert(1, configuration_lines(earlier.configuration, state.knobs))
        return "\n".join(parts)
