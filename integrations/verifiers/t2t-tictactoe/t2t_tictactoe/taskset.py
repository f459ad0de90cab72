"""Tic-tac-toe in turns as a taskset of verifiers; what all testbeds share is in `t2t.verifiers_tasks`, part of t2t-core."""

from __future__ import annotations

from collections.abc import Mapping

import verifiers.v1 as vf
from t2t.verifiers_tasks import GameEnv, TestbedConfig, TestbedTask, TestbedTaskset


class TicTacToeTask(TestbedTask):
    """One game against an opponent whose moves follow from the game's own seed."""

    solver = "minimax"


class Config(TestbedConfig):
    opponents: str = "random,optimal,second"
    """eval: against whom."""


class TicTacToeTaskset(TestbedTaskset, vf.Taskset[TicTacToeTask, Config]):
    """Tic-tac-toe against opponents of chosen strength."""

    testbed = "tictactoe"

    def set_options(self) -> Mapping[str, str]:
        return {"opponents": self.config.opponents}


class TicTacToeEnv(GameEnv):
    """The model moves, the opponent replies."""
