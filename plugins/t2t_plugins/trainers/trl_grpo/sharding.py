"""What a sharded model needs besides training: a check that it is really sharded, and gathering it for sampling and saving.

FSDP2 and ZeRO-3 keep a part of every weight on each process; ZeRO-2 splits only gradients and optimizer. A checkpoint is gathered
whole, in float32 if the weights are kept in it, and loads anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_plugins.trainers.trl_grpo.settings import WHERE, Settings

OPTIMIZERS = {"none": "optimizer.pt", "fsdp2": "optimizer.bin", "zero2": "global_step*", "zero3": "global_step*"}


def check_sharded(model: Any, settings: Settings, processes: int) -> None:
    """Raise T2TError if the model that is about to be trained is not spread over the processes as the settings ask: Accelerate
    silently falls back to plain data parallelism if it cannot use FSDP."""
    parameters = list(model.parameters())
    if settings.sharding == "fsdp2":
        from torch.distributed.tensor import DTensor

        whole = sum(p.numel() for p in parameters)
        here = sum(p.to_local().numel() for p in parameters if isinstance(p, DTensor))
        good = all(isinstance(p, DTensor) for p in parameters) and here < 1.5 * whole / processes
    elif settings.sharding == "zero3":
        good = all(hasattr(p, "ds_id") for p in parameters)
    elif settings.sharding == "zero2":
        good = getattr(model, "zero_optimization_stage", lambda: 0)() == 2
    else:
        good = True
    if not good:
        raise T2TError(
            f"the model was not sharded as sharding={settings.sharding} asks",
            where=WHERE,
            cause="Accelerate fell back to another way of spreading it, as it does without a word for FSDP on a CPU",
        )


def settle(model: Any, settings: Settings) -> None:
    """Initialise FSDP2 now, with the adapters on. FSDP2 otherwise records at a model's first use which weights are trained, and
    the type of their gradients. TRL first uses a model with adapters as the reference, with the adapters off, so no weight would
    count as trained, and in bfloat16 the first backward pass would fail."""
    if settings.sharding == "fsdp2":
        model._get_fsdp_state()._lazy_init()


def shards_of(model: Any) -> list[Any]:
    """The modules that FSDP2 shards as units."""
    from torch.distributed.fsdp import FSDPModule

    return [module for module in model.modules() if isinstance(module, FSDPModule)]


@contextmanager
def sampling_model(trainer: Any, settings: Settings) -> Iterator[Any]:
    """The policy, whole on every process and without collective calls, so that each process may sample as long as it needs."""
    import torch

    if settings.sharding in ("none", "zero2"):
        yield trainer.accelerator.unwrap_model(trainer.model)
        return
    if settings.sharding == "zero3":
        models: Any = import_module("trl.models")
        with models.unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model, torch.no_grad():
            yield model
        return
    root = trainer.model_wrapped
    shards = shards_of(root)
    training = root.training
    root.eval()  # also: nothing is recomputed, and the cache is used
    for module in shards:
        module.set_reshard_after_forward(False, recurse=False)
        module.unshard()
    try:
        with torch.no_grad():
            yield root
    finally:
        for module in shards:
            module.reshard()
            module.set_reshard_after_forward(module is not root, recurse=False)
        root.train(training)


def whole_weights(trainer: Any, settings: Settings) -> Mapping[str, Any]:
    """Every weight of the trained model by name, on the CPU of the first process (the others get nothing of use). A collective
    call."""
    if settings.sharding == "fsdp2":
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        state: Mapping[str, Any] = get_model_state_dict(trainer.model_wrapped, options=options)
        return state
    import deepspeed
    from deepspeed.utils import safe_get_full_fp32_param

    weights = {}
    for name, parameter in trainer.accelerator.unwrap_model(trainer.model_wrapped).named_parameters():
        master = safe_get_full_fp32_param(parameter) if parameter.requires_grad else None
        with deepspeed.zero.GatheredParameters([parameter], enabled=settings.sharding == "zero3"):
            weights[name] = (parameter.detach() if master is None else master).cpu().clone()
    return weights


def save_whole(trainer: Any, settings: Settings, start: Path, folder: Path) -> None:
    """Save the new checkpoint of a sharded model: one that loads anywhere, adapters merged."""
    weights = whole_weights(trainer, settings)
    if not trainer.is_world_process_zero():
        return
    model = plain_model(settings, start)
    missing = model.load_state_dict(weights, strict=False)
    tied = {name for name, _ in model.named_parameters(remove_duplicate=False)} - {name for name, _ in model.named_parameters()}
    if missing.unexpected_keys or set(missing.missing_keys) - tied:
        raise T2TError(
            "the gathered checkpoint is not whole",
            where=str(folder),
            cause=f"missing {missing.missing_keys[:3]}, unexpected {missing.unexpected_keys[:3]}",
        )
    save_model(model, settings, folder)


def load_optimizer(trainer: Any, settings: Settings, state: Path) -> None:
    """Load the optimizer state of another training into the trainer's optimizer."""
    if settings.sharding == "fsdp2":
        from accelerate.utils import load_fsdp_optimizer

        accelerator = trainer.accelerator
        plugin = accelerator.state.fsdp_plugin
        load_fsdp_optimizer(plugin, accelerator, trainer.optimizer, trainer.model_wrapped, str(state))
        return
    import torch

    kept = torch.load(state / OPTIMIZERS["none"], weights_only=True, map_location="cpu")
    trainer.optimizer.load_state_dict(kept)


def plain_model(settings: Settings, start: Path) -> Any:
    """The model that the round started from, on this process's CPU, with fresh adapters if there are some. For the end of a
    training: models that are loaded later are not sharded by DeepSpeed either."""
    import os

    from transformers import AutoModelForCausalLM

    from t2t_plugins.trainers.common import adapters

    loading = os.environ.pop("FSDP_CPU_RAM_EFFICIENT_LOADING", None)  # under it this would be a model without weights
    fsdp = os.environ.pop("ACCELERATE_USE_FSDP", None)
    deepspeed: Any = import_module("transformers.integrations.deepspeed")
    deepspeed.unset_hf_deepspeed_config()  # under it a model is loaded in shards, which waits for the other processes for ever
    try:
        dtype = "bfloat16" if settings.dtype == "bfloat16" else "float32"
        model = AutoModelForCausalLM.from_pretrained(start, dtype=dtype)
    finally:
        for name, value in (("FSDP_CPU_RAM_EFFICIENT_LOADING", loading), ("ACCELERATE_USE_FSDP", fsdp)):
            if value is not None:
                os.environ[name] = value
    if settings.lora:
        from peft import get_peft_model

        return get_peft_model(model, adapters(settings.lora))
    return model


def save_model(model: Any, settings: Settings, folder: Path) -> None:
    """Save a whole model as a checkpoint, with adapters merged."""
    if settings.lora:
        model = model.merge_and_unload()
    model.config.use_cache = True  # TRL switches it off for training
    model.save_pretrained(folder)
