"""A server that behaves like a chat model with tool calls: it looks, writes a job that is wrong in two places, reads the probe's
report, mends the job and submits it again. It is a script, not a model: its replies depend only on the conversation."""

from __future__ import annotations

import json
import re
from typing import Any

from fake_server import FakeServer, completion

WRONG = "[training]\nlearning_rate = 5.0\n\n[generation]\nsamples = 9999\n"


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def reply(messages: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """What it says to a conversation, and the tools that it calls."""
    results = [message["content"] for message in messages if message["role"] == "tool"]
    complaints = next((text for text in reversed(results) if "wrong with the job" in text), "")
    if not results:
        return "First I look around.", [call(0, "list_files"), call(1, "get_baseline_scores")]
    if complaints:
        at = re.findall(r"where: job\.toml, (\S+)", complaints)
        mended = [call(0, "edit_file", path="job.toml", old="5.0", new="1e-3")] if "training.learning_rate" in at else []
        mended += [call(1, "edit_file", path="job.toml", old="9999", new="128")] if "generation.samples" in at else []
        return "I mend what it says.", [*mended, call(2, "submit_job")]
    scores = dict(re.findall(r"^(\S+): ([0-9.]+)$", "\n".join(results), re.MULTILINE))
    best = max(scores, key=lambda base: float(scores[base]))
    written = f'base = "{best}"\n\n{WRONG}'
    return f"{best} is the best base.", [call(0, "write_file", path="job.toml", content=written), call(1, "submit_job")]


class ChatModel(FakeServer):
    """`with ChatModel() as server: ... server.url`."""

    def __init__(self) -> None:
        super().__init__(self._answer)

    def _answer(self, prompt: str, nth: int) -> bytes:
        body = self.requests[-1]["body"]
        text, calls = reply(body["messages"])
        offered = {tool["function"]["name"] for tool in body["tools"]}
        assert {call["function"]["name"] for call in calls} <= offered
        return completion(text, "tool_calls", {"tool_calls": calls})
