"""Tool calls in a local model's text, as its server would have taken them out."""

import pytest

from t2t_core.reading.tool_calls import take_tool_calls
from t2t_core.records import ToolCall


def test_calls_are_taken_out_of_the_text_in_order():
    text = 'I look.\n<tool_call>\n{"name": "look", "arguments": {"cell": 4}}\n</tool_call>\n<tool_call>{"name": "wait"}'
    assert take_tool_calls(text) == ("I look.", (ToolCall("call_0", "look", '{"cell": 4}'), ToolCall("call_1", "wait", "{}")))


@pytest.mark.parametrize("block", ["{", "[1]", '{"arguments": {}}', '{"name": 3}', "[" * 100_000, ""])
def test_what_is_no_call_stays_in_the_text(block):
    text = f"so <tool_call>{block}</tool_call> it is"
    assert take_tool_calls(text) == (text, ())
