"""A testbed as an environment of SkyRL-gym, asked once or played in turns. Importing this module registers it as `t2t`.

    t2t generate --configuration random --count 4000 --format skyrl --out train.parquet

and, in the script that starts SkyRL, `import t2t.skyrl`. Each row of the table names its testbed and holds the instance.
"""

from __future__ import annotations

import json
from typing import Any

import skyrl_gym
from skyrl_gym.envs import registration
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from t2t_core.conversation import judge, replies
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Message, Verdict
from t2t_core.reward import reward

NAME = "t2t"


class TestbedEnv(BaseTextEnv):
    """One conversation about one instance. The reward comes with its last step and is 0 before."""

    __test__ = False  # else pytest takes it for a test

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
        super().__init__()
        row = extras or {}
        about = row["extra_info"]
        self.bed: AnyTestbed = installed().testbeds.make(about["testbed"])
        self.form: str = about["prompt_format"]
        self.instance = self.bed.read_instance(json.loads(row["reward_spec"]["ground_truth"]))
        self.max_turns = self.bed.turns
        self.said: list[Message] = []
        self.verdict: Verdict | None = None

    def step(self, action: str) -> BaseTextEnvStepOutput:
        self.turns += 1
        self.said.append(Message("assistant", action))
        answer = replies(self.bed, self.instance, self.said, self.form)
        if answer:
            self.said += answer
            heard = [{"role": "user", "content": message.content} for message in answer]
            return BaseTextEnvStepOutput(observations=heard, reward=0.0, done=False, metadata={})
        self.verdict = judge(self.bed, self.instance, self.said, self.form)
        facts = {"valid": self.verdict.valid, "optimal": self.verdict.optimal is True}
        worth = reward(self.bed, self.instance, self.verdict)
        return BaseTextEnvStepOutput(observations=[], reward=worth, done=True, metadata=facts)

    def get_metrics(self) -> dict[str, float]:
        """The rates of the finished conversation, and whatever else the testbed counts in it."""
        if self.verdict is None:
            return {}
        rates = {"valid": float(self.verdict.valid), "optimal": float(self.verdict.optimal is True)}
        return {**rates, **self.verdict.figures}


if NAME not in registration.registry:
    skyrl_gym.register(id=NAME, entry_point="t2t.skyrl:TestbedEnv")
