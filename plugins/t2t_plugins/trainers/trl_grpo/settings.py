"""The settings of `trl-grpo`, and checks for values that no round could use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingOrder
from t2t_core.length_reward import length_reward
from t2t_core.records import Sampling
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
        learning_rate: constant, AdamW (paper). weight_decay, beta2: AdamW's (ours).
        beta: weight of the k3 KL term against the policy that the round started from (the term is the paper's, the value ours).
        temperature, max_tokens, top_p, top_k, min_p: for sampling (ours). By default no token is left out, since TRL's
            probabilities of a response take only the temperature into account. thinking: "default", or switch the chat
            template's thinking "on" or "off".
        length_start, length_end: response tokens between which the length penalty grows (paper).
        loss: "dapo" averages over the tokens of an update, "grpo" over its responses first; "cispo" weighs log-probabilities by
            the clipped ratio instead of clipping the gain, and a token weighs at most 1 + clip (ours).
        clip: how far the importance ratio may move from 1. It is 1 unless `iterations`, the number of updates made from each
            sampled batch, is above 1; the batch's responses are counted once.
        scale: "group" divides advantages by the group's standard deviation, "batch" by the update's, "none" does not divide
            (ours).
        optimizer: "reset" it every round, or "keep" its state. save_every: updates between two saved states, rounded up to
            whole sampled batches.
        engine: how responses are sampled: our sampler where it fits ("auto", "fast"), transformers' generate ("plain"),
            vLLM in the same process or behind `vllm_server_url`.
        buckets: sample and train an update in so many parts with prompts of similar length, which saves padding; token means
            are then per part. micro_batch: responses per backward pass; 0: a process's whole share of a part.
        lora: rank of adapters, which are merged into the new checkpoint; 0 trains all weights.
        dtype: "mixed" keeps the weights in float32 and multiplies in bfloat16, "float32" does all in float32, "auto" is "mixed"
            on a GPU and "float32" elsewhere; weights kept in "bfloat16" take half the memory, and a small learning rate hardly
            moves them.
        prompt_format: "" takes the one that the checkpoint was taught, else the testbed's first.
        threads: of torch on a CPU; 0 leaves torch's default. Very small models are faster with few, on a busy machine with one.
        max_updates: stop there (0: do all).
        processes: above 1, runs under `accelerate launch`.
        sharding: how the model is spread over the processes: "none" (each holds all of it), "fsdp2", "zero2" or "zero3".
        recompute: compute activations again in the backward pass instead of keeping them (gradient checkpointing).
        vllm_memory: the share of a GPU's memory that vLLM takes in the training process. vllm_sleep: give it back while the
            weights are trained. vllm_tensor_parallel: the GPUs over which one vLLM engine is spread.
        vllm_correction: how to correct for the difference between vLLM's probabilities of a response and the trainer's: per
            token or per response ("sequence"); ratios above `vllm_correction_cap` are cut ("truncate") or left out ("mask").
        trl, accelerate: any other options of `trl.GRPOConfig` and of `accelerate launch`, by their names.
    """

    group: int = 8
    prompts: int = 128
    epochs: int = 3
    learning_rate: float = 2e-6
    weight_decay: float = 0.0
    beta2: float = 0.999
    beta: float = 0.001
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
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
    max_updates: int = 0
    processes: int = 1
    sharding: str = "none"
    recompute: bool = False
    vllm_memory: float = 0.3
    vllm_sleep: bool = True
    vllm_tensor_parallel: int = 1
    vllm_correction: str = "token_truncate"
    vllm_correction_cap: float = 2.0
    trl: Mapping[str, Any] = field(default_factory=dict)
    accelerate: Mapping[str, Any] = field(default_factory=dict)

    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = {
        "thinking": ("default", "on", "off"),
        "loss": ("dapo", "grpo", "dr_grpo", "bnpo", "cispo"),
        "scale": ("group", "batch", "none"),
        "optimizer": ("reset", "keep"),
        "engine": ("auto", "fast", "plain", "vllm-colocate", "vllm-server"),
        "dtype": ("auto", "float32", "mixed", "bfloat16"),
        "sharding": ("none", "fsdp2", "zero2", "zero3"),
        "vllm_correction": ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask", "none"),
    }
    RANGES: ClassVar[Mapping[str, Range]] = {
        "group": Range(2, 4096),
        "prompts": Range(1, 10**6),
        "epochs": Range(1, 10_000),
        "learning_rate": POSITIVE,
        "beta2": Range(0, 1, below=True),
        "temperature": Range(0, 10, above=True),  # at 0 all responses of a group would be the same
        "top_p": Range(0, 1, above=True),
        "top_k": Range(0, 10**7),
        "min_p": Range(0, 1),
        "max_tokens": Range(1, 10**6),
        "clip": POSITIVE,
        "iterations": Range(1, 1000),
        "save_every": AT_LEAST_ONE,
        "buckets": AT_LEAST_ONE,
        "lora": Range(0, 4096),
        "threads": Range(0, 1024),
        "processes": Range(1, 1024),
        "vllm_memory": Range(0.05, 0.95),
        "vllm_tensor_parallel": Range(1, 64),
        "vllm_correction_cap": Range(1),
    }

    @property
    def sampling(self) -> Sampling:
        """How responses are drawn."""
        return Sampling(self.temperature, self.max_tokens, None, self.top_p, self.top_k, self.min_p)

    @property
    def part(self) -> int:
        """How many responses are sampled and trained together: those of an update, or of a bucket."""
        return self.prompts * self.group // self.buckets

    @property
    def micro(self) -> int:
        """How many responses a process has in one backward pass."""
        return self.micro_batch or self.part // self.processes

    def in_bfloat16(self, cpu: bool) -> bool:
        """Whether the trainer turns on bfloat16 autocast (TRL's `bf16`)."""
        return self.dtype == "mixed" or (self.dtype != "float32" and not cpu)

    def updates(self, instances: int) -> int:
        """How many updates a round with so many instances has; the last partial batch of a pass is dropped."""
        every = instances // self.prompts * self.epochs * self.iterations
        return min(every, self.max_updates) if self.max_updates else every


def check(settings: Settings, order: TrainingOrder) -> None:
    """Raise T2TError for settings that no round of this run could use."""
    length_reward(0, settings.length_start, settings.length_end)
    check_start(order, WHERE)
    check_formats(order, WHERE, prompt_format=settings.prompt_format)
    check_fill(settings, order.samples)
    check_split(settings)
    if settings.iterations > 1 and settings.buckets > 1:
        raise T2TError(
            f"iterations={settings.iterations} does not go with buckets={settings.buckets}",
            where=WHERE,
            cause="a bucket is sampled and trained before the next one, but several updates need the whole batch at once",
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
    _check_sharding(settings)


def _check_sharding(settings: Settings) -> None:
    if settings.sharding != "none" and settings.processes < 2:
        raise T2TError(
            f"sharding={settings.sharding} spreads nothing over one process",
            where=WHERE,
            next="set processes=2 or more, or sharding=none",
        )
    if settings.optimizer == "keep" and settings.sharding.startswith("zero"):
        raise T2TError(
            f"optimizer=keep does not go with sharding={settings.sharding}",
            where=WHERE,
            cause="DeepSpeed keeps its state in pieces of its own that belong to one training",
            next="use sharding=fsdp2, or optimizer=reset",
        )
    if settings.processes % settings.vllm_tensor_parallel:
        raise T2TError(
            f"{settings.processes} processes do not split into groups of vllm_tensor_parallel={settings.vllm_tensor_parallel}",
            where=WHERE,
        )
    _check_machines(settings)
    if settings.accelerate and settings.processes < 2:
        raise T2TError("[training.accelerate] does nothing for one process", where=WHERE, next="set processes=2 or more")


def _check_machines(settings: Settings) -> None:
    machines = settings.accelerate.get("num_machines", 1)
    if type(machines) is not int or machines < 1 or settings.processes % machines:
        raise T2TError(
            f"{settings.processes} processes do not spread over num_machines={ascii(machines)[:20]}",
            where=f"{WHERE}, [training.accelerate]",
            next="processes counts those of all machines, as many on each",
        )
    missing = [name for name in ("main_process_ip", "main_process_port") if name not in settings.accelerate]
    if machines > 1 and missing:
        raise T2TError(
            f"{machines} machines have to agree on {' and '.join(missing)}",
            where=f"{WHERE}, [training.accelerate]",
            next="set the first machine's address and a port of it that is free",
        )


def check_fill(settings: Settings, instances: int) -> None:
    """Raise T2TError if so many instances do not fill one update."""
    if instances < settings.prompts:
        raise T2TError(
            f"{instances} instances do not fill an update of {settings.prompts} prompts",
            where=WHERE,
            next=f"set generation.samples={settings.prompts} or more, or lower training.prompts",
        )


def check_split(settings: Settings) -> None:
    """Raise T2TError if an update does not split evenly into buckets, processes and backward passes."""
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
