"""MAPF-FrozenLake as a taskset of verifiers; what all testbeds share is in `t2t.verifiers_tasks`, part of t2t-core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import verifiers.v1 as vf
from t2t.verifiers_tasks import TestbedConfig, TestbedTask, TestbedTaskset


class MAPFTask(TestbedTask):
    """One lake, asked once and answered with the agents' paths."""

    solver = "cbs"


class Config(TestbedConfig):
    agents: str = "3,4,5"
    """eval: which frozen sets. train: the first number is that of the agents; give 2 for the paper's training."""


class MAPFFrozenLakeTaskset(TestbedTaskset, vf.Taskset[MAPFTask, Config]):
    """Multi-agent path finding on frozen lakes."""

    testbed = "mapf-frozenlake"

    def set_options(self) -> Mapping[str, str]:
        return {"agents": self.config.agents}

    def request_options(self) -> Mapping[str, Any]:
        return {"agents": int(self.config.agents.split(",")[0])}
