"""Targets for what is kept: keys in texts and settings, completions in every shape, records of boards, rows and studies."""

from __future__ import annotations

import base64
import contextlib
import html
import json
from typing import Any
from urllib.parse import quote

import msgspec

from fuzz.common import linear, scratch, text_of, values_of
from fuzz.values import Values
from t2t_core.errors import T2TError
from t2t_core.evaluation.lines import response_fault
from t2t_core.redaction import Redactor
from t2t_core.run.experiment import read_toml
from t2t_core.settings import refuse_secrets
from t2t_core.store import folders, schema
from t2t_core.study.comparing import StudyResult
from t2t_core.study.plan import Plan
from t2t_leaderboard.schemas import RowRecord, SetRecord, VerificationRecord
from t2t_plugins.policies.endpoint import kinds, reply
from t2t_plugins.policies.endpoint.client import HttpReply

KEY = 'sk-Pr"j_9fK2x7Qw/8Zr4Tn1Vb6+Ym3Lc5'
_WRITTEN = (KEY, quote(KEY, safe=""), html.escape(KEY), json.dumps(KEY)[1:-1])
_SHOWN = 14  # the most consecutive characters of a key that may remain


def secret(data: bytes) -> None:
    """A text with a key in it, whole, cut or in another notation, and settings with a key at any depth."""
    text, first = text_of(data), data[0] if data else 0
    redactor = Redactor({KEY: "key"})
    cut = KEY[first % len(KEY) :] if first % 2 else KEY[: first % len(KEY)]
    encoded = base64.b64encode(data[:3] + KEY.encode()).decode()
    for written in (*_WRITTEN, cut, encoded):
        shown = redactor.redact(f"{text[1:]} {written} {text}")
        assert not any(KEY[i : i + _SHOWN + 1] in shown for i in range(len(KEY) - _SHOWN)), "a stretch of the key is left"
        assert written not in shown or len(written) <= _SHOWN
    assert any(part in text for part in (KEY[i : i + 8] for i in range(len(KEY) - 7))) or redactor.redact(text) == text
    for value in values_of(data, {"a": KEY, "api_key": "hunter22"}):
        with contextlib.suppress(T2TError):
            refuse_secrets(value, "a policy")
    with contextlib.suppress(T2TError):
        refuse_secrets({"extra_body": text, text: 1}, "a policy")
        with contextlib.suppress(ValueError, RecursionError):
            assert not isinstance(json.loads(text), dict) or not json.loads(text).get("api_key"), "a key went through"
    linear(redactor.redact, text)
    linear(lambda long: refuse_secrets({"extra_body": long}, "a policy"), text)


_FIELDS = ("id", "model", "usage", "choices", "error", "system_fingerprint")
_MESSAGE = ("content", "refusal", "reasoning_content", "reasoning", "reasoning_details", "tool_calls", "role")
_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens", "completion_tokens_details", "cost", "reasoning_tokens")
_ENDS = ("stop", "length", "content_filter", "abort", "error", "tool_calls", "", None)


def completion(data: bytes) -> None:
    """An endpoint's reply as JSON with any value in any place, at once or as a stream."""
    source = Values(data)
    message = {name: source.any() for name in _MESSAGE if source.byte() % 4 == 0}
    choice: dict[str, Any] = {"index": source.any(), "message": message, "finish_reason": source.choice(_ENDS)}
    if source.byte() % 8 == 0:
        choice["message"] = source.any()
    sent: dict[str, Any] = {"choices": [choice] * (source.byte() % 3), "usage": {name: source.any() for name in _USAGE}}
    sent |= {name: source.any() for name in _FIELDS if source.byte() % 8 == 0}
    deltas = ({"delta": source.any(), "finish_reason": source.choice(_ENDS)} for _ in range(source.byte() % 4))
    events = [{**sent, "choices": [delta]} for delta in deltas]
    whole = json.dumps(sent, default=str).encode()
    stream = "".join(f"data: {json.dumps(event, default=str)}\n\n" for event in (*events, {"choices": [{"delta": message}]}))
    for body in (whole, stream.encode()):
        for status in (200, 400):
            judged = reply.judge(HttpReply(status, {}, body), reply.Prices(1.0, 2.0))
            response = judged.response
            assert judged.kind in kinds.KINDS and response_fault(response) is None
            assert (response.error is not None) is judged.kind.fault and response.finish_reason == judged.kind.finish
            counts = (response.prompt_tokens, response.completion_tokens, response.reasoning_tokens)
            assert all(n is None or type(n) is int and n >= 0 for n in counts)
            assert judged.kind is not kinds.EMPTY or message.get("content") in (None, "", [], {}) or response.text == ""


def study(data: bytes) -> None:
    """The plan of a study, a study's results, and the records of a bench folder's rows."""
    path = scratch() / "plan.toml"
    path.write_bytes(data)
    with contextlib.suppress(T2TError, msgspec.ValidationError):
        msgspec.convert(read_toml(path), Plan)
    (scratch() / "study.json").write_bytes(data)
    for kind in (StudyResult, RowRecord, VerificationRecord):
        with contextlib.suppress(T2TError):
            folders.read_record(scratch() / "study.json", kind)
    base = {"format": 1, "policy": "p", "sampling": {}, "describe": {}, "prompts_sha256": "0" * 64, "verified": True, "title": "",
            "version": "0.1.0", "answers": 1, "rows": 1, "name": "x", "kind": "evaluation", "notes": []}  # fmt: skip
    for value in values_of(data, base):
        for record in (RowRecord, SetRecord, VerificationRecord, StudyResult):
            with contextlib.suppress(T2TError):
                schema.check(value, record, "a file")
