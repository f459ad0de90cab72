"""One row's answers on disk: the append-only log, and an index of where each answer lies. `lines` has what a line holds."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from t2t_core.conversation import total
from t2t_core.errors import T2TError
from t2t_core.evaluation.lines import Turn, read_response, read_turn, response_record
from t2t_core.records import Message, Response, ToolCall
from t2t_core.redaction import Redactor
from t2t_core.store import folders, jsonlines, paths
from t2t_core.store.paths import SafePath

LOG, ANSWERS = "log.jsonl", "answers.jsonl"
NOT_ASKED = Response("", error="not asked yet", finish_reason="error")  # stands for a question that nobody was asked


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
        """Answers per second, of those asked for in this session."""
        return self.asked / max(1e-9, time.monotonic() - self.started)

    @property
    def eta(self) -> float | None:
        """Seconds until everything is answered at this rate; None before the first answer."""
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
        to_ask: Callable[[int], bool] | None = None,
    ) -> None:
        """`to_ask`: which questions are to be asked, by their index; None: all of them."""
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
        self._to_ask = bytearray(b"\1" * total) if to_ask is None else bytearray(map(to_ask, range(total)))
        self.progress = Progress(sum(self._to_ask))
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
        missing = [i for i, due in enumerate(self._to_ask) if due and not self.answered(i)]
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

    def turns(self, index: int) -> list[Turn]:
        """The policy's turns of that conversation so far, each with what the environment replied, read from disk."""
        return [read_turn(self._line(index, offset), self._where) for offset in self._turns.get(index, ())]

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
        """The line of a question. Raises T2TError if another one has come into its place, since the log was changed meanwhile."""
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
        to_ask: Callable[[int], bool] | None = None,
    ) -> None:
        super().__init__(path, ids, samples, turns, to_ask)
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
        this returns. In a conversation it is one turn, and `answer` what the environment says to it: nothing if it ends."""
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
