"""What this room brings through the door."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry


@hookimpl
def register_families(registry: Registry) -> None:
    registry.add("draw-optimal", "t2t_jobs.families.noughts:defend", "tic-tac-toe: hold the draw against optimal play")


@hookimpl
def register_commands(registry: Registry) -> None:
    registry.add("worker", "t2t_jobs.cli.worker:worker", "A warm process that trains the jobs of a queue.")
