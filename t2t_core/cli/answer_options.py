"""The options with which a testbed's `generate` also asks a policy for answers to learn from, and the code that acts on
them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from t2t_core.errors import T2TError
from t2t_core.evaluation import demonstrations
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Sampling
from t2t_core.run.progress import Reporter
from t2t_core.store import instance_files
from t2t_core.text import one_line

_OPTIONS = (
    click.option("--answers-from", metavar="POLICY", help="Also ask this policy (see t2t plugins) and write its good answers."),
    click.option(
        "--instances",
        type=click.Path(path_type=Path),
        help="With --answers-from: ask about the instances in this file instead of drawing new ones.",
    ),  # fmt: skip
    click.option(
        "--keep", type=click.Choice(demonstrations.KEEP), default="valid", show_default=True, help="Which answers to write."
    ),  # fmt: skip
    click.option("--samples", type=click.IntRange(1, 10_000), default=1, show_default=True, help="Answers per instance."),
    click.option(
        "--temperature", type=float, default=0.0, show_default=True, help="Sampling temperature of the answers; 0 is greedy."
    ),
    click.option("--max-tokens", type=click.IntRange(1), default=4096, show_default=True, help="Most tokens of one answer."),
    click.option("--prompt-format", default="", help="The wording of the question.  [default: the policy's own]"),
    click.option("--max-usd", type=float, help="Stop asking once this much is spent."),
)


def answer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets their values by keyword."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_instances(testbed: AnyTestbed, given: Mapping[str, Any]) -> Sequence[Any] | None:
    """The instances of --instances, None without that option. Raises T2TError if options are given that have no effect here."""
    if given["answers_from"] is None:
        context = click.get_current_context()
        table = context.params.get("form", "jsonl") != "jsonl"  # which holds the questions
        for name in given:
            if name == "prompt_format" and table:
                continue
            if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
                raise T2TError(f"--{name.replace('_', '-')} only applies to answers", next="add --answers-from POLICY")
    return instance_files.read_instances(testbed, given["instances"]) if given["instances"] else None


def ask(testbed: AnyTestbed, instances: Sequence[Any], given: Mapping[str, Any], seed: int, out: Path) -> None:
    """Ask the policy of --answers-from and report the outcome."""
    for name in ("temperature", "max_usd"):
        if given[name] is not None and not (math.isfinite(given[name]) and given[name] >= 0):
            raise T2TError(f"--{name.replace('_', '-')} must be a number of at least 0")
    request = demonstrations.Request(
        given["answers_from"],
        given["keep"],
        given["samples"],
        Sampling(given["temperature"], given["max_tokens"]),
        given["prompt_format"],
        seed,
        given["max_usd"],
    )
    say = Reporter(lambda line: click.echo(line, err=True))
    say.stage("ask")
    counts = demonstrations.collect(testbed, instances, request, out, say.answers)
    for note in counts.notes:
        say.note(note)
    asked = f"{counts.questions} questions, {counts.asked} asked now, {counts.unanswered} errors"
    click.echo(f"{asked}; {counts.valid} valid, {counts.optimal} optimal; {counts.kept} kept in {out}", err=True)
    if counts.unanswered == counts.questions:
        raise T2TError(
            f"no question to {given['answers_from']} was answered",
            cause=f"the last error: {one_line(counts.last_error)}" if counts.last_error else "",
            next="fix that and repeat the command: it asks only for the missing answers",
        )
    if counts.stopped:
        say.note(f"{counts.stopped}; repeat the command with a larger --max-usd to continue")
    elif counts.unanswered:
        say.note(f"the last error: {one_line(counts.last_error)}; repeat the command to ask for these answers again")
