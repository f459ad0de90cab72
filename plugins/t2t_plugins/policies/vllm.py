"""`vllm:FOLDER_OR_ID`: a language model run here by vLLM's offline engine, all prompts in one call."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import util
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.records import Response, Sampling, Task
from t2t_core.settings import Reader, integer, number, one_of, read_settings
from t2t_plugins.policies.hf import chat_prompt, model_name, own_formats, versions

READERS: dict[str, Reader] = {
    "lora": str,
    "trust_remote_code": one_of(("true", "false")),
    "dtype": one_of(("auto", "float32", "bfloat16", "float16")),
    "tensor_parallel_size": integer(1, 64),
    "gpu_memory_utilization": number(0.05, 1),
    "max_model_len": integer(16, 10_000_000),
}


class Vllm:
    """Answers by vLLM; every setting is vLLM's own of that name, and `lora=DIR` is an adapter.

    Raises:
        T2TError: vLLM is not installed, or it could not start (no GPU, no such model); at the first use.
    """

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        self.settings = read_settings(settings, "policy vllm", READERS)
        self.name = model_name(argument, "vllm")
        self._engine: Any = None

    def describe(self) -> Mapping[str, Any]:
        facts: dict[str, Any] = {"deterministic": False, "batch_size": None, "model": self.name} | self.settings
        return facts | own_formats(self.name) | versions("vllm", "torch")

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        if not tasks:
            return
        engine = self._load()
        from vllm import SamplingParams

        tokenizer = engine.get_tokenizer()
        prompts = [chat_prompt(tokenizer, task.prompt, sampling.thinking) for task in tasks]
        wanted = [
            SamplingParams(
                temperature=sampling.temperature, top_p=sampling.top_p, max_tokens=sampling.max_tokens, seed=task.seed % 2**31
            )
            for task in tasks
        ]
        started = time.monotonic()
        found = engine.generate(prompts, wanted, use_tqdm=False, lora_request=self._adapter())
        seconds = (time.monotonic() - started) / max(1, len(tasks))
        for position, output in enumerate(found):
            one = output.outputs[0]
            reason = "length" if one.finish_reason == "length" else "stop"
            yield (
                position,
                Response(one.text, len(output.prompt_token_ids), len(one.token_ids), finish_reason=reason, seconds=seconds),
            )

    def _adapter(self) -> Any:
        if "lora" not in self.settings:
            return None
        from vllm.lora.request import LoRARequest

        return LoRARequest("adapter", 1, self.settings["lora"])

    def _load(self) -> Any:
        if self._engine is None:
            if util.find_spec("vllm") is None:
                raise T2TError(
                    "vLLM is not installed; it needs a GPU of its own",
                    where=f"vllm:{self.name}",
                    next=f"pip install 't2t-core[vllm]' on a machine with a GPU, or use hf:{self.name}",
                )
            from vllm import LLM

            options = {k: v for k, v in self.settings.items() if k not in ("lora", "trust_remote_code")}
            trust = self.settings.get("trust_remote_code") == "true"
            try:
                self._engine = LLM(model=self.name, trust_remote_code=trust, enable_lora="lora" in self.settings, **options)
            except (OSError, ValueError, RuntimeError) as error:
                reason = " ".join(str(error).split())[:300]
                raise T2TError(
                    f"vLLM could not start: {reason}",
                    where=f"vllm:{self.name}",
                    cause="there is no GPU it can use, its memory is taken, or the model is not at hand",
                    next=f"use hf:{self.name} on this machine",
                ) from error
        return self._engine
