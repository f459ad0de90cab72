"""Reads the tool calls that a local model writes into its text, in the form most open models were taught (our choice):

    <tool_call>
    {"name": "look", "arguments": {"cell": 4}}
    </tool_call>

A server with a tool parser sends such calls apart from the text; a reply must be worth the same on both. A block that is no
call stays in the text, where the testbed sees it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from t2t_core.records import ToolCall

_BLOCK = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_MOST = 64


def take_tool_calls(text: str) -> tuple[str, tuple[ToolCall, ...]]:
    """The text without its calls, and the calls in order; their ids are their numbers."""
    calls: list[ToolCall] = []

    def take(block: re.Match[str]) -> str:
        call = _call(block[1], len(calls)) if len(calls) < _MOST else None
        if call is None:
            return block[0]
        calls.append(call)
        return ""

    rest = _BLOCK.sub(take, text)
    return (rest.strip() if calls else text), tuple(calls)


def _call(text: str, number: int) -> ToolCall | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        return None
    arguments = data.get("arguments", data.get("parameters", {}))
    return ToolCall(f"call_{number}", data["name"], arguments if isinstance(arguments, str) else json.dumps(arguments))
