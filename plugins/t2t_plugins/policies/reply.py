"""Reads a chat completion that a stranger's server sent: a `Response`, or a `Failure` that says why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from t2t_core.records import Response
from t2t_core.store import jsonlines

_MAX_COUNT = 10**9  # tokens; more is nonsense
_LENGTH = ("length", "max_tokens", "max_output_tokens")
_REFUSAL = ("content_filter", "refusal", "safety", "prohibited_content", "recitation")
_SHOWN = 300  # characters of a server's message


class Failure(Exception):
    """A request that brought no answer.

    kind: "retry" (asking again may help), "request" (this one is hopeless), "stop" (all of them are: a wrong key, no
    credit) or "doubtful" (all of them are, unless one has succeeded: no such model, forbidden). wait: what the server
    asked to wait, in seconds.
    """

    def __init__(self, what: str, kind: str = "retry", wait: float | None = None) -> None:
        super().__init__(what)
        self.what, self.kind, self.wait = what, kind, wait


@dataclass(frozen=True)
class Prices:
    """USD per million tokens, None where not given."""

    input: float | None = None
    output: float | None = None

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        if self.input is None or self.output is None or prompt_tokens is None or completion_tokens is None:
            return None
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


def status_failure(status: int, body: bytes, wait: float | None) -> Failure:
    """What a status other than 200 means."""
    message, code = _error_of(_json(body))
    shown = message or body[: 4 * _SHOWN].decode("utf-8", "replace")
    return _failure(status, code, shown, wait)


def _failure(status: int, code: str, message: str, wait: float | None) -> Failure:
    text = f"HTTP {status}: {printable(message)}" if message.strip() else f"HTTP {status}"
    if status in (401, 402) or "insufficient_quota" in code or "insufficient_quota" in message:
        return Failure(text, "stop")
    if status in (403, 404):
        return Failure(text, "doubtful")
    if status in (408, 409, 425, 429) or status >= 500:
        return Failure(text, "retry", wait)
    return Failure(text, "request")  # 400, 413, 422, ..., and redirects, which a POST does not follow


def read_reply(body: bytes, prices: Prices) -> Response:
    """The answer in the body of a 200. Text, token counts and finish reason are checked; nothing of it is trusted.

    Raises:
        Failure: it is no chat completion, or one without an answer.
    """
    reply = _json(body)
    if not isinstance(reply, Mapping):
        start = body.lstrip()[:15].lower()
        what = "an HTML page" if start.startswith((b"<!doctype", b"<html")) else "no JSON object"
        raise Failure(f"the server sent {what if start else 'an empty body'} with status 200")
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping):
        raise _missing(reply)
    if choice.get("error"):
        raise _missing(choice)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise Failure("the reply's choice has no message")
    finish = str(choice.get("finish_reason")).lower()[:40]
    text = _text(message.get("content"))
    refusal = message.get("refusal")
    if finish in _REFUSAL or (text is None and isinstance(refusal, str) and refusal):
        return _response(text or (refusal if isinstance(refusal, str) else ""), "refusal", reply, prices)
    if finish in _LENGTH:
        return _response(text or "", "length", reply, prices)
    if finish == "error":
        raise Failure("the server says that the answer broke off with an error")
    if text is None:
        hidden = any(isinstance(message.get(k), str) and message.get(k) for k in ("reasoning_content", "reasoning"))
        raise Failure("the reply has hidden reasoning but no answer" if hidden else "the reply has no answer", "request")
    return _response(text, "stop", reply, prices)


def _missing(reply: Mapping[str, Any]) -> Failure:
    """A 200 whose JSON holds an error instead of an answer (OpenRouter does so when the service behind it fails)."""
    message, code = _error_of(reply)
    if message or code:
        status = int(code) if code.isascii() and code.isdigit() and len(code) == 3 else 502
        return _failure(status, code, message, None)
    return Failure("the reply has no choices")


def _error_of(reply: Any) -> tuple[str, str]:
    """The message and code of the error in a reply, "" where there is none."""
    while isinstance(reply, list) and len(reply) == 1:  # Gemini wraps its errors in a list
        reply = reply[0]
    error = reply.get("error", reply) if isinstance(reply, Mapping) else None
    if isinstance(error, str):
        return error, ""
    if not isinstance(error, Mapping):
        return "", ""
    message = error.get("message", error.get("detail"))
    code = error.get("code", error.get("type"))
    return message if isinstance(message, str) else "", str(code)[:40] if isinstance(code, str | int) else ""


def _json(body: bytes) -> Any:
    try:
        return jsonlines.loads(body)
    except jsonlines.Unreadable:
        return None


def _text(content: Any) -> str | None:
    """The visible text: a string, or the text parts of a list; lone surrogates become question marks."""
    if isinstance(content, list):
        parts = [p.get("text") for p in content if isinstance(p, Mapping) and p.get("type") == "text"]
        content = "".join(p for p in parts if isinstance(p, str)) if parts else None
    return content.encode("utf-8", "replace").decode() if isinstance(content, str) else None


def _response(text: str, finish: str, reply: Mapping[str, Any], prices: Prices) -> Response:
    usage = reply.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    details = usage.get("completion_tokens_details")
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    reasoning = _count(details.get("reasoning_tokens")) if isinstance(details, Mapping) else None
    total = _count(usage.get("total_tokens"))
    if None not in (prompt, completion, total) and total > prompt + completion:  # type: ignore[operator]
        # Some services count hidden reasoning in the total only; ours counts it among the completion tokens.
        reasoning = max(reasoning or 0, total - prompt - completion)  # type: ignore[operator]
        completion = total - prompt  # type: ignore[operator]
    if completion is not None and reasoning is not None:
        reasoning = min(reasoning, completion)
    cost = prices.cost(prompt, completion)
    if cost is None and prices == Prices():
        cost = _amount(usage.get("cost"))
    return Response(text, prompt, completion, reasoning, finish, cost_usd=cost)


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _MAX_COUNT else None


def _amount(value: Any) -> float | None:
    """A cost in USD that the service itself reports (OpenRouter does)."""
    return float(value) if type(value) in (int, float) and math.isfinite(value) and 0 <= value <= 1e6 else None


def printable(text: str) -> str:
    """A stranger's message on one line, without control characters and not longer than needed."""
    short = " ".join(text[: 4 * _SHOWN].split())
    return "".join(c if c.isprintable() else "?" for c in short)[:_SHOWN]
