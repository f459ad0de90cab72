"""TorchRL's PettingZoo wrapper with action masks: python examples/rl/torchrl_rollout.py"""

import argparse

import pettingzoo
from torchrl.envs.libs.pettingzoo import PettingZooWrapper

import t2t_envs  # noqa: F401 - registers the environments

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=10)
updates = parser.parse_args().updates

env = PettingZooWrapper(pettingzoo.make("parallel", "MAPFFrozenLake-v0", size=4, observation="flat"), use_mask=True)
for _ in range(updates):
    rollout = env.rollout(32, break_when_any_done=False)
print(rollout)
