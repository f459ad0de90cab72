"""The settings of `grpo`, and what of them a run could not go by."""

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
MAX_GRAD_NORM = 1.0  # beyond it the gradient is scaled down


@dataclass(frozen=True)
class Settings:
    """Every knob.

    Args:
        group: conversations per instance. prompts: instances per update. epochs: passes over the round's instances; the last
            partial batch of a pass is dropped. max_updates: stop there (0: do all).
        learning_rate: constant. weight_decay, beta2: of AdamW.
        beta: weight of the k3 KL term against the policy the round started from.
        temperature, max_tokens: of a turn's sampling.
        length_start, length_end: response tokens between which the length penalty grows, where the testbed has one.
        loss: "dapo" averages over the tokens of an update, "grpo" over each conversation's tokens first, "dr_grpo" divides by
            conversations x `max_tokens`, "cispo" weighs log-probabilities by the clipped ratio instead of clipping the gain.
        clip: of the importance ratio; of "cispo", 1 + clip is the most a token weighs. The ratio is 1 unless `iterations`,
            the optimisation steps per sampled batch, is above 1.
        scale: "group" divides advantages by the group's standard deviation, "batch" by the update's, "none" not.
        dynamic: drop groups whose conversations all earn the same, and play others until the update is full or three times
            its instances were played (DAPO's dynamic sampling); their tokens are counted.
        stratify: every update holds the columns of the tables in like shares.
        optimizer: "reset" every round or "keep" its state. save_every: updates between two saved states.
        prompt_format: "" takes the one the checkpoint was taught, else the testbed's first.
        threads: of torch on a CPU; 0 leaves its default.
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
        "temperature": Range(0, 10, above=True),  # at 0 every answer of a group is the same
        "max_tokens": Range(1, 10**6),
        "clip": POSITIVE,
        "iterations": Range(1, 1000),
        "save_every": AT_LEAST_ONE,
        "threads": Range(0, 1024),
    }

    def updates(self, instances: int) -> int:
        """Updates of a round with so many instances; a last partial batch of a pass is dropped."""
        every = instances // self.prompts * self.epochs
        return min(every, self.max_updates) if self.max_updates else every


def check(settings: Settings, order: TrainingOrder) -> None:
    """T2TError for settings that a round of this run could not go by."""
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
    """T2TError for a checkpoint that cannot be read, or that is no embedded policy."""
    config, _ = model_facts(start, WHERE)
    if not supports_config(config):
        raise T2TError(
            "this model is not an embedded policy", where=f"{WHERE}, {start}", next="trainer = trl-grpo trains any model"
        )
