"""MaskablePPO (sb3-contrib) on small lakes: python examples/rl/sb3_maskable.py"""

import argparse

import gymnasium as gym
from sb3_contrib import MaskablePPO

import t2t_envs  # noqa: F401 - registers the environments

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=40)
updates = parser.parse_args().updates

env = gym.make("MAPFFrozenLake-v0", size=4, num_agents=2, observation="flat", reward="shaped", gamma=0.99)
model = MaskablePPO("MlpPolicy", env, n_steps=512, batch_size=128, gamma=0.99, seed=0, device="cpu")
model.learn(512 * updates)

solved = 0
for seed in range(50):
    observation, _ = env.reset(seed=seed)
    done, info = False, {}
    while not done:
        action, _ = model.predict(observation, action_masks=env.unwrapped.action_masks())
        observation, _, terminated, truncated, info = env.step(action)
        done = terminated or truncated
    solved += info["valid"]
print(f"solved {solved} of 50 lakes")
