"""The shape of a dense decoder, from its configuration alone: how many parameters it has, and the bytes that a token takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_core.store import folders

# Hidden size, intermediate size, layers, attention heads, and whether the output layer is the embedding, from the published
# configurations of Qwen3, so that a plan needs no download. All have 8 key-value heads of width 128 and 151,936 tokens.
QWEN3 = {
    "Qwen/Qwen3-0.6B": (1024, 3072, 28, 16, True),
    "Qwen/Qwen3-1.7B": (2048, 6144, 28, 16, True),
    "Qwen/Qwen3-4B": (2560, 9728, 36, 32, True),
    "Qwen/Qwen3-8B": (4096, 12288, 36, 32, False),
    "Qwen/Qwen3-14B": (5120, 17408, 40, 40, False),
    "Qwen/Qwen3-32B": (5120, 25600, 64, 64, False),
}
_NAMES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")


@dataclass(frozen=True)
class Shape:
    """A decoder with gated feed-forward layers and grouped-query attention; `tied`: the output layer is the embedding."""

    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_values: int
    head: int
    tied: bool

    @property
    def layer(self) -> int:
        """Weights of one layer's matrices: queries, keys, values, output; gate, up, down."""
        queries, both = self.heads * self.head, 2 * self.key_values * self.head
        return self.hidden * (2 * queries + both) + 3 * self.hidden * self.intermediate

    @property
    def embedding(self) -> int:
        """The number of parameters of the embedding, or of the head."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All weights, including the norms: in each layer two of the hidden size and two of a head's, and one at the end."""
        norms = self.layers * (2 * self.hidden + 2 * self.head) + self.hidden
        return self.layers * self.layer + norms + self.embedding * (1 if self.tied else 2)

    def adapters(self, rank: int) -> int:
        """Weights of LoRA adapters of that rank on every linear layer except the output layer."""
        queries, keys = self.heads * self.head, self.key_values * self.head
        sides = 2 * (self.hidden + queries) + 2 * (self.hidden + keys) + 3 * (self.hidden + self.intermediate)
        return self.layers * rank * sides

    def kept(self, mixed: bool) -> int:
        """Bytes per token that a layer keeps for its backward pass, with products in bfloat16 and fused attention.

        With `mixed`, the residual stream is in float32 (autocast over float32 weights); otherwise it is in bfloat16, like
        everything except the inside of the norms. tests/plugins/test_plan.py measures it.
        """
        queries, keys = self.heads * self.head, self.key_values * self.head
        norms = (26 if mixed else 16) * self.hidden
        return norms + 8 * self.intermediate + 10 * (queries + keys) + 8 * self.heads + 4 * self.key_values + 8

    def cache(self, width: int = 2) -> int:
        """Bytes of one token's keys and values, with `width` bytes per number."""
        return 2 * self.layers * self.key_values * self.head * width


def shape_of(checkpoint: str) -> Shape | None:
    """The shape of a checkpoint's folder or of a model known by name; None if it is unknown or not a dense decoder."""
    if checkpoint in QWEN3:
        hidden, intermediate, layers, heads, tied = QWEN3[checkpoint]
        return Shape(151_936, hidden, intermediate, layers, heads, 8, 128, tied)
    path = Path(checkpoint) / "config.json"
    return read_shape(folders.read_json(path)) if path.is_file() else None


def read_shape(config: Mapping[str, Any]) -> Shape | None:
    """The shape that a transformers configuration describes; None if it does not describe a dense decoder in these names."""
    if any(type(config.get(name)) is not int or config[name] < 1 for name in _NAMES) or config.get("num_experts"):
        return None
    vocabulary, hidden, intermediate, layers, heads = (int(config[name]) for name in _NAMES)
    key_values = config.get("num_key_value_heads") or heads
    head = config.get("head_dim") or hidden // heads
    return Shape(vocabulary, hidden, intermediate, layers, heads, key_values, head, bool(config.get("tie_word_embeddings")))
