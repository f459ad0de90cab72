"""A model's thoughts are set aside, whatever marks enclose them; its answer stays, character by character."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.reading.thoughts import set_aside_thoughts

PAIRS = [
    ("<think>", "</think>"),
    ("<THINK>", "</Think>"),
    ('<think type="deep">', "</think >"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<thoughts>", "</thoughts>"),
    ("<analysis>", "</analysis>"),
    ("<inner_monologue>", "</inner_monologue>"),
    ("<antThinking>", "</antThinking>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<seed:think>", "</seed:think>"),
    ("<rationale>", "</rationale>"),
    ("<draft>", "</draft>"),
    ("<thinking_process>", "</thinking_process>"),
    ("<deep-thinking>", "</deep-thinking>"),
    ("<self_reflection>", "</self_reflection>"),
    ("<mm:think>", "</mm:think>"),
    ("＜think＞", "＜/think＞"),
    ("<|think|>", "<|/think|>"),
    ("<|reasoning_start|>", "<|reasoning_end|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("[unused16]", "[unused17]"),
    ("[THINK]", "[/THINK]"),
    ("[THOUGHT]", "[/THOUGHT]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<unused94>thought\n", "<unused95>"),
    ('<details type="reasoning" done="true">', "</details>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
]


@pytest.mark.parametrize(("opening", "closing"), PAIRS)
def test_a_thought_is_set_aside_closed_or_not(opening: str, closing: str) -> None:
    assert set_aside_thoughts(f"{opening}a draft{closing}said") == ("said", False)
    assert set_aside_thoughts(f"said {opening}a draft{closing}again") == ("said again", False)
    assert set_aside_thoughts(f"{opening}one{closing}said{opening}another{closing}") == ("said", False)
    assert set_aside_thoughts(f"{opening}one{opening}in it{closing}said") == ("said", False)
    assert set_aside_thoughts(f"said{opening}cut off") == ("said", True)


@pytest.mark.parametrize(("opening", "closing"), PAIRS[:-3])
def test_an_end_without_a_beginning_ends_a_thought_that_began_with_the_text(opening: str, closing: str) -> None:
    assert set_aside_thoughts(f"a draft{closing}said") == ("said", False)
    assert set_aside_thoughts(f"{opening}one{closing}a draft{closing}said") == ("said", False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("analysisWe need a path.assistantfinalsaid", "said"),
        ("analysisWe try.assistantanalysisAgain.assistantfinalsaid", "said"),
        ("analysisWe need a path", ""),
        ("analysis: said", "analysis: said"),
        ("Analysis of it: said", "Analysis of it: said"),
        ("analysis said assistantfinal", "analysis said assistantfinal"),
        (
            "<|channel|>commentary<|message|>before<|end|><|start|>assistant<|channel|>final<|message|>said<|return|>",
            "before\nsaid",
        ),
        ("<|channel|>analysis <|constrain|>x<|message|>draft<|end|>said", "said"),
        ("<|start|>assistant<|message|>said<|return|>", "said"),
        ("Here is my thought process: a draft\nHere is my response:said", "said"),
        ("Here's my thought process:\na draft", "Here's my thought process:\na draft"),
        ("said\nHere is my response: so", "said\nHere is my response: so"),
        ("Here are my reasoning steps:\na draft\n[BEGIN FINAL RESPONSE]said", "said"),
        ("Thinking...\na draft\n...done thinking.\nsaid", "\nsaid"),
        ("Thinking...\nsaid", "Thinking...\nsaid"),
        ("<details><summary>said</summary></details>", "<details><summary>said</summary></details>"),
        ("<think/>said<think />", "<think/>said<think />"),
        ("<think>a draft</thinking>still</think>said", "said"),
        ("<thin\u212a>said", "<thin\u212a>said"),
        ("< think >said, <thinks>said", "< think >said, <thinks>said"),
    ],
)
def test_harmony_and_what_is_no_mark(text: str, said: str) -> None:
    assert set_aside_thoughts(text).text == said


@given(st.text(alphabet="ab\n(1,2) ->é", max_size=60), st.sampled_from(PAIRS), st.text(alphabet="ab\n", max_size=20))
def test_whatever_was_said_is_kept_to_the_letter(said: str, pair: tuple[str, str], draft: str) -> None:
    opening, closing = pair
    assert set_aside_thoughts(said) == (said, False)
    assert set_aside_thoughts(f"{opening}{draft}{closing}{said}") == (said, False)


@given(
    st.lists(st.sampled_from([x for pair in PAIRS for x in pair] + ["said", "\n", "analysisIt ", "assistantfinal"]), max_size=12)
)
def test_what_was_set_aside_is_not_there_twice(pieces: list[str]) -> None:
    text = "".join(pieces)
    said = set_aside_thoughts(text).text
    assert len(said) <= len(text)
    for opening, closing in PAIRS[:11]:
        assert opening not in said and closing not in said


@pytest.mark.parametrize(
    "piece", [*(x for pair in PAIRS for x in pair), "<think ", "<|channel|>", "<|start|>", "<", "[", "analysisI"]
)
def test_time_is_linear(piece: str) -> None:
    for text in (piece * (400_000 // len(piece)), "<think " + " " * 400_000, "analysisI" + piece * (400_000 // len(piece))):
        began = time.process_time()
        set_aside_thoughts(text)
        assert time.process_time() - began < 3  # what is not linear takes minutes here
