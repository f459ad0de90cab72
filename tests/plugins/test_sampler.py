"""The batched sampler against transformers' own generation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.train
torch.set_num_threads(1)

from t2t_core.records import Sampling  # noqa: E402
from t2t_plugins.policies.hf import generate  # noqa: E402
from t2t_plugins.sampler import Sampler, _narrowed, supports  # noqa: E402

END = 1
DRAWN = Sampling(1.0)


class Tokenizer:
    eos_token_id, pad_token_id = END, 0

    def pad(self, rows, return_tensors):
        from transformers import BatchEncoding

        width = max(map(len, rows["input_ids"]))
        ids = [[0] * (width - len(row)) + row for row in rows["input_ids"]]
        mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows["input_ids"]]
        return BatchEncoding({"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)})


def make_model(kv_heads=2, seed=0, scale=8.0):
    """A random model with opinions: large weights, so that answers differ and some of them end."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=23,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=kv_heads,
        head_dim=16,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        eos_token_id=END,
        pad_token_id=0,
    )
    model = Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(scale)
    return model


def prompts(count=9):
    drawn = torch.Generator().manual_seed(3)
    lengths = torch.randint(1, 12, (count,), generator=drawn).tolist()
    return [torch.randint(2, 23, (length,), generator=drawn).tolist() for length in lengths]


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("rows", [4, 256])
def test_greedy_answers_are_those_of_generate(kv_heads, rows, monkeypatch):
    monkeypatch.setattr("t2t_plugins.sampler._COLUMNS", 5)  # so that the cache has to grow
    model = make_model(kv_heads)
    completions = Sampler(model, [END], rows).sample(prompts(), max_tokens=24)
    expected = [generate(model, Tokenizer(), [p], Sampling(), 24, torch.Generator())[0] for p in prompts()]
    assert [(completion.tokens, completion.ended) for (completion,) in completions] == expected
    assert {completion.ended for (completion,) in completions} == {True, False}, "some answers must end and some must not"


def test_logprobs_are_those_of_a_full_forward_pass():
    model = make_model()
    completions = Sampler(model, [END]).sample(prompts(), 3, 16, DRAWN, torch.Generator().manual_seed(1))
    for prompt, answers in zip(prompts(), completions, strict=True):
        assert len(answers) == 3
        for completion in answers:
            with torch.no_grad():
                logits = model(torch.tensor([prompt + completion.tokens])).logits[0, len(prompt) - 1 : -1]
            expected = logits.log_softmax(-1).gather(-1, torch.tensor(completion.tokens)[:, None])[:, 0]
            torch.testing.assert_close(torch.tensor(completion.logprobs), expected, atol=2e-4, rtol=1e-3)


def test_samples_follow_the_model():
    model = make_model(scale=3.0)
    prompt = [5, 6, 7]
    with torch.no_grad():
        expected = model(torch.tensor([prompt])).logits[0, -1].softmax(-1)
    (answers,) = Sampler(model, [END], 4096).sample([prompt], 4096, 1, DRAWN, torch.Generator().manual_seed(2))
    counts = torch.bincount(torch.tensor([completion.tokens[0] for completion in answers]), minlength=23) / 4096
    assert float((counts - expected).abs().max()) < 0.03


def test_the_same_generator_gives_the_same_answers_and_top_p_keeps_the_likeliest():
    sampler = Sampler(make_model(), [END])
    first, second = (sampler.sample(prompts(), 2, 8, DRAWN, torch.Generator().manual_seed(4)) for _ in range(2))
    assert first == second
    for narrow in (Sampling(1.0, top_p=1e-6), Sampling(1.0, top_k=1), Sampling(1.0, min_p=1.0)):
        drawn = sampler.sample(prompts(), 2, 8, narrow, torch.Generator().manual_seed(4))
        assert [a.tokens for a, _ in drawn] == [first.tokens for (first,) in sampler.sample(prompts(), 1, 8)]


@given(
    st.lists(st.integers(-40, 40), min_size=2, max_size=12),
    st.floats(0.1, 3),
    st.floats(0.05, 1),
    st.integers(0, 13),
    st.floats(0, 1),
)
def test_what_is_left_out_is_what_transformers_leaves_out(numbers, temperature, top_p, top_k, min_p):
    from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    logits = torch.tensor([numbers]).float() / 10 + torch.arange(len(numbers)) * 1e-3  # no two alike
    scores = TemperatureLogitsWarper(temperature)(None, logits)
    scores = TopKLogitsWarper(top_k)(None, scores) if top_k else scores
    scores = TopPLogitsWarper(top_p)(None, scores) if top_p < 1 else scores
    expected = MinPLogitsWarper(min_p)(None, scores).softmax(-1)
    narrowed = _narrowed((logits / temperature).softmax(-1), Sampling(temperature, 1, None, top_p, top_k, min_p))
    narrowed = narrowed / narrowed.sum()
    edges = (narrowed > 0) != (expected > 0)
    assert int(edges.sum()) <= 1, "a word at the very edge may fall either way by float error"
    if not edges.any():
        assert torch.allclose(narrowed, expected, atol=1e-5)


def test_other_architectures_are_left_to_generate():
    from transformers import LlamaConfig, LlamaForCausalLM

    small = {"vocab_size": 11, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    assert supports(make_model())
    assert not supports(LlamaForCausalLM(LlamaConfig(**small)))
