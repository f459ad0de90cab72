"""Translates the settings of `trl-grpo` into TRL's. Every value that changes the objective is set explicitly, because the next
version of TRL may change a default."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.settings import POSITIVE, Range
from t2t_plugins.trainers.trl_grpo.settings import WHERE, Settings, check_split

# Values that change the objective but have no setting of their own (our choice). The dry run prints them, a run records them, and
# [training.trl] can change them.
OBJECTIVE: Mapping[str, Any] = {
    "optim": "adamw_torch",
    "adam_beta1": 0.9,
    "adam_epsilon": 1e-8,
    "lr_scheduler_type": "constant",
    "warmup_steps": 0,
    "max_grad_norm": 1.0,  # a gradient with a larger norm is scaled down to it
    "repetition_penalty": 1.0,
    "mask_truncated_completions": False,  # a response that was cut off counts like any other
    "delta": None,  # no second limit on the ratio
    "importance_sampling_level": "token",
    "use_bias_correction_kl": False,  # the plain k3 term, without an importance weight
    "off_policy_mask_threshold": None,
    "top_entropy_quantile": 1.0,
    "entropy_coef": 0.0,
    "use_adaptive_entropy": False,
    "sync_ref_model": False,  # the KL term is against the policy that the round started from
    "disable_dropout": False,
    "cast_lm_head_to_fp32": False,
    "multi_objective_aggregation": "sum_then_normalize",
}


def grpo_config(settings: Settings, folder: Path, seed: int, updates: int, longest_prompt: int = 0) -> Any:
    """A `trl.GRPOConfig`.

    Args:
        settings: the trainer's settings.
        folder: where to save the states that an interrupted training continues from.
        seed: the round's seed.
        updates: how many updates the round has.
        longest_prompt: in tokens; together with `max_tokens`, the longest sequence that vLLM has to hold.
    """
    import torch

    trl: Any = import_module("trl")
    check_split(settings)
    cpu = not torch.cuda.is_available()
    ours = {
        "output_dir": str(folder),
        "seed": seed % 2**31,
        "max_steps": updates,  # the dataset already has all passes, in their order
        "shuffle_dataset": False,
        "per_device_train_batch_size": settings.micro,
        "gradient_accumulation_steps": settings.prompts * settings.group // (settings.micro * settings.processes),
        "generation_batch_size": settings.part,
        "num_generations": settings.group,
        "num_iterations": settings.iterations,
        "max_completion_length": settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "top_k": settings.top_k,
        "min_p": settings.min_p or None,
        "learning_rate": settings.learning_rate,
        "weight_decay": settings.weight_decay,
        "adam_beta2": settings.beta2,
        "beta": settings.beta,
        "epsilon": settings.clip,
        "epsilon_high": settings.clip + (settings.loss == "cispo"),  # of "cispo", the most a token weighs
        "loss_type": settings.loss,
        "scale_rewards": settings.scale,
        "model_init_kwargs": {"dtype": "bfloat16" if settings.dtype == "bfloat16" else "float32", "device_map": None},
        "chat_template_kwargs": {} if settings.thinking == "default" else {"enable_thinking": settings.thinking == "on"},
        "use_cpu": cpu,
        "bf16": settings.in_bfloat16(cpu),
        "fp16": False,
        "gradient_checkpointing": settings.recompute,
        "gradient_checkpointing_kwargs": {"use_reentrant": False} if settings.recompute else None,
        # FSDP2 would gather the gradients of one update's backward passes whole on every GPU: 16 GB for 4 G parameters
        "accelerator_config": {"gradient_accumulation_kwargs": {"sync_each_batch": settings.sharding == "fsdp2"}},
        "logging_steps": 1,
        "logging_first_step": True,
        "save_strategy": "steps",
        "save_steps": math.ceil(settings.save_every / settings.iterations) * settings.iterations,
        "save_total_limit": 1,
        "report_to": [],
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
        **_vllm(settings, longest_prompt),
    }
    return _made(trl.GRPOConfig, **{**OBJECTIVE, **ours, **settings.trl})


def _vllm(settings: Settings, longest_prompt: int) -> dict[str, Any]:
    """The part of the configuration that concerns vLLM."""
    mode = {"vllm-colocate": "colocate", "vllm-server": "server"}.get(settings.engine)
    corrected = settings.vllm_correction != "none"
    return {
        "use_vllm": mode is not None,
        "vllm_mode": mode or "colocate",
        "vllm_server_base_url": settings.vllm_server_url or None,
        "vllm_gpu_memory_utilization": settings.vllm_memory,
        "vllm_enable_sleep_mode": settings.vllm_sleep,
        "vllm_tensor_parallel_size": settings.vllm_tensor_parallel,
        "vllm_max_model_length": longest_prompt + settings.max_tokens if longest_prompt else None,
        "vllm_importance_sampling_correction": corrected,
        "vllm_importance_sampling_mode": settings.vllm_correction if corrected else "token_truncate",
        "vllm_importance_sampling_clip_max": settings.vllm_correction_cap,
        "vllm_importance_sampling_clip_min": None,
    }


def check_passed_on(settings: Settings) -> None:
    """Raise T2TError if [training.trl] or [training.accelerate] names an option that TRL or Accelerate does not know, or one that
    has a setting of its own, or if [training.trl] gives a value that no machine could train with. Nothing is imported for an
    empty table, and the options of a missing package are not checked."""
    if settings.trl and find_spec("trl"):
        trl: Any = import_module("trl")
        _refuse(settings.trl, {f.name for f in fields(trl.GRPOConfig)}, "trl", _OWN)
        _check_values(settings.trl, trl.GRPOConfig)
    if settings.accelerate and find_spec("accelerate"):
        from accelerate.commands.launch import launch_command_parser

        known = {action.dest for action in launch_command_parser()._actions}
        own = {"config_file": "sharding", "num_processes": "processes", "mixed_precision": "dtype"}
        _refuse(settings.accelerate, known, "accelerate", own)


# Values of the options that change the objective. TRL itself finds out in the middle of a training, or never.
_RANGES = {
    "adam_beta1": Range(0, 1, below=True), "adam_epsilon": POSITIVE, "warmup_steps": Range(0), "max_grad_norm": Range(0),
    "repetition_penalty": POSITIVE, "delta": POSITIVE, "off_policy_mask_threshold": POSITIVE,
    "top_entropy_quantile": Range(0, 1), "entropy_coef": Range(-math.inf),
}  # fmt: skip
_WORDS = {
    "importance_sampling_level": ("token", "sequence"),
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
}


def _check_values(table: Mapping[str, Any], known: Any) -> None:
    """Raise T2TError for a value of another type than its default's, out of its range, or that TRL refuses by itself."""
    usual: dict[str, Any] = {**{field.name: field.default for field in fields(known)}, **OBJECTIVE}
    for name, value in table.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        allowed = "" if not isinstance(usual[name], bool) or isinstance(value, bool) else "true or false"
        if name in _RANGES and not (is_number and value in _RANGES[name]):
            allowed = str(_RANGES[name]).replace("at least -inf", "a number")
        elif name in _WORDS and value not in _WORDS[name]:
            allowed = f"one of {', '.join(_WORDS[name])}"
        elif isinstance(usual[name], int | float) and not isinstance(usual[name], bool) and not is_number:
            allowed = "a number"
        if allowed:
            raise T2TError(f"{name} must be {allowed}, not {ascii(value)[:60]}", where="[training.trl]")
    own = {name: value for name, value in table.items() if name in OBJECTIVE}
    _made(known, output_dir="", use_cpu=True, bf16=False, report_to=[], **own)


def _made(known: Any, **options: Any) -> Any:
    try:
        return known(**options)
    except (TypeError, ValueError) as error:
        raise T2TError("TRL refuses this configuration", where=WHERE, cause=" ".join(str(error).split())[:500]) from None


_OWN = {  # TRL's name: our setting
    "per_device_train_batch_size": "micro_batch", "num_generations": "group", "num_iterations": "iterations",
    "max_completion_length": "max_tokens", "temperature": "temperature", "top_p": "top_p",
    "top_k": "top_k", "min_p": "min_p", "learning_rate": "learning_rate",
    "weight_decay": "weight_decay", "adam_beta2": "beta2", "beta": "beta", "epsilon": "clip", "epsilon_high": "clip",
    "loss_type": "loss", "scale_rewards": "scale", "max_steps": "max_updates", "num_train_epochs": "epochs",
    "gradient_checkpointing": "recompute", "save_steps": "save_every", "use_vllm": "engine", "vllm_mode": "engine",
    "vllm_server_base_url": "vllm_server_url", "vllm_gpu_memory_utilization": "vllm_memory",
    "vllm_enable_sleep_mode": "vllm_sleep", "vllm_tensor_parallel_size": "vllm_tensor_parallel",
    "vllm_importance_sampling_correction": "vllm_correction", "vllm_importance_sampling_mode": "vllm_correction",
    "vllm_importance_sampling_clip_max": "vllm_correction_cap", "bf16": "dtype", "fp16": "dtype", "seed": "a run's seed",
    "output_dir": "a run's folder", "gradient_accumulation_steps": "micro_batch", "generation_batch_size": "buckets",
    "steps_per_generation": "buckets", "shuffle_dataset": "a run's seed", "deepspeed": "sharding", "fsdp": "sharding",
    "fsdp_config": "sharding", "use_cpu": "processes", "chat_template_kwargs": "thinking", "reward_weights": "[reward]",
}  # fmt: skip


def _refuse(table: Mapping[str, Any], known: set[str], name: str, own: Mapping[str, str]) -> None:
    for key in table:
        where = f"[training.{name}]"
        if key in own:
            raise T2TError(f"{key} has a setting of its own", where=where, next=f"set {own[key]}")
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise T2TError(
                f"{name} has no option {ascii(key)[:60]}", where=where, cause=f"did you mean {near[0]}?" if near else ""
            )
