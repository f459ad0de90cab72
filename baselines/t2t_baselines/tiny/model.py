"""The toy policy's tokenizer and network (our choice).

A word is what the formats repeat: a cell ` (2,0)`, a move ` -> (2,1)`, `\\nAgent 0:`, a number with its space. Words have their
own spaces, so decoding is plain concatenation and the answer is literally as documented. The list ends with single characters,
so any ASCII text can be read, only with more tokens.
"""

from __future__ import annotations

import string
from typing import Any

PAD, END, START, UNKNOWN = "<|pad|>", "<|im_end|>", "<|im_start|>", "<|unknown|>"
MAX_SIZE, MAX_AGENTS = 10, 6
CHECKS = (
    "parsable", "agent_count", "start_correct", "in_bounds", "hole_free", "legal_move", "conflict_free", "goal_reached",
)  # fmt: skip
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# What counts as one word, tried from left to right; everything else becomes single characters.
PATTERN = "|".join(
    [
        r" -> \(\d,\d\)",
        r" \(\d,\d\)",
        r"\nAgent \d:",
        r"<answer>|\n</answer>",
        r"\nholes",
        r" ?\"(?:[3-9]|10)\":\[",
        r"(?:user|assistant|system)\n",
        r" ?(?:100|[1-9]?\d)(?!\d)",
        r" ?(?:sum_of_costs|design|config|failures|answer|none|history|summary|training|" + "|".join(CHECKS) + r")\b",
        r" [\]},{]",
    ]
)


def words() -> list[str]:
    """The vocabulary in the order of its ids."""
    digits = range(MAX_SIZE)
    cells = [f"({r},{c})" for r in digits for c in digits]
    plain = ["sum_of_costs", "design", "config", "failures", "answer", "none", "history", "summary"]
    plain += ["training", *CHECKS, *(str(n) for n in range(101)), *(f'"{n}":[' for n in range(3, MAX_SIZE + 1))]
    vocabulary = [PAD, END, START, UNKNOWN]
    vocabulary += [f" {cell}" for cell in cells] + [f" -> {cell}" for cell in cells]
    vocabulary += [f"\nAgent {n}:" for n in range(MAX_AGENTS)] + [
        "<answer>",
        "\n</answer>",
        "\nholes",
        "user\n",
        "assistant\n",
        "system\n",
    ]
    vocabulary += [" ]", " }", " ,", " {"]
    vocabulary += [f"{space}{word}" for space in ("", " ") for word in plain]
    vocabulary += [c for c in string.printable[:-2] if c not in vocabulary]
    return vocabulary


def make_tokenizer() -> Any:
    """A `PreTrainedTokenizerFast` over `words()`, with a ChatML template (there is no thinking to switch)."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words())}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PATTERN + r"|[\s\S]"), "isolated")
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
        model_max_length=1024,
    )


def make_model(seed: int, **overrides: Any) -> Any:
    """A fresh `Qwen3ForCausalLM` in float32: 96 wide, 4 layers, 3 heads of 32, tied embeddings, about 0.5 M parameters."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    settings: dict[str, Any] = {
        "vocab_size": len(words()),
        "hidden_size": 96,
        "intermediate_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 3,
        "num_key_value_heads": 3,
        "head_dim": 32,
        "max_position_embeddings": 1024,
        "tie_word_embeddings": True,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": 1,
    }
    return Qwen3ForCausalLM(Qwen3Config(**{**settings, **overrides}))
