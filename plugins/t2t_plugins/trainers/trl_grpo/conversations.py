"""Whole conversations for `trl-grpo`: TRL's `rollout_func` with an `env_mask`, so that only the policy's own tokens are learnt.

A conversation is one sequence (our choice). Its prompt is the environment's opening; its completion has the policy's turns as
they were sampled and, masked, what the environment said in between. TRL has one sequence per prompt, and computes the probability
of every token given all tokens before it. So a format in which the policy sees only the latest message cannot be trained this
way: its turns would be learnt after a history that it does not see when it plays. The trainer `grpo`, with a row for each turn,
can train it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from t2t_core.conversation import opening, replies
from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.reading.tool_calls import take_tool_calls
from t2t_core.records import Message
from t2t_core.seeding import key
from t2t_plugins.policies.chat import chat_prompts
from t2t_plugins.policies.hf import end_tokens, generate
from t2t_plugins.sampler import Sampler, supports
from t2t_plugins.trainers.trl_grpo.settings import WHERE, Settings
from t2t_plugins.trainers.trl_grpo.sharding import sampling_model

INDEX = "index"  # a key of the prompt's message, since TRL passes a rollout nothing else of a row
_MARK = "\u241enext\u241e"  # stands for a turn of the policy, to find out what the template puts after it


@dataclass
class Conversation:
    """One rollout: the instance that it plays, the tokens of the opening, and what came after it, as tokens and as messages."""

    task: Any
    first: tuple[Message, ...]
    prompt: list[int]
    tokens: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    """1 for a token of the policy, 0 for one of the environment."""
    logprobs: list[float] = field(default_factory=list)
    messages: tuple[Message, ...] = ()
    end: str = ""
    """How the policy ended its last turn, "" if it was cut off."""

    def add(self, tokens: Sequence[int], logprobs: Sequence[float], own: bool) -> None:
        """Append tokens with their log-probabilities; `own` says whether the policy wrote them."""
        self.tokens += tokens
        self.logprobs += logprobs
        self.own += [int(own)] * len(tokens)


def rollout(job: TrainingJob, settings: Settings, format: str) -> Callable[[list[Any], Any], dict[str, list[Any]]]:
    """TRL's `rollout_func` for conversations in that prompt format.

    Raises:
        T2TError: the policy sees only the latest message in this format, or the engine samples elsewhere.
    """
    if format in job.testbed.memoryless:
        raise T2TError(
            f"in the prompt format {format} every turn is a question of its own, which TRL cannot put into one sequence",
            where=WHERE,
            next="trainer = grpo trains embedded policies on it; for others name another prompt_format",
        )
    if settings.engine.startswith("vllm"):
        raise T2TError(f"engine={settings.engine} holds no conversations", where=WHERE, next="use engine=auto")
    calls: list[int] = []  # the update of every call, since each part of an update has its own random stream

    def play(prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        step = trainer.state.global_step
        calls[:] = [*(call for call in calls if call == step), step]
        seed = key(job.seed, "conversations", step, len(calls), trainer.accelerator.process_index)
        tasks = [
            job.testbed.rollout(job.instances[int(prompt[-1][INDEX])], number % settings.group)
            for number, prompt in enumerate(prompts)
        ]
        with sampling_model(trainer, settings) as model:
            held = Talk(job, settings, format, model, trainer.processing_class).hold(tasks, seed)
        return {
            "prompt_ids": [conversation.prompt for conversation in held],
            "completion_ids": [conversation.tokens for conversation in held],
            "logprobs": [conversation.logprobs for conversation in held],
            "env_mask": [conversation.own for conversation in held],
            "held": held,
        }

    return play


@dataclass
class Talk:
    """A model in conversation with the testbed, many at a time."""

    job: TrainingJob
    settings: Settings
    format: str
    model: Any
    tokenizer: Any

    def hold(self, tasks: Sequence[Any], seed: int) -> list[Conversation]:
        """Hold all conversations to their ends, turn by turn."""
        openings = [opening(self.job.testbed, task, self.format) for task in tasks]
        texts = self._texts(openings)
        held = [Conversation(task, first, self._ids(t)) for task, first, t in zip(tasks, openings, texts, strict=True)]
        going, turn = held, 0
        while going:
            answers = self._answers([conversation.prompt + conversation.tokens for conversation in going], key(seed, turn))
            transcripts = [self._said(conversation, *answer) for conversation, answer in zip(going, answers, strict=True)]
            asked = [(conversation, said) for conversation, said in zip(going, transcripts, strict=True) if said is not None]
            heard = self._texts([(*conversation.first, *said) for conversation, said in asked])
            tails = [text.rpartition(_MARK)[2] for text in heard]
            answering = [conversation for conversation, _ in asked]
            going = [conversation for conversation, tail in zip(answering, tails, strict=True) if self._heard(conversation, tail)]
            turn += 1
        return held

    def _said(
        self, conversation: Conversation, tokens: list[int], logprobs: list[float], ended: bool
    ) -> tuple[Message, ...] | None:
        """Add a turn of the policy, and the environment's reply. Returns the messages since the opening, with a mark in place of
        that turn, to see what the template puts after it; None if the conversation is over."""
        conversation.add(tokens, logprobs, own=True)
        conversation.end = self.tokenizer.decode(tokens[-1:]) if ended else ""
        text = self.tokenizer.decode(tokens, skip_special_tokens=True)
        rest, calls = take_tool_calls(text) if self.job.testbed.tools else (text, ())
        before, conversation.messages = conversation.messages, (*conversation.messages, Message("assistant", rest, tuple(calls)))
        reply = replies(self.job.testbed, conversation.task, conversation.messages, self.format)
        conversation.messages = (*conversation.messages, *reply)
        return (*before, Message("assistant", _MARK), *reply) if reply else None

    def _heard(self, conversation: Conversation, text: str) -> bool:
        """Add what the template puts after a turn of the policy, without the end token, which the policy wrote itself. Returns
        whether there is room for the next turn."""
        ids = self._ids(text.removeprefix(conversation.end))
        room = getattr(self.model.config, "max_position_embeddings", None) or 1 << 30
        if len(conversation.prompt) + len(conversation.tokens) + len(ids) + self.settings.max_tokens > room:
            return False
        conversation.add(ids, [0.0] * len(ids), own=False)
        return True

    def _texts(self, conversations: Sequence[Sequence[Message]]) -> list[str]:
        thinking = {"on": True, "off": False}.get(self.settings.thinking)
        tools = self.job.testbed.tools
        return chat_prompts(self.tokenizer, [(messages, tools) for messages in conversations], thinking)

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _answers(self, prompts: list[list[int]], seed: int) -> list[tuple[list[int], list[float], bool]]:
        """Sample one turn in every conversation: its tokens, their log-probabilities, and whether it ended. transformers'
        `generate` returns no log-probabilities, so they are 0 there; TRL computes its own and does not need ours."""
        import torch

        settings, generator = self.settings, torch.Generator(device=self.model.device).manual_seed(seed % 2**63)
        if settings.engine != "plain" and supports(self.model):
            sampler = Sampler(self.model, end_tokens(self.model, self.tokenizer))
            completions = sampler.sample(prompts, 1, settings.max_tokens, settings.sampling, generator)
            return [(completion.tokens, completion.logprobs, completion.ended) for (completion,) in completions]
        plain = generate(self.model, self.tokenizer, prompts, settings.sampling, settings.max_tokens, generator)
        return [(tokens, [0.0] * len(tokens), ended) for tokens, ended in plain]
