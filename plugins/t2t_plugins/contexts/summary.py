"""S: the designer's own explanation of its current choice, carried to the next round (paper, letter S)."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.hookspecs import RoundState
from t2t_core.settings import no_argument, read_settings


class Summary:
    """What the designer said about the configuration in force when it chose it, word for word. Nothing after round 0, whose
    configuration nobody chose."""

    title = "Your explanation of the configuration in force"
    request = 'Add a key "summary" whose value is one or two sentences: why you chose this configuration.'

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "context S")
        read_settings(settings or {}, "context S", {})

    def render(self, state: RoundState, compact: bool) -> str | None:
        summary = state.rounds[-1].summary if state.rounds else None
        if not summary:
            return None
        return f"summary\n{' '.join(summary.split())}" if compact else summary
