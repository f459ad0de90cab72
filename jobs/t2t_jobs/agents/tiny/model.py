"""The toy agent's tokenizer and network (our choice).

The vocabulary has the words that jobs repeat: the head of a line (`learning_rate = `) or table (`[training]`), a choice, a key.
Numbers are written digit by digit, and everything else character by character, so any text can be read and written.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from typing import Any

from t2t_jobs.family import Family, dotted, path_of

PAD, END, START, UNKNOWN = "<|pad|>", "<|im_end|>", "<|im_start|>", "<|unknown|>"
TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{{ '<|im_end|>' if message['role'] == 'assistant' else '<|im_start|>' }}{% endfor %}"
)
CONTEXT = 768  # tokens of a question and its answer
ANONYMOUS = "anew"  # stands for the family's name in some questions, so that the model can cope with a family it has never seen


def words(families: Iterable[Family]) -> list[str]:
    """The vocabulary for jobs of these families, in the order of its ids."""
    heads, values, asked = set[str](), set[str](), {"job ", "\nagain", "\nwrong ", ANONYMOUS}
    for family in families:
        asked |= {f"{family.testbed} ", family.name, *family.bounds}
        for key, bound in family.bounds.items():
            *tables, last = path_of(key)
            quoted = bound.kind == "choice" and isinstance(bound.choices[0], str)
            heads.add(f"{dotted([last])} = " + '"' * quoted)
            heads |= {f"\n[{dotted(tables)}]\n"} if tables else set()
            values |= {choice for choice in bound.choices if isinstance(choice, str)}
    vocabulary = [PAD, END, START, UNKNOWN, *sorted(heads), '"\n', *sorted(values), *sorted(asked)]
    return list(dict.fromkeys([*vocabulary, *string.printable[:-2]]))


def make_tokenizer(vocabulary: Sequence[str]) -> Any:
    """A `PreTrainedTokenizerFast` over these words, which prefers the longest word that fits."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token=UNKNOWN))
    longest_first = sorted((word for word in vocabulary[4:] if len(word) > 1), key=lambda word: (-len(word), word))
    pattern = "|".join([*map(re.escape, longest_first), r"[\s\S]"])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
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


def make_model(seed: int, vocabulary: int, width: int = 96, layers: int = 3) -> Any:
    """A fresh `Qwen3ForCausalLM` in float32 with heads of width 32 and tied embeddings; about 300,000 parameters by default."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=vocabulary,
            hidden_size=width,
            intermediate_size=2 * width,
            num_hidden_layers=layers,
            num_attention_heads=width // 32,
            num_key_value_heads=width // 32,
            head_dim=32,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            pad_token_id=0,
            bos_token_id=None,
            eos_token_id=1,
        )
    )
