"""The exact player in text, against opponents of every strength: python examples/rl/tictactoe_text.py"""

import argparse

import gymnasium as gym

import t2t_envs  # noqa: F401 - registers the environments
from t2t_envs.tictactoe import rules

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=50, help="games against each opponent")
games = parser.parse_args().updates

for p in (1.0, 0.5, 0.0):
    env = gym.make("TicTacToeText-v0", p=p, prompt_format="compact")
    results = {"win": 0, "draw": 0, "loss": 0}
    for seed in range(games):
        message, _ = env.reset(seed=seed)
        done, info = False, {}
        while not done:
            own, other = (sum(1 << cell for cell in range(9) if message[cell] == mark) for mark in "XO")
            answer = str(rules.optimal_moves(own, other)[0])  # your_model(message)
            message, _, terminated, truncated, info = env.step(answer)
            done = terminated or truncated
        results[info["result"]] += 1
    print(f"p {p}: {results}")
