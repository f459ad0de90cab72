"""RLlib's PPO with one policy for all agents: python examples/rl/rllib_ppo.py (needs ray[rllib] and torch)"""

import argparse

import pettingzoo
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=40)
updates = parser.parse_args().updates


def make(config):
    import t2t_envs  # noqa: F401 - registers the environments, in every process that makes one

    return ParallelPettingZooEnv(pettingzoo.make("parallel", "MAPFFrozenLake-v0", **config))


register_env("lakes", make)
world = {"size": 4, "num_agents": 2, "observation": "flat", "reward": "shaped", "action_masks": False}
config = (
    PPOConfig()
    .environment("lakes", env_config=world | {"on_hole": "block", "on_conflict": "block"})
    .multi_agent(policies={"shared"}, policy_mapping_fn=lambda agent, *_, **__: "shared")
    .rl_module(rl_module_spec=RLModuleSpec(model_config={"fcnet_hiddens": [128, 128]}))
    .env_runners(num_env_runners=0, num_envs_per_env_runner=4)
    .learners(num_learners=0)
    .training(gamma=0.99, lr=1e-3, train_batch_size_per_learner=2048, minibatch_size=256, num_epochs=4)
)
algorithm = config.build_algo()
for update in range(updates):
    figures = algorithm.train()["env_runners"]
    print(f"update {update}: mean return {figures['episode_return_mean']:.2f}, mean length {figures['episode_len_mean']:.1f}")
algorithm.stop()
