"""The settings of the outer loop: how episodes are grouped, how far behind they may be, and how the agent learns from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from t2t_core.settings import AT_LEAST_ONE, POSITIVE, Range


@dataclass(frozen=True)
class OuterSettings:
    """The settings of `t2t train-agent`; the presets `tiny` and `llm-lora` set them.

    Args:
        steps: outer steps, each one update of the agent.
        groups: groups of episodes that make up a step.
        group: episodes in a group; they share a family and a hidden evaluation, and are compared with each other.
        lag: the most updates between the agent that acted and the one that learns from it; older groups are left out.
        ahead: groups under way beyond those that the next step needs, so that no worker waits for the slowest job. With 0 and
            lag 0, every step waits for its own groups.
        learning_rate, weight_decay: AdamW's.
        epochs: passes over a step's episodes.
        clip_low, clip_high: how far a token's importance ratio may move below and above 1 before it stops counting (PPO's clip).
        max_grad_norm: the gradient is scaled down to this norm.
        batch_tokens: tokens per forward pass, including padding.
        lora_rank: 0 trains all weights; otherwise LoRA of that rank on every linear layer. lora_alpha: LoRA's scale.
        device: "cpu", "cuda", or "auto".
    """

    steps: int = 10
    groups: int = 4
    group: int = 8
    lag: int = 2
    ahead: int = 2
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    epochs: int = 2
    clip_low: float = 0.2
    clip_high: float = 0.3
    max_grad_norm: float = 1.0
    batch_tokens: int = 16_384
    lora_rank: int = 0
    lora_alpha: int = 16
    device: str = "auto"

    RANGES: ClassVar[Mapping[str, Range]] = {
        "steps": AT_LEAST_ONE,
        "groups": AT_LEAST_ONE,
        "group": Range(2),
        "learning_rate": POSITIVE,
        "epochs": AT_LEAST_ONE,
        "clip_low": Range(0, 1, above=True),
        "clip_high": POSITIVE,
        "max_grad_norm": POSITIVE,
        "batch_tokens": AT_LEAST_ONE,
        "lora_alpha": AT_LEAST_ONE,
    }
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"device": ("auto", "cpu", "cuda")}


# `llm-lora` follows the neighbouring system: LoRA of rank 8, learning rate 4e-5, groups of 8, about 40 jobs per step, at most two
# steps behind.
PRESETS: Mapping[str, Mapping[str, object]] = {
    "tiny": {},
    "llm-lora": {"steps": 54, "groups": 5, "ahead": 5, "learning_rate": 4e-5, "epochs": 1, "lora_rank": 8, "lora_alpha": 16},
}
