"""Designers that look at no results: `random` and `fixed`."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import no_argument, read_settings


class Random:
    """A fresh random configuration every round, drawn like that of round 0."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer random")
        read_settings(settings or {}, "designer random", {})

    def propose(self, brief: Brief) -> Proposal:
        return Proposal("", brief.state.testbed.random_configuration(brief.request, brief.seed).to_dict())


class Fixed:
    """Keeps the configuration in force. From round 0 on that is the control ("GRPO (random)" in the paper)."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer fixed")
        read_settings(settings or {}, "designer fixed", {})

    def propose(self, brief: Brief) -> Proposal:
        return Proposal("", brief.previous.to_dict())
