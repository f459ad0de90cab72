"""`uniform`: domain randomisation, the same weight on every cell, whatever the validation says."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.records import Brief, Proposal
from t2t_core.settings import no_argument, read_settings

from .cells import facts, marginal


class Uniform:
    """w = 1 on every cell: equal data ratios, hole ratio 0.25, wait ratio 0.5 (before Project)."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer uniform")
        read_settings(settings or {}, "designer uniform", {})

    def propose(self, brief: Brief) -> Proposal:
        previous, cells = facts(brief)
        return Proposal("", marginal(dict.fromkeys(cells, 1.0), previous))
