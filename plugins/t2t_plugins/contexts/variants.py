"""The paper's context variants V1 to V6, each a list of modules.

The paper says that V1 to V3 add modules step by step (which ones is our choice), that V4 leaves the random configuration of
round 0 out of the history, that V5 adds the designer's own summary to V4, and that V6, its final choice, adds the training
bookkeeping.
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
    """A factory that returns the modules behind a variant's name. A variant has no settings of its own."""

    def modules(argument: str, settings: Mapping[str, str]) -> str:
        from t2t_core.settings import no_argument, read_settings  # registering a name needs neither

        no_argument(argument, f"context {name}")
        read_settings(settings, f"context {name}", {})
        return VARIANTS[name]

    return modules
