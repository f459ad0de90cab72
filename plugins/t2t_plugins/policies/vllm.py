"""`vllm:FOLDER_OR_ID`: a language model run here by vLLM's offline engine, all prompts in one call."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import util
from pathlib import Path
from typing import Any

from t2t_core import advice
from t2t_core.errors import T2TError
from t2t_core.records import Response, Sampling, Task
from t2t_core.settings import Reader, integer, number, one_of, read_settings
from t2t_core.store import folders
from t2t_plugins.policies.chat import task_prompts
from t2t_plugins.policies.hf import free_memory, model_name, own_formats, spoken, too_long, versions

READERS: dict[str, Reader] = {
    "lora": str,
    "trust_remote_code": one_of(("true", "false")),
    "dtype": one_of(("auto", "float32", "bfloat16", "float16")),
    "tensor_parallel_size": integer(1, 64),
    "gpu_memory_utilization": number(0.05, 1),
    "max_model_len": integer(16, 10_000_000),
    "enforce_eager": one_of(("true", "false")),
}
PATIENCE = 60.0  # seconds that an engine's process has to end
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # the adapter ranks that vLLM has kernels for


class Vllm:
    """Answers by vLLM.

    Args:
        argument: a folder, or the id of a model on the Hub (or in the local cache).
        settings: `lora=DIR` an adapter to put on; `dtype` (say float32 where answers shall equal `hf:`'s),
            `gpu_memory_utilization`, `max_model_len`, `tensor_parallel_size`, `enforce_eager=true` and `trust_remote_code=true`
            are vLLM's own of that name.

    Raises:
        T2TError: vLLM is not installed, or it could not start (no GPU, no such model); at the first use.
    """

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        self.settings = read_settings(settings, "policy vllm", READERS)
        self.name = model_name(argument, "vllm")
        self._engine: Any = None
        self._processes: list[Any] = []  # the engine's

    def describe(self) -> Mapping[str, Any]:
        facts: dict[str, Any] = {"deterministic": False, "batch_size": None, "model": self.name} | self.settings
        return facts | own_formats(self.name) | versions("vllm", "torch")

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        if not tasks:
            return
        engine = self._load()
        from vllm import SamplingParams

        tokenizer = engine.get_tokenizer()
        texts = task_prompts(tokenizer, tasks, sampling.thinking)
        encoded = tokenizer(texts, add_special_tokens=False)["input_ids"]
        room = engine.model_config.max_model_len
        for i in (i for i, ids in enumerate(encoded) if len(ids) >= room):
            yield i, too_long(len(encoded[i]), room)
        asked = [i for i, ids in enumerate(encoded) if len(ids) < room]
        params = [
            SamplingParams(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                min_p=sampling.min_p,
                max_tokens=min(sampling.max_tokens, room - len(encoded[i])),
                seed=tasks[i].seed % 2**31,
            )
            for i in asked
        ]
        started = time.monotonic()
        prompts = [{"prompt_token_ids": encoded[i]} for i in asked]
        outputs = engine.generate(prompts, params, use_tqdm=False, lora_request=self._adapter()) if asked else []
        seconds = (time.monotonic() - started) / max(1, len(asked))
        for i, output in zip(asked, outputs, strict=True):
            completion = output.outputs[0]
            reason = "length" if completion.finish_reason == "length" else "stop"
            facts = {"prompt_tokens": len(encoded[i]), "completion_tokens": len(completion.token_ids), "seconds": seconds}
            yield i, spoken(completion.text, tasks[i], finish_reason=reason, **facts)

    def close(self) -> None:
        """End the engine and wait until it has let go of the GPU. vLLM runs it in processes of its own, which end on their own
        time where they are not waited for."""
        engine, self._engine = self._engine, None
        if engine is None:
            return
        core = getattr(getattr(engine, "llm_engine", None), "engine_core", None)
        for owner in (engine, core):
            end = getattr(owner, "shutdown", None)
            if callable(end):
                end()
                break
        del engine, core
        free_memory()
        for process in self._processes:
            process.join(PATIENCE)
            if process.is_alive():
                process.kill()
                process.join(PATIENCE)
        self._processes = []

    def _adapter(self) -> Any:
        if "lora" not in self.settings:
            return None
        from vllm.lora.request import LoRARequest

        return LoRARequest("adapter", 1, self.settings["lora"])

    def _load(self) -> Any:
        if self._engine is None:
            if util.find_spec("vllm") is None:
                raise T2TError(
                    "vLLM is not installed here",
                    where=f"vllm:{self.name}",
                    cause="it needs a GPU, and is an extra of its own",
                    next=f"{advice.extra('vllm')} on a machine with a GPU, or use hf:{self.name}",
                )
            options = {k: {"true": True, "false": False}.get(v, v) for k, v in self.settings.items() if k != "lora"}
            if "lora" in self.settings:
                options |= {"enable_lora": True, "max_lora_rank": adapter_rank(Path(self.settings["lora"]))}
            free_memory()  # vLLM takes its share when it starts: what a training in this process has left goes first
            try:
                from vllm import LLM

                before = set(multiprocessing.active_children())
                self._engine = LLM(model=self.name, **options)
                self._processes = [child for child in multiprocessing.active_children() if child not in before]
            except (ImportError, OSError, ValueError, RuntimeError) as error:
                raise T2TError(
                    "vLLM could not start",
                    where=f"vllm:{self.name}",
                    cause=f"{' '.join(str(error).split())[:300]} (no GPU that it can use, its memory is taken, or no such model)",
                    next=f"use hf:{self.name} on this machine",
                ) from error
        return self._engine


def adapter_rank(folder: Path) -> int:
    """The least of vLLM's ranks that holds the adapter in that folder."""
    path = folder / "adapter_config.json"
    if not path.exists():
        raise T2TError("there is no adapter", where=f"lora={folder}", cause="the folder has no adapter_config.json")
    rank = folders.read_json(path).get("r")
    if type(rank) is not int or rank < 1:
        raise T2TError("the adapter does not say its rank", where=str(path))
    return next((known for known in RANKS if known >= rank), rank)
