"""Stored completions as a policy: `answers:FILE` replays what any program wrote."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.lines import read_response, response_record
from t2t_core.records import Response, Sampling, Task
from t2t_core.settings import read_settings
from t2t_core.store import folders, jsonlines
from t2t_plugins.policies.stored import Bad, Stored, read

_SHOWN = 5  # bad records that are named one by one
_NUMBERED = "the file numbers its answers, and its numbers are no names of instances"


class StoredAnswers:
    """A file of answers, most simply one JSON object per line:

        {"id": "set_0001", "text": "<answer>...</answer>"}

    Fields, the first present of each: `id`, `instance_id` or `instance`; `text`, `completion`, `response`, `answer` or
    `generation`. Optional: `sample` (0 if absent), `tokens` or `completion_tokens`, `prompt_tokens`, `reasoning_tokens`,
    `finish_reason`, `error`, `cost_usd`, `model`, `reasoning`. Other fields are ignored, so the `answers.jsonl` of a bench
    folder is such a file; of a conversation it has `turns`, which are said one after the other.

    OpenAI's batch output, samples of lm-evaluation-harness, details of lighteval, logs of Inspect AI, results of verifiers, chat
    transcripts and JSON arrays are read too (docs/answers.md). Where the file has numbers for names, number 0 is taken for the
    first instance that is asked, and a warning says so.

    A record that cannot be read, and two answers to one (id, sample), are warned of with file and line, and cost that answer
    alone. A torn last line and answers to instances that were not asked are warned of. An instance without a stored answer gets
    the error "no stored answer". Texts stay on disk.

    Raises:
        T2TError: no file, or none of its records can be read.
    """

    talks = False

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        read_settings(settings, "policy answers", {})
        if not argument:
            raise T2TError("which file holds the answers?", where="policy answers", next="write answers:FILE.jsonl")
        self._path = Path(argument)
        self._lines: dict[tuple[str, int], tuple[int, str]] = {}  # (id, sample) -> (byte offset, where it stood)
        self._bad: dict[tuple[str, int], str] = {}
        self._numbered = True  # whether every id is a number
        self._read = folders.scratch()  # each answer as a bench records it
        weakref.finalize(self, self._read.close)
        self._take_all()
        self._sha256 = folders.sha256(self._path)

    def _take_all(self) -> None:
        torn: list[jsonlines.Torn] = []
        bad: list[Bad] = []
        for where, record in read(self._path, torn):
            if isinstance(record, Bad):
                bad.append(record)
            else:
                bad += self._take(record, where)
        for piece in torn:
            warnings.warn(str(piece), stacklevel=4)
        if bad and not self._lines:
            raise T2TError("no answer of the file can be read", where=bad[0].where, cause=bad[0].why)
        for record in bad:
            if record.id is not None:
                self._bad.setdefault((str(record.id), record.sample or 0), f"{record.where}: {record.why}")
        for record in bad[:_SHOWN]:
            warnings.warn(f"{record.where}: {record.why}", stacklevel=4)
        if len(bad) > _SHOWN:
            warnings.warn(f"{self._path}: {len(bad)} answers cannot be read; the first {_SHOWN} are named", stacklevel=4)

    def _take(self, record: Stored, where: str) -> Iterator[Bad]:
        """Keep one answer; the second one to a question makes both of no use, since nobody knows which counts."""
        name, sample = str(record.id), record.sample or 0
        while record.repeated and record.sample is None and (name, sample) in self._lines:
            sample += 1
        self._numbered = self._numbered and type(record.id) is int
        if (name, sample) in self._bad:
            return
        if first := self._lines.pop((name, sample), None):
            why = f"a second answer to {name}, sample {sample}: the first is in {first[1]}"
            self._bad[name, sample] = f"{where}: {why}"
            yield Bad(where, f'{why}; delete one, or number them with "sample": 0, 1, ...', record.id, sample)
            return
        self._lines[name, sample] = self._read.seek(0, 2), where
        self._read.write(jsonlines.dumps({"turns": [response_record(turn) for turn in record.turns]}).encode() + b"\n")

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        """The stored answers in the order of the tasks. `sampling` plays no part."""
        by_index = self._by_index(tasks)
        self._warn_of_others({self._asked(task, by_index) for task in tasks})
        for position, task in enumerate(tasks):
            asked = self._asked(task, by_index)
            if asked in self._lines:
                yield position, self._answer(task, *self._lines[asked])
            else:
                error = self._bad.get(asked, "no stored answer")
                yield position, Response("", finish_reason="error", error=error)

    def _asked(self, task: Task, by_index: bool) -> tuple[str, int]:
        return str(task.index) if by_index else task.instance_id, task.sample

    def _by_index(self, tasks: Sequence[Task]) -> bool:
        """Whether the file numbers the instances as they are asked. Raises T2TError if they may be those of another set."""
        names = {name for name, _ in (*self._lines, *self._bad)}
        if not self._numbered or any(task.instance_id in names for task in tasks):
            return False
        indices = {task.index for task in tasks}
        count = max(indices, default=-1) + 1
        resumed = len(indices) < count
        if names == {str(n) for n in range(len(names))} and (resumed or len(names) <= count):
            first = f", {tasks[0].instance_id}" if not tasks[0].index else ""
            warnings.warn(f"{self._path}: {_NUMBERED}; number 0 is taken for the first that is asked{first}", stacklevel=3)
            return True
        raise T2TError(
            _NUMBERED,
            where=str(self._path),
            cause=f"{len(names)} of them, and {count} instances are asked: it is not known which is which",
            next=f'write the instance\'s name into each line, e.g. "instance_id": "{tasks[0].instance_id}"',
        )

    def _answer(self, task: Task, offset: int, where: str) -> Response:
        self._read.seek(offset)
        turns = [read_response(turn, where) for turn in jsonlines.loads(self._read.readline())["turns"]]
        if task.turns == 1:
            return turns[-1]  # of a transcript in which somebody asked on
        if task.turn < len(turns):
            return turns[task.turn]
        return Response("", finish_reason="error", error=f"no stored answer in turn {task.turn + 1}: it went another way")

    def _warn_of_others(self, asked: set[tuple[str, int]]) -> None:
        others = [(where, *stored) for stored, (_, where) in self._lines.items() if stored not in asked]
        if others:
            where, id, sample = others[0]
            many = f"{len(others)} of {len(self._lines)} answers are not asked for now"
            warnings.warn(f"{where}: {many}, first {ascii(id)[:80]}, sample {sample}", stacklevel=3)

    def describe(self) -> Mapping[str, Any]:
        return {
            "deterministic": True,
            "batch_size": None,
            "policy": "answers",
            "file": self._path.name,
            "sha256": self._sha256,
        }
