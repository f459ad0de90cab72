"""How `trl-grpo` samples responses to one-shot tasks (one prompt, one answer): by our sampler, by transformers' `generate`, or by
TRL itself. `conversations` handles tasks with several turns.
"""

from __future__ import annotations

import itertools
from typing import Any

from t2t_core.hookspecs import TrainingJob
from t2t_core.records import Message
from t2t_core.seeding import key
from t2t_plugins.trainers.trl_grpo.settings import Settings
from t2t_plugins.trainers.trl_grpo.sharding import sampling_model


def rollout(job: TrainingJob, settings: Settings, start: str) -> Any:
    """A `rollout_func` for TRL, or None to let TRL sample itself.

    A model sharded by FSDP2 must be put together before `generate`, which TRL does not do, so it gets a `rollout_func`.
    """
    from transformers import AutoConfig

    from t2t_plugins.sampler import supports_config

    fast = settings.engine in ("auto", "fast") and supports_config(AutoConfig.from_pretrained(start)) and not settings.lora
    if not fast and (settings.engine.startswith("vllm") or settings.sharding != "fsdp2"):
        return None
    return OneShot(job, settings, fast)


class OneShot:
    """Draws the responses of a part of an update. Each part of an update has its own random stream."""

    def __init__(self, job: TrainingJob, settings: Settings, fast: bool) -> None:
        self.job, self.settings, self.fast = job, settings, fast
        self._calls: list[int] = []  # the update of every call

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        import torch

        from t2t_plugins.policies.chat import chat_prompts

        step = trainer.state.global_step
        self._calls[:] = [*(call for call in self._calls if call == step), step]
        tokenizer = trainer.processing_class
        thinking = {"on": True, "off": False}.get(self.settings.thinking)
        texts = chat_prompts(tokenizer, [((Message("user", prompt[-1]["content"]),), ()) for prompt in prompts], thinking)
        runs = [(text, len(list(copies))) for text, copies in itertools.groupby(texts)]
        even = len({count for _, count in runs}) == 1
        unique, group = ([text for text, _ in runs], runs[0][1]) if even else (texts, 1)
        ids = tokenizer(unique, add_special_tokens=False)["input_ids"]
        seed = key(self.job.seed, "rollout", step, len(self._calls), trainer.accelerator.process_index)
        with sampling_model(trainer, self.settings) as model:
            generator = torch.Generator(device=trainer.accelerator.device).manual_seed(seed % 2**63)
            sample = self._fast if self.fast else self._plain
            tokens, logprobs = sample(model, tokenizer, ids, group, generator)
        prompt_ids = [list(prompt) for prompt in ids for _ in range(group)]
        drawn: dict[str, Any] = {"prompt_ids": prompt_ids, "completion_ids": tokens, "logprobs": logprobs}
        return drawn

    def _fast(self, model: Any, tokenizer: Any, ids: Any, group: int, generator: Any) -> tuple[list[Any], list[Any] | None]:
        from t2t_plugins.policies.hf import end_tokens
        from t2t_plugins.sampler import Sampler

        sampler = Sampler(model, end_tokens(model, tokenizer))
        groups = sampler.sample(ids, group, self.settings.max_tokens, self.settings.sampling, generator)
        drawn = [completion for answers in groups for completion in answers]
        return [completion.tokens for completion in drawn], [completion.logprobs for completion in drawn]

    def _plain(self, model: Any, tokenizer: Any, ids: Any, group: int, generator: Any) -> tuple[list[Any], list[Any] | None]:
        from t2t_plugins.policies.hf import generate

        settings, prompts = self.settings, [list(prompt) for prompt in ids for _ in range(group)]
        tokens: list[Any] = []
        for first in range(0, len(prompts), settings.micro):
            some = prompts[first : first + settings.micro]
            tokens += [t for t, _ in generate(model, tokenizer, some, settings.sampling, settings.max_tokens, generator)]
        return tokens, None
