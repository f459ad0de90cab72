"""PPO in one file in CleanRL's style, on the vector environment, with masks: python examples/rl/cleanrl_ppo.py"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import t2t_envs  # noqa: F401 - registers the environments

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=60)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()
lakes, horizon, epochs, minibatches, gamma, gae_lambda, clip = 64, 32, 4, 8, 0.99, 0.95, 0.2

torch.manual_seed(args.seed)
envs = gym.make_vec(
    "MAPFFrozenLake-v0", num_envs=lakes, vectorization_mode="vector_entry_point", size=4, num_agents=2, observation="flat",
    reward="shaped", gamma=gamma, on_hole="block", on_conflict="block", autoreset_mode=gym.vector.AutoresetMode.SAME_STEP,
)  # fmt: skip
inputs, agents = envs.single_observation_space.shape[0], len(envs.single_action_space.nvec)


class Agent(nn.Module):
    """One network that chooses for all agents, five logits each."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.actor, self.critic = nn.Linear(128, agents * 5), nn.Linear(128, 1)

    def forward(self, seen, mask):
        body = self.body(seen)
        logits = self.actor(body).view(-1, agents, 5).masked_fill(~mask, -1e9)
        return Categorical(logits=logits), self.critic(body)[:, 0]


def look(observation):
    return torch.from_numpy(observation), torch.from_numpy(envs.unwrapped.action_masks().astype(bool))


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
observation, _ = envs.reset(seed=args.seed)
for update in range(args.updates):
    rows, solved, ended = [], 0, 0
    for _ in range(horizon):
        seen, mask = look(observation)
        with torch.no_grad():
            choice, value = agent(seen, mask)
        action = choice.sample()
        observation, reward, terminated, truncated, infos = envs.step(action.numpy())
        done = terminated | truncated
        if done.any():
            solved, ended = solved + int(infos["final_info"]["valid"].sum()), ended + int(done.sum())
        figures = torch.from_numpy(np.stack([reward, done])).float()
        rows.append((seen, mask, action, choice.log_prob(action).sum(-1), value, figures))

    with torch.no_grad():
        after = agent(*look(observation))[1]
    advantages, advantage = [], torch.zeros(lakes)
    for *_, value, (reward, done) in reversed(rows):
        delta = reward + gamma * after * (1 - done) - value
        advantage = delta + gamma * gae_lambda * (1 - done) * advantage
        advantages.insert(0, advantage)
        after = value

    seen, mask, action, old, value = (torch.cat(parts) for parts in list(zip(*rows, strict=True))[:5])
    gains = torch.cat(advantages)
    returns = value + gains
    for _ in range(epochs):
        for some in torch.randperm(len(seen)).chunk(minibatches):
            choice, estimate = agent(seen[some], mask[some])
            ratio = (choice.log_prob(action[some]).sum(-1) - old[some]).exp()
            gain = (gains[some] - gains[some].mean()) / (gains[some].std() + 1e-8)
            policy_loss = -torch.min(gain * ratio, gain * ratio.clamp(1 - clip, 1 + clip)).mean()
            loss = policy_loss + 0.5 * (estimate - returns[some]).square().mean() - 0.01 * choice.entropy().sum(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    print(f"update {update}: {solved} of {ended} lakes solved")
