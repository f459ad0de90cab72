"""Answers that other programs wrote: which instance each is an answer to, and what was said.

A file is JSON Lines, one JSON array, or a log of Inspect AI (`.json`, or `.eval`, a zip of samples). `SHAPES` lists how one
answer may be written down; the first shape that fits is read, and what a shape does not name is ignored. A record that cannot
be read is a `Bad` one with the reason: it costs its own answer, not the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from t2t_core.errors import T2TError
from t2t_core.evaluation.lines import read_response, read_turns
from t2t_core.records import Response
from t2t_core.store import archives, jsonlines, paths
from t2t_plugins.policies.endpoint.client import HttpReply
from t2t_plugins.policies.endpoint.reply import Prices, judge

MAX_WHOLE = 1 << 30  # bytes of a JSON document that is not JSON Lines, unpacked; our choice
_ID = ("id", "instance_id", "instance")
_TEXT = ("text", "completion", "response", "answer", "generation", "output", "prediction", "generated_text", "model_output")
_KEPT = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "finish_reason", "error", "cost_usd")
_BESIDE = {"model": str, "reasoning": str, "detail": str, "lasting": bool, "earlier": list}  # as a bench records them
_SAMPLE = re.compile(r"(.+)#([0-9]{1,6})", re.DOTALL)  # an id of `t2t bench --export-prompts` with several samples


class Unfit(ValueError):
    """Why a record is no answer."""


@dataclass(frozen=True)
class Stored:
    """What a record says. id: of the instance; a number where the file has numbers. sample: None if it says none. turns: what
    was said, turn by turn. repeated: further records of the same id are further samples, in the order of the file."""

    id: str | int
    sample: int | None
    turns: Sequence[Response]
    repeated: bool = False


@dataclass(frozen=True)
class Bad:
    """A record that cannot be read. `where` names it, `id` and `sample` the question where that much is known."""

    where: str
    why: str
    id: str | int | None = None
    sample: int | None = None


def read(path: Path, torn: list[jsonlines.Torn]) -> Iterator[tuple[str, Stored | Bad]]:
    """Every answer of a file and where it stands; a last line that was cut off goes into `torn`.

    Raises:
        T2TError: the file cannot be opened, or as a whole it is none of the kinds above.
    """
    with _opened(path) as file:
        start = _start(path, file)
        file.seek(0)
        if start.startswith(b"PK\x03\x04"):
            yield from _of_archive(path, file)
        elif _whole(start):
            yield from _of_document(path, file)
        else:
            yield from _of_lines(path, file, torn)


def _opened(path: Path) -> BinaryIO:
    try:
        return paths.open_plain(path)
    except OSError as error:
        raise paths.unreadable(path, error) from None


def _start(path: Path, file: BinaryIO) -> bytes:
    try:
        return file.read(4096)
    except OSError as error:
        raise paths.unreadable(path, error) from None


def _whole(start: bytes) -> bool:
    """Whether a file that begins so is one JSON document: an array, or an object whose first line is not a whole one."""
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"["):
        return True
    first, newline, _ = text.partition(b"\n")
    return text.startswith(b"{") and bool(newline) and first.rstrip() == b"{"


# --- kinds of files


def _of_lines(path: Path, file: BinaryIO, torn: list[jsonlines.Torn]) -> Iterator[tuple[str, Stored | Bad]]:
    number = offset = 0
    while raw := file.readline(jsonlines.MAX_LINE + 1):
        number += 1
        where = f"{path}, line {number}"
        if len(raw) > jsonlines.MAX_LINE:
            raise T2TError(f"line {number} is longer than {jsonlines.MAX_LINE} bytes", where=where)
        if raw.strip():
            try:
                record = loads(raw)
            except jsonlines.Unreadable as error:
                if not raw.endswith(b"\n") and offset:
                    torn.append(jsonlines.Torn(path, number, offset, len(raw)))
                else:
                    yield where, Bad(where, f"it is no JSON object: {error}")
            else:
                yield from _answers(record, where)
        offset += len(raw)


def _of_document(path: Path, file: BinaryIO) -> Iterator[tuple[str, Stored | Bad]]:
    document = _document(file.read(MAX_WHOLE + 1), str(path))
    if isinstance(document, Mapping):
        yield from _of_inspect(document, str(path))
        return
    for number, record in enumerate(document if isinstance(document, list) else [document]):
        yield from _answers(record, f"{path}, element {number} of the array")


def _of_inspect(log: Mapping[str, Any], where: str) -> Iterator[tuple[str, Stored | Bad]]:
    samples = log.get("samples")
    if not isinstance(samples, list):
        if samples is None and "samples" not in log:
            yield from _answers(log, where)  # one answer, written over several lines
            return
        raise T2TError("the log holds no samples", where=where, cause="it was written without them, or was cut off")
    for number, record in enumerate(samples):
        yield from _answers(record, f"{where}, sample {number}")


def _of_archive(path: Path, file: BinaryIO) -> Iterator[tuple[str, Stored | Bad]]:
    """A log of Inspect AI in its own format."""
    empty = True
    for name, data in archives.members(file, path, _is_sample, MAX_WHOLE):
        empty = False
        where = f"{path}, {ascii(name)[1:-1][:120]}"
        yield from _answers(_document(data, where), where)
    if empty:
        raise T2TError("the archive holds no samples of Inspect AI", where=str(path))


def _is_sample(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


def _document(data: bytes, where: str) -> Any:
    if len(data) > MAX_WHOLE:
        raise T2TError(f"the document is longer than {MAX_WHOLE} bytes", where=where, next="write JSON Lines: one answer a line")
    try:
        return loads(data)
    except jsonlines.Unreadable as error:
        raise T2TError("the document is no JSON", where=where, cause=str(error)) from None


def loads(data: bytes) -> Any:
    """Hostile JSON as `jsonlines.loads` reads it, but for NaN and infinities, which become None: many programs write them among
    log-probabilities."""
    try:
        return _decoder.decode(data.removeprefix(b"\xef\xbb\xbf").decode())
    except RecursionError:
        raise jsonlines.Unreadable("nested too deeply") from None
    except jsonlines.Unreadable:
        raise
    except ValueError as error:
        raise jsonlines.Unreadable(str(error)[:200]) from None


_decoder = jsonlines.decoder(parse_constant=lambda name: None)


# --- one record


def _answers(record: Any, where: str) -> Iterator[tuple[str, Stored | Bad]]:
    """The answers of a record: one, or its samples."""
    if not isinstance(record, Mapping):
        yield where, Bad(where, f"a JSON object is expected, not {type(record).__name__}")
        return
    _, _, reader = next(shape for shape in SHAPES if shape[1](record))
    id, sample = None, None
    try:
        id, sample = _asked(record)
        for number, turns in enumerate(reader(record, where)):
            if not turns:
                raise Unfit("it holds no answer")
            at = sample if number == 0 else (sample or 0) + number
            yield where, Stored(id, at, turns, reader in (_traces, _results))
    except Unfit as error:
        yield where, Bad(where, str(error), id, sample)
    except T2TError as error:
        yield where, Bad(where, error.what, id, sample)


def _asked(record: Mapping[str, Any]) -> tuple[str | int, int | None]:
    """Which question a record answers."""
    doc, info, task = record.get("doc"), record.get("info"), record.get("task")
    if isinstance(info, str):  # verifiers writes it as JSON in some of its outputs
        try:
            info = jsonlines.loads(info)
        except jsonlines.Unreadable:
            info = None
    places = [doc, info, task.get("data") if isinstance(task, Mapping) else None, record]
    names = [*_ID, "custom_id", "doc_id", "example_id"]
    known = [place[name] for place in places if isinstance(place, Mapping) for name in names if _is_id(place.get(name))]
    if isinstance(record.get("custom_id"), str):  # `id` is the request's there
        known.insert(0, record["custom_id"])
    if not known:
        raise Unfit(f"it does not say which instance it answers: {', '.join(_ID)} or custom_id")
    id = next((key for key in known if isinstance(key, str)), known[0])
    sample = record.get("sample", record.get("rollout"))
    if sample is None and type(record.get("epoch")) is int:
        sample = record["epoch"] - 1
    if sample is not None and (type(sample) is not int or sample < 0):
        raise Unfit("it does not say which sample it is: a number from 0")
    if isinstance(id, str) and sample is None and (numbered := _SAMPLE.fullmatch(id)):
        return numbered[1], int(numbered[2])
    return id, sample


def _is_id(value: Any) -> bool:
    return (isinstance(value, str) and bool(value)) or (type(value) is int and 0 <= value < 1 << 53)


# --- shapes


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
