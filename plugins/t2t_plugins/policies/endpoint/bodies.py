"""The JSON in the body of a stranger's reply, whatever it is wrapped in: another encoding, NaN among log-probabilities, doubled
keys, or a stream of events though nobody asked for one. More is allowed here than in files: what is thrown away was paid for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from t2t_core.store import jsonlines
from t2t_plugins.policies.endpoint.client import HttpReply

REASONING = ("reasoning_content", "reasoning", "thinking")  # DeepSeek and SGLang; OpenRouter, Ollama and vLLM; a few gateways
MAX_CALLS = 100  # tool calls of one reply
_LINE_END = re.compile("\r\n|\r|\n")
_ENCODINGS = ("utf-8", "utf-16", "utf-32", "iso-8859-1", "latin-1", "windows-1252", "us-ascii")


def decoded(reply: HttpReply) -> str:
    """The body as text, in the encoding it names or shows; a byte that does not fit becomes a question mark of its own."""
    _, _, rest = reply.headers.get("content-type", "").lower().partition("charset=")
    named = rest.partition(";")[0].strip(" \"'")
    encoding = named if named in _ENCODINGS else json.detect_encoding(reply.body)
    return reply.body.decode(encoding, "replace").lstrip("\ufeff")


def parsed(reply: HttpReply) -> Any:
    """The body's JSON, None if it holds none. More is allowed than in files: NaN (as None), and doubled keys."""
    text = decoded(reply)
    try:
        return _lenient.decode(text)
    except (ValueError, RecursionError):
        return _streamed(text) if text.startswith("data:") or "\ndata:" in text else None


def dumped(value: Any, most: int) -> str:
    """The beginning of a value as JSON, "" if it is nested too deeply for that."""
    try:
        return json.dumps(value)[:most]
    except RecursionError:
        return ""


def _integer(text: str) -> int | None:
    return int(text) if len(text) <= jsonlines.MAX_DIGITS else None


_lenient = json.JSONDecoder(parse_int=_integer, parse_constant=lambda name: None)


def _streamed(text: str) -> Any:
    """A stream of server-sent events, sent though nobody asked for one, as the completion that it spells; else None."""
    whole: dict[str, Any] = {}
    pieces: dict[str, list[str]] = {}
    calls: dict[Any, dict[str, Any]] = {}
    finish: Any = None
    events = [_event(line) for line in _LINE_END.split(text)]  # not splitlines: a model's text may hold U+2028
    indices = [choice.get("index") for event in events for choice in _choices(event)]
    index = next((i for i in indices if i in (0, None)), indices[0] if indices else None)  # whose pieces are the answer's
    for event in events:
        whole.update({name: value for name, value in event.items() if value is not None and name != "choices"})
        choice = next((c for c in _choices(event) if c.get("index") in (index, None)), {})
        if choice.get("usage"):  # Moonshot counts in the last choice
            whole.setdefault("usage", choice["usage"])
        if isinstance(choice.get("message"), Mapping):
            return event
        delta = choice.get("delta")
        for name, piece in delta.items() if isinstance(delta, Mapping) else ():
            if name in ("content", "refusal", *REASONING) and isinstance(piece, str):
                pieces.setdefault(name, []).append(piece)
            elif name == "tool_calls":
                _add_calls(calls, piece)
        finish = choice.get("finish_reason") or finish
    if not pieces and not calls and not finish:
        return whole or None
    message: dict[str, Any] = {name: "".join(parts) for name, parts in pieces.items()}
    message["tool_calls"] = [{**call, "function": {**call, "arguments": "".join(call["arguments"])}} for call in calls.values()]
    whole_stream = finish or "[DONE]" in text[-20:]
    choice = {"message": message, "finish_reason": finish if whole_stream else "abort", "error": whole.pop("error", None)}
    return {**whole, "choices": [choice]}


def _choices(event: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    choices = event.get("choices")
    return [choice for choice in choices if isinstance(choice, Mapping)] if isinstance(choices, list) else []


def _add_calls(calls: dict[Any, dict[str, Any]], piece: Any) -> None:
    """Put the pieces of tool calls behind those that came before; a call is known by its index."""
    for part in piece if isinstance(piece, list) else ():
        index = part.get("index") if isinstance(part, Mapping) else None
        if type(index) is not int or (index not in calls and len(calls) >= MAX_CALLS):
            continue
        call = calls.setdefault(index, {"arguments": []})
        function = part.get("function")
        function = function if isinstance(function, Mapping) else {}
        call["id"] = part.get("id") or call.get("id")
        call["name"] = function.get("name") or call.get("name")
        if isinstance(function.get("arguments"), str):
            call["arguments"].append(function["arguments"])


def _event(line: str) -> Mapping[str, Any]:
    """The object in one line of a stream; an empty one if there is none."""
    try:
        value = _lenient.decode(line[5:].strip()) if line.startswith("data:") else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, Mapping) else {}
