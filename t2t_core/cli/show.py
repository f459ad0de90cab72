"""`t2t show`: an instance with its opening and, given an answer, the conversation and its verdict."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from t2t_core.cli.by_testbed import WithForms, testbed_option
from t2t_core.conversation import judge, opening, replies, said
from t2t_core.errors import T2TError
from t2t_core.evaluation.lines import read_response, read_turns
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Message, Verdict
from t2t_core.store import folders, instance_files, jsonlines
from t2t_core.text import plain_lines

MAX_ANSWER = 16 << 20  # bytes; our choice
_NOTES = {"error": "what came instead of an answer", "detail": "what the server said beside it", "model": "the model that served"}
_NOTES |= {"reasoning": "the model's reasoning"}
SOURCE = click.argument("source", metavar="[FILE.jsonl[#ID]]", required=False)
SET = click.option("--set", "set_name", metavar="NAME", help="Show an instance of this set of the testbed instead of a file's.")
IDENTITY = click.option("--id", "identity", help="The instance to show (default: the first).")
OUT = click.option("--out", type=click.Path(path_type=Path), help="The file to write (default: standard output).")


@click.command(cls=WithForms, no_args_is_help=True)
@testbed_option
@SOURCE
@SET
@IDENTITY
@click.option("--answer", "answers", multiple=True, type=click.Path(path_type=Path, allow_dash=True),
              help="What the policy says: a text file per turn, - for standard input, or a bench's answers.jsonl.")  # fmt: skip
@click.option("--prompt-format", default="", help="The wording of the question.  [default: the testbed's first]")
@OUT
def show(
    testbed: str,
    source: str | None,
    set_name: str | None,
    identity: str | None,
    answers: tuple[Path, ...],
    prompt_format: str,
    out: Path | None,
) -> None:
    """Show an instance of a JSON Lines file or a set: its opening and, given answers, the conversation and its verdict."""
    world = installed().testbeds.make(testbed)
    form = prompt_format or world.prompt_formats[0]
    if form not in world.prompt_formats:
        raise T2TError(f"there is no prompt format {ascii(form)[:60]}", cause=f"known: {', '.join(world.prompt_formats)}")
    instance = chosen_instance(world, source, set_name, identity)
    place = world.place(instance)
    parts = [f"{instance.id}: {world.title}; {place.table}, {place.column}"]
    parts += [_said(message) for message in opening(world, instance, form)]
    if answers:
        records = [recorded_answer(instance, p) if p.suffix == ".jsonl" else {"text": read_answer(p)} for p in answers]
        messages = _held(world, instance, [message for record in records for message in _spoken(record)], form)
        parts += [_said(message) for message in messages]
        parts.append("\n".join(verdict_lines(judge(world, instance, messages, form))))
        parts += [f"{title}:\n{text}" for record in records for title, text in notes_of(record)]
    text = plain_lines("\n\n".join(parts)) + "\n"
    if out is None:
        click.echo(text, nl=False)
    else:
        folders.write_atomic(out, text.encode("utf-8", "backslashreplace"))
        click.echo(f"wrote {out}", err=True)


def chosen_instance(testbed: AnyTestbed, source: str | None, set_name: str | None, identity: str | None) -> Any:
    """The instance that `FILE#ID`, or a set's name and --id, name; the first one without an id."""
    if (source is None) == (set_name is None):
        example = next(iter(testbed.protected_sets()), "NAME")
        raise T2TError("name a file or a set", next=f"t2t show instances.jsonl#ID, or t2t show --set {example} --id ID")
    if set_name is not None:
        instances, where = list(testbed.load_set(set_name).instances), f"set {set_name}"
    else:
        path, _, fragment = str(source).partition("#")
        identity = identity or fragment or None
        instances, where = instance_files.read_instances(testbed, Path(path)), path
    if identity is None:
        if len(instances) > 1:
            click.echo(f"the first of {len(instances)} instances; choose another with --id", err=True)
        return instances[0]
    for instance in instances:
        if instance.id == identity:
            return instance
    raise T2TError(
        f"no instance has the id {ascii(identity)[:80]}", where=where, cause=f"the first is called {instances[0].id!r}"
    )


def read_answer(path: Path) -> str:
    """The text of an answer, from a file or, for a dash, from standard input."""
    if str(path) != "-":
        return folders.read_text(path, MAX_ANSWER)
    data = sys.stdin.buffer.read(MAX_ANSWER + 1)
    if len(data) > MAX_ANSWER:
        raise T2TError(f"the answer is longer than {MAX_ANSWER} bytes", where="standard input")
    return data.decode(errors="replace")


def recorded_answer(instance: Any, path: Path) -> dict[str, Any]:
    """The last recorded answer to this instance in a file of answers."""
    record: dict[str, Any] | None = None
    for line in jsonlines.read(path, torn=[]):
        if line.value.get("instance") == instance.id and isinstance(line.value.get("text"), str):
            record = line.value
    if record is None:
        raise T2TError(f"the instance {instance.id!r} has no answer", where=str(path), next="choose another instance with --id")
    return record


def notes_of(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What came with a recorded answer: (title, text)."""
    return [(title, record[name]) for name, title in _NOTES.items() if isinstance(record.get(name), str)]


def verdict_lines(verdict: Verdict) -> list[str]:
    """A verdict for people: a line for each check, why it failed, and how a valid answer compares with the optimum."""
    lines = [f"{'pass' if passed else 'FAIL'}  {name}{_why(verdict, name)}" for name, passed in verdict.checks.items()]
    if verdict.valid:
        optimal = {True: "optimal", False: "not optimal", None: "no optimum stored"}[verdict.optimal]
        costs = ", ".join(f"{name.replace('_', ' ')} {cost}" for name, cost in verdict.costs.items())
        lines.append(f"valid, {optimal}" + (f"; {costs}" if costs else ""))
    return lines + [fault.message for name, fault in verdict.faults.items() if name not in verdict.checks]


def _why(verdict: Verdict, check: str) -> str:
    fault = verdict.faults.get(check)
    return f": {fault.message}" if fault else ""


def _spoken(record: Mapping[str, Any]) -> list[Message]:
    """What the policy says in a recorded answer, turn by turn."""
    if "turns" in record:
        return [said(response) for response, _ in read_turns(record, "--answer")]
    return [said(read_response(record, "--answer"))]


def _held(testbed: AnyTestbed, instance: Any, spoken: Sequence[Message], form: str) -> tuple[Message, ...]:
    """Everything said after the opening. Raises T2TError if the policy speaks again after the end."""
    messages: tuple[Message, ...] = ()
    for turn, message in enumerate(spoken, 1):
        messages = (*messages, message)
        answer = replies(testbed, instance, messages, form)
        if not answer and turn < len(spoken):
            raise T2TError(f"the conversation is over after {turn} of {len(spoken)} answers", next="give fewer --answer options")
        messages = (*messages, *answer)
    return messages


def _said(message: Message) -> str:
    calls = "".join(f"\n[calls {call.name} {call.arguments}]" for call in message.tool_calls)
    return f"--- {message.role}\n{message.content}{calls}"
