"""A checkpoint of random weights in a published shape, for a machine that cannot reach a hub. Every id of its tokenizer has a
text, its chat template has a switch for thinking, and its responses end by chance after about as many tokens as you ask for."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2t_plugins.trainers.shapes import Shape

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")
MERGED = 4000  # words learnt from the prompts, so that these are about as long as with a model's own tokenizer
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


def save_random_model(folder: Path, shape: Shape, texts: Sequence[str], length: int) -> int:
    """Write such a checkpoint to `folder` in bfloat16, and return its number of parameters. Its responses have about `length`
    tokens."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM, set_seed

    tokenizer = make_tokenizer(shape.vocabulary, texts)
    set_seed(0)
    config = Qwen3Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_values,
        head_dim=shape.head,
        tie_word_embeddings=shape.tied,
        max_position_embeddings=40_960,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
            model = Qwen3ForCausalLM(config)
            let_responses_end(model, tokenizer.eos_token_id, length)
    finally:
        torch.set_default_dtype(before)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return sum(p.numel() for p in model.parameters())


def let_responses_end(model: Any, end: int, length: int) -> None:
    """Give the token `end` a probability of 1 in `length`. With random weights it is 1 in the number of words: every response
    would be cut off, all would earn the same reward and the gradient would be zero. Therefore one number of the residual stream
    is the same everywhere: no layer writes it, and the output layer reads it for that token."""
    import torch

    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight[0] = 0
            layer.mlp.down_proj.weight[0] = 0
        model.get_input_embeddings().weight[:, 0] = 1
        ids = torch.randint(model.config.vocab_size, (2, 128))
        hidden = model.model(ids).last_hidden_state
        logits = model.lm_head(hidden).float()
        missing = logits.logsumexp(-1).mean() - math.log(length) - logits[..., end].mean()
        model.get_output_embeddings().weight[end, 0] += missing / hidden[..., 0].float().mean()


def make_tokenizer(vocabulary: int, texts: Sequence[str]) -> Any:
    """A byte-level BPE tokenizer that has learnt from `texts`, filled up to `vocabulary` with words that occur in no text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    learnt = Tokenizer(models.BPE())
    learnt.pre_tokenizer, learnt.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words = min(vocabulary, len(alphabet) + len(SPECIAL) + MERGED)
    learnt.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=words, special_tokens=list(SPECIAL), initial_alphabet=alphabet)
    )
    written = json.loads(learnt.to_str())
    known = written["model"]["vocab"]
    known.update({f"filler{number}": number for number in range(len(known), vocabulary)})
    make: Any = PreTrainedTokenizerFast
    return make(
        tokenizer_object=Tokenizer.from_str(json.dumps(written)),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=TEMPLATE,
        padding_side="left",
    )
