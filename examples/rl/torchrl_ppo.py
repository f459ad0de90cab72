"""TorchRL's PPO with masks, agents sharing one network, from the PettingZoo environment: python examples/rl/torchrl_ppo.py"""

import argparse

import pettingzoo
import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs.libs.pettingzoo import PettingZooWrapper
from torchrl.modules import MaskedCategorical, MultiAgentMLP, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss

import t2t_envs  # noqa: F401 - registers the environments

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=40)
updates = parser.parse_args().updates

torch.manual_seed(0)
modes = {"on_hole": "block", "on_conflict": "block"}
lakes = pettingzoo.make("parallel", "MAPFFrozenLake-v0", size=4, num_agents=2, observation="flat", reward="shaped", **modes)
env = PettingZooWrapper(lakes, use_mask=True, seed=0)  # one group of agents, "agent"
seen = env.observation_spec["agent", "observation"].shape[-1]


def network(outputs):
    shared = {"share_params": True, "depth": 2, "num_cells": 128, "activation_class": torch.nn.Tanh}
    return MultiAgentMLP(n_agent_inputs=seen, n_agent_outputs=outputs, n_agents=2, centralized=False, **shared)


actor = ProbabilisticActor(
    TensorDictModule(network(5), in_keys=[("agent", "observation")], out_keys=[("agent", "logits")]),
    in_keys={"logits": ("agent", "logits"), "mask": ("agent", "action_mask")},
    out_keys=[("agent", "action")], distribution_class=MaskedCategorical,
    return_log_prob=True, log_prob_key=("agent", "log_prob"),
)  # fmt: skip
critic = TensorDictModule(network(1), in_keys=[("agent", "observation")], out_keys=[("agent", "state_value")])
loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
loss.set_keys(
    action=("agent", "action"), sample_log_prob=("agent", "log_prob"), value=("agent", "state_value"),
    reward=("agent", "reward"), done=("agent", "done"), terminated=("agent", "terminated"),
)  # fmt: skip
loss.make_value_estimator(gamma=0.99, lmbda=0.95)
optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)

frames = 1024
for update, data in enumerate(Collector(env, actor, frames_per_batch=frames, total_frames=frames * updates)):
    with torch.no_grad():
        loss.value_estimator(data, params=loss.critic_network_params, target_params=loss.target_critic_network_params)
    for _ in range(4):
        for rows in torch.randperm(frames).chunk(4):
            parts = loss(data[rows])
            optimizer.zero_grad()
            (parts["loss_objective"] + parts["loss_critic"] + parts["loss_entropy"]).backward()
            torch.nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
            optimizer.step()
    ends = data["next", "agent", "terminated"].any(1).sum().item()
    print(f"update {update}: {ends} lakes solved in {frames} steps")
