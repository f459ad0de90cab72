"""`trl-grpo`: one round of GRPO by TRL, read from top to bottom (paper section on training; the rest is our choice).

The reward is w_acc * accuracy + w_len * length with the adaptive weights of `t2t_core.length_reward`; accuracy is the
testbed's verdict. The weights' state is saved with every checkpoint and is the same on all processes. With `processes` above
one, `accelerate launch` runs `train` in each of them (grpo_launch, grpo_process).
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from t2t_core.errors import NotReady, T2TError
from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.length_reward import HIGH, LOW, WEIGHTS_HIGH, WEIGHTS_LOW, AdaptiveWeights
from t2t_core.records import Message, TrainingResult
from t2t_core.seeding import key
from t2t_core.settings import no_argument
from t2t_core.store import folders
from t2t_plugins.policies.hf import model_facts, quiet
from t2t_plugins.sampler import supports_config
from t2t_plugins.trainers import common
from t2t_plugins.trainers.common import last_saved, prompts_of, stratified
from t2t_plugins.trainers.extra import require
from t2t_plugins.trainers.grpo_callbacks import FIGURES, watch
from t2t_plugins.trainers.grpo_launch import launch
from t2t_plugins.trainers.grpo_reward import WEIGHTS_FILE, Reward, read_weights
from t2t_plugins.trainers.grpo_settings import WHERE, Settings, check, check_fill, check_split
from t2t_plugins.trainers.settings import check_settings

MAX_GRAD_NORM = 1.0  # beyond it the gradient is scaled down (ours)


class Grpo:
    """The trainer behind the name; a run's settings stand in its configuration under [training]."""

    facts: ClassVar[Mapping[str, str]] = {
        "algorithm": "GRPO with AdamW, a constant learning rate, and the k3 KL term against the policy the round started from",
        "reward": "w_acc * accuracy + w_len * length penalty; (w_acc, w_len) moves from (0.5, 0.5) to (0.8, 0.2) as answers "
        "get short",
    }

    constants: ClassVar[Mapping[str, Any]] = {
        "optimizer": "AdamW",
        "schedule": "constant",
        "kl_estimator": "k3",
        "adam_beta1": 0.9,
        "adam_epsilon": 1e-8,
        "max_grad_norm": MAX_GRAD_NORM,
        "top_p": 1.0,
        "weight_accuracy": f"{WEIGHTS_LOW[0]} to {WEIGHTS_HIGH[0]}",
        "weight_length": f"{WEIGHTS_LOW[1]} to {WEIGHTS_HIGH[1]}",
        "share_short": f"{LOW} to {HIGH}",
        "share_short_decay": AdaptiveWeights.decay,
    }

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, WHERE)
        self._settings = dict(settings or {})
        self.defaults = asdict(check_settings(Settings, self._settings, WHERE))

    def check(self, order: TrainingOrder) -> None:
        """T2TError for what `train` would refuse, before a run has begun."""
        check(check_settings(Settings, {**self._settings, **order.settings}, WHERE), order)

    def ready(self, order: TrainingOrder) -> None:
        """T2TError where what it needs is not at hand on this machine."""
        settings = check_settings(Settings, {**self._settings, **order.settings}, WHERE)
        require(WHERE, "torch", "datasets", "transformers", "trl")
        check_machine(settings, str(order.checkpoint))

    def train(self, job: TrainingJob) -> TrainingResult:
        settings = check_settings(Settings, {**self._settings, **job.settings}, WHERE)
        check(settings, TrainingOrder(job.checkpoint, job.testbed, job.settings, len(job.instances)))
        common.refuse_overlap(job)
        if settings.processes > 1 and "LOCAL_RANK" not in os.environ:
            return launch(replace(job, settings=asdict(settings)), settings.processes)
        return train(job, settings)


def check_machine(settings: Settings, start: str) -> None:
    """T2TError for a checkpoint that cannot be read here, and for an engine that cannot work here or does not fit it."""
    import torch

    config, template = model_facts(start, WHERE)
    if settings.engine == "fast" and not supports_config(config):
        raise T2TError("engine=fast does not compute this model", where=WHERE, next="use engine=plain")
    if settings.engine == "vllm-colocate" and not torch.cuda.is_available():
        raise NotReady("vLLM in the training process needs a GPU", where=WHERE, next="use engine=auto, or engine=vllm-server")
    if settings.engine == "vllm-server":
        what, how = "engine=vllm-server needs vLLM beside the trainer too", "pip install -e '.[train,vllm]', or use engine=auto"
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
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback

    trl: Any = import_module("trl")
    quiet()
    start = Path(str(job.checkpoint))
    check_machine(settings, str(start))
    rows = schedule(job, settings)
    prompts = prompts_of(job, settings.prompt_format)
    rows = common.bucketed(rows, prompts, settings.prompts, settings.buckets)
    dataset = Dataset.from_list([{"prompt": [{"role": "user", "content": prompts[i]}], "index": i} for i in rows])
    reward = Reward(job, settings, read_weights(start))
    updates = job.folder / common.UPDATES
    trainer = trl.GRPOTrainer(
        model=str(start),
        reward_funcs=reward,
        args=configuration(settings, updates, job.seed, settings.updates(len(job.instances))),
        train_dataset=dataset,
        callbacks=[watch(job, settings, reward)],
        peft_config=common.adapters(settings.lora),
        rollout_func=rollout(job, settings, str(start)),
    )
    trainer.remove_callback(PrinterCallback)
    reward.gather = trainer.accelerator.gather
    saved = last_saved(updates)
    if saved is not None:
        reward.weights = read_weights(saved)
    elif settings.optimizer == "keep" and job.resume_from:
        trainer.create_optimizer()
        trainer.optimizer.load_state_dict(torch.load(kept_optimizer(job.resume_from), weights_only=True, map_location="cpu"))
    with common.threads(settings.threads):
        trainer.train(resume_from_checkpoint=str(saved) if saved else None)
    return finish(trainer, job, settings, reward)


def kept_optimizer(before: Path) -> Path:
    """The optimizer's state that the round before left; T2TError where it left none."""
    saved = last_saved(before / common.UPDATES)
    if saved is None or not (saved / "optimizer.pt").is_file():
        raise T2TError(
            "the optimizer's state of the round before is not there",
            where=str(before / common.UPDATES),
            cause="that round was trained with optimizer=reset, or the folder was removed",
            next="set training.optimizer=reset",
        )
    return saved / "optimizer.pt"


def schedule(job: TrainingJob, settings: Settings) -> list[int]:
    """The instance of every prompt of every sampled batch: each pass in an order of its own, stratified over the map sizes."""
    check_fill(settings, len(job.instances))
    whole = len(job.instances) // settings.prompts * settings.prompts
    passes = (stratified(job, key(job.seed, "pass", number))[:whole] for number in range(settings.epochs))
    batches = math.ceil(settings.updates(len(job.instances)) / settings.iterations)
    return list(itertools.islice(itertools.chain.from_iterable(passes), batches * settings.prompts))


def configuration(settings: Settings, folder: Path, seed: int, updates: int) -> Any:
    """Our settings in TRL's words."""
    import torch

    trl: Any = import_module("trl")
    gpu = torch.cuda.is_available()
    check_split(settings)
    dtype = "bfloat16" if settings.dtype == "bfloat16" else "float32"
    vllm = {"vllm-colocate": "colocate", "vllm-server": "server"}.get(settings.engine)
    return trl.GRPOConfig(
        output_dir=str(folder),
        seed=seed % 2**31,
        max_steps=updates,  # the passes are in the dataset, in their order
        shuffle_dataset=False,
        per_device_train_batch_size=settings.micro,
        gradient_accumulation_steps=settings.prompts * settings.group // (settings.micro * settings.processes),
        generation_batch_size=settings.part,
        num_generations=settings.group,
        num_iterations=settings.iterations,
        max_completion_length=settings.max_tokens,
        temperature=settings.temperature,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="constant",
        weight_decay=settings.weight_decay,
        adam_beta2=settings.beta2,
        max_grad_norm=MAX_GRAD_NORM,
        beta=settings.beta,
        epsilon=settings.clip,
        loss_type=settings.loss,
        scale_rewards=settings.scale,
        model_init_kwargs={"dtype": dtype},
        chat_template_kwargs={} if settings.thinking == "default" else {"enable_thinking": settings.thinking == "on"},
        use_vllm=vllm is not None,
        vllm_mode=vllm or "colocate",
        vllm_server_base_url=settings.vllm_server_url or None,
        use_cpu=not gpu,
        bf16=gpu and settings.dtype != "float32",
        fp16=False,
        gradient_checkpointing=False,
        logging_steps=1,
        logging_first_step=True,
        save_strategy="steps",
        save_steps=math.ceil(settings.save_every / settings.iterations) * settings.iterations,
        save_total_limit=1,
        report_to=[],
        disable_tqdm=True,
        dataloader_num_workers=0,
    )


def rollout(job: TrainingJob, settings: Settings, start: str) -> Any:
    """Our sampler as TRL's `rollout_func`, or None where TRL's own generation is wanted or needed."""
    from transformers import AutoConfig

    from t2t_plugins.policies.chat import chat_prompts
    from t2t_plugins.policies.hf import end_tokens
    from t2t_plugins.sampler import Sampler

    fits = supports_config(AutoConfig.from_pretrained(start)) and not settings.lora
    if settings.engine not in ("auto", "fast") or not fits:
        return None

    calls: list[int] = []  # the update of every call: the parts of one update draw from streams of their own

    def sample(prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        import torch

        step = trainer.state.global_step
        calls[:] = [*(call for call in calls if call == step), step]
        model, tokenizer = trainer.accelerator.unwrap_model(trainer.model), trainer.processing_class
        thinking = {"on": True, "off": False}.get(settings.thinking)
        texts = chat_prompts(tokenizer, [((Message("user", prompt[-1]["content"]),), ()) for prompt in prompts], thinking)
        runs = [(text, len(list(copies))) for text, copies in itertools.groupby(texts)]
        even = len({count for _, count in runs}) == 1
        unique, group = ([text for text, _ in runs], runs[0][1]) if even else (texts, 1)
        ids = tokenizer(unique, add_special_tokens=False)["input_ids"]
        seed = key(job.seed, "rollout", step, len(calls), trainer.accelerator.process_index)
        generator = torch.Generator(device=model.device).manual_seed(seed % 2**63)
        sampler = Sampler(model, end_tokens(model, tokenizer))
        found = sampler.sample(ids, group, settings.max_tokens, settings.temperature, 1.0, generator)
        return {
            "prompt_ids": [list(prompt) for prompt in ids for _ in range(group)],
            "completion_ids": [one.tokens for answers in found for one in answers],
            "logprobs": [one.logprobs for answers in found for one in answers],
        }

    return sample


def finish(trainer: Any, job: TrainingJob, settings: Settings, reward: Reward) -> TrainingResult:
    """Save the new checkpoint (adapters merged) and say what it took."""
    state = trainer.state
    if trainer.is_world_process_zero():
        model = trainer.accelerator.unwrap_model(trainer.model)
        if settings.lora:
            model = model.merge_and_unload()
        model.config.use_cache = True  # TRL switches it off for training
        model.save_pretrained(job.folder)
        trainer.processing_class.save_pretrained(job.folder)
        folders.write_json(job.folder / WEIGHTS_FILE, reward.weights.to_dict())
    trainer.accelerator.wait_for_everyone()
    last: dict[str, Any] = {}
    for line in state.log_history:
        last |= {ours: line[theirs] for ours, theirs in FIGURES.items() if theirs in line}
    return TrainingResult(
        checkpoint=job.folder,
        metrics=last,
        samples=math.ceil(state.global_step / settings.iterations) * settings.prompts * settings.group,
        updates=state.global_step,
        tokens=int(state.num_input_tokens_seen),
        keep_updates=settings.optimizer == "keep",
    )
