"""The paper's context variants V1 to V6, each the modules it stands for.

The paper says that V1 to V3 add modules step by step (which ones is our choice), that V4 leaves the random configuration of
round 0 out of the history, that V5 adds the designer's own summary to V4, and V6 the training bookkeeping: its final choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

VARIANTS = {
    "V1": "F",
    "V2": "F,G",
    "V3": "F,G,H",
    "V4": "F,G,H:no_round_0",
    "V5": "F,G,H:no_round_0,S",
    "V6": "F,G,H:no_round_0,T:bookkeeping",
}


def variant(name: str) -> Callable[[str, Mapping[str, str]], str]:
    """A factory that gives the modules behind a variant's name; a variant has no settings of its own."""

    def modules(argument: str, settings: Mapping[str, str]) -> str:
        from t2t_core.settings import no_argument, read_settings  # registering a name needs neither

        no_argument(argument, f"context {name}")
        read_settings(settings, f"context {name}", {})
        return VARIANTS[name]

    return modules
