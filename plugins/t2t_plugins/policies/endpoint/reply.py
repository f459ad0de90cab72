"""Reads what a stranger's server sent, and says what it is: a `Judged` with a kind of `kinds` and everything the reply tells.

Nothing is trusted: text, counts and reasons are checked, and every text is freed of the key before it is cut. And nothing is
thrown away because of its wrapping: a body in another encoding, with NaN among its log-probabilities, or sent as a stream
though nobody asked for one, is read.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from t2t_core.records import Response, ToolCall
from t2t_core.text import one_line
from t2t_plugins.policies.endpoint import bodies, kinds, message
from t2t_plugins.policies.endpoint.bodies import MAX_CALLS
from t2t_plugins.policies.endpoint.client import HttpReply
from t2t_plugins.policies.endpoint.kinds import Kind

_MOST = 1 << 20  # characters of a tool call's arguments
_MAX_COUNT = 10**9  # tokens; more is nonsense
_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{0,20})?([eE]-?[0-9]{1,2})?", re.ASCII)
_MAX_NUMBER = 1e18
_SHOWN = 300  # characters of a server's message
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|[smh]))+")
_PIECE = re.compile(r"([0-9.]+)(ms|[smh])")
_TRY_AGAIN = re.compile(r"try again in ((?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|[smh]))+)", re.IGNORECASE)


def unchanged(text: str) -> str:
    """The text as it stands: what redacts a reply where no key is used."""
    return text


@dataclass(frozen=True)
class Judged:
    """A reply, or that there was none: its kind, what is recorded, what the server asked to wait (seconds), and what to do about
    a fault. `billed_unknown`: it may have cost something that nobody said. `elsewhere`: another address is up, so nothing need be
    waited for."""

    kind: Kind
    response: Response
    wait: float | None = None
    remedy: str = ""
    billed_unknown: bool = False
    elsewhere: bool = False


@dataclass(frozen=True)
class Prices:
    """USD per million tokens, None if not given."""

    input: float | None = None
    output: float | None = None

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """USD for so many tokens; None where a price or a count is not known."""
        if self.input == 0 and self.output == 0:
            return 0.0
        if self.input is None or self.output is None or prompt_tokens is None or completion_tokens is None:
            return None
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


def fault(kind: Kind, what: str, remedy: str = "", **facts: Any) -> Judged:
    """A fault in words; `facts` are those of `Response` and `Judged`."""
    own = {name: facts.pop(name) for name in ("wait", "billed_unknown") if name in facts}
    response = Response("", finish_reason=kind.finish, error=what, lasting=not kind.again, **facts)
    return Judged(kind, response, remedy=remedy, **own)


def judge(reply: HttpReply, prices: Prices, redact: Callable[[str], str] = unchanged) -> Judged:
    """What a reply is, and what it says.

    Args:
        reply: of any status.
        prices: what tokens cost, where known.
        redact: takes the key out of a text.
    """
    if not 200 <= reply.status < 300:
        return _error(reply.status, bodies.parsed(reply), reply, redact)
    if reply.cut:
        what = f"the reply is longer than {len(reply.body)} bytes"
        return fault(kinds.LASTING, what, "a larger max_bytes=", billed_unknown=True)
    data = bodies.parsed(reply)
    if not isinstance(data, Mapping):
        start = reply.body.lstrip()[:15].lower()
        if start.startswith((b"<!doctype", b"<html")):
            return fault(kinds.PASSING, f"the server sent an HTML page with status {reply.status}")
        what = "no JSON object" if start else "an empty body"
        return fault(kinds.PASSING, f"the server sent {what} with status {reply.status}", billed_unknown=True)
    return _Completion(data, reply, prices, redact).judged()


# --- a chat completion


@dataclass(frozen=True)
class _Completion:
    data: Mapping[str, Any]
    reply: HttpReply
    prices: Prices
    redact: Callable[[str], str]

    def judged(self) -> Judged:
        choice = self._choice
        if not choice:
            remedy = "" if "choices" in self.data else "the address of its OpenAI-compatible API, which mostly ends in /v1"
            return self._without_answer(self.data, "the reply has no choices", remedy)
        if choice.get("error"):
            return self._without_answer(choice, "the answer broke off")
        finish, details = _finish(self._reason)
        kind = kinds.of_finish(finish)
        if message.of_choice(choice) is None and kind is None:
            return self._without_answer({}, "the reply's choice has neither message nor finish reason")
        if not self._said.readable:
            return self._without_answer({}, "the reply's choice holds something that is no message")
        if kind is kinds.ABORTED and details:  # SGLang says why, with a status of its own
            return self._without_answer({"error": details}, "the server aborted the answer")
        return self._of(finish, kind)

    @cached_property
    def _choice(self) -> Mapping[str, Any]:
        """The choice that was asked for: the one with index 0, or the first if none has it. Empty if there is none."""
        choices = self.data.get("choices")
        choices = choices if isinstance(choices, list) and choices else [None]
        whole = [c for c in choices if isinstance(c, Mapping)]
        first = next((c for c in whole if type(c.get("index")) is int and c["index"] == 0), choices[0])
        return first if isinstance(first, Mapping) else {}

    @property
    def _reason(self) -> Any:
        """Why the answer ended: the finish reason, or, where there is none, what servers of other APIs call it."""
        named = self._choice.get("finish_reason")
        others = (part.get(name) for part in (self._choice, self.data) for name in _OTHER_REASONS)
        return named or next((word for word in others if isinstance(word, str) and kinds.of_finish(word)), named)

    @cached_property
    def _said(self) -> message.Said:
        own = message.of_choice(self._choice)
        return message.said({} if own is None else own)

    def _of(self, finish: str, kind: Kind | None) -> Judged:
        facts = self._facts()
        text, calls, refusal = facts.text, facts.tool_calls, self._said.refusal
        if not text and not calls and refusal:
            text, kind = self.redact(_whole(refusal)), kinds.REFUSAL
        unknown = None
        if kind is None:
            what = f"finish_reason {ascii(finish)[:60]}" if finish else "no finish reason"
            if not text and not calls:
                return self._fault(kinds.PASSING, f"the reply has no answer and {what}", facts)
            kind, unknown = kinds.ANSWER, self.redact(what)
        if kind is kinds.ANSWER and not text and not calls:
            kind = kinds.EMPTY
        if kind.fault:
            return self._fault(kind, f"the server broke the answer off: finish_reason {ascii(finish)[:60]}", facts)
        answer = replace(facts, text=text, finish_reason=kind.finish, detail=unknown)
        return Judged(kind, answer, billed_unknown=facts.cost_usd is None)

    def _fault(self, kind: Kind, what: str, facts: Response) -> Judged:
        """A fault with what is known of it. A piece of an answer is no answer: it is kept as a detail."""
        known = {name: getattr(facts, name) for name in _FACTS}
        return fault(kind, what, billed_unknown=facts.cost_usd is None, detail=facts.text or None, **known)

    def _without_answer(self, said: Mapping[str, Any], otherwise: str, remedy: str = "") -> Judged:
        """A 200 whose JSON holds an error instead of an answer (OpenRouter sends one when the service behind it fails)."""
        error = _error_of(said)
        facts = self._facts()
        if not error.said or not _is_error(said):
            return replace(self._fault(kinds.PASSING, otherwise, facts), remedy=remedy)
        judged = _error(error.status or self.reply.status, said, self.reply, self.redact)
        known = {name: getattr(facts, name) for name in _FACTS}
        response = replace(judged.response, **known, detail=judged.response.detail or facts.text or None)
        return replace(judged, response=response, billed_unknown=facts.cost_usd is None)

    def _facts(self) -> Response:
        """Everything the reply tells, answered or not."""
        model, usage = self.data.get("model"), self._usage
        prompt, completion, hidden = _tokens(usage, bool(self._said.text))
        cost = self.prices.cost(prompt, completion)
        if cost is None:
            cost = _reported_cost(usage, self.reply.headers)
        own = message.of_choice(self._choice)
        return Response(
            self.redact(_whole(self._said.text)),
            prompt,
            completion,
            hidden,
            cost_usd=cost,
            model=one_line(self.redact(model), 200) or None if isinstance(model, str) else None,
            reasoning=self.redact(_whole(self._said.thoughts)) if self._said.thoughts else None,
            tool_calls=tuple(self._calls(_wanted(own))),
        )

    @property
    def _usage(self) -> Mapping[str, Any]:
        """What was counted: beside the choices, in the choice (Moonshot), or among Groq's own fields."""
        groq = self.data.get("x_groq")
        parts = (self.data, self._choice, groq if isinstance(groq, Mapping) else {})
        return next((usage for usage in (part.get("usage") for part in parts) if isinstance(usage, Mapping)), {})

    def _calls(self, calls: Any) -> Iterator[ToolCall]:
        """The tools that the model wants to use. Arguments are JSON as text; some servers send the value itself."""
        for call in calls[:MAX_CALLS] if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, Mapping) else None
            if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
                continue
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else bodies.dumped({} if arguments is None else arguments, _MOST)
            name = call.get("id") if isinstance(call.get("id"), str) else ""
            yield ToolCall(self.redact(_whole(name)), self.redact(_whole(function["name"])), self.redact(_whole(text)))


def _wanted(said: Any) -> Any:
    """The tool calls of a message; a single `function_call` is how they were sent before there were several."""
    if not isinstance(said, Mapping):
        return None
    return said.get("tool_calls") or ([{"function": said["function_call"]}] if said.get("function_call") else None)


_OTHER_REASONS = ("finishReason", "stop_reason", "stopReason", "done_reason")  # Gemini, Anthropic, Bedrock, Ollama
_FACTS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cost_usd", "model", "reasoning")


def _finish(value: Any) -> tuple[str, Mapping[str, Any] | None]:
    """The finish reason as a word, and what the server adds where it sends an object (SGLang does)."""
    if isinstance(value, Mapping):
        details = value if value.get("status_code") or value.get("message") else None
        return one_line(value.get("type") or "", 60), details
    return (one_line(value, 60) if isinstance(value, str) else ""), None


def _tokens(usage: Mapping[str, Any], answered: bool) -> tuple[int | None, int | None, int | None]:
    """Prompt, completion and hidden tokens. What is zero though it cannot be is not known: some servers fill in zeros."""
    details = usage.get("completion_tokens_details", usage.get("output_tokens_details"))
    details = details if isinstance(details, Mapping) else usage
    prompt = _count(usage.get("prompt_tokens", usage.get("input_tokens")))
    completion = _count(usage.get("completion_tokens", usage.get("output_tokens")))
    hidden, total = _count(details.get("reasoning_tokens")), _count(usage.get("total_tokens"))
    if prompt is not None and completion is not None and total is not None and total > prompt + completion:
        # Some services count hidden reasoning in the total only; ours counts it among the completion tokens.
        hidden = max(hidden or 0, total - prompt - completion)
        completion = total - prompt
    if not prompt:  # a question is never without tokens: the counts are not filled in
        prompt = None
        completion = completion or None
    if not completion and answered:
        completion = None
    if completion is None:
        return prompt, None, None
    return prompt, completion, min(hidden, completion) if hidden is not None else None


def _count(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number == int(number) and 0 <= number <= _MAX_COUNT else None


def _number(value: Any) -> float | None:
    """A finite number, also as text, which can mean nothing else."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    return float(value) if type(value) in (int, float) and abs(value) < _MAX_NUMBER else None


def _reported_cost(usage: Mapping[str, Any], headers: Mapping[str, str]) -> float | None:
    """A cost in USD that the service itself reports: OpenRouter as a number, Perplexity as an object, LiteLLM as a header."""
    value: Any = usage.get("cost")
    if isinstance(value, Mapping):
        value = value.get("total_cost")
    number = _number(headers.get("x-litellm-response-cost") if value is None else value)
    return number if number is not None and 0 <= number <= 1e6 else None


# --- an error


@dataclass(frozen=True)
class _Error:
    """What an error says: a message to show, everything it says (to recognise it by), and the status it names."""

    message: str = ""
    said: str = ""
    status: int | None = None


def _error_of(reply: Any) -> _Error:
    while isinstance(reply, list) and len(reply) == 1:  # Gemini wraps its errors in a list
        reply = reply[0]
    if not isinstance(reply, Mapping):
        return _Error()
    error = reply.get("error") or reply
    if isinstance(error, str):
        return _Error(error, error)
    if not isinstance(error, Mapping):
        return _Error()
    message = next((error[n] for n in ("message", "detail", "msg") if error.get(n)), "")
    if not isinstance(message, str):  # FastAPI's list of what is wrong with a request
        message = one_line(bodies.dumped(message, _MOST), 4000)
    words = [error.get(name) for name in ("code", "type", "param", "status", "err_type")]
    inner = error.get("innererror", error.get("metadata"))
    words.append(one_line(bodies.dumped(inner, _MOST), 2000) if isinstance(inner, Mapping) else None)
    codes = [error.get("code"), error.get("status_code"), error.get("status")]
    status = next((int(str(c)) for c in codes if type(c) in (int, str) and re.fullmatch("[1-5][0-9][0-9]", str(c))), None)
    said = " ".join([message, *(one_line(w, 2000) for w in words if type(w) in (int, str))]).strip()
    return _Error(message, said, status)


def _is_error(said: Mapping[str, Any]) -> bool:
    """Whether an object that is no completion calls itself an error; what another API sends as its answer does not."""
    return bool(said.get("error")) or any(isinstance(said.get(name), str | list) for name in ("message", "detail", "msg"))


def _error(status: int, parsed: Any, reply: HttpReply, redact: Callable[[str], str]) -> Judged:
    """An error reply, or the error inside a 200."""
    error = _error_of(parsed)
    raw = "" if error.said else bodies.decoded(reply)
    inside = 200 <= status < 300  # a success whose body says that it is none, without a status of its own
    kind, remedy = kinds.of_error(502 if inside else status, error.said or raw)
    shown = one_line(redact(error.message or error.said or raw), _SHOWN)
    if 300 <= status < 400:
        shown = one_line(redact(reply.headers.get("location", "")), _SHOWN)
        shown = f"it sends the request on to {shown}, which is not followed" if shown else "it sends the request on, unsaid where"
    what = f"HTTP {status}: {shown}" if shown else f"HTTP {status}"
    what = f"an error with status {status}: {shown}" if inside else what
    if kind is kinds.REFUSAL:
        return Judged(kind, Response("", finish_reason=kind.finish, detail=what))
    wait = _asked_wait(reply.headers, error.message, parsed) if kind.again else None
    return fault(kind, what, remedy, wait=wait)


def _asked_wait(headers: Mapping[str, str], message: str, parsed: Any) -> float | None:
    """Seconds to wait: from `retry-after-ms`, `Retry-After` (seconds, a date, or a duration such as 500ms), Google's
    `retryDelay`, or words. None if there is nothing, or nonsense."""
    candidates = [
        _milliseconds(headers.get("retry-after-ms", "")),
        _seconds(headers.get("retry-after", "")),
        next((_seconds(delay) for delay in _retry_delays(parsed)), None),
        next((_seconds(match[1]) for match in [_TRY_AGAIN.search(message)] if match), None),
    ]
    return next((max(0.0, wait) for wait in candidates if wait is not None), None)


def _milliseconds(text: str) -> float | None:
    seconds = _seconds(text)
    return seconds / 1000 if seconds is not None else None


def _seconds(text: str) -> float | None:
    text = text.strip().lower()
    try:
        if _DURATION.fullmatch(text):
            return sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))
        wait = email.utils.parsedate_to_datetime(text).timestamp() - time.time() if ":" in text else float(text)
    except (ValueError, OverflowError):
        return None
    return wait if wait == wait else None  # NaN is nonsense too


def _retry_delays(parsed: Any) -> Iterator[str]:
    while isinstance(parsed, list) and len(parsed) == 1:
        parsed = parsed[0]
    error = parsed.get("error") if isinstance(parsed, Mapping) else None
    details = error.get("details") if isinstance(error, Mapping) else None
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, Mapping) and isinstance(detail.get("retryDelay"), str):
            yield detail["retryDelay"]


def _whole(text: str) -> str:
    """A model's text as it is; lone surrogates, which no file can hold in UTF-8, become question marks."""
    return text.encode("utf-8", "replace").decode()
