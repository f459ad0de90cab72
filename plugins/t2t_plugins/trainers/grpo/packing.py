"""Packs the turns of an update for the model, so that each prompt is read once.

The answers of a group share their prompt, and the model reads a prompt of 40 tokens in the same time as two answers. So a row
holds a prompt and, behind it, every answer to it. An answer sees the prompt and itself, and its positions follow the prompt's, as
if it stood there alone. Equal turns, which are most of them in a task with few states, are one answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

TOKENS = 1024  # of a part, including padding: with more there is more padding, with fewer the calls take most of the time
ROW = 512  # tokens of a row with several answers; attention takes time with its square

Ids = tuple[int, ...]


@dataclass
class _Row:
    prompt: Ids
    answers: list[Ids] = field(default_factory=list)

    @property
    def width(self) -> int:
        return len(self.prompt) + sum(map(len, self.answers))


@dataclass(frozen=True)
class Part:
    """Rows of similar width as tensors.

    Args:
        ids: token ids (rows, width), with 0 as padding.
        positions: of each token in its conversation (rows, width).
        mask: added to the attention's scores (rows, 1, width, width): 0 where a token sees another, else -inf.
        before, own: for each token of an answer (tokens,), the places of its predecessor and of itself in the flattened ids.
    """

    ids: Any
    positions: Any
    mask: Any
    before: Any
    own: Any

    def logprobs(self, model: Any, temperature: float) -> Any:
        """The log-probability (tokens,) of each token of the answers under the model at that temperature."""
        import torch

        seen = model.model(input_ids=self.ids, attention_mask=self.mask, position_ids=self.positions, use_cache=False)
        logits = model.lm_head(seen.last_hidden_state.flatten(0, 1)[self.before]) / temperature
        return -torch.nn.functional.cross_entropy(logits, self.ids.flatten()[self.own], reduction="none")


def pack(turns: Iterable[tuple[Ids, Ids]], tokens: int = TOKENS, row: int = ROW) -> tuple[list[Part], dict[tuple[Ids, Ids], int]]:
    """Pack prompts and their answers. Returns the parts, of at most so many tokens each where a row fits, and for each turn the
    index of its answer's first token among the tokens of all parts' answers."""
    parts: list[list[_Row]] = []
    for packed in _rows(turns, row):  # of rising width
        if not parts or (len(parts[-1]) + 1) * packed.width > tokens:
            parts.append([])
        parts[-1].append(packed)
    starts: dict[tuple[Ids, Ids], int] = {}
    count = 0
    for packed in (packed for part in parts for packed in part):
        for answer in packed.answers:
            starts[packed.prompt, answer] = count
            count += len(answer)
    return [_tensors(part) for part in parts], starts


def _rows(turns: Iterable[tuple[Ids, Ids]], longest: int) -> list[_Row]:
    """Rows of rising width. A row takes answers to its prompt until it has that many tokens."""
    open_rows: dict[Ids, _Row] = {}
    rows: list[_Row] = []
    for prompt, answer in dict.fromkeys(turns):
        row = open_rows.get(prompt)
        if row is None or row.width + len(answer) > longest:
            row = open_rows[prompt] = _Row(prompt)
            rows.append(row)
        row.answers.append(answer)
    return sorted(rows, key=lambda row: row.width)


def _tensors(rows: Sequence[_Row]) -> Part:
    import torch

    width = rows[-1].width
    ids, positions = torch.zeros(len(rows), width, dtype=torch.long), torch.zeros(len(rows), width, dtype=torch.long)
    branches = torch.full((len(rows), width), -1)  # 0 is the prompt, 1 the first answer; padding is -1
    before: list[int] = []
    own: list[int] = []
    for number, row in enumerate(rows):
        length, start = len(row.prompt), number * width
        flat = [*row.prompt]
        where, branch = [*range(length)], [0] * length
        for place, answer in enumerate(row.answers, 1):
            first = start + len(flat)
            before += [start + length - 1, *range(first, first + len(answer) - 1)]
            own += range(first, first + len(answer))
            flat += answer
            where += range(length, length + len(answer))
            branch += [place] * len(answer)
        ids[number, : len(flat)] = torch.tensor(flat)
        positions[number, : len(flat)] = torch.tensor(where)
        branches[number, : len(flat)] = torch.tensor(branch)
    earlier = torch.ones(width, width, dtype=torch.bool).tril()
    seen = earlier & ((branches[:, None, :] == 0) | (branches[:, None, :] == branches[:, :, None]))
    mask = torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))[:, None]
    return Part(ids, positions, mask, torch.tensor(before), torch.tensor(own))
