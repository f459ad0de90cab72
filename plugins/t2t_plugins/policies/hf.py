"""`hf:FOLDER_OR_ID`: a causal language model run here by transformers, in batches.

A checkpoint that was taught a prompt format of its own says so in its config.json (`t2t_prompt_format`, `t2t_brief`), and
keeps saying so through training. Weights are read from safetensors only; code that comes with a checkpoint runs only
where `trust_remote_code=true` is written.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from t2t_core import advice
from t2t_core.errors import NotReady, T2TError
from t2t_core.reading.tool_calls import take_tool_calls
from t2t_core.records import Response, Sampling, Task
from t2t_core.seeding import key
from t2t_core.settings import Reader, integer, number, one_of, read_settings
from t2t_core.store import folders
from t2t_core.text import one_line
from t2t_plugins.policies.chat import task_prompts

READERS: dict[str, Reader] = {
    "lora": str,
    "trust_remote_code": one_of(("true", "false")),
    "engine": one_of(("auto", "fast", "plain")),
    "dtype": one_of(("auto", "float32", "bfloat16", "float16")),
    "device": str,
    "batch_size": integer(1, 100_000),
    "cache_gb": number(0.01, 100_000),
    "threads": integer(1, 1024),
}
BATCH_SIZE = 256
CACHE_GB = 8.0  # of keys and values at once (ours): a fixed size, since what else is on a machine must not change the answers


class HuggingFace:
    """Answers by a transformers model.

    Args:
        argument: a folder, or the id of a model on the Hub (or in the local cache).
        settings: `lora=DIR` an adapter to put on; `engine=fast|plain|auto` our batched sampler for small Qwen3-shaped models,
            transformers' `generate`, or whichever fits; `dtype`, `device`, `threads`; `batch_size` answers at once (256), fewer
            where their keys and values would take more than `cache_gb` (8);
            `trust_remote_code=true` to run the checkpoint's own code.

    Raises:
        T2TError: no such folder or id, no network, no safetensors, an engine that does not fit; at the first use.
    """

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        self.settings = read_settings(settings, "policy hf", READERS)
        self.name = model_name(argument, "hf")
        self.batch_size: int = self.settings.get("batch_size", BATCH_SIZE)
        self.cache_gb: float = self.settings.get("cache_gb", CACHE_GB)
        self._loaded: tuple[Any, Any] | None = None
        self._sampler: Any = None

    def describe(self) -> Mapping[str, Any]:
        facts: dict[str, Any] = {
            "deterministic": False,
            "batch_size": None,
            "model": self.name,
            "engine_batch_size": self.batch_size,
            "cache_gb": self.cache_gb,
        }
        facts |= {k: v for k, v in self.settings.items() if k != "batch_size"}
        return facts | own_formats(self.name) | versions("torch", "transformers")

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        if not tasks:
            return
        model, tokenizer = self._load()
        import torch

        if "threads" in self.settings:
            torch.set_num_threads(self.settings["threads"])
        prompts = task_prompts(tokenizer, tasks, sampling.thinking)
        encoded = tokenizer(prompts, add_special_tokens=False)["input_ids"]
        room = getattr(model.config, "max_position_embeddings", None) or 1 << 30
        for i in (i for i, ids in enumerate(encoded) if len(ids) >= room):
            yield i, too_long(len(encoded[i]), room)
        # Like lengths together: little padding.
        order = sorted((i for i, ids in enumerate(encoded) if len(ids) < room), key=lambda i: len(encoded[i]))
        while order:
            limit = min(sampling.max_tokens, room - len(encoded[order[0]]))
            count = self._at_once(model, [len(encoded[i]) for i in order[: self.batch_size]], limit)
            batch, order = order[:count], order[count:]
            started = time.monotonic()
            seed = key(0, "hf", *(tasks[i].seed % 2**32 for i in batch))
            generator = torch.Generator(device=model.device).manual_seed(seed % 2**63)
            limit = min(sampling.max_tokens, room - len(encoded[batch[-1]]))
            answers = self._answer(model, tokenizer, [encoded[i] for i in batch], sampling, limit, generator)
            seconds = (time.monotonic() - started) / len(batch)
            for i, (ids, ended) in zip(batch, answers, strict=True):
                text = tokenizer.decode(ids, skip_special_tokens=True)
                facts = {"prompt_tokens": len(encoded[i]), "completion_tokens": len(ids), "seconds": seconds}
                yield i, spoken(text, tasks[i], finish_reason="stop" if ended else "length", **facts)

    def _at_once(self, model: Any, prompts: Sequence[int], limit: int) -> int:
        """How many answers fit the cache: prompts of these lengths, shortest first, with answers of up to `limit` tokens."""
        each = cache_bytes(model)
        fitting = (n for n in range(len(prompts), 1, -1) if n * (prompts[n - 1] + limit) * each <= self.cache_gb * 1e9)
        return next(fitting, 1)

    def close(self) -> None:
        """Free the memory that the model takes."""
        self._loaded = self._sampler = None
        free_memory()

    def _answer(
        self, model: Any, tokenizer: Any, prompts: list[list[int]], sampling: Sampling, limit: int, generator: Any
    ) -> list[tuple[list[int], bool]]:
        """Token ids of every answer and whether it ended (the end token, where it came, is counted as a token)."""
        if self._sampler is not None:
            samples = self._sampler.sample(prompts, 1, limit, sampling, generator)
            return [(completion.tokens, completion.ended) for (completion,) in samples]
        return generate(model, tokenizer, prompts, sampling, limit, generator)

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            from t2t_plugins.sampler import Sampler, supports

            model, tokenizer = load(self.name, self.settings)
            engine = self.settings.get("engine", "auto")
            if engine == "fast" and not supports(model):
                raise T2TError(
                    "engine=fast does not compute this model",
                    where=f"hf:{self.name}",
                    cause="it is for dense Qwen3 models of at most 50 M parameters with plain rotary positions",
                    next="use engine=plain",
                )
            if engine != "plain" and supports(model):
                self._sampler = Sampler(model, end_tokens(model, tokenizer), self.batch_size)
            self._loaded = model, tokenizer
        return self._loaded


def cache_bytes(model: Any) -> int:
    """Keys and values of one token, in bytes."""
    config = model.config.get_text_config()
    heads = config.num_attention_heads
    head = getattr(config, "head_dim", None) or config.hidden_size // heads
    shared = getattr(config, "num_key_value_heads", None) or heads
    return int(2 * config.num_hidden_layers * shared * head * model.dtype.itemsize)


def free_memory() -> None:
    """Give back what is no longer used: torch keeps a GPU's memory for itself, and whoever comes next could not have it."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def model_name(argument: str, policy: str) -> str:
    """The folder or Hub id that a policy's argument names. Raises T2TError if it is missing or a folder that is not there."""
    if not argument:
        raise T2TError(f"the policy {policy} needs a model", next=f"write {policy}:FOLDER, or {policy}:Qwen/Qwen3-4B")
    folder = Path(argument).expanduser()
    if (argument.startswith((".", "/", "~")) or folder.exists()) and not folder.is_dir():
        raise T2TError(f"there is no folder {argument}", where=f"policy {policy}", next="give a checkpoint's folder, or a Hub id")
    return str(Path(argument).expanduser()) if argument.startswith("~") else argument


def load(name: str, settings: Mapping[str, Any]) -> tuple[Any, Any]:
    """The model in evaluation mode, and its tokenizer, padding on the left."""
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise NotReady(
            f"local models need the training extra: {error}", where=f"hf:{name}", next=advice.extra("train")
        ) from error
    quiet()
    trust = settings.get("trust_remote_code") == "true"
    device = settings.get("device", "cuda" if torch.cuda.is_available() else "cpu")
    dtype = settings.get("dtype", "auto")
    check_files(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=trust, padding_side="left")
        model = AutoModelForCausalLM.from_pretrained(name, trust_remote_code=trust, use_safetensors=True, dtype=dtype)
    except Exception as error:  # noqa: BLE001 - what a stranger's files drive the library into
        known = isinstance(error, OSError | ValueError)
        raise T2TError(
            f"the model could not be loaded: {one_line(error if known else f'{type(error).__name__}: {error}')}",
            where=f"hf:{name}",
            cause="it is neither a checkpoint's folder nor in the local cache, and the Hub was not reached; "
            "or the checkpoint has no safetensors, or wants trust_remote_code=true",
            next="give the folder of a checkpoint, or download it where there is a network: hf download " + name,
        ) from error
    if settings.get("lora"):
        model = _with_adapter(model, settings["lora"])
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model.to(device).eval(), tokenizer


def model_facts(name: str, where: str) -> tuple[Any, str]:
    """A model's configuration and its chat template ("" if it has none), without its weights.

    Raises:
        NotReady: it is neither a checkpoint's folder nor in the local cache, and the Hub was not reached.
    """
    from transformers import AutoConfig, AutoTokenizer

    check_files(name)
    try:
        return AutoConfig.from_pretrained(name), str(AutoTokenizer.from_pretrained(name).chat_template or "")
    except Exception as error:  # noqa: BLE001 - what a stranger's files drive the library into
        raise NotReady(
            f"the model could not be read: {one_line(f'{type(error).__name__}: {error}')}",
            where=f"{where}, {name}",
            cause="it is neither a checkpoint's folder nor in the local cache, and the Hub was not reached",
            next="give the folder of a checkpoint, or download it where there is a network: hf download " + name,
        ) from error


_FILES = ("config.json", "generation_config.json", "tokenizer_config.json", "adapter_config.json", "special_tokens_map.json")


def check_files(name: str) -> None:
    """Raise T2TError if a local checkpoint's configuration is no JSON object, or one that would break whatever reads it."""
    for file in _FILES:
        if (path := Path(name) / file).exists():
            folders.read_json(path)


def quiet() -> None:
    """No progress bars from transformers, since the suite shows its own, and no warning about a name that TRL and transformers
    use between themselves."""
    import warnings

    from transformers.utils import logging

    warnings.filterwarnings("ignore", message=".*gradient_checkpointing.*", category=FutureWarning)

    log: Any = logging
    log.disable_progress_bar()


def _with_adapter(model: Any, adapter: str) -> Any:
    from peft import PeftModel

    check_files(adapter)
    try:
        return PeftModel.from_pretrained(model, adapter).merge_and_unload()
    except Exception as error:  # noqa: BLE001 - as above
        raise T2TError(f"the adapter could not be loaded: {one_line(error)}", where=f"lora={adapter}") from error


def spoken(text: str, task: Task, **facts: Any) -> Response:
    """A model's text as a response; where the task offers tools, the calls in it are taken out."""
    if not task.tools:
        return Response(text, **facts)
    rest, calls = take_tool_calls(text)
    return Response(rest, tool_calls=calls, **facts)


def too_long(tokens: int, room: int) -> Response:
    """The error in place of an answer where a prompt fills the model's context. Both are counts of tokens."""
    reason = f"a prompt of {tokens} tokens leaves no room in a context of {room}"
    return Response("", tokens, 0, finish_reason="error", error=reason)


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """The tokens that end an answer."""
    configured = model.generation_config.eos_token_id
    ends = configured if isinstance(configured, list) else [configured]
    return sorted({i for i in (*ends, tokenizer.eos_token_id) if i is not None})


def generate(
    model: Any, tokenizer: Any, prompts: list[list[int]], sampling: Sampling, limit: int, generator: Any
) -> list[tuple[list[int], bool]]:
    """transformers' own `generate` on one left-padded batch."""
    import torch

    batch = tokenizer.pad({"input_ids": prompts}, return_tensors="pt").to(model.device)
    ends = end_tokens(model, tokenizer)
    random: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None, "min_p": None}
    if sampling.temperature:
        random = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": sampling.top_k}
        random["min_p"] = sampling.min_p or None
    with torch.inference_mode(), torch.random.fork_rng():
        torch.manual_seed(generator.initial_seed())  # `generate` takes no generator
        out = model.generate(
            **batch,
            max_new_tokens=limit,
            eos_token_id=ends,
            pad_token_id=tokenizer.pad_token_id,
            **random,
        )
    answers = []
    for row in out[:, batch["input_ids"].shape[1] :].tolist():
        stop = next((i for i, token in enumerate(row) if token in ends), None)
        answers.append((row if stop is None else row[: stop + 1], stop is not None))
    return answers


def own_formats(name: str) -> dict[str, str]:
    """`prompt_format` and `brief` where the checkpoint in that folder was taught forms of its own."""
    path = Path(name) / "config.json"
    config = folders.read_json(path) if path.exists() else {}
    return {k: config[f"t2t_{k}"] for k in ("prompt_format", "brief") if isinstance(config.get(f"t2t_{k}"), str)}


def versions(*packages: str) -> dict[str, str]:
    """The versions of those of the packages that are installed."""
    installed = {}
    for package in packages:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed
