"""Stored completions as a policy: `answers:FILE` replays anybody's JSON Lines."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import read_response, read_turns
from t2t_core.records import Response, Sampling, Task
from t2t_core.settings import read_settings
from t2t_core.store import folders, jsonlines, paths

_ID = ("id", "instance_id", "instance")
_TEXT = ("text", "completion", "response", "answer")
_KEPT = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "finish_reason", "error", "cost_usd")
_BESIDE = {"model": str, "reasoning": str, "detail": str, "lasting": bool, "earlier": list}  # as a bench records them


class StoredAnswers:
    """One JSON object per line, each an answer to one instance:

        {"id": "3agents_5x5_0001", "text": "<answer>...</answer>"}

    Fields, the first present of each: `id`, `instance_id` or `instance`; `text`, `completion`, `response` or `answer`.
    Optional: `sample` (0 where absent), `tokens` or `completion_tokens`, `prompt_tokens`, `reasoning_tokens`,
    `finish_reason`, `error`, `cost_usd`, `model`, `reasoning`. Other fields are ignored, so the `answers.jsonl` of a bench
    folder is such a file; of a conversation it has `turns`, which are said one after the other.

    Two answers to one (id, sample), and a line that cannot be read, are an error with file and line. A torn last line and
    answers to instances that were not asked are warned of. An instance without a stored answer gets the error "no stored
    answer". Texts stay on disk.
    """

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        read_settings(settings, "policy answers", {})
        if not argument:
            raise T2TError("which file holds the answers?", where="policy answers", next="write answers:FILE.jsonl")
        self._path = Path(argument)
        self._lines: dict[tuple[str, int], tuple[int, int]] = {}  # (id, sample) -> (byte offset, line number)
        torn: list[jsonlines.Torn] = []
        for line in jsonlines.read(self._path, torn):
            asked = self._asked(line)
            if asked in self._lines:
                raise T2TError(
                    f"a second answer to {asked[0]}, sample {asked[1]}",
                    where=f"{self._path}, line {line.number}",
                    cause=f"the first is in line {self._lines[asked][1]}",
                    next='delete one, or number the answers to one instance with "sample": 0, 1, ...',
                )
            if "turns" in line.value:
                self._turn(line.value, line.number, 0)
            self._response(line.value, line.number)  # checked now, so that a bad line is found before the first answer
            self._lines[asked] = line.offset, line.number
        for piece in torn:
            warnings.warn(str(piece), stacklevel=2)
        self._sha256 = folders.sha256(self._path)

    def _asked(self, line: jsonlines.Line) -> tuple[str, int]:
        id, sample = _first(line.value, _ID), line.value.get("sample", 0)
        if not isinstance(id, str) or not id or type(sample) is not int or sample < 0:
            raise T2TError(
                "the line does not say which instance it answers",
                where=f"{self._path}, line {line.number}",
                cause=f"one of {', '.join(_ID)} must be a text, and sample, where present, a number from 0",
            )
        return id, sample

    def _turn(self, record: Mapping[str, Any], number: int, turn: int) -> Response:
        """What was said in that turn of a stored conversation."""
        turns = read_turns(record["turns"], f"{self._path}, line {number}")
        if turn < len(turns):
            return turns[turn][0]
        return Response("", finish_reason="error", error=f"no stored answer in turn {turn + 1}: it went another way")

    def _response(self, record: Mapping[str, Any], number: int) -> Response:
        kept = {name: record[name] for name in _KEPT if record.get(name) is not None}
        kept |= {name: record[name] for name, kind in _BESIDE.items() if isinstance(record.get(name), kind)}
        if "tokens" in record:
            kept.setdefault("completion_tokens", record["tokens"])
        text = _first(record, _TEXT)
        if text is None and "error" in kept:
            text = ""
        where = f"{self._path}, line {number}"
        if not isinstance(text, str):
            raise T2TError("the line has no answer", where=where, cause=f"one of {', '.join(_TEXT)} must be a text")
        if "error" in kept and kept.get("finish_reason") != "aborted":
            kept["finish_reason"] = "error"
        if text and kept.get("completion_tokens") == 0:
            del kept["completion_tokens"]  # a text is never without tokens: the count was not filled in
        return read_response({"text": text, **kept}, where)

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        """The stored answers in the order of the tasks. `sampling` plays no part."""
        self._warn_of_others({(task.instance_id, task.sample) for task in tasks})
        with paths.open_plain(self._path) as file:
            for position, task in enumerate(tasks):
                found = self._lines.get((task.instance_id, task.sample))
                if found is None:
                    yield position, Response("", finish_reason="error", error="no stored answer")
                    continue
                file.seek(found[0])
                record = jsonlines.loads(file.readline())
                yield position, self._turn(record, found[1], task.turn) if "turns" in record else self._response(record, found[1])

    def _warn_of_others(self, asked: set[tuple[str, int]]) -> None:
        others = [(number, *stored) for stored, (_, number) in self._lines.items() if stored not in asked]
        if others:
            number, id, sample = others[0]
            many = f"{len(others)} of {len(self._lines)} answers"
            what = f"{many} are not asked for now, the first in line {number}: {ascii(id)[:80]}, sample {sample}"
            warnings.warn(f"{self._path}: {what}", stacklevel=3)

    def describe(self) -> Mapping[str, Any]:
        return {
            "deterministic": True,
            "batch_size": None,
            "policy": "answers",
            "file": self._path.name,
            "sha256": self._sha256,
        }


def _first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)
