"""Two random players at tic-tac-toe: python examples/rl/tictactoe_players.py"""

import argparse

import pettingzoo

import t2t_envs  # noqa: F401 - registers the environments

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=100, help="how many games")
games = parser.parse_args().updates

env = pettingzoo.make("aec", "TicTacToe-v0")
total = dict.fromkeys(env.possible_agents, 0.0)
for seed in range(games):
    env.reset(seed=seed)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        total[agent] += reward
        ended = terminated or truncated
        env.step(None if ended else env.action_space(agent).sample(observation["action_mask"]))
print({agent: total[agent] / games for agent in total})
