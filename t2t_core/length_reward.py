"""The length-aware part of the training reward: the length penalty and the adaptive weights (paper section on the reward).

It knows no task: a testbed gives the accuracy, a trainer counts the tokens. Our choices are marked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from t2t_core.errors import T2TError

START, END = 1500, 4096  # response tokens between which the length penalty grows
LOW, HIGH = 0.5, 0.9  # share of short responses between which the weights move
WEIGHTS_LOW, WEIGHTS_HIGH = (0.5, 0.5), (0.8, 0.2)


def length_reward(tokens: int, start: int = START, end: int = END) -> float:
    """0 up to `start` response tokens, linear to -1 at `end`, -1 beyond (paper). T2TError unless 0 <= start < end."""
    if not 0 <= start < end:
        raise T2TError(f"the length penalty starts at {start} and ends at {end} tokens", next="choose 0 <= start < end")
    return -min(1.0, max(0.0, (tokens - start) / (end - start)))


def share_short(tokens: Sequence[int], start: int = START) -> float:
    """The share of responses without a length penalty (our choice of "short"). T2TError if there is none at all."""
    if not tokens:
        raise T2TError("an update without responses has no share of short ones")
    return sum(count <= start for count in tokens) / len(tokens)


def total_reward(accuracy: float, length: float, weights: tuple[float, float]) -> float:
    """w_acc * accuracy + w_len * length (paper), in [-w_len, w_acc]."""
    return weights[0] * accuracy + weights[1] * length


@dataclass(frozen=True)
class AdaptiveWeights:
    """The state of the adaptive weighting: s, the moving average of the share of short responses (paper).

    An update's weights are `weights()` of the state before it, so that they are fixed before its rewards are computed; after
    it, `update(share)` with the share over the whole update, on all devices, gives the next state, which belongs into the
    checkpoint. Validation does not move it. s starts at 0, the average forgets by `decay` per update (our choices).
    """

    share: float = 0.0
    decay: float = 0.9

    def __post_init__(self) -> None:
        for name, value in (("share", self.share), ("decay", self.decay)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
                raise T2TError(f"{name} must lie in 0..1, not {ascii(value)[:60]}", where="the state of the adaptive weights")

    def weights(self) -> tuple[float, float]:
        """(w_acc, w_len): (0.5, 0.5) for s < 0.5, linear to (0.8, 0.2) at s = 0.9, constant beyond (paper)."""
        part = min(1.0, max(0.0, (self.share - LOW) / (HIGH - LOW)))
        accuracy, length = (a + part * (b - a) for a, b in zip(WEIGHTS_LOW, WEIGHTS_HIGH, strict=True))
        return accuracy, length

    def update(self, share_short: float) -> AdaptiveWeights:
        """The state after one update in which `share_short` (0..1) of the responses were short."""
        if not (math.isfinite(share_short) and 0 <= share_short <= 1):
            raise T2TError(f"a share lies in 0..1, not {share_short}")
        return AdaptiveWeights(self.decay * self.share + (1 - self.decay) * share_short, self.decay)

    def to_dict(self) -> dict[str, float]:
        return {"share": self.share, "decay": self.decay}
