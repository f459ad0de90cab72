"""The door: what this distribution brings, by name. Targets are imported only when somebody asks for them."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry


@hookimpl
def register_policies(registry: Registry) -> None:
    registry.add("one-by-one", "t2t_plugin_template.policy:OneByOne", "agents walk one after the other, the others wait")


@hookimpl
def register_designers(registry: Registry) -> None:
    registry.add("focus", "t2t_plugin_template.designer:Focus", "moves the data ratio to where the valid rate is near a half")
