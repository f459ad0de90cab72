"""PPO while a curriculum chooses which lakes are drawn: python examples/rl/curriculum.py"""

import argparse

import gymnasium as gym
from stable_baselines3 import PPO

import t2t_envs  # noqa: F401 - registers the environments
from t2t_envs.frozen_lake.generation.configuration import Configuration
from t2t_envs.frozen_lake.gym.curriculum import CurriculumWrapper

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=40)
updates = parser.parse_args().updates

modes = {"on_hole": "block", "on_conflict": "block"}
env = gym.make("MAPFFrozenLake-v0", size=10, max_size=10, observation="flat", reward="shaped", **modes)
env = CurriculumWrapper(env, "learnability", Configuration.uniform(), every=50)
PPO("MlpPolicy", env, n_steps=512, seed=0, device="cpu").learn(512 * updates)
for record in env.history:
    total = record.breakdown["total"]
    print(f"round {record.index}: {total['valid']} of {total['answers']} episodes solved")
