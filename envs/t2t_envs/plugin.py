"""What this room brings through the door."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry


@hookimpl
def register_testbeds(registry: Registry) -> None:
    registry.add("mapf-frozenlake", "t2t_envs.frozen_lake.testbed:make", "multi-agent path finding on frozen lakes")
    registry.add("tictactoe", "t2t_envs.tictactoe.testbed:make", "tic-tac-toe against an opponent of chosen strength, in turns")


@hookimpl
def register_commands(registry: Registry) -> None:
    registry.add("generate", "t2t_envs.cli.generate:generate", "instances from a configuration, or the frozen sets made again")
    registry.add("show", "t2t_envs.cli.show:show", "an instance, an answer or a solution as text, SVG, GIF or HTML animation")
    registry.add("solve", "t2t_envs.cli.solve:solve", "exact optima of the instances of a file, and whether its labels are right")
