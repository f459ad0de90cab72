"""A Qwen3 of random weights in a folder: 0.1 M parameters, a byte-level tokenizer, ChatML with Qwen3's thinking switch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


def random_model(
    folder: Path, context: int = 4096, texts: Sequence[str] = (), layers: int = 1, more_special: Sequence[str] = (), **more: Any
) -> None:
    """Its byte-level tokenizer learns a few merges from `texts`; `more` goes to the model's configuration."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, set_seed

    set_seed(0)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", *more_special]
    trainer = trainers.BpeTrainer(special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=TEMPLATE
    )
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": layers, "num_attention_heads": 2, "head_dim": 32}
    ends = {"eos_token_id": wrapped.eos_token_id, "pad_token_id": wrapped.pad_token_id}
    config = Qwen3Config(vocab_size=len(wrapped), num_key_value_heads=2, max_position_embeddings=context, **sizes, **ends, **more)
    Qwen3ForCausalLM(config).save_pretrained(folder)
    wrapped.save_pretrained(folder)
