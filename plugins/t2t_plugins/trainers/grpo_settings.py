"""Every knob of `trl-grpo`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

WHERE = "trainer trl-grpo"


@dataclass(frozen=True)
class Settings:
    """Every knob, with the paper's value where it gives one and ours where it does not.

    Args:
        group: responses sampled per prompt (paper). prompts: prompts per update (paper). epochs: passes over the round's
            instances (paper); the last partial batch of a pass is dropped (ours).
        learning_rate: constant, AdamW (paper). weight_decay, beta2: of AdamW (ours).
        beta: weight of the k3 KL term against the policy the round started from (the term is the paper's, the value ours).
        temperature, max_tokens: of the sampling (ours). thinking: "default", or switch the chat template's on or off.
        length_start, length_end: response tokens between which the length penalty grows (paper).
        loss: "dapo" averages over the tokens of an update, "grpo" over its responses first (ours).
        clip: of the importance ratio, which is 1 unless `iterations`, the optimisation steps per sampled batch, is above 1.
        scale: "group" divides advantages by the group's standard deviation, "batch" by the update's, "none" not (ours).
        optimizer: "reset" every round or "keep" its state. save_every: updates between two saved states.
        engine: how responses are sampled: our sampler where it fits ("auto", "fast"), transformers' generate ("plain"),
            vLLM in the same process or behind `vllm_server_url`.
        buckets: an update is sampled and trained in so many parts of like prompt length, which saves padding; token means are
            then per part. micro_batch: responses per backward pass; 0: a process's share of a part at once.
        lora: rank of adapters, which are merged into the new checkpoint; 0 trains all weights.
        dtype: "auto" keeps the weights in float32, with products in bfloat16 on a GPU; weights kept in bfloat16 take half the
            memory, and a small learning rate hardly moves them.
        prompt_format: "" takes the one the checkpoint was taught, else the testbed's first.
        threads: of torch on a CPU; 0 leaves its default; very small models gain by few, and by one only on a busy machine.
        processes: above 1, runs under `accelerate launch`. max_updates: stop there (0: do all).
    """

    group: int = 8
    prompts: int = 128
    epochs: int = 3
    learning_rate: float = 2e-6
    weight_decay: float = 0.0
    beta2: float = 0.999
    beta: float = 0.001
    temperature: float = 1.0
    max_tokens: int = 4096
    thinking: str = "default"
    length_start: int = 1500
    length_end: int = 4096
    loss: str = "dapo"
    clip: float = 0.2
    iterations: int = 1
    scale: str = "group"
    optimizer: str = "reset"
    save_every: int = 20
    engine: str = "auto"
    vllm_server_url: str = ""
    buckets: int = 1
    micro_batch: int = 0
    lora: int = 0
    dtype: str = "auto"
    prompt_format: str = ""
    threads: int = 0
    processes: int = 1
    max_updates: int = 0

    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = {
        "thinking": ("default", "on", "off"),
        "loss": ("dapo", "grpo", "dr_grpo", "bnpo"),
        "scale": ("group", "batch", "none"),
        "optimizer": ("reset", "keep"),
        "engine": ("auto", "fast", "plain", "vllm-colocate", "vllm-server"),
        "dtype": ("auto", "float32", "bfloat16"),
    }
