"""A stand-in for vLLM: an engine in a process of its own that holds the GPU and gives the same answer to everything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from holder import Holder


class SamplingParams:
    def __init__(self, **settings: Any) -> None:
        self.settings = settings


class Tokenizer:
    chat_template = ""

    def __call__(self, texts: list[str], add_special_tokens: bool) -> dict[str, list[list[int]]]:
        return {"input_ids": [list(text.encode()) for text in texts]}


class LLM:
    def __init__(self, model: str, **options: Any) -> None:
        holder = Holder(f"engine {'/'.join(model.split('/')[-3:])}")
        self.llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=holder.tell))
        self.model_config = SimpleNamespace(max_model_len=100_000)

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer()

    def generate(self, prompts: list[Any], params: list[Any], **options: Any) -> list[Any]:
        answer = SimpleNamespace(text="nothing", finish_reason="stop", token_ids=[1, 2])
        return [SimpleNamespace(outputs=[answer]) for _ in prompts]
