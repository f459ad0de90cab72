"""The hooks: what this distribution registers, by name. Targets are imported only when somebody asks for them."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry


@hookimpl
def register_testbeds(registry: Registry) -> None:
    registry.add("change", "t2t_plugin_template.testbed:make", "paying an amount with as few coins as possible")


@hookimpl
def register_policies(registry: Registry) -> None:
    registry.add("coins", "t2t_plugin_template.policy:TakesCoins", "the largest coin first, with what it remembers, coins:FOLDER")


@hookimpl
def register_designers(registry: Registry) -> None:
    registry.add("focus", "t2t_plugin_template.designer:Focus", "moves instances to where the valid rate is near a half")


@hookimpl
def register_contexts(registry: Registry) -> None:
    registry.add("W", "t2t_plugin_template.context:Weakest", "the group that fails most")


@hookimpl
def register_trainers(registry: Registry) -> None:
    registry.add("remember", "t2t_plugin_template.trainer:Remember", "tries ways to pay and remembers the best (tries=8)")


@hookimpl
def register_trackers(registry: Registry) -> None:
    registry.add("lines", "t2t_plugin_template.tracker:Lines", "figures as lines of a file in the run's folder, lines:NAME")


@hookimpl
def register_agents(registry: Registry) -> None:
    registry.add("best-base", "t2t_plugin_template.agent:BestBase", "the job as it is, on the base that scores best untrained")


@hookimpl
def register_families(registry: Registry) -> None:
    registry.add("draw-briefly", "t2t_plugin_template.family:draw_briefly", "tic-tac-toe: hold the draw, from few games")


@hookimpl
def register_pools(registry: Registry) -> None:
    registry.add("submitted", "t2t_plugin_template.pool:Submitted", "one worker, begun by a command")


@hookimpl
def register_presets(registry: Registry) -> None:
    registry.add("change", "t2t_plugin_template.presets:change", "the loop in seconds, on the testbed change")
