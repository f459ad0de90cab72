"""The arithmetic of an update: advantages, log-probabilities, the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t2t_plugins.trainers.grpo.packing import Ids, Part, pack
from t2t_plugins.trainers.grpo.playing import Rollout, Turn
from t2t_plugins.trainers.grpo.settings import Settings

SPARE = 1e-4  # added to a group's standard deviation, as TRL does


def parts_of(items: Sequence[Any], size: int) -> list[list[Any]]:
    """Consecutive parts of that size."""
    return [list(items[at : at + size]) for at in range(0, len(items), size)]


def advantages_of(rewards: Sequence[Sequence[float]], scale: str) -> list[list[float]]:
    """How much better each conversation was than the mean of its group. `scale` divides this by the standard deviation of the
    group or of the batch (both with n - 1, as in TRL)."""
    import torch

    if not rewards:
        return []
    table = torch.tensor([list(group) for group in rewards], dtype=torch.float32)
    centred = table - table.mean(1, keepdim=True)
    if scale == "group":
        centred = centred / (table.std(1, keepdim=True) + SPARE)
    elif scale == "batch":
        centred = centred / (table.std() + SPARE)
    rows: list[list[float]] = centred.tolist()
    return rows


@dataclass(frozen=True)
class Batch:
    """The turns of an update, packed. Without a KL term, turns without an advantage are left out.

    Args:
        parts: what the model reads.
        places: for every token of the policy in every turn (tokens,), its index among the own tokens of all parts.
        advantages: the advantage of every such token.
        weights: its share in the loss; the shares sum to 1 except for "dr_grpo".
    """

    parts: Sequence[Part]
    places: Any
    advantages: Any
    weights: Any

    @classmethod
    def of(cls, rollouts: Sequence[Rollout], advantages: Sequence[float], settings: Settings) -> Batch:
        """Pack the turns of the rollouts, one advantage for each rollout; tokens are weighed as `settings.loss` says."""
        import torch

        total = sum(rollout.tokens for rollout in rollouts)
        turns = []
        for rollout, advantage in zip(rollouts, advantages, strict=True):
            of_token = {"grpo": len(rollouts) * max(1, rollout.tokens), "dr_grpo": len(rollouts) * settings.max_tokens}
            weight = 1 / of_token.get(settings.loss, total)
            turns += [(turn, advantage, weight) for turn in rollout.turns if turn.tokens]
        if not settings.beta:
            turns = [row for row in turns if row[1]] or turns
        turns.sort(key=lambda row: len(row[0].prompt) + len(row[0].tokens))
        parts, starts = pack(_words(turn) for turn, _, _ in turns)
        places: list[int] = []
        gains: list[float] = []
        shares: list[float] = []
        for turn, advantage, weight in turns:
            start = starts[_words(turn)]
            places += range(start, start + len(turn.tokens))
            gains += [advantage] * len(turn.tokens)
            shares += [weight] * len(turn.tokens)
        return cls(parts, torch.tensor(places), torch.tensor(gains), torch.tensor(shares))

    def logprobs(self, model: Any, temperature: float) -> Any:
        """The log-probability (tokens,) of each of the policy's tokens under the model at that temperature."""
        import torch

        return torch.cat([part.logprobs(model, temperature) for part in self.parts])[self.places]

    def loss(self, logprobs: Any, old: Any, reference: Any, settings: Settings) -> tuple[Any, float]:
        """The loss to minimise, and the mean KL per token (0 without a reference)."""
        import torch

        ratio = torch.exp(logprobs - old)
        if settings.loss == "cispo":
            gain = torch.clamp(ratio, max=1 + settings.clip).detach() * self.advantages * logprobs
        else:
            clipped = torch.clamp(ratio, 1 - settings.clip, 1 + settings.clip)
            gain = torch.min(ratio * self.advantages, clipped * self.advantages)
        if reference is None:
            return -(gain * self.weights).sum(), 0.0
        away = reference - logprobs
        kl = (torch.exp(away) - away - 1) * ratio  # weighted by the ratio, its gradient is that of the reverse KL, as in TRL
        return ((settings.beta * kl - gain) * self.weights).sum(), float(kl.detach().mean())


def _words(turn: Turn) -> tuple[Ids, Ids]:
    return tuple(turn.prompt), tuple(turn.tokens)
