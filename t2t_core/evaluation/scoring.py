"""Answers on disk -> answers with verdicts: scored afresh from their raw text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from t2t_core.conversation import said
from t2t_core.errors import T2TError
from t2t_core.evaluation.lines import read_response, read_turns, read_verdict, verdict_record
from t2t_core.evaluation.questions import Evaluation
from t2t_core.records import Message, Response, Scored
from t2t_core.store import jsonlines
from t2t_core.store.paths import SafePath


def scored(evaluation: Evaluation, path: Path | SafePath, as_recorded: bool = False) -> Iterator[Scored]:
    """The answers of an export, scored afresh from their raw text, in instance order. `as_recorded`: where the verdict that
    stands there is another, that one counts (another version of the testbed's reader gave it).

    Raises T2TError if the file does not hold exactly the evaluation's questions in their order.
    """
    lines = jsonlines.read(path)
    for index in range(len(evaluation)):
        instance, sample = evaluation.instance(index), index % evaluation.samples
        line = next(lines, None)
        where = f"{path}, line {line.number}" if line else str(path)
        asked, there = (instance.id, sample), line and (line.value.get("instance"), line.value.get("sample"))
        if line is None or there != asked:
            raise T2TError(f"the answer to {asked} is expected, not {ascii(there)[:120]}", where=where)
        response, messages = read_conversation(evaluation, index, line.value, where)
        verdict = evaluation.verdict(index, messages)
        if as_recorded and line.value.get("verdict") != verdict_record(verdict):
            verdict = read_verdict(line.value, where)
        yield Scored(instance, sample, response, verdict, messages)
    extra = next(lines, None)
    if extra is not None:
        raise T2TError("there are more answers than questions", where=f"{path}, line {extra.number}")


def read_conversation(
    evaluation: Evaluation, index: int, record: Mapping[str, Any], where: str
) -> tuple[Response, tuple[Message, ...]]:
    """The response in a line of an export, and all that was said after the opening."""
    response = read_response(record, where)
    if evaluation.testbed.turns == 1:
        return response, (said(response),)
    turns = read_turns(record, where)
    return response, evaluation.said_so_far(index, turns, where)
