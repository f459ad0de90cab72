"""Samples answers of a small Qwen3-shaped model, many at once, with one prefill per prompt (our choice).

With a small model, `transformers.generate` spends most of the time outside matrix products, and it prefills every copy of a
prompt. This sampler does the same arithmetic with fused weights and one key/value cache: each prompt is read once, its cache is
copied to the `group` answers that continue it, and rows leave the batch when they end. Greedy answers are the same as those of
`generate` (tests/plugins/test_sampler.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t2t_core.records import Sampling

# Copying the cache costs as much as a few steps, so ended rows are dropped only once fewer than this share of the rows is live.
_COMPACT_BELOW = 0.8
_COLUMNS = 16  # the cache grows by so many tokens at a time: most answers are far shorter than the limit, and it is copied
_GREEDY = Sampling()
_LARGEST = 20_000_000  # layers x width x inner width, about 60 M parameters; for larger models `generate` is as fast


@dataclass(frozen=True)
class Sampled:
    """One answer: its tokens (with the end token, if it ended), their log-probabilities at the sampling temperature (at
    temperature 0, those of the unscaled distribution), and whether it ended."""

    tokens: list[int]
    logprobs: list[float]
    ended: bool


def supports(model: Any) -> bool:
    """Whether `model` has exactly the architecture that this sampler computes, and is small enough to gain from it."""
    return supports_config(model.config)


def supports_config(config: Any) -> bool:
    """Like `supports`, given only the model's configuration."""
    rope = getattr(config, "rope_parameters", None) or {}
    return bool(
        config.model_type == "qwen3"
        and not getattr(config, "use_sliding_window", False)
        and config.hidden_act == "silu"
        and not config.attention_bias
        and rope.get("rope_type", "default") == "default"
        and config.num_hidden_layers * config.hidden_size * config.intermediate_size <= _LARGEST
    )


class _Layer:
    """One decoder layer's weights, with q, k, v and gate, up each fused into one matrix."""

    def __init__(self, layer: Any) -> None:
        import torch

        attention, mlp = layer.self_attn, layer.mlp
        self.norm_in, self.norm_mid = layer.input_layernorm.weight, layer.post_attention_layernorm.weight
        self.q_norm, self.k_norm = attention.q_norm.weight, attention.k_norm.weight
        self.qkv = torch.cat([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight])
        self.out = attention.o_proj.weight
        self.gate_up = torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight])
        self.down = mlp.down_proj.weight


class Sampler:
    """Holds a fused copy of the weights of `model`; make a new sampler after they change.

    Args:
        model: a `Qwen3ForCausalLM` for which `supports` holds.
        end: ids of the tokens that end an answer.
        rows: the most answers to sample at once.
    """

    def __init__(self, model: Any, end: Sequence[int], rows: int = 256) -> None:
        import torch

        config = model.config
        with torch.no_grad():
            self.layers = [_Layer(layer) for layer in model.model.layers]
        self.embed, self.norm, self.head = model.model.embed_tokens.weight, model.model.norm.weight, model.lm_head.weight
        self.heads, self.kv_heads, self.dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        self.eps, self.rows, self.end = config.rms_norm_eps, rows, torch.tensor(list(end), device=self.embed.device)
        half = torch.arange(0, self.dim, 2, device=self.embed.device, dtype=torch.float32) / self.dim
        self.frequencies = 1.0 / float(config.rope_parameters["rope_theta"]) ** half

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        group: int = 1,
        max_tokens: int = 256,
        sampling: Sampling = _GREEDY,
        generator: Any = None,
    ) -> list[list[Sampled]]:
        """Sample `group` answers to every prompt (token ids); returned in the prompts' order. Prompts of similar length share a
        batch, and equal prompts in a batch are read once."""
        import torch

        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        answers: list[list[Sampled]] = [[] for _ in prompts]
        width = max(1, self.rows // group)
        with torch.inference_mode():
            for at in range(0, len(order), width):
                indices = order[at : at + width]
                batch = self._batch([prompts[i] for i in indices], group, max_tokens, sampling, generator)
                for i, completions in zip(indices, batch, strict=True):
                    answers[i] = completions
        return answers

    def _batch(
        self, prompts: list[Sequence[int]], group: int, max_tokens: int, sampling: Sampling, generator: Any
    ) -> list[list[Sampled]]:
        import torch

        device = self.embed.device
        width = max(len(p) for p in prompts)
        unique = {p: row for row, p in enumerate(dict.fromkeys(map(tuple, prompts)))}
        copies = torch.tensor([unique[tuple(p)] for p in prompts for _ in range(group)], device=device)
        pads = torch.tensor([width - len(p) for p in unique], device=device)
        ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in unique], device=device)
        shape = (len(self.layers), 2, len(copies), self.kv_heads, width + min(max_tokens, _COLUMNS), self.dim)
        cache = torch.zeros(shape, device=device, dtype=self.embed.dtype)
        logits = self._prefill(ids, pads, cache, copies)[copies]
        pads = pads[copies]
        rows = torch.arange(len(pads), device=device)
        tokens = torch.zeros(len(pads), max_tokens, dtype=torch.long, device=device)
        logprobs = torch.zeros(len(pads), max_tokens, device=device)
        lengths = torch.full((len(pads),), max_tokens, device=device)
        for step in range(max_tokens):
            picked, logprob = _pick(logits.float(), sampling, generator)
            tokens[rows, step], logprobs[rows, step] = picked, logprob
            # Rows that have ended keep sampling, and the tokens are discarded, until compacting the batch is worth it.
            live = lengths[rows] > step
            lengths[rows[live & torch.isin(picked, self.end)]] = step + 1
            live = lengths[rows] > step + 1
            if not bool(live.any()) or step + 1 == max_tokens:
                break
            if int(live.sum()) < _COMPACT_BELOW * len(rows):
                rows, picked, pads, cache = rows[live], picked[live], pads[live], cache[:, :, live]
            if width + step == cache.shape[4]:
                cache = torch.nn.functional.pad(cache, (0, 0, 0, _COLUMNS))
            logits = self._step(picked, pads, cache, width + step)
        return _collect(tokens, logprobs, lengths, self.end, group)

    def _rotary(self, positions: Any) -> tuple[Any, Any]:
        """cos and sin of shape (rows, 1, columns, dim) for integer positions (rows, columns)."""
        import torch

        angles = positions[:, None, :, None].float() * self.frequencies
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos().to(self.embed.dtype), angles.sin().to(self.embed.dtype)

    def _project(self, layer: _Layer, hidden: Any, cos: Any, sin: Any) -> tuple[Any, Any, Any]:
        """Queries, keys and values of shape (rows, heads, columns, dim), normalised and rotated."""
        import torch
        from torch.nn.functional import linear, rms_norm

        rows, columns, _ = hidden.shape
        fused: Any = linear(rms_norm(hidden, hidden.shape[-1:], layer.norm_in, self.eps), layer.qkv)
        q, k, v = fused.view(rows, columns, -1, self.dim).split([self.heads, self.kv_heads, self.kv_heads], dim=2)
        q = rms_norm(q, (self.dim,), layer.q_norm, self.eps).transpose(1, 2)
        k = rms_norm(k, (self.dim,), layer.k_norm, self.eps).transpose(1, 2)
        half = self.dim // 2

        def rotate(x: Any) -> Any:
            return x * cos + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * sin

        return rotate(q), rotate(k), v.transpose(1, 2)

    def _finish(self, layer: _Layer, hidden: Any, attended: Any) -> Any:
        """The rest of a layer after attention: output projection and MLP, each with its residual."""
        from torch.nn.functional import linear, rms_norm, silu

        hidden = hidden + linear(attended.transpose(1, 2).flatten(2), layer.out)
        gate, up = linear(rms_norm(hidden, hidden.shape[-1:], layer.norm_mid, self.eps), layer.gate_up).chunk(2, dim=-1)
        return hidden + linear(silu(gate) * up, layer.down)

    def _attend(self, q: Any, k: Any, v: Any, mask: Any) -> Any:
        from torch.nn.functional import scaled_dot_product_attention

        return scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=self.heads != self.kv_heads)

    def _logits(self, hidden: Any) -> Any:
        from torch.nn.functional import linear, rms_norm

        return linear(rms_norm(hidden, hidden.shape[-1:], self.norm, self.eps), self.head)

    def _prefill(self, ids: Any, pads: Any, cache: Any, copies: Any) -> Any:
        """Read left-padded prompts (rows, columns) and write the cache of each of `copies` (row numbers of `ids`). Returns the
        logits of the last column."""
        import torch

        columns = torch.arange(ids.shape[1], device=ids.device)
        cos, sin = self._rotary((columns - pads[:, None]).clamp(min=0))
        # A padding column attends to itself, since the softmax of an empty row would be NaN.
        seen = (columns[None, None, :] <= columns[None, :, None]) & (columns[None, None, :] >= pads[:, None, None])
        mask = (seen | torch.eye(len(columns), dtype=torch.bool, device=ids.device))[:, None]
        hidden = self.embed[ids]
        for layer, kv in zip(self.layers, cache, strict=True):
            q, k, v = self._project(layer, hidden, cos, sin)
            kv[0, :, :, : ids.shape[1]] = k[copies]
            kv[1, :, :, : ids.shape[1]] = v[copies]
            hidden = self._finish(layer, hidden, self._attend(q, k, v, mask))
        return self._logits(hidden[:, -1])

    def _step(self, ids: Any, pads: Any, cache: Any, column: int) -> Any:
        """Read one token in every row, and write it to the cache at `column`. Returns the logits after it."""
        import torch

        cos, sin = self._rotary((column - pads)[:, None])
        mask = (torch.arange(column + 1, device=ids.device)[None] >= pads[:, None])[:, None, None]
        hidden = self.embed[ids][:, None]
        for layer, kv in zip(self.layers, cache, strict=True):
            q, k, v = self._project(layer, hidden, cos, sin)
            kv[0, :, :, column : column + 1] = k
            kv[1, :, :, column : column + 1] = v
            hidden = self._finish(layer, hidden, self._attend(q, kv[0, :, :, : column + 1], kv[1, :, :, : column + 1], mask))
        return self._logits(hidden[:, 0])


def _pick(logits: Any, sampling: Sampling, generator: Any) -> tuple[Any, Any]:
    """Pick one token per row; temperature 0 takes the largest logit. Its log-probability is that at the temperature, before
    top_k, top_p and min_p leave out any token."""
    import torch

    if sampling.temperature == 0:
        logprobs = logits.log_softmax(-1)
        picked = logits.argmax(-1)
    else:
        logits = logits / sampling.temperature
        logprobs = logits.log_softmax(-1)
        picked = torch.multinomial(_narrowed(logprobs.exp(), sampling), 1, generator=generator)[:, 0]
    return picked, logprobs.gather(-1, picked[:, None])[:, 0]


def _narrowed(probabilities: Any, sampling: Sampling) -> Any:
    """The probabilities, with 0 for tokens that top_k, top_p and min_p leave out, in this order, as in transformers."""
    import torch

    if 0 < sampling.top_k < probabilities.shape[-1]:
        least = probabilities.topk(sampling.top_k, dim=-1).values[:, -1:]
        probabilities = probabilities.masked_fill(probabilities < least, 0)
        probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    if sampling.top_p < 1:
        ranked, index = probabilities.sort(dim=-1, descending=True)
        ranked[ranked.cumsum(-1) - ranked >= sampling.top_p] = 0  # keeps the first token that reaches top_p
        probabilities = torch.zeros_like(probabilities).scatter(-1, index, ranked)
    if sampling.min_p > 0:
        likeliest = probabilities.amax(-1, keepdim=True)
        probabilities = probabilities.masked_fill(probabilities < sampling.min_p * likeliest, 0)
    return probabilities


def _collect(tokens: Any, logprobs: Any, lengths: Any, end: Any, group: int) -> list[list[Sampled]]:
    rows = []
    ends = set(end.tolist())
    for ids, values, length in zip(tokens.tolist(), logprobs.tolist(), lengths.tolist(), strict=True):
        rows.append(Sampled(ids[:length], values[:length], ids[length - 1] in ends))
    return [rows[i : i + group] for i in range(0, len(rows), group)]
