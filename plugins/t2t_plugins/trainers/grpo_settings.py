"""Every knob of `trl-grpo`, and which values no round could go by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingOrder
from t2t_core.length_reward import length_reward
from t2t_plugins.trainers.settings import (
    AT_LEAST_ONE,
    POSITIVE,
    Range,
    check_formats,
    check_start,
)

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
        clip: of the importance ratio, which is 1 unless `iterations` is above 1: the updates made from each sampled batch, one
            after another, its responses counted once.
        scale: "group" divides advantages by the group's standard deviation, "batch" by the update's, "none" not (ours).
        optimizer: "reset" every round or "keep" its state. save_every: updates between two saved states, rounded up to whole
            sampled batches.
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
    RANGES: ClassVar[Mapping[str, Range]] = {
        "group": Range(2, 4096),
        "prompts": Range(1, 10**6),
        "epochs": Range(1, 10_000),
        "learning_rate": POSITIVE,
        "beta2": Range(0, 1, below=True),
        "temperature": Range(0, 10, above=True),  # at 0 every response of a group is the same
        "max_tokens": Range(1, 10**6),
        "clip": POSITIVE,
        "iterations": Range(1, 1000),
        "save_every": AT_LEAST_ONE,
        "buckets": AT_LEAST_ONE,
        "lora": Range(0, 4096),
        "threads": Range(0, 1024),
        "processes": Range(1, 1024),
    }

    @property
    def part(self) -> int:
        """Responses that are sampled and trained together: an update's, or a bucket's."""
        return self.prompts * self.group // self.buckets

    @property
    def micro(self) -> int:
        """Responses of a process in one backward pass."""
        return self.micro_batch or self.part // self.processes

    def updates(self, instances: int) -> int:
        """Updates of a round with so many instances; a last partial batch of a pass is dropped."""
        every = instances // self.prompts * self.epochs * self.iterations
        return min(every, self.max_updates) if self.max_updates else every


def check(settings: Settings, order: TrainingOrder) -> None:
    """T2TError for settings that a round of this run could not go by."""
    length_reward(0, settings.length_start, settings.length_end)
    check_start(order, WHERE)
    check_formats(order, WHERE, prompt_format=settings.prompt_format)
    check_fill(settings, order.samples)
    check_split(settings)
    if settings.iterations > 1 and settings.buckets > 1:
        raise T2TError(
            f"iterations={settings.iterations} does not go with buckets={settings.buckets}",
            where=WHERE,
            cause="a bucket is sampled and trained before the next one, and several updates want the whole batch at once",
            next="set buckets=1",
        )
    if settings.vllm_server_url and settings.engine != "vllm-server":
        raise T2TError(
            f"vllm_server_url does nothing with engine={settings.engine}",
            where=WHERE,
            next="set engine=vllm-server, or leave it out",
        )
    if settings.engine == "fast" and settings.lora:
        raise T2TError("engine=fast does not compute adapters", where=WHERE, next="use engine=plain with lora")


def check_fill(settings: Settings, instances: int) -> None:
    """T2TError where so many instances do not fill one update."""
    if instances < settings.prompts:
        raise T2TError(
            f"{instances} instances do not fill an update of {settings.prompts} prompts",
            where=WHERE,
            next=f"set generation.samples={settings.prompts} or more, or lower training.prompts",
        )


def check_split(settings: Settings) -> None:
    """T2TError where an update does not split evenly into buckets, processes and backward passes."""
    if settings.prompts % settings.buckets:
        raise T2TError(f"{settings.prompts} prompts do not split evenly into {settings.buckets} buckets", where=WHERE)
    if settings.micro < 1 or settings.part % (settings.micro * settings.processes):
        each = settings.part // settings.processes
        raise T2TError(
            f"{settings.part} responses do not split evenly over {settings.processes} processes, {settings.micro} at once",
            where=f"{WHERE}, micro_batch",
            cause=f"{settings.prompts} prompts x {settings.group} responses in {settings.buckets} buckets",
            next=f"a micro_batch that divides {each}" if each and not settings.part % settings.processes else "other processes",
        )
