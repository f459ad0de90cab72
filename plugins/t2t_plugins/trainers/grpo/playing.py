"""The conversations of an update: played all at once, turn by turn, and compared in groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from t2t_core.conversation import opening, replies, shown
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Message, Sampling, Verdict
from t2t_core.seeding import key
from t2t_plugins.policies.chat import chat_prompts
from t2t_plugins.sampler import Sampler
from t2t_plugins.trainers.grpo.settings import Settings


@dataclass
class Turn:
    """One message of the policy: the tokens it saw, those it wrote (including the end token), whether it ended by itself, and its
    log-probability. The mean of the latter over many tokens estimates the entropy."""

    prompt: list[int]
    tokens: list[int]
    ended: bool
    logprob: float = 0.0


@dataclass
class Rollout:
    """A conversation: the instance as this rollout plays it, the opening, all messages after it, and the policy's turns."""

    task: Any
    first: tuple[Message, ...] = ()
    messages: tuple[Message, ...] = ()
    turns: list[Turn] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """How many tokens the policy wrote in it."""
        return sum(len(turn.tokens) for turn in self.turns)


@dataclass(frozen=True)
class Group:
    """The conversations about one instance, which are compared with each other."""

    instance: int
    rollouts: Sequence[Rollout]
    verdicts: Sequence[Verdict]
    rewards: Sequence[float]

    @property
    def dead(self) -> bool:
        """Whether nothing can be learnt from the group, because all its conversations earn the same, up to rounding."""
        return max(self.rewards) - min(self.rewards) <= 1e-6

    @property
    def tokens(self) -> int:
        """How many tokens the policy wrote in all of its rollouts."""
        return sum(rollout.tokens for rollout in self.rollouts)


class Player:
    """Plays rollouts with the current weights; `seed` is the training's seed and `format` the prompt format."""

    def __init__(self, model: Any, tokenizer: Any, ends: Any, testbed: AnyTestbed, settings: Settings, format: str, seed: int):
        self._model, self._tokenizer, self._ends = model, tokenizer, ends
        self._testbed, self._settings, self._format, self._seed = testbed, settings, format, seed
        self._ids: dict[tuple[Message, ...], list[int]] = {}  # what a memoryless format has shown, since positions recur

    def rollouts(self, instance: Any) -> list[Rollout]:
        """A group of conversations about an instance, with only their openings."""
        made = []
        for nth in range(self._settings.group):
            task = self._testbed.rollout(instance, nth)
            made.append(Rollout(task, opening(self._testbed, task, self._format)))
        return made

    def play(self, rollouts: Sequence[Rollout], update: int, number: int) -> None:
        """Play all rollouts to their ends, turn by turn. The draws depend on the update and on `number`, the batch within it."""
        import torch

        sampler, settings, testbed = Sampler(self._model, self._ends), self._settings, self._testbed
        sampling = Sampling(settings.temperature, settings.max_tokens)
        open_rollouts, turn = list(rollouts), 0
        while open_rollouts:
            encoded = self._encoded(open_rollouts)
            seed = key(self._seed, "rollout", update, number, turn)
            generator = torch.Generator().manual_seed(seed % 2**63)
            flat = [completion for (completion,) in sampler.sample(encoded, 1, settings.max_tokens, sampling, generator)]
            said = self._tokenizer.batch_decode([answer.tokens for answer in flat], skip_special_tokens=True)
            going_on = []
            for rollout, prompt, answer, text in zip(open_rollouts, encoded, flat, said, strict=True):
                rollout.turns.append(Turn(prompt, answer.tokens, answer.ended, sum(answer.logprobs)))
                rollout.messages = (*rollout.messages, Message("assistant", text))
                reply = replies(testbed, rollout.task, rollout.messages, self._format)
                if reply:
                    rollout.messages = (*rollout.messages, *reply)
                    going_on.append(rollout)
            open_rollouts, turn = going_on, turn + 1

    def _encoded(self, rollouts: Sequence[Rollout]) -> list[list[int]]:
        """What each rollout shows the policy, as token ids. Rollouts that show the same are tokenized once."""
        seen = [shown(self._testbed, rollout.first, rollout.messages, self._format) for rollout in rollouts]
        ids = self._ids if self._format in self._testbed.memoryless else {}
        fresh = [messages for messages in dict.fromkeys(seen) if messages not in ids]
        if fresh:
            texts = chat_prompts(self._tokenizer, [(messages, ()) for messages in fresh])
            ids.update(zip(fresh, self._tokenizer(texts, add_special_tokens=False)["input_ids"], strict=True))
        return [ids[messages] for messages in seen]
