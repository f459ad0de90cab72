"""One row's answers on disk: the append-only log, an index of where each answer lies, and how a line is read with suspicion."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from t2t_core.conversation import total
from t2t_core.errors import T2TError
from t2t_core.records import Message, Response, ToolCall, Verdict
from t2t_core.redaction import Redactor
from t2t_core.store import folders, jsonlines, paths, schema
from t2t_core.store.paths import SafePath

LOG, ANSWERS = "log.jsonl", "answers.jsonl"
NOT_ASKED = Response("", error="not asked yet", finish_reason="error")  # stands for a question that nobody was asked
_FINISH = ("stop", "length", "refusal", "aborted", "error")
_FIELDS = tuple(Response.__dataclass_fields__)
_ALWAYS = ("text", "prompt_tokens", "completion_tokens", "reasoning_tokens", "finish_reason", "error", "cost_usd")
_WHERE_KNOWN = ("model", "reasoning", "detail", "lasting")  # written where there is something to write


@dataclass
class Progress:
    """How far an evaluation is. `rate` is answers per second of this session, `eta` seconds to go (None: not yet known),
    `last_error` what the latest error said."""

    total: int
    done: int = 0
    asked: int = 0
    errors: int = 0
    last_error: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    started: float = field(default_factory=time.monotonic)

    @property
    def rate(self) -> float:
        return self.asked / max(1e-9, time.monotonic() - self.started)

    @property
    def eta(self) -> float | None:
        return (self.total - self.done) / self.rate if self.asked else None


class AnswerIndex:
    """Where each answer lies in an append-only log, read without changing anything. Texts stay on disk.

    A conversation of several turns has a line for each. `notes` says what was found on the way, e.g. a torn last line;
    T2TError names file and line of anything worse.
    """

    def __init__(
        self,
        path: Path | SafePath,
        ids: Sequence[str],
        samples: int,
        turns: int = 1,
        wanted: Callable[[int], bool] | None = None,
    ) -> None:
        """`wanted`: which questions are to be asked, by their index; None: all of them."""
        self.path, self._ids, self._samples, self._most = path, ids, samples, turns
        self._where = str(path)
        self._position = {id: i for i, id in enumerate(ids)}
        total = len(ids) * samples
        self._offsets = array("q", [-1]) * total
        self._failed = bytearray(total)
        self._tries = bytearray(total)  # that ended in an error, up to 255
        self._errors: dict[int, list[int]] = {}  # where the failed attempts at a question lie
        self._turns: dict[int, list[int]] = {}  # where the turns of a conversation lie that came without an error
        self._open = bytearray(total)  # conversations that go on
        self._wanted = bytearray(b"\1" * total) if wanted is None else bytearray(map(wanted, range(total)))
        self.progress = Progress(sum(self._wanted))
        self.torn: list[jsonlines.Torn] = []
        if path.exists():
            for line in jsonlines.read(path, self.torn):
                self._index(line)
        self.notes = [str(t) for t in self.torn]
        self.progress.done = self.progress.total - len(self.missing())
        self._reader: BinaryIO | None = None

    def _index(self, line: jsonlines.Line) -> None:
        record, where = line.value, f"{self.path}, line {line.number}"
        position, sample = self._position.get(str(record.get("instance"))), record.get("sample")
        if position is None or type(sample) is not int or not 0 <= sample < self._samples:
            raise T2TError(
                f"an answer to {ascii(record.get('instance'))[:80]}, sample {ascii(sample)[:20]}, which was not asked here",
                where=where,
                cause="the log belongs to another set of instances, or was edited by hand",
                next="give another --out",
            )
        index, response = position * self._samples + sample, read_response(record, where)
        if self._most > 1 and record.get("turn") != len(self._turns.get(index, ())):
            raise T2TError(
                f"turn {ascii(record.get('turn'))[:20]} of {self._ids[position]} does not follow what was said before",
                where=where,
                cause="the log was edited by hand, or belongs to a task of one turn",
                next="give another --out",
            )
        self._note(index, line.offset, response, goes_on=bool(record.get("replies")))

    def _note(self, index: int, offset: int, response: Response, goes_on: bool = False) -> None:
        self._offsets[index], self._failed[index] = offset, response.error is not None
        if self._most > 1 and response.error is None:
            self._turns.setdefault(index, []).append(offset)
            self._open[index] = goes_on
        if response.error is not None:
            self._tries[index] = min(255, self._tries[index] + 1)
            self._errors.setdefault(index, []).append(offset)
        self.progress.tokens += response.completion_tokens or 0
        self.progress.cost_usd += response.cost_usd or 0.0

    def missing(self) -> array[int]:
        """The questions wanted that have no answer, errors included: in order, but those that failed least often first, so that
        an evaluation that some questions end does not end at the same ones again."""
        wanted = (i for i, wanted in enumerate(self._wanted) if wanted)
        missing = [i for i in wanted if not self.answered(i)]
        return array("q", sorted(missing, key=self._tries.__getitem__))

    def answered(self, index: int) -> bool:
        """Whether that question has an answer without an error, and its conversation is over."""
        return self._offsets[index] >= 0 and not (self._failed[index] or self._open[index])

    @property
    def empty(self) -> bool:
        """Whether nothing was ever asked."""
        return max(self._offsets, default=-1) < 0

    def superseded(self, index: int) -> list[Response]:
        """The failed attempts at that question which later ones took the place of."""
        return [self._read(index, offset) for offset in self._errors.get(index, ()) if offset != self._offsets[index]]

    def turns(self, index: int) -> list[tuple[Response, tuple[Message, ...]]]:
        """The policy's turns of that conversation so far, each with what the environment replied, read from disk."""
        return [self._read_turn(index, offset) for offset in self._turns.get(index, ())]

    def _read_turn(self, index: int, offset: int) -> tuple[Response, tuple[Message, ...]]:
        record = self._line(index, offset)
        return read_response(record, self._where), read_messages(record.get("replies"), self._where)

    def response(self, index: int) -> Response | None:
        """The last answer to that question, read from disk, with the failed replies before it that cost something. Of a
        conversation it sums the turns up; one that stopped half way has an error."""
        offset = self._offsets[index]
        if offset < 0:
            return None
        last = self._read(index, offset)
        failed = (r for r in self.superseded(index) if r.completion_tokens is not None or r.cost_usd is not None)
        earlier = [replace(reply, text="", reasoning=None) for reply in failed]
        if self._most > 1:
            said = [self._read(index, o) for o in self._turns.get(index, ())]
            last = total([*said, last] if self._failed[index] else said)
            if self._open[index] and not self._failed[index]:
                last = replace(last, error="the conversation is not over", finish_reason="error")
        return replace(last, earlier=tuple(earlier)) if earlier else last

    def _read(self, index: int, offset: int) -> Response:
        return read_response(self._line(index, offset), self._where)

    def _line(self, index: int, offset: int) -> dict[str, Any]:
        """The line of a question; T2TError where another one has come into its place, since the log was changed meanwhile."""
        if self._reader is None:
            self._reader = paths.open_plain(self.path)
        self._reader.seek(offset)
        try:
            line = jsonlines.loads(self._reader.readline())
        except jsonlines.Unreadable:
            line = None
        position, sample = divmod(index, self._samples)
        if not isinstance(line, dict) or (str(line.get("instance")), line.get("sample")) != (self._ids[position], sample):
            raise T2TError(
                "the log was changed while this process worked with it",
                where=self._where,
                cause=f"the answer to {self._ids[position]}, sample {sample}, is no longer where it was",
                next="the same command reads it anew, and says which line is damaged",
            )
        return line

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


class AnswerLog(AnswerIndex):
    """The log of one row, open for appending; a torn last line is cut off."""

    def __init__(
        self,
        path: Path | SafePath,
        ids: Sequence[str],
        samples: int,
        turns: int = 1,
        wanted: Callable[[int], bool] | None = None,
    ) -> None:
        super().__init__(path, ids, samples, turns, wanted)
        self._redactor = Redactor()
        self._appender = jsonlines.Appender(path, self.torn[0] if self.torn else None)
        self._latest: tuple[int, Response] = (-1, NOT_ASKED)

    def response(self, index: int) -> Response | None:
        """As of the index; what has just been written need not be read."""
        latest, response = self._latest
        if index == latest and self._most == 1 and index not in self._errors:
            return response
        return super().response(index)

    def append(self, index: int, response: Response, answer: Sequence[Message] = ()) -> None:
        """Record one answer, and each reply before it that was none as a line of its own; it is on its way to the disk when
        this returns. In a conversation it is one turn, and `answer` what the environment says to it: nothing where it ends."""
        position, sample = divmod(index, self._samples)
        replies = (*response.earlier, replace(response, earlier=())) if response.earlier else (response,)
        for reply in map(self.without_secrets, replies):
            record = {"instance": self._ids[position], "sample": sample, **response_record(reply)}
            if self._most > 1:
                record["turn"] = len(self._turns.get(index, ()))
                record["replies"] = [m.to_dict() for m in answer] if reply.error is None else []
            offset = self._appender.append({**record, "seconds": reply.seconds, "at": folders.now()})
            self._note(index, offset, reply, goes_on=bool(answer))
            self._latest = index, reply
        if self._open[index] and not self._failed[index]:
            return
        self.progress.done += 1
        self.progress.asked += 1
        self.progress.errors += reply.error is not None
        self.progress.last_error = reply.error or self.progress.last_error

    def undisturbed(self) -> bool:
        """Whether nobody else has changed the file since it was opened."""
        return self._appender.undisturbed()

    def without_secrets(self, response: Response) -> Response:
        """An endpoint may echo a key in whatever it sends; a key is never written, and no environment answers to one."""
        redact = self._redactor.redact
        texts = {name: text for name, text in vars(response).items() if isinstance(text, str)}
        cleaned: dict[str, Any] = {name: redact(text) for name, text in texts.items()}
        cleaned["tool_calls"] = tuple(ToolCall(redact(c.id), redact(c.name), redact(c.arguments)) for c in response.tool_calls)
        return response if cleaned == {**texts, "tool_calls": response.tool_calls} else replace(response, **cleaned)

    def close(self) -> None:
        super().close()
        self._appender.close()


def response_record(response: Response) -> dict[str, Any]:
    """What is exported of a response: everything that does not depend on when it came."""
    record = {name: getattr(response, name) for name in _ALWAYS}
    record.update({name: getattr(response, name) for name in _WHERE_KNOWN if getattr(response, name)})
    if response.tool_calls:
        record["tool_calls"] = [asdict(call) for call in response.tool_calls]
    if response.earlier:
        record["earlier"] = [response_record(reply) for reply in response.earlier]
    return record


def read_response(record: Mapping[str, Any], where: str) -> Response:
    """The response in a line of a log or an export; T2TError where a field has no right type (files are hostile)."""
    known = {name: record[name] for name in _FIELDS if name in record}
    earlier = known.get("earlier", ())
    fault = "list of earlier replies is none" if not isinstance(earlier, list | tuple) else None
    if not fault and earlier:
        flat = [e for e in earlier if isinstance(e, Mapping) and "earlier" not in e]
        fault = "list of earlier replies holds something else" if len(flat) < len(earlier) else None
        known["earlier"] = tuple(read_response(e, where) for e in flat)
    if not fault and "tool_calls" in known:
        known["tool_calls"] = read_calls(known["tool_calls"], where)
    response = Response(**{"text": None, **known})
    fault = fault or response_fault(response)
    if fault:
        raise T2TError(f"the answer's {fault}", where=where, cause="the file was damaged or edited by hand")
    return response


def response_fault(response: Response) -> str | None:
    """What is wrong with the types of a response, None where all is well."""
    if not isinstance(response.text, str):
        return f"text is {type(response.text).__name__}, not a string"
    if response.finish_reason not in _FINISH:
        return f"finish_reason is {ascii(response.finish_reason)[:40]}, not one of {', '.join(_FINISH)}"
    for name in ("error", "model", "reasoning", "detail"):
        if not isinstance(getattr(response, name), str | None):
            return f"{name} is {type(getattr(response, name)).__name__}, not a string or None"
    for name in ("prompt_tokens", "completion_tokens", "reasoning_tokens"):
        count = getattr(response, name)
        if count is not None and (type(count) is not int or not 0 <= count < 1 << 50):
            return f"{name} is not a count"
    for name in ("seconds", "cost_usd"):
        value = getattr(response, name)
        if value is not None and (type(value) not in (int, float) or not (math.isfinite(value) and value >= 0)):
            return f"{name} is not a number of at least 0"
    if type(response.lasting) is not bool:
        return "lasting is not True or False"
    calls = response.tool_calls
    if not isinstance(calls, list | tuple) or not all(isinstance(call, ToolCall) and _texts(call) for call in calls):
        return "tool calls are not all ToolCalls of texts"
    return _earlier_fault(response.earlier)


def _texts(call: ToolCall) -> bool:
    return all(isinstance(value, str) for value in (call.id, call.name, call.arguments))


def read_calls(value: Any, where: str) -> tuple[ToolCall, ...]:
    """Tool calls as they stand in a line: each an object of the texts id, name and arguments."""
    rows = [row for row in value if isinstance(row, Mapping)] if isinstance(value, list | tuple) else []
    if not isinstance(value, list | tuple) or len(rows) < len(value) or any(set(r) != {"id", "name", "arguments"} for r in rows):
        raise T2TError("the answer's tool calls are not what was written", where=where, cause="the file was edited by hand")
    return tuple(ToolCall(row["id"], row["name"], row["arguments"]) for row in rows)


def read_messages(value: Any, where: str) -> tuple[Message, ...]:
    """The environment's messages in a line of a log or an export; T2TError where they are none."""
    messages = []
    for row in value if isinstance(value, list) else [None]:
        data = row if isinstance(row, Mapping) else {}
        role, content, call = (data.get(name) for name in ("role", "content", "tool_call_id"))
        message = Message(str(role), str(content), (), call)
        if role not in ("user", "tool", "system") or message.to_dict() != data or not isinstance(call, str | None):
            raise T2TError("the environment's replies are not what was written", where=where, cause="the file was edited by hand")
        messages.append(message)
    return tuple(messages)


def read_turns(value: Any, where: str) -> list[tuple[Response, tuple[Message, ...]]]:
    """The turns of a conversation in a line of an export, each with what the environment replied."""
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        raise T2TError("the conversation's turns are missing", where=where, cause="the file was edited by hand")
    return [(read_response(row, where), read_messages(row.get("replies"), where)) for row in value]


def _earlier_fault(earlier: Any) -> str | None:
    for reply in earlier if isinstance(earlier, list | tuple) else [None]:
        if not isinstance(reply, Response) or reply.earlier or reply.error is None:
            return "earlier replies are not all responses with an error"
        if fault := response_fault(reply):
            return f"earlier reply's {fault}"
    return None


@dataclass(frozen=True, kw_only=True)
class VerdictRecord:
    """A verdict as an export holds it."""

    checks: dict[str, bool]
    valid: bool
    optimal: bool | None
    cost: int | None
    costs: dict[str, int]
    gap: int | None
    gaps: dict[str, int]


def read_verdict(record: Mapping[str, Any], where: str) -> Verdict:
    """The verdict in a line of an export, its faults aside; T2TError where it is none."""
    known = schema.check(record.get("verdict"), VerdictRecord, where)
    return Verdict(**schema.plain(known))


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON, faults left out: they follow from the text and the instance."""
    return {
        "checks": dict(verdict.checks),
        "valid": verdict.valid,
        "optimal": verdict.optimal,
        "cost": verdict.cost,
        "costs": dict(verdict.costs),
        "gap": verdict.gap,
        "gaps": dict(verdict.gaps),
        **({"figures": dict(verdict.figures)} if verdict.figures else {}),
    }
