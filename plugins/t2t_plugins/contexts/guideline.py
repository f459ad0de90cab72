"""G: task-level advice on design that is valid in any round (paper section "context modules", letter G)."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.hookspecs import RoundState
from t2t_core.settings import no_argument, read_settings


class Guideline:
    """The testbed's guideline, word for word. It is the same in every round, so its compact form is empty."""

    title = "Guideline"

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "context G")
        read_settings(settings or {}, "context G", {})

    def render(self, state: RoundState, compact: bool) -> str | None:
        return None if compact else state.testbed.guideline or None
