"""How programs write down one answer: `SHAPES` has a name, a test and a reader for each; the first that fits is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from t2t_core.evaluation.lines import read_response, read_turns
from t2t_core.records import Response
from t2t_plugins.policies.endpoint.client import HttpReply
from t2t_plugins.policies.endpoint.reply import Prices, judge

_TEXT = ("text", "completion", "response", "answer", "generation", "output", "prediction", "generated_text", "model_output")
_KEPT = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "finish_reason", "error", "cost_usd")
_BESIDE = {"model": str, "reasoning": str, "detail": str, "lasting": bool, "earlier": list}  # as a bench records them


class Unfit(ValueError):
    """Why a record is no answer."""


def _batch(record: Mapping[str, Any], where: str) -> Iterator[Sequence[Response]]:
    """OpenAI's batch output: the reply of the server, whole."""
    reply = record.get("response")
    if not isinstance(reply, Mapping) or not isinstance(reply.get("body"), Mapping):
        said = record.get("error")
        message = said.get("message") if isinstance(said, Mapping) else said
        yield [_error(f"the batch has no reply: {message or 'it says no reason'}")]
        return
    status, body = reply.get("status_code"), reply["body"]
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) and len(choices) > 1 else [None]:
        single = body if choice is None else {**body, "choices": [choice]}
        told = HttpReply(status if type(status) is int else 200, {}, json.dumps(single).encode())
        yield [judge(told, Prices()).response]


def _lm_eval(record: Mapping[str, Any], where: str) -> Iterator[Sequence[Response]]:
    """lm-evaluation-harness, --log_samples: `resps` has a list per request, of one text per repeat."""
    groups = record["resps"]
    texts = groups[0] if isinstance(groups, list) and groups and isinstance(groups[0], list) else groups
    yield from _texts(texts, "resps")


def _lighteval(record: Mapping[str, Any], where: str) -> Iterator[Sequence[Response]]:
    answer = record["model_response"]
    tokens = answer.get("output_tokens")
    for number, turns in enumerate(_texts(answer.get("text"), "model_response.text")):
        own = tokens[number] if isinstance(tokens, list) and number < len(tokens) else None
        yield [replace(turns[0], completion_tokens=len(own) or None if isinstance(own, list) else None)]


def _inspect(record: Mapping[str, Any], where: str) -> Iterator[Sequence[Response]]:
    """A sample of Inspect AI: the output that was scored, or the messages of a conversation."""
    output = record["output"]
    error = record.get("error")
    if error:
        message = error.get("message") if isinstance(error, Mapping) else error
        yield [_error(f"the sample failed: {message}")]
        return
    choices = output.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}
    message, usage = choice.get("message"), output.get("usage")
    content = message.get("content") if isinstance(message, Mapping) else output.get("completion")
    text, reasoning = _content(content)
    if text is None:
        raise Unfit("its output has no text")
    ending = _ENDINGS.get(str(choice.get("stop_reason") or "stop"), "stop")
    counts = {name: usage.get(theirs) for name, theirs in _COUNTS.items()} if isinstance(usage, Mapping) else {}
    model = output.get("model") if isinstance(output.get("model"), str) else None
    last = read_response({"text": text, "finish_reason": ending, "reasoning": reasoning, "model": model, **_known(counts)}, where)
    said = _spoken(record.get("messages"))
    yield [*said[:-1], last] if len(said) > 1 else [last]


def _traces(record: Mapping[str, Any], where: str) -> Iterator[Sequence[Response]]:
    """verifiers 0.4: a rollout is a graph of messages, of which the model sampled some, and the calls that it took."""
    trace = record["traces"][0] if record["traces"] else {}
    errors = trace.get("errors") or record.get("errors")
    if errors:
        yield [_error(f"the rollout failed: {json.dumps(errors)[:300]}")]
        return
    nodes = [node for node in _list(trace.get("nodes")) if isinstance(node, Mapping)]
    said = _spoken([node.get("message") for node in nodes if node.get("sampled") is True])
    if not said:
        raise Unfit("nobody answers in its trace")
    calls = [call for call in _list(trace.get("calls")) if isinstance(call, Mapping)]
    if len(calls) == len(said):
        said = [_called(response, call) for response, call in zip(said, calls, strict=True)]
    yield said


def _called(response: Response, call: Mapping[str, Any]) -> Response:
    """A response with what its call says of tokens, model and ending."""
    usage, model = call.get("usage"), call.get("model")
    counts = {n: usage.get(n) for n in ("prompt_tokens", "completion_tokens")} if isinstance(usage, Mapping) else {}
    facts: dict[str, Any] = {**_known(counts), "finish_reason": _ENDINGS.get(str(call.get("finish_reason")), "stop")}
    return replace(response, **facts, model=model if isinstance(model, str) else None)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _results(record: Mapping[str, Any], where: str) -> Iterator[Sequence[Response]]:
    """verifiers before 0.4: `completion` is the list of messages that followed the prompt."""
    if error := record.get("error"):
        yield [_error(f"the rollout failed: {error if isinstance(error, str) else json.dumps(error)[:300]}")]
        return
    yield _conversation(record["completion"], "completion")


def _transcript(record: Mapping[str, Any], where: str) -> Iterator[Sequence[Response]]:
    """A chat transcript: what the assistant said in it."""
    yield _conversation(record["messages"], "messages")


def _several(record: Mapping[str, Any], where: str) -> Iterator[Sequence[Response]]:
    yield from _texts(next(record[name] for name in _TEXT + _PLURALS if isinstance(record.get(name), list)), "the list")


def _plain(record: Mapping[str, Any], where: str) -> Iterator[Sequence[Response]]:
    """A line of a bench's answers.jsonl, or anybody's: an id and a text."""
    if "turns" in record:
        yield [turn for turn, _ in read_turns(record, where)]
        return
    kept = {name: record[name] for name in _KEPT if record.get(name) is not None}
    kept |= {name: record[name] for name, kind in _BESIDE.items() if isinstance(record.get(name), kind)}
    if "tokens" in record:
        kept.setdefault("completion_tokens", record["tokens"])
    names = [name for name in _TEXT if name in record]
    text = next((record[name] for name in names if record[name] is not None), None)
    if text is None and ("error" in kept or (names and "finish_reason" in kept)):
        text = ""  # null and "" are the same where the record says how the answer ended
    if not isinstance(text, str):
        raise Unfit(f"it has no answer: one of {', '.join(_TEXT)} must be a text")
    if "error" in kept and kept.get("finish_reason") != "aborted":
        kept["finish_reason"] = "error"
    if text and kept.get("completion_tokens") == 0:
        del kept["completion_tokens"]  # a text is never without tokens: the count was not filled in
    yield [read_response({"text": text, **kept}, where)]


_PLURALS = ("texts", "completions", "responses", "answers", "generations", "outputs", "predictions")
Reader = Callable[[Mapping[str, Any], str], Iterator[Sequence[Response]]]
SHAPES: Sequence[tuple[str, Callable[[Mapping[str, Any]], bool], Reader]] = (
    ("OpenAI batch output", lambda r: "custom_id" in r and ("response" in r or "error" in r), _batch),
    ("lighteval details", lambda r: isinstance(r.get("model_response"), Mapping), _lighteval),
    ("lm-eval samples", lambda r: "resps" in r, _lm_eval),
    ("Inspect AI sample", lambda r: isinstance(r.get("output"), Mapping) and "choices" in r["output"], _inspect),
    ("verifiers traces", lambda r: _messages_of(r.get("traces")), _traces),
    ("verifiers results", lambda r: _messages(r.get("completion")), _results),
    ("chat transcript", lambda r: _messages(r.get("messages")), _transcript),
    ("several answers", lambda r: any(isinstance(r.get(n), list) for n in _TEXT + _PLURALS), _several),
    ("one answer", lambda r: True, _plain),
)
REPEATED = (_traces, _results)  # further records of the same id are further samples
_ENDINGS = {"max_tokens": "length", "model_length": "length", "content_filter": "refusal", "length": "length"}
_COUNTS = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "reasoning_tokens": "reasoning_tokens"}


def _messages_of(traces: Any) -> bool:
    return isinstance(traces, list) and all(isinstance(trace, Mapping) for trace in traces)


def _messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(m, Mapping) and "role" in m for m in value)


def _texts(value: Any, what: str) -> Iterator[Sequence[Response]]:
    for text in value if isinstance(value, list) else [value]:
        if not isinstance(text, str):
            raise Unfit(f"{what} holds {type(text).__name__}, not a text")
        yield [Response(text)]


def _conversation(messages: Sequence[Mapping[str, Any]], what: str) -> Sequence[Response]:
    said = _spoken(messages)
    if not said:
        raise Unfit(f"nobody answers in its {what}")
    return said


def _spoken(messages: Any) -> list[Response]:
    """What the assistant said, message by message."""
    said = []
    for message in messages if _messages(messages) else ():
        if message["role"] == "assistant":
            text, reasoning = _content(message.get("content"))
            said.append(Response(text or "", reasoning=reasoning))
    return said


def _content(content: Any) -> tuple[str | None, str | None]:
    """The visible text and the reasoning of a message: a text, or a list of parts."""
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list):
        return None, None
    parts = [part for part in content if isinstance(part, Mapping)]
    texts = [p["text"] for p in parts if p.get("type") == "text" and isinstance(p.get("text"), str)]
    thoughts = [p["reasoning"] for p in parts if p.get("type") == "reasoning" and isinstance(p.get("reasoning"), str)]
    return "".join(texts), "".join(thoughts) or None


def _known(counts: Mapping[str, Any]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if type(count) is int and count > 0}


def _error(what: str) -> Response:
    return Response("", finish_reason="error", error=what[:300])
