"""How a language model calls the tools: by the tool calls of chat models, or in plain text if its server offers none.

In plain text, a call is a tag with the name of its tool::

    <read_file path="job.toml"/>
    <write_file path="job.toml">
    base = "strong"
    </write_file>
    <edit_file path="job.toml"><old>rounds = 1</old><new>rounds = 2</new></edit_file>
    <submit_job/>

Several calls in one reply are made in their order. Deviations are accepted if they can mean only one thing: attributes in any
quotes or none, a tag that is still open at the reply's end, a Markdown fence around a file's text, a `submit_job` without its
slash, and the form that open models were taught, `<tool_call>{"name": ...}</tool_call>`. Thoughts are removed first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from t2t_core.hookspecs import EpisodeState
from t2t_core.reading.thoughts import set_aside_thoughts
from t2t_core.reading.tool_calls import take_tool_calls
from t2t_core.records import Message, Response, Tool, ToolCall
from t2t_jobs.tools import TOOLS

MOST_CALLS = 16  # of one reply; what comes after them is not done
_NAMES = "|".join(tool.name for tool in TOOLS)
_OPENING = re.compile(rf"<({_NAMES})\b([^<>]{{0,400}}?)(/?)>")
_ATTRIBUTE = re.compile(r"""([a-z]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'/>]+))""")
_FENCED = re.compile(r"\s*```[\w.+-]*\n(.*?)\n?```\s*", re.DOTALL)
_NO_CALL = "No tool was called. Call one of the tools; submit_job ends the episode."

MANUAL = """You call tools by tags in your reply, several if you like; what they return comes in the next message.

<read_file path="README.md"/>
<list_files/>
<get_baseline_scores/>
<write_file path="job.toml">
the file's whole text
</write_file>
<edit_file path="job.toml"><old>a text that stands there once</old><new>what takes its place</new></edit_file>
<submit_job/>
"""


class Manner(Protocol):
    """How a model is told of its episode and understood: the `tools` offered beside the conversation, the conversation so far,
    and how a reply is read."""

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that are offered with a request; none where the agent calls them in its text."""
        ...

    def messages(self, state: EpisodeState) -> list[Message]:
        """The conversation that the model is asked to continue."""
        ...

    def calls(self, response: Response) -> tuple[ToolCall, ...]:
        """The calls of tools in a response; none if there is nothing that can be read as one."""
        ...


@dataclass(frozen=True)
class ToolCalls:
    """The tool calls of chat models."""

    tools: Sequence[Tool] = TOOLS

    def messages(self, state: EpisodeState) -> list[Message]:
        return [Message("user", state.task), *_said(state, self.spoken)]

    def calls(self, response: Response) -> tuple[ToolCall, ...]:
        return tuple(response.tool_calls[:MOST_CALLS])

    def spoken(self, text: str, calls: Sequence[ToolCall], results: Sequence[str]) -> list[Message]:
        """The messages of one turn: what the model said, and the results of its calls."""
        if not calls:
            return [Message("assistant", text), Message("user", _NO_CALL)]
        told = [Message("tool", result, tool_call_id=call.id) for call, result in zip(calls, results, strict=True)]
        return [Message("assistant", text, tuple(calls)), *told]


@dataclass(frozen=True)
class PlainText:
    """Calls as tags in the reply's text."""

    tools: Sequence[Tool] = ()

    def messages(self, state: EpisodeState) -> list[Message]:
        return [Message("user", f"{state.task}\n## Tools\n\n{MANUAL}"), *_said(state, self.spoken)]

    def calls(self, response: Response) -> tuple[ToolCall, ...]:
        return read_calls(response.text)

    def spoken(self, text: str, calls: Sequence[ToolCall], results: Sequence[str]) -> list[Message]:
        """The messages of one turn, as in `ToolCalls`, with the results as one text."""
        told = [f"{number}. {call.name}:\n{result}" for number, (call, result) in enumerate(zip(calls, results, strict=True), 1)]
        return [Message("assistant", text), Message("user", "\n\n".join(told) or f"{_NO_CALL}\n\n{MANUAL}")]


def _said(state: EpisodeState, spoken: Callable[..., list[Message]]) -> list[Message]:
    told = (spoken(exchange.turn.text, exchange.turn.calls, exchange.results) for exchange in state.exchanges)
    return [message for messages in told for message in messages]


def read_calls(text: str) -> tuple[ToolCall, ...]:
    """The calls in a plain-text reply, in their order. The time is linear in the reply's length, times the number of calls."""
    said = set_aside_thoughts(text).text
    rest, taught = take_tool_calls(said)
    if taught:
        return taught[:MOST_CALLS]
    calls: list[ToolCall] = []
    at = 0
    while len(calls) < MOST_CALLS and (opening := _OPENING.search(said, at)):
        name, attributes, closed = opening[1], opening[2], bool(opening[3])
        at = opening.end()
        given = {match[1]: match[2] or match[3] or match[4] or "" for match in _ATTRIBUTE.finditer(attributes)}
        if name in ("write_file", "edit_file") and not closed:
            end = said.find(f"</{name}>", at)
            inside, at = (said[at:], len(said)) if end < 0 else (said[at:end], end + len(name) + 3)
            given |= _edit(inside) if name == "edit_file" else {"content": _content(inside)}
        calls.append(ToolCall(f"call_{len(calls)}", name, json.dumps(given)))
    return tuple(calls)


def _content(inside: str) -> str:
    """A file's text, without the line break after its tag or one fence around all of it; it ends with a line break."""
    fenced = _FENCED.fullmatch(inside)
    text = fenced[1] if fenced else inside.removeprefix("\n")
    return text if not text or text.endswith("\n") else f"{text}\n"


def _edit(inside: str) -> dict[str, str]:
    pieces = {}
    for part in ("old", "new"):
        begin, end = inside.find(f"<{part}>"), inside.rfind(f"</{part}>")
        if 0 <= begin < end:
            pieces[part] = inside[begin + len(part) + 2 : end]
    return pieces
