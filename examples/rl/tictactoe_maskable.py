"""MaskablePPO (sb3-contrib) at tic-tac-toe: python examples/rl/tictactoe_maskable.py"""

import argparse

import gymnasium as gym
from sb3_contrib import MaskablePPO

import t2t_envs  # noqa: F401 - registers the environments

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=40)
updates = parser.parse_args().updates

env = gym.make("T2TTicTacToe-v0", p=0.5)
model = MaskablePPO("MultiInputPolicy", env, n_steps=512, batch_size=128, seed=0, device="cpu")
model.learn(512 * updates)

results = {"win": 0, "draw": 0, "loss": 0}
for seed in range(100):
    observation, _ = env.reset(seed=seed)
    done, info = False, {}
    while not done:
        action, _ = model.predict(observation, action_masks=env.unwrapped.action_masks(), deterministic=True)
        observation, _, terminated, truncated, info = env.step(int(action))
        done = terminated or truncated
    results[info["result"]] += 1
print(results)
