"""The arithmetic of an update: advantages, log-probabilities, the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t2t_plugins.trainers.grpo.playing import Rollout
from t2t_plugins.trainers.grpo.settings import Settings

TOKENS = 4096  # of a part, including padding: larger parts are mostly padding, smaller ones mostly overhead of calls
SPARE = 1e-4  # added to a group's standard deviation, as TRL does

Row = tuple[tuple[int, ...], tuple[int, ...]]  # what a turn saw, and what the policy wrote


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
    """The turns of an update. Equal turns, which are most of them in a task with few states, share one row. Rows are sorted by
    length into parts of TOKENS, so that there is little padding. Without a KL term, turns without an advantage are left out.

    Args:
        parts: for each part, the token ids (rows, columns) and the mask of the policy's own tokens.
        places: for every token of the policy in every turn (tokens,), its index among the own tokens of all parts.
        advantages: the advantage of every such token.
        weights: its share in the loss; the shares sum to 1 except for "dr_grpo".
    """

    parts: Sequence[tuple[Any, Any]]
    places: Any
    advantages: Any
    weights: Any

    @classmethod
    def of(cls, rollouts: Sequence[Rollout], advantages: Sequence[float], settings: Settings, tokens: int = TOKENS) -> Batch:
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
        starts: dict[Any, int] = {}
        own_tokens = 0
        places: list[int] = []
        gains: list[float] = []
        shares: list[float] = []
        for turn, advantage, weight in turns:
            words = (tuple(turn.prompt), tuple(turn.tokens))
            if words not in starts:
                starts[words] = own_tokens
                own_tokens += len(turn.tokens)
            places += range(starts[words], starts[words] + len(turn.tokens))
            gains += [advantage] * len(turn.tokens)
            shares += [weight] * len(turn.tokens)
        parts = [tensors(part) for part in _parts_by_length(list(starts), tokens)]
        return cls(parts, torch.tensor(places), torch.tensor(gains), torch.tensor(shares))

    def logprobs(self, model: Any, temperature: float) -> Any:
        """The log-probability (tokens,) of each of the policy's tokens under the model at that temperature."""
        import torch

        parts = []
        for ids, own in self.parts:
            hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
            mask = own[:, 1:]
            logits = model.lm_head(hidden[mask]) / temperature
            parts.append(-torch.nn.functional.cross_entropy(logits, ids[:, 1:][mask], reduction="none"))
        return torch.cat(parts)[self.places]

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


def _parts_by_length(rows: Sequence[Row], tokens: int) -> list[list[Row]]:
    """Split rows of rising length into parts of at most so many tokens, with all rows of a part padded to its longest."""
    parts: list[list[Row]] = []
    for row in rows:
        width = len(row[0]) + len(row[1])
        if not parts or (len(parts[-1]) + 1) * width > tokens:
            parts.append([])
        parts[-1].append(row)
    return parts


def tensors(rows: Sequence[tuple[Sequence[int], Sequence[int]]]) -> tuple[Any, Any]:
    """The token ids (rows, columns) of prompts and what the policy wrote after them, and the mask of the latter."""
    import torch

    width = max(len(prompt) + len(tokens) for prompt, tokens in rows)
    ids = torch.tensor([[*prompt, *tokens, *[0] * (width - len(prompt) - len(tokens))] for prompt, tokens in rows])
    own = torch.zeros(len(rows), width, dtype=torch.bool)
    for row, (prompt, tokens) in enumerate(rows):
        own[row, len(prompt) : len(prompt) + len(tokens)] = True
    return ids, own
