"""Loads the plugins: every entry point of the group `t2t`, guarded.

One broken plugin never kills a command: what fails to import, registers an unknown hook or takes a taken name is refused
with a reason, which `t2t plugins` shows.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import pluggy

from t2t_core.hookspecs import Hooks
from t2t_core.registry import Registry
from t2t_core.text import flowing, one_line

GROUP = "t2t"
OWN = "t2t-core"


def _registry(title: str) -> Any:
    return field(default_factory=lambda: Registry(title))


@dataclass
class Plugins:
    """The registry of each kind, the plugins loaded (name -> distribution) and what was refused, each with its reason."""

    testbeds: Registry = _registry("testbed")
    policies: Registry = _registry("policy")
    designers: Registry = _registry("designer")
    contexts: Registry = _registry("context module")
    trainers: Registry = _registry("trainer")
    trackers: Registry = _registry("tracker")
    commands: Registry = _registry("command")
    presets: Registry = _registry("preset")
    families: Registry = _registry("task family")
    pools: Registry = _registry("pool")
    agents: Registry = _registry("job agent")
    loaded: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    @property
    def registries(self) -> dict[str, Registry]:
        """By kind, as the hooks' names end."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Registry)}


def _distribution(entry_point: metadata.EntryPoint) -> str:
    dist = entry_point.dist
    return flowing(f"{dist.name} {dist.version}", 80) if dist else "unknown distribution"


def _entry_points() -> list[metadata.EntryPoint]:
    """Ours first, then by distribution and name: which of two equal names wins does not depend on the file system."""
    entry_points = metadata.entry_points(group=GROUP)
    return sorted(entry_points, key=lambda e: (e.dist is None or e.dist.name != OWN, _distribution(e), e.name))


def _register(plugin: Any, name: str, distribution: str, plugins: Plugins) -> None:
    """Check one plugin's hooks against the specification, then call them."""
    manager = pluggy.PluginManager("t2t")
    manager.add_hookspecs(Hooks)
    manager.register(plugin, name=name)
    manager.check_pending()
    for kind, registry in plugins.registries.items():
        registry.plugin, registry.distribution = name, distribution
        getattr(manager.hook, f"register_{kind}")(registry=registry)


def load(entry_points: list[metadata.EntryPoint] | None = None) -> Plugins:
    """Load every plugin afresh; `entry_points` replaces the installed ones (for tests)."""
    plugins = Plugins()
    for entry_point in _entry_points() if entry_points is None else entry_points:
        name, distribution = flowing(entry_point.name, 80), _distribution(entry_point)
        if name in plugins.loaded:
            plugins.refused.append(
                f"plugin {name} of {distribution}: the name is taken by {plugins.loaded[name]}; rename the entry point"
            )
            continue
        before = {kind: dict(registry.entries) for kind, registry in plugins.registries.items()}
        try:
            _register(entry_point.load(), name, distribution, plugins)
        except (Exception, SystemExit) as error:  # a stranger's module may raise anything; it is refused, not fatal
            if os.environ.get("T2T_PLUGIN_TRACEBACK"):
                raise
            for kind, registry in plugins.registries.items():
                registry.entries = before[kind]  # all of a plugin or nothing
            reason = one_line(f"{type(error).__name__}: {error}", 300)
            plugins.refused.append(f"plugin {name} of {distribution}: {reason} (T2T_PLUGIN_TRACEBACK=1 shows where)")
            continue
        plugins.loaded[name] = distribution
    for registry in plugins.registries.values():
        plugins.refused.extend(registry.refused)
    return plugins


@functools.cache
def installed() -> Plugins:
    """The plugins of this Python environment, loaded once per process."""
    return load()
