"""The lines of logs and exports: everything that is written can be read, and a wrong field is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_core.evaluation.lines import (
    read_response,
    read_turns,
    read_verdict,
    response_fault,
    response_record,
    verdict_record,
)
from t2t_core.records import Message, Response, ToolCall, Verdict
from t2t_core.store import jsonlines

TEXTS = st.text(st.characters(), max_size=20)  # half surrogates too: a model's answer is kept word for word
COUNTS = st.none() | st.integers(0, (1 << 50) - 1)
AMOUNTS = st.none() | st.integers(0, 10**6) | st.floats(0, 1e9)
REPLIES = st.builds(
    Response,
    text=TEXTS,
    prompt_tokens=COUNTS,
    completion_tokens=COUNTS,
    reasoning_tokens=COUNTS,
    finish_reason=st.sampled_from(["stop", "length", "refusal", "aborted", "error"]),
    error=st.none() | TEXTS,
    cost_usd=AMOUNTS,
    model=st.none() | TEXTS.filter(bool),
    lasting=st.booleans(),
    tool_calls=st.lists(st.builds(ToolCall, TEXTS, TEXTS, TEXTS), max_size=2).map(tuple),
)
FAILED = st.lists(st.builds(lambda reply, error: replace(reply, error=error), REPLIES, TEXTS), max_size=2).map(tuple)
RESPONSES = st.builds(lambda reply, earlier: replace(reply, earlier=earlier), REPLIES, FAILED)


def written(record: Any) -> Any:
    return jsonlines.loads(jsonlines.dumps(record))


@given(RESPONSES)
def test_what_is_written_of_a_response_is_read_and_written_the_same(response: Response) -> None:
    line = written(response_record(response))
    again = read_response({"instance": "a", "sample": 0, **line}, "here")
    assert again == response and response_fault(again) is None
    assert jsonlines.dumps(response_record(again)) == jsonlines.dumps(response_record(response)), "an integer stays one"


def test_a_verdict_is_read_with_its_figures() -> None:
    verdict = Verdict({"a": True}, True, True, 1, {"moves": 1}, 0, gaps={"moves": 0}, figures={"win": 1.0})
    assert read_verdict({"verdict": written(verdict_record(verdict))}, "here") == verdict
    bare = replace(verdict, figures={})
    assert read_verdict({"verdict": written(verdict_record(bare))}, "here") == bare


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": None}, "text: expected `str`"),
        ({"completion_tokens": True}, "completion_tokens: expected `int"),
        ({"completion_tokens": -1}, "completion_tokens: expected `int` >= 0"),
        ({"cost_usd": "much"}, "cost_usd: expected `int"),
        ({"finish_reason": "bored"}, "finish_reason: invalid enum value"),
        ({"lasting": 1}, "lasting: expected `bool`"),
        ({"tool_calls": [{"id": "1", "name": "n", "arguments": "{}", "more": 1}]}, r"tool_calls\[0\].*unknown field `more`"),
        ({"earlier": [{"text": ""}]}, r"earlier\[0\]\.error: is missing"),
        ({"earlier": [{"text": "", "error": "e", "earlier": [{}]}]}, r"earlier\[0\]\.earlier: expected"),
    ],
)
def test_a_wrong_field_of_a_response_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(T2TError, match=said) as error:
        read_response({"text": "a", **change}, "answers.jsonl, line 7")
    assert error.value.where == "answers.jsonl, line 7"


def test_a_wrong_field_of_a_turn_or_a_verdict_is_named() -> None:
    turn = {"text": "3", "replies": [{"role": "user", "content": "higher"}]}
    ((response, replies),) = read_turns({"turns": [turn]}, "here")
    assert response == Response("3") and replies == (Message("user", "higher"),)
    with pytest.raises(T2TError, match=r"turns\[1\]\.replies\[0\]\.content: is missing"):
        read_turns({"turns": [turn, {**turn, "replies": [{"role": "user"}]}]}, "here")
    verdict = verdict_record(Verdict({"a": True, "b": False}, False, None, None))
    with pytest.raises(T2TError, match=r"verdict\.checks\.b: expected `bool`, got `int`"):
        read_verdict({"verdict": {**verdict, "checks": {"a": True, "b": 3, "c": False}}}, "here")
