"""T: facts about the training (paper section "context modules", letter T)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from t2t_core.errors import T2TError
from t2t_core.hookspecs import RoundState
from t2t_core.settings import read_settings

OPTIONS = ("bookkeeping", "full")


class Training:
    """`bookkeeping` (default, the paper's final choice): round index, epochs per round, total epochs. `full`: also the
    algorithm, the adaptive reward and the key hyperparameters, one per line."""

    title = "Training"

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        if (argument or OPTIONS[0]) not in OPTIONS:
            raise T2TError(f"context T knows no option {argument[:60]!r}", next=f"T:{' or T:'.join(OPTIONS)}")
        self.full = argument == "full"
        read_settings(settings or {}, "context T", {})

    def render(self, state: RoundState, compact: bool) -> str | None:
        facts = {**state.bookkeeping, **(state.training if self.full else {})}
        if not facts:
            return None
        if compact:
            return "\n".join(["training", *(f"{name} {_plain(value)}" for name, value in facts.items())])
        return "\n".join(f"{name.replace('_', ' ')}: {_plain(value)}" for name, value in facts.items())


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
