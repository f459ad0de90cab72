"""`uniform`: domain randomisation, with the same weight on every cell whatever the validation says."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.cells import Cells
from t2t_core.hookspecs import Brief
from t2t_core.records import Proposal
from t2t_core.settings import no_argument, read_settings


class Uniform:
    """w = 1 on every cell of the testbed."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, "designer uniform")
        read_settings(settings or {}, "designer uniform", {})

    def propose(self, brief: Brief) -> Proposal:
        cells = Cells.of(brief)
        return Proposal("", cells.proposal(dict.fromkeys(cells.names(), 1.0)))
