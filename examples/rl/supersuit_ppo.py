"""PPO with one policy for all agents, from the PettingZoo environment: python examples/rl/supersuit_ppo.py"""

import argparse

import pettingzoo
import supersuit
from stable_baselines3 import PPO

import t2t_envs  # noqa: F401 - registers the environments

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=40)
updates = parser.parse_args().updates

agents = pettingzoo.make("parallel", "MAPFFrozenLake-v0", size=4, num_agents=3, observation="flat", reward="shaped")
envs = supersuit.pettingzoo_env_to_vec_env_v1(agents)
envs = supersuit.concat_vec_envs_v1(envs, 4, base_class="stable_baselines3")
model = PPO("MlpPolicy", envs, n_steps=64, batch_size=128, seed=None, device="cpu", verbose=1)
model.learn(64 * 12 * updates)
