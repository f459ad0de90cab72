"""What a reply is: decided here, once, for every server. `KINDS` is the table in docs/endpoints.md; a test compares them.

A reply that ended the way its model ended it is an answer, whatever is in it, and counts for or against the model. What a
server or the way to it did is a fault, is never a wrong answer, and is either worth another try or not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A row of the table. `fault`: no answer. `again`: worth another try at once. `all`: whether further questions would end
    alike: "no", "unless answered" (not once one has been answered) or "yes"."""

    name: str
    what: str
    recorded: str
    finish: str = "error"
    fault: bool = True
    again: bool = False
    all: str = "no"

    @property
    def then(self) -> str:
        """What follows, in words."""
        if not self.fault:
            return "the next question"
        if self.again:
            return "asked again, with backoff and jitter, `attempts` times in all; Retry-After is honoured up to `max_wait`"
        ends = {"no": "the next question", "unless answered": "the evaluation ends, unless something has been answered"}
        return ends.get(self.all, "the evaluation ends")


ANSWER = Kind("answer", "text, ended by the model", "an answer", "stop", False)
EMPTY = Kind(
    "empty",
    "no text, ended by the model: `content` null or empty, with hidden reasoning or without",
    "an answer without text, which counts against the model",
    "stop",
    False,
)
CUT = Kind("cut", "text, or none, ended by the limit on tokens", "an answer, counted as truncated", "length", False)
REFUSAL = Kind(
    "refusal",
    "the model's `refusal`, a content filter's `finish_reason`, or an error that says so (HTTP 400 `content_filter`)",
    "an answer that is not valid, counted as refused",
    "refusal",
    False,
)
ABORTED = Kind(
    "aborted",
    "the server broke the answer off (`abort`)",
    "an error; what came of the answer is kept beside it",
    "aborted",
    again=True,
)
PASSING = Kind(
    "passing",
    "HTTP 408, 409, 425, 429, 5xx; a broken connection, a timeout; "
    "status 200 with an error, no choices, no readable message, or no JSON",
    "an error",
    again=True,
)
LASTING = Kind("lasting", "HTTP 400, 413, 422, a redirect, too long a question, a reply longer than `max_bytes`", "an error")
FORBIDDEN = Kind("forbidden", "HTTP 403, 404, 405, 501", "an error", all="unless answered")
STOP = Kind(
    "stop",
    "HTTP 401, 402, 407, no credit, a certificate that does not hold, or a setting that the server refuses",
    "the evaluation's end",
    all="yes",
)
KINDS = (ANSWER, EMPTY, CUT, REFUSAL, ABORTED, PASSING, LASTING, FORBIDDEN, STOP)

# Finish reasons as servers spell them, in small letters; what is not here says nothing. A reason may carry details after a
# colon ("content_filter: PROHIBITED_CONTENT").
_ENDED = {"stop", "eos", "eos_token", "end_turn", "stop_sequence", "stop_token", "complete", "completed", "finished"}
_ENDED |= {"tool_calls", "tool_call", "tool_use", "function_call"}
_CUT = {"length", "max_tokens", "max_output_tokens", "max_length", "model_length", "token_limit", "model_context_window_exceeded"}
_REFUSED = {"content_filter", "content_filtered", "refusal", "safety", "prohibited_content", "recitation", "blocklist", "spii"}
_REFUSED |= {"sensitive", "guardrail_intervened", "error_toxic"}
_ABORTED = {"abort", "aborted", "cancelled", "canceled", "interrupted"}
_FAULTS = {"error", "network_error", "insufficient_system_resource"}
# Reasons that nobody lists, by what they are made of, in this order.
_FAMILIES = (
    (re.compile(r"filter|safety|unsafe|moderat|policy|prohibit|guardrail|harm|toxic|blocked"), REFUSAL),
    (re.compile(r"(?:context|sequence|token|output)s?_?(?:length|len|limit|window|size|exceeded|budget)|too_long"), CUT),
    (re.compile(r"time_?out|time_?limit|max_time|deadline|rate_?limit|quota|unavailable|overload|disconnect|internal"), PASSING),
    (re.compile(r"fail|error|exception|crash|preempt|evict|killed|shut_?down"), PASSING),
)

# What an error says of itself, whatever its status.
_FILTERED = re.compile(
    r"content_?filter|content[ _-]?policy|content management policy|responsible_?ai|data_?inspection_?failed|content exists risk"
    r"|(input|prompt|request|content) (was|has been|is) flagged|violates (our |the )?usage (guidelines|polic)|safety_check",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient balance|billing_hard_limit|credit balance is too low", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"(context|sequence)[ _-]?(length|size|window|len)|max_model_len|prompt is too long|input is too long|maximum context",
    re.IGNORECASE,
)
_REFUSES = r"unsupported|not support\w*|n't support|unrecognized|unknown|not permitted|not allowed|not accept\w*|invalid|only"
_REFUSES += r"|must|cannot|deprecated|too large|valid range|maximum|(greater|less) than|at (least|most)|out of range|should be"


def _refused_setting(name: str) -> re.Pattern[str]:
    """A sentence that refuses a setting: its name near a word of refusal, with no brace between (an echoed request has some)."""
    return re.compile(rf"\b({name})\b[^{{}}]{{0,80}}({_REFUSES})|({_REFUSES})[^{{}}]{{0,80}}\b({name})\b", re.IGNORECASE)


# A setting that a server refuses is refused for every question: (what its error says, what to do about it).
_REMEDIES = (
    (re.compile(r"max_completion_tokens.{0,20} instead", re.IGNORECASE), "limit_field=max_completion_tokens"),
    (re.compile(r"max_tokens.{0,20} instead", re.IGNORECASE), "limit_field=max_tokens"),
    (re.compile(r"only supports? stream|stream mode", re.IGNORECASE), 'extra_body={"stream": true}'),
    (_refused_setting("temperature"), "temperature=none, so that the server's own is used"),
    *((_refused_setting(name), f"{name}=none, so that the server's own is used") for name in ("top_p", "top_k", "min_p")),
    (_refused_setting("reasoning_effort"), "another reasoning_effort= or thinking_switch=, or none"),
    (_refused_setting("enable_thinking|chat_template_kwargs"), "another thinking_switch=, or no --thinking"),
    (_refused_setting("max_completion_tokens"), "limit_field=max_tokens, or a smaller max_tokens="),
    (_refused_setting("max_tokens|max_new_tokens"), "a smaller max_tokens=, or limit_field=max_completion_tokens"),
)
TOO_LONG = "a smaller max_tokens=, or a server with a longer context (vLLM: --max-model-len, llama.cpp: -c, Ollama: num_ctx)"


def of_finish(reason: str) -> Kind | None:
    """The kind that a finish reason stands for, None if it says nothing."""
    word = reason.strip().lower().partition(":")[0]
    for words, kind in ((_ENDED, ANSWER), (_CUT, CUT), (_REFUSED, REFUSAL), (_ABORTED, ABORTED), (_FAULTS, PASSING)):
        if word in words:
            return kind
    return next((kind for pattern, kind in _FAMILIES if pattern.search(re.sub(r"[\s-]", "_", word))), None)


def of_error(status: int, text: str) -> tuple[Kind, str]:
    """The kind of an error, and what to do about it ("" if nothing is known).

    Args:
        status: of HTTP, or the one that an error inside a 200 names.
        text: everything the error says: message, code, type, parameter.
    """
    if status in (401, 402, 407) or _NO_CREDIT.search(text):
        return STOP, ""
    if status in (400, 403, 422, 451) and _FILTERED.search(text):
        return REFUSAL, ""
    if status != 429 and (status < 500 or "exceed" in text.lower()) and _TOO_LONG.search(text):  # also llama.cpp's 500
        return LASTING, TOO_LONG
    if status in (400, 422):
        remedy = next((remedy for pattern, remedy in _REMEDIES if pattern.search(text)), None)
        return (STOP, remedy) if remedy else (LASTING, "")
    if status in (403, 404, 405, 410, 451, 501, 505):
        return FORBIDDEN, ""
    if status in (408, 409, 425, 429, 498, 499) or status >= 500:
        return PASSING, ""
    return LASTING, ""  # 413, ..., and redirects, which a POST does not follow
