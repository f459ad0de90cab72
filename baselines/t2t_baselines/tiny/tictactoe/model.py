"""The toy policy's tokenizer and network for tic-tac-toe (our choice): one word per row, one word per move."""

from __future__ import annotations

from itertools import product
from typing import Any

PAD, END, START, UNKNOWN = "<|pad|>", "<|im_end|>", "<|im_start|>", "<|unknown|>"
LINES = tuple("".join(marks) for marks in product(".XO", repeat=3))  # a row of the board is one word
WORDS = (PAD, END, START, UNKNOWN, *LINES, *"012345678")
# Boards and moves show who speaks, so there are no marks for roles: a turn takes six words.
TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{{ '<|im_end|>' if message['role'] == 'assistant' else '<|im_start|>' }}{% endfor %}"
)
CONTEXT = 256  # tokens; a whole conversation takes at most 8 turns of 6


def make_tokenizer() -> Any:
    """A `PreTrainedTokenizerFast` over `WORDS`; every character that they do not cover becomes the unknown word."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[.XO]{3}|[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    make: Any = PreTrainedTokenizerFast
    return make(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        additional_special_tokens=[START],
        chat_template=TEMPLATE,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=CONTEXT,
    )


def make_model(seed: int) -> Any:
    """A fresh `Qwen3ForCausalLM` in float32: 64 wide, 2 layers, 2 heads of 32, tied embeddings, about 70,000 parameters."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(WORDS),
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            pad_token_id=0,
            bos_token_id=None,
            eos_token_id=1,
        )
    )
