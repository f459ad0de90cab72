"""`trl-grpo`: one round of GRPO by TRL, read from top to bottom (paper section on training; the rest is our choice).

The reward is w_acc * accuracy + w_len * length with the adaptive weights of `t2t_core.length_reward`; accuracy is the
testbed's verdict. The weights' state is saved with every checkpoint and is the same on all processes. With `processes` above
one, `accelerate launch` runs `train` in each of them (`launch`, `process`).
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from t2t_core import advice
from t2t_core.errors import NotReady, T2TError
from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.length_reward import HIGH, LOW, WEIGHTS_HIGH, WEIGHTS_LOW, AdaptiveWeights
from t2t_core.records import Message, TrainingResult
from t2t_core.run.gpus import Gpus
from t2t_core.seeding import key
from t2t_core.settings import no_argument
from t2t_core.store import folders
from t2t_plugins.policies.hf import model_facts, quiet
from t2t_plugins.sampler import supports_config
from t2t_plugins.trainers import common
from t2t_plugins.trainers.common import last_saved, prompts_of, stratified
from t2t_plugins.trainers.extra import require
from t2t_plugins.trainers.settings import check_settings
from t2t_plugins.trainers.stopping import Stopping
from t2t_plugins.trainers.trl_grpo.callbacks import FIGURES, watch, write_weights
from t2t_plugins.trainers.trl_grpo.conversations import INDEX
from t2t_plugins.trainers.trl_grpo.conversations import rollout as conversations
from t2t_plugins.trainers.trl_grpo.launch import launch
from t2t_plugins.trainers.trl_grpo.memory import measure
from t2t_plugins.trainers.trl_grpo.one_shot import rollout
from t2t_plugins.trainers.trl_grpo.plan import plan_text
from t2t_plugins.trainers.trl_grpo.reward import Reward, read_facts
from t2t_plugins.trainers.trl_grpo.settings import WHERE, Settings, check, check_fill
from t2t_plugins.trainers.trl_grpo.sharding import OPTIMIZERS, check_sharded, load_optimizer, save_model, save_whole, settle
from t2t_plugins.trainers.trl_grpo.trl_config import OBJECTIVE, check_passed_on, grpo_config
from t2t_plugins.trainers.weights import WEIGHTS_FILE, read_weights


class Grpo:
    """The trainer `trl-grpo`. A run sets its settings under [training]."""

    facts: ClassVar[Mapping[str, str]] = {
        "algorithm": "GRPO with AdamW, a constant learning rate, and the k3 KL term against the policy the round started from",
        "reward": "the testbed's; where it has a length term, w_acc * accuracy + w_len * length penalty: (w_acc, w_len) moves "
        "from (0.5, 0.5) to (0.8, 0.2) as answers get short",
    }
    stops_when_asked = True

    constants: ClassVar[Mapping[str, Any]] = {
        "kl_estimator": "k3",
        "weight_accuracy": f"{WEIGHTS_LOW[0]} to {WEIGHTS_HIGH[0]}",
        "weight_length": f"{WEIGHTS_LOW[1]} to {WEIGHTS_HIGH[1]}",
        "share_short": f"{LOW} to {HIGH}",
        "share_short_decay": AdaptiveWeights.decay,
    }

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, WHERE)
        self._settings = dict(settings or {})
        usual = check_settings(Settings, self._settings, WHERE)
        self.defaults = {**asdict(usual), "trl": {**OBJECTIVE, **usual.trl}}

    def check(self, order: TrainingOrder) -> None:
        """Raise T2TError for whatever `train` would refuse, before a run begins."""
        settings = check_settings(Settings, {**self._settings, **order.settings}, WHERE)
        check(settings, order)
        check_passed_on(settings)

    def ready(self, order: TrainingOrder) -> None:
        """Raise T2TError if something that it needs is not available on this machine."""
        settings = check_settings(Settings, {**self._settings, **order.settings}, WHERE)
        require(WHERE, "torch", "datasets", "transformers", "trl")
        check_machine(settings, str(order.checkpoint))

    def plan(self, order: TrainingOrder, gpus: Gpus | None) -> str:
        """How much GPU memory, disk and time the training takes. Raises T2TError if it does not fit."""
        return plan_text(check_settings(Settings, {**self._settings, **order.settings}, WHERE), order, gpus)

    def train(self, job: TrainingJob) -> TrainingResult:
        settings = check_settings(Settings, {**self._settings, **job.settings}, WHERE)
        check(settings, TrainingOrder(job.checkpoint, job.testbed, job.settings, len(job.instances)))
        common.refuse_overlap(job)
        if settings.processes > 1 or settings.engine == "vllm-colocate":
            check_machine(settings, str(job.checkpoint))
            return launch(job, settings)  # even for one process: vLLM surely frees the GPU only when its process ends
        return train(job, settings)


def check_machine(settings: Settings, start: str) -> None:
    """Raise T2TError if the checkpoint cannot be read, or if the engine cannot work on this machine or with this model."""
    import torch

    config, template = model_facts(start, WHERE)
    if settings.engine == "fast" and not supports_config(config):
        raise T2TError("engine=fast does not compute this model", where=WHERE, next="use engine=plain")
    if settings.engine == "vllm-colocate" and not torch.cuda.is_available():
        raise NotReady("vLLM in the training process needs a GPU", where=WHERE, next="use engine=auto, or engine=vllm-server")
    if settings.engine == "vllm-server":
        what, how = "engine=vllm-server needs vLLM beside the trainer too", f"{advice.extra('train', 'vllm')}, or use engine=auto"
        require(WHERE, "vllm", what=what, next=how)
    if settings.thinking != "default" and "enable_thinking" not in template:
        raise T2TError(
            f"thinking={settings.thinking} does nothing: the model's chat template has no such switch",
            where=f"{WHERE}, {start}",
            next="set thinking=default",
        )


def train(job: TrainingJob, settings: Settings) -> TrainingResult:
    """One round in this process (or in this process's share of a launched round)."""
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # rollout_func may change; the extra `train` pins TRL
    from datasets import Dataset
    from transformers import PrinterCallback

    trl: Any = import_module("trl")
    quiet()
    start = Path(str(job.checkpoint))
    check_machine(settings, str(start))
    rows = schedule(job, settings)
    prompts = prompts_of(job, settings.prompt_format)
    rows = common.bucketed(rows, prompts, settings.prompts, settings.buckets)
    form, talks = common.format_of(job, settings.prompt_format), job.testbed.turns > 1
    openings = [{"role": "user", "content": prompts[i]} | ({INDEX: i} if talks else {}) for i in rows]
    dataset = Dataset.from_list([{"prompt": [first], "index": i} for first, i in zip(openings, rows, strict=True)])
    reward = Reward(job, settings, read_weights(start), form)
    updates = job.folder / common.UPDATES
    longest = longest_prompt(prompts, settings, str(start))
    trainer = trl.GRPOTrainer(
        model=str(start),
        reward_funcs=reward,
        args=grpo_config(settings, updates, job.seed, settings.updates(len(job.instances)), longest),
        train_dataset=dataset,
        callbacks=[watch(job, settings, reward)],
        peft_config=common.adapters(settings.lora),
        rollout_func=conversations(job, settings, form) if talks else rollout(job, settings, str(start)),
    )
    trainer.remove_callback(PrinterCallback)
    reward.gather = trainer.accelerator.gather
    saved = last_saved(updates)
    if saved is not None:
        check_state(saved, settings)
        reward.weights, reward.facts = read_weights(saved), read_facts(saved, job.testbed)
    before = kept_state(job.resume_from, settings) if settings.optimizer == "keep" and job.resume_from and not saved else None
    trainer.add_callback(begin(trainer, settings, before))
    trainer.add_callback(measure(trainer, job))
    beside = partial(write_weights, reward)
    with common.threads(settings.threads), common.saving(updates):
        Stopping(trainer, job.stop, beside, every=settings.iterations).train(saved)
    return finish(trainer, job, settings, reward)


def begin(trainer: Any, settings: Settings, before: Path | None) -> Any:
    """A callback for the start of the training: checks that the model is sharded as asked, and loads the optimizer of the round
    before if it is kept."""
    from transformers import TrainerCallback

    class Begin(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            check_sharded(trainer.model_wrapped, settings, trainer.accelerator.num_processes)
            settle(trainer.model_wrapped, settings)
            if before is not None:
                load_optimizer(trainer, settings, before)

    return Begin()


def check_state(saved: Path, settings: Settings) -> None:
    """Raise T2TError if a saved state lacks its optimizer, since transformers would silently continue without it."""
    if not common.holds(saved, OPTIMIZERS[settings.sharding]):
        raise T2TError(
            "the saved state of this training has no optimizer",
            where=str(saved),
            cause=f"there is no {OPTIMIZERS[settings.sharding]} in it",
            next="remove that folder: the training then goes on from the one before, or begins again",
        )


def kept_state(before: Path, settings: Settings) -> Path:
    """The previous round's state with its optimizer. Raises T2TError if there is none."""
    saved = last_saved(before / common.UPDATES)
    if saved is None or not common.holds(saved, OPTIMIZERS[settings.sharding]):
        raise T2TError(
            "the optimizer's state of the round before is not there",
            where=str(before / common.UPDATES),
            cause="that round was trained with optimizer=reset, or the folder was removed",
            next="set training.optimizer=reset",
        )
    return saved


def longest_prompt(prompts: Sequence[str], settings: Settings, start: str) -> int:
    """How many tokens the longest prompt has; 0 for engines other than vLLM, which do not need to know."""
    if not settings.engine.startswith("vllm"):
        return 0
    from transformers import AutoTokenizer

    from t2t_plugins.policies.chat import chat_prompts

    tokenizer = AutoTokenizer.from_pretrained(start)
    thinking = {"on": True, "off": False}.get(settings.thinking)
    texts = chat_prompts(tokenizer, [((Message("user", prompt),), ()) for prompt in prompts], thinking)
    return max(map(len, tokenizer(texts, add_special_tokens=False)["input_ids"]))


def schedule(job: TrainingJob, settings: Settings) -> list[int]:
    """The instance of every prompt of every sampled batch. Each pass has its own order, stratified over the groups."""
    check_fill(settings, len(job.instances))
    whole = len(job.instances) // settings.prompts * settings.prompts
    passes = (stratified(job, key(job.seed, "pass", number))[:whole] for number in range(settings.epochs))
    batches = math.ceil(settings.updates(len(job.instances)) / settings.iterations)
    return list(itertools.islice(itertools.chain.from_iterable(passes), batches * settings.prompts))


def finish(trainer: Any, job: TrainingJob, settings: Settings, reward: Reward) -> TrainingResult:
    """Save the new checkpoint, with adapters merged, and return the result."""
    state = trainer.state
    if settings.sharding != "none":
        save_whole(trainer, settings, Path(str(job.checkpoint)), job.folder)
    elif trainer.is_world_process_zero():
        save_model(trainer.accelerator.unwrap_model(trainer.model), settings, job.folder)
    if trainer.is_world_process_zero():
        trainer.processing_class.save_pretrained(job.folder)
        folders.write_json(job.folder / WEIGHTS_FILE, reward.weights.to_dict())
    trainer.accelerator.wait_for_everyone()
    last: dict[str, Any] = {}
    for line in state.log_history:
        last |= {ours: line[theirs] for ours, theirs in FIGURES.items() if theirs in line}
    return TrainingResult(
        checkpoint=job.folder,
        metrics={**last, "cells": reward.facts.to_dict()},
        samples=math.ceil(state.global_step / settings.iterations) * settings.prompts * settings.group,
        updates=state.global_step,
        tokens=int(state.num_input_tokens_seen),
        keep_updates=settings.optimizer == "keep",
    )
