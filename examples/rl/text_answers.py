"""Answers in text, scored as the board scores them: python examples/rl/text_answers.py"""

import argparse

import gymnasium as gym

import t2t_envs  # noqa: F401 - registers the environments
from t2t_envs.frozen_lake import solve
from t2t_envs.frozen_lake.parser import format_answer

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=20, help="how many prompts")
prompts = parser.parse_args().updates

env = gym.make("MAPFFrozenLakeText-v0", size=5, num_agents=3)
total = 0.0
for seed in range(prompts):
    prompt, _ = env.reset(seed=seed)
    answer = format_answer(solve(env.unwrapped.instance).paths)  # your_model(prompt)
    _, reward, _, _, verdict = env.step(answer)
    total += reward
print(prompt, answer, verdict, f"mean reward {total / prompts:.2f}", sep="\n\n")
