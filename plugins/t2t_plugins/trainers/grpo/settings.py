"""The settings of `grpo`, and checks for values that no run could use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingOrder
from t2t_core.length_reward import length_reward
from t2t_plugins.policies.hf import model_facts
from t2t_plugins.sampler import supports_config
from t2t_plugins.trainers.settings import AT_LEAST_ONE, POSITIVE, Range, check_formats, check_start

WHERE = "trainer grpo"
MAX_GRAD_NORM = 1.0  # a gradient with a larger norm is scaled down to it


@dataclass(frozen=True)
class Settings:
    """Every knob.

    Args:
        group: conversations per instance. prompts: instances per update. epochs: passes over the round's instances; the last
            partial batch of a pass is dropped. max_updates: stop there (0: do all).
        learning_rate: constant. weight_decay, beta2: AdamW's.
        beta: weight of the k3 KL term against the policy that the round started from.
        temperature, max_tokens: for sampling a turn.
        length_start, length_end: response tokens between which the length penalty grows, if the testbed has one.
        loss: "dapo" averages over the tokens of an update, "grpo" over each conversation's tokens first, "dr_grpo" divides by
            conversations x `max_tokens`, "cispo" weights log-probabilities by the clipped ratio instead of clipping the gain.
        clip: how far the importance ratio may move from 1; with "cispo", a token weighs at most 1 + clip. The ratio is 1 unless
            `iterations`, the optimisation steps per sampled batch, is above 1.
        scale: "group" divides advantages by the group's standard deviation, "batch" by the update's, "none" does not divide.
        dynamic: drop groups whose conversations all earn the same, and play others until the update is full or three times
            its instances have been played (DAPO's dynamic sampling); their tokens are counted.
        stratify: give every update the same mix of the tables' columns.
        optimizer: "reset" it every round, or "keep" its state. save_every: updates between two saved states.
        prompt_format: "" takes the one that the checkpoint was taught, else the testbed's first.
        threads: of torch on a CPU; 0 leaves torch's default.
    """

    group: int = 8
    prompts: int = 32
    epochs: int = 1
    max_updates: int = 0
    learning_rate: float = 3e-4
    weight_decay: float = 0.0
    beta2: float = 0.999
    beta: float = 0.0
    temperature: float = 1.0
    max_tokens: int = 64
    length_start: int = 1500
    length_end: int = 4096
    loss: str = "dapo"
    clip: float = 0.2
    iterations: int = 1
    scale: str = "group"
    dynamic: bool = False
    stratify: bool = True
    optimizer: str = "reset"
    save_every: int = 50
    prompt_format: str = ""
    threads: int = 1

    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = {
        "loss": ("dapo", "grpo", "dr_grpo", "cispo"),
        "scale": ("group", "batch", "none"),
        "optimizer": ("reset", "keep"),
    }
    RANGES: ClassVar[Mapping[str, Range]] = {
        "group": Range(2, 4096),
        "prompts": Range(1, 10**6),
        "epochs": Range(1, 10_000),
        "learning_rate": POSITIVE,
        "beta2": Range(0, 1, below=True),
        "temperature": Range(0, 10, above=True),  # at 0 all answers of a group would be the same
        "max_tokens": Range(1, 10**6),
        "clip": POSITIVE,
        "iterations": Range(1, 1000),
        "save_every": AT_LEAST_ONE,
        "threads": Range(0, 1024),
    }

    def updates(self, instances: int) -> int:
        """How many updates a round with so many instances has; the last partial batch of a pass is dropped."""
        every = instances // self.prompts * self.epochs
        return min(every, self.max_updates) if self.max_updates else every


def check(settings: Settings, order: TrainingOrder) -> None:
    """Raise T2TError for settings that no round of this run could use."""
    length_reward(0, settings.length_start, settings.length_end)
    check_start(order, WHERE)
    check_formats(order, WHERE, prompt_format=settings.prompt_format)
    if order.samples < settings.prompts:
        raise T2TError(
            f"{order.samples} instances do not fill an update of {settings.prompts} prompts",
            where=WHERE,
            next=f"set generation.samples={settings.prompts} or more, or lower training.prompts",
        )


def check_model(start: str) -> None:
    """Raise T2TError if the checkpoint cannot be read, or is not an embedded policy."""
    config, _ = model_facts(start, WHERE)
    if not supports_config(config):
        raise T2TError(
            "this model is not an embedded policy", where=f"{WHERE}, {start}", next="trainer = trl-grpo trains any model"
        )
