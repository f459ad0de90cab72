"""What this room brings through the door."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry


@hookimpl
def register_testbeds(registry: Registry) -> None:
    registry.add("mapf-frozenlake", "t2t_envs.frozen_lake.testbed:make", "multi-agent path finding on frozen lakes")
    registry.add("tictactoe", "t2t_envs.tictactoe.testbed:make", "tic-tac-toe against an opponent of chosen strength, in turns")


@hookimpl
def register_presets(registry: Registry) -> None:
    room = "t2t_envs.tictactoe.presets"
    registry.add("tictactoe", f"{room}:road", "tic-tac-toe, from the warm-up through three rounds in minutes on two CPU cores")
    registry.add("tictactoe-stage1", f"{room}:stage1", "tic-tac-toe, the talk's first stage: opponents of p 0.2 to 0.7")
    registry.add("tictactoe-stage2", f"{room}:stage2", "tic-tac-toe, its second: strong opponents, a higher temperature")
