"""What t2t_core itself brings through the door: its commands."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry


@hookimpl
def register_commands(registry: Registry) -> None:
    registry.add("plugins", "t2t_core.cli.plugins:plugins", "What is loaded, from which distribution, what was refused.")
