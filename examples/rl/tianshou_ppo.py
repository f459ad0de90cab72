"""Tianshou's PPO on the joint environment: python examples/rl/tianshou_ppo.py (needs tianshou, in an environment of its own)"""

import argparse

import gymnasium as gym
import torch
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

import t2t_envs  # noqa: F401 - registers the environments

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=40)
updates = parser.parse_args().updates


class OneChoice(gym.ActionWrapper):
    """Numbers all joint actions, because Tianshou's discrete PPO makes a single choice."""

    def __init__(self, env):
        super().__init__(env)
        self.agents = len(env.action_space.nvec)
        self.action_space = gym.spaces.Discrete(5**self.agents)

    def action(self, action):
        return [action // 5**i % 5 for i in range(self.agents)]


def make():
    modes = {"on_hole": "block", "on_conflict": "block"}
    return OneChoice(gym.make("MAPFFrozenLake-v0", size=4, num_agents=2, observation="flat", reward="shaped", **modes))


torch.manual_seed(0)
env, envs = make(), DummyVectorEnv([make] * 8)
inputs, actions = env.observation_space.shape, env.action_space.n
actor = DiscreteActor(preprocess_net=Net(state_shape=inputs, hidden_sizes=[128, 128]), action_shape=actions, softmax_output=False)
critic = DiscreteCritic(preprocess_net=Net(state_shape=inputs, hidden_sizes=[128, 128]))
policy = ProbabilisticActorPolicy(
    actor=actor, dist_fn=lambda logits: torch.distributions.Categorical(logits=logits), action_space=env.action_space,
    action_scaling=False,
)  # fmt: skip
algorithm = PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.99)
collector = Collector[CollectStats](algorithm, envs, VectorReplayBuffer(2048, 8))
algorithm.run_training(
    OnPolicyTrainerParams(
        training_collector=collector, max_epochs=updates, epoch_num_steps=2048, collection_step_num_env_steps=2048,
        update_step_num_repetitions=4, batch_size=256, test_in_training=False,
    )
)  # fmt: skip
episodes = collector.collect(n_episode=50)
print(f"mean return {episodes.returns_stat.mean:.2f}, mean length {episodes.lens_stat.mean:.1f}")
