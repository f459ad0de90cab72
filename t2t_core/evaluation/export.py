"""The export of a row: every answer in instance order, with the testbed's verdict and nothing that depends on when it came.

Each line follows from the log. Lines are made while answers come, where a machine that waits for a server has time for them,
so that the end of an evaluation has little to do but copy them.
"""

from __future__ import annotations

from array import array
from contextlib import suppress
from typing import Any

from t2t_core.conversation import said
from t2t_core.evaluation.answers import NOT_ASKED, AnswerIndex, AnswerLog
from t2t_core.evaluation.lines import response_record, verdict_record
from t2t_core.evaluation.questions import Evaluation
from t2t_core.store import folders, jsonlines
from t2t_core.store.paths import SafePath


class Drafts:
    """Lines of an export that were made ahead, in a file without a name. They hold while the log is what was written to it."""

    def __init__(self, evaluation: Evaluation, log: AnswerLog) -> None:
        self._evaluation, self._log = evaluation, log
        self._file = folders.scratch()
        self._offsets, self._lengths = (array("q", [0]) * len(evaluation) for _ in range(2))

    def add(self, index: int) -> None:
        """Make the line of an answer that has just been recorded. What goes wrong is left to the export, which tells it."""
        if not self._log.answered(index):
            return
        with suppress(Exception):
            line = _line(self._evaluation, self._log, index)
            offset = self._file.tell()
            self._file.write(line)
            self._offsets[index], self._lengths[index] = offset, len(line)

    def hold(self) -> bool:
        """Whether the lines are those that the log on the disk would give."""
        return self._log.undisturbed()

    def line(self, index: int) -> bytes:
        """The line of that question; empty if none was made, or where the temporary folder is full: the log has it too."""
        line = b""
        with suppress(OSError):
            self._file.seek(self._offsets[index])
            line = self._file.read(self._lengths[index])
        return line if len(line) == self._lengths[index] else b""

    def close(self) -> None:
        with suppress(OSError):  # what could not be written is of no use either
            self._file.close()


def export(evaluation: Evaluation, log: AnswerIndex, path: SafePath, drafts: Drafts | None = None) -> None:
    """Write every answer in instance order, with its verdict; a question never asked is there as an error (NOT_ASKED).

    Raises:
        T2TError: the log was changed by somebody else meanwhile, a testbed failed at a verdict, or the disk refused.
    """
    made = drafts.line if drafts is not None and drafts.hold() else lambda index: b""
    with folders.replacing(path) as file:
        for index in range(len(evaluation)):
            file.write(made(index) or _line(evaluation, log, index))


def _line(evaluation: Evaluation, log: AnswerIndex, index: int) -> bytes:
    return jsonlines.dumps(_record(evaluation, log, index)).encode() + b"\n"


def _record(evaluation: Evaluation, log: AnswerIndex, index: int) -> dict[str, Any]:
    asked = {"instance": evaluation.instance(index).id, "sample": index % evaluation.samples}
    response = log.response(index) or NOT_ASKED
    if evaluation.testbed.turns == 1:
        return {**asked, **response_record(response), "verdict": verdict_record(evaluation.verdict(index, (said(response),)))}
    turns = log.turns(index)
    messages = evaluation.said_so_far(index, turns, str(log.path))
    held = [{**response_record(turn), "replies": [m.to_dict() for m in answer]} for turn, answer in turns]
    verdict = verdict_record(evaluation.verdict(index, messages))
    return {**asked, **response_record(response), "turns": held, "verdict": verdict}
