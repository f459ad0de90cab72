"""A context module: the state of the rounds in, a section of the designer's context out."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.breakdown import top_failure
from t2t_core.hookspecs import RoundState
from t2t_core.settings import no_argument, read_settings


class Weakest:
    """Says which group failed most in the latest round, and which check; nothing if every answer was valid."""

    title = "Weakest group"

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        no_argument(argument, "context W")
        read_settings(settings, "context W", {})

    def render(self, state: RoundState, compact: bool) -> str | None:
        groups = state.rounds[-1].breakdown["groups"]
        failed = {name: 1 - counts["valid"] / counts["answers"] for name, counts in groups.items() if counts["answers"]}
        if not any(failed.values()):
            return None
        name = max(failed, key=failed.__getitem__)
        check, share = top_failure(groups[name], "no check"), round(100 * failed[name])
        if compact:
            return f"weakest {name} {share} {check}"
        return f"The {state.testbed.group} that fails most is {name}: {share} % of its answers, first of all by {check}."
