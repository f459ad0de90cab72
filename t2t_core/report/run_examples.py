"""Answers of a run's last validation as examples on its page: of every group one that is valid, and one for each way of
failing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_core.conversation import judge, said
from t2t_core.errors import T2TError
from t2t_core.evaluation.lines import read_response, read_turns, read_verdict
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Message, Scored
from t2t_core.registry import Spec
from t2t_core.report.document import Block, Paragraph, Section
from t2t_core.report.examples import example
from t2t_core.run.experiment import Experiment
from t2t_core.run.round_files import RoundFiles
from t2t_core.store import jsonlines

_FAILURES = 3  # ways of failing shown of a group


def examples(rounds: Sequence[RoundFiles], experiment: Experiment) -> Iterator[Section]:
    """A section of examples; none if nothing was validated, or the testbed or its set is not here."""
    if not rounds or not rounds[-1].validation.exists() or Spec.parse(experiment.testbed).name not in installed().testbeds:
        return
    testbed, files, name = installed().testbeds.make(experiment.testbed), rounds[-1], experiment.validation.get("set")
    try:
        instances = {i.id: i for i in testbed.load_set(str(name)).instances}
    except T2TError:
        return
    form = str(experiment.validation.get("prompt_format") or "")
    by_failure: dict[tuple[str, str | None], tuple[Scored, int]] = {}
    for line in jsonlines.read(files.validation, []):
        instance = instances.get(str(line.value.get("instance")))
        if instance is None or line.value.get("error") is not None:
            continue
        answer = _scored(testbed, instance, line.value, f"{files.validation}, line {line.number}")
        group = testbed.place(instance).group
        failures = [failure for of, failure in by_failure if of == group and failure is not None]
        if answer.verdict.failure is None or len(failures) < _FAILURES:
            by_failure.setdefault((group, answer.verdict.failure), (answer, line.number))
    blocks: list[Block] = []
    for group in testbed.groups:
        for (_, _), (answer, number) in sorted(((k, v) for k, v in by_failure.items() if k[0] == group), key=lambda kv: kv[1][1]):
            where = f"line {number} of {files.validation.name}"
            blocks.append(example(testbed, answer, form or _form(testbed, answer), 1, where))
    if blocks:
        told = "Of every group the first valid answer, and the first of each way of failing; open one to see it move."
        yield Section(f"Examples from round {files.index}", [Paragraph(told, "soft"), *blocks])


def _scored(testbed: AnyTestbed, instance: Any, record: Mapping[str, Any], where: str) -> Scored:
    """The answer in a line, with the verdict that stands there and, where they follow from the text, its reasons."""
    response, verdict = read_response(record, where), read_verdict(record, where)
    messages: list[Message] = []
    for turn, replies in read_turns(record, where) if testbed.turns > 1 else ():
        messages += [said(turn), *replies]
    answer = Scored(instance, 0, response, verdict, tuple(messages) if testbed.turns > 1 else (said(response),))
    fresh = judge(testbed, instance, answer.messages, _form(testbed, answer))
    return Scored(instance, 0, response, fresh, answer.messages) if fresh.checks == verdict.checks else answer


def _form(testbed: AnyTestbed, answer: Scored) -> str:
    """The prompt format in which the answer has the verdict that is recorded: a run does not say which its policy was taught."""
    formats = testbed.prompt_formats if testbed.turns > 1 else ()
    forms = (form for form in formats if judge(testbed, answer.instance, answer.messages, form).checks == answer.verdict.checks)
    return next(forms, testbed.prompt_formats[0])
