"""`t2t show`: one instance, with an answer's or a solution's paths, as text, SVG, GIF or HTML animation."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from t2t_core.errors import T2TError
from t2t_core.records import Verdict
from t2t_core.store import folders, jsonlines
from t2t_core.text import plain_lines

if TYPE_CHECKING:
    from t2t_envs.frozen_lake.instance import Cell, Instance

    Paths = Mapping[int, Sequence[Cell]] | Sequence[Sequence[Cell]]

MAX_ANSWER = 16 << 20  # bytes; our choice
BINARY = ("gif",)


@click.command(no_args_is_help=True)
@click.argument("source", metavar="[FILE.jsonl[#ID]]", required=False)
@click.option("--set", "set_name", help="Instead of a file: a frozen set, e.g. 3agents.")
@click.option("--id", "identity", help="Which instance; without it, the first.")
@click.option("--answer", type=click.Path(path_type=Path, allow_dash=True),
              help="Show this answer: a text file, - for standard input, or a bench's answers.jsonl.")  # fmt: skip
@click.option("--solution", is_flag=True, help="Show an optimal solution.")
@click.option("--format", "form", type=click.Choice(["terminal", "svg", "gif", "html"]), default="terminal", show_default=True)
@click.option("--still", is_flag=True, help="SVG: whole paths in one picture, where it would be an animation.")
@click.option("--step", type=click.IntRange(0), help="Terminal and SVG: the moment to show.")
@click.option("--out", type=click.Path(path_type=Path), help="The file to write; without it, standard output.")
def show(
    source: str | None,
    set_name: str | None,
    identity: str | None,
    answer: Path | None,
    solution: bool,
    form: str,
    still: bool,
    step: int | None,
    out: Path | None,
) -> None:
    """Show an instance of a JSON Lines file or of a frozen set, alone or with an answer or an optimal solution."""
    if answer is not None and solution:
        raise T2TError("--answer and --solution exclude each other")
    instance = _instance(source, set_name, identity)
    shown = Shown(instance)
    if answer is not None:
        shown = _answered(instance, answer)
    elif solution:
        from t2t_envs.frozen_lake import solve, verify_paths

        paths = solve(instance).paths
        shown = Shown(instance, paths, verify_paths(instance, paths))
    _write(shown.draw(form, still, step, out is None), form, out)


@dataclass(frozen=True)
class Shown:
    """What is drawn: an instance, perhaps paths and their verdict, and of a recorded answer what came with it (title, text)."""

    instance: Instance
    paths: Paths | None = None
    verdict: Verdict | None = None
    notes: Sequence[tuple[str, str]] = ()

    def draw(self, form: str, still: bool, step: int | None, to_terminal: bool) -> str | bytes:
        from t2t_envs.frozen_lake import render_ansi, render_gif, render_html, render_svg

        if form == "svg":
            return render_svg(self.instance, self.paths, step, animate=not still and step is None) + "\n"
        if form == "gif":
            return render_gif(self.instance, self.paths)
        if form == "html":
            return render_html(self.instance, self.paths, self.verdict, notes=self.notes)
        color = to_terminal and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        return self._heading() + render_ansi(self.instance, self.paths, step, color) + self._verdict()

    def _heading(self) -> str:
        i = self.instance
        known = {"makespan": i.optimal_makespan, "sum of costs": i.optimal_sum_of_costs, "requires wait": i.requires_wait}
        labels = ", ".join(f"{name} {str(value).lower()}" for name, value in known.items() if value is not None)
        agents = "1 agent" if i.num_agents == 1 else f"{i.num_agents} agents"
        facts = f"{agents}, {i.size}x{i.size}, {len(i.holes)} holes, objective {i.objective}"
        return f"{i.id or 'instance'}: {facts}\n" + (f"stored optima: {labels}\n" if labels else "") + "\n"

    def _verdict(self) -> str:
        verdict = self.verdict
        if verdict is None:
            return ""
        lines = [f"{'pass' if passed else 'FAIL'}  {name}{_why(verdict, name)}" for name, passed in verdict.checks.items()]
        if verdict.valid:
            optimal = {True: "optimal", False: "not optimal", None: "no optimum stored"}[verdict.optimal]
            costs = ", ".join(f"{name.replace('_', ' ')} {cost}" for name, cost in verdict.costs.items())
            lines.append(f"valid, {optimal}; {costs}")
        lines += [fault.message for name, fault in verdict.faults.items() if name not in verdict.checks]
        lines += [f"\n{title}:\n{text}" for title, text in self.notes]
        return plain_lines("\n" + "\n".join(lines) + "\n")


def _why(verdict: Verdict, check: str) -> str:
    fault = verdict.faults.get(check)
    return f": {fault.message}" if fault else ""


def _instance(source: str | None, set_name: str | None, identity: str | None) -> Instance:
    if (source is None) == (set_name is None):
        raise T2TError("name a file or a frozen set", next="t2t show instances.jsonl#ID, or t2t show --set 3agents --id ID")
    if set_name is not None:
        from t2t_envs.frozen_lake import sets

        instances: list[Instance] = list(sets.load_set(set_name).instances)
        where = f"set {set_name}"
    else:
        from t2t_envs.frozen_lake import read_instances

        path, _, fragment = str(source).partition("#")
        identity = identity or fragment or None
        instances, where = read_instances(path), path
    if not instances:
        raise T2TError("there is no instance", where=where)
    if identity is None:
        if len(instances) > 1:
            click.echo(f"the first of {len(instances)} instances; --id names another", err=True)
        return instances[0]
    for instance in instances:
        if instance.id == identity:
            return instance
    raise T2TError(f"there is no instance {ascii(identity)[:80]}", where=where, cause=f"the first is called {instances[0].id!r}")


def _answered(instance: Instance, path: Path) -> Shown:
    from t2t_envs.frozen_lake import parse_answer, verify

    text, notes = _recorded(instance, path) if path.suffix == ".jsonl" else (_text(path), [])
    found = parse_answer(text) or {}
    paths = {agent: cells for agent, cells in found.items() if isinstance(agent, int)}
    return Shown(instance, paths, verify(instance, text), notes)


def _text(path: Path) -> str:
    if str(path) != "-":
        return folders.read_text(path, MAX_ANSWER)
    data = sys.stdin.buffer.read(MAX_ANSWER + 1)
    if len(data) > MAX_ANSWER:
        raise T2TError(f"the answer is longer than {MAX_ANSWER} bytes", where="standard input")
    return data.decode(errors="replace")


_NOTES = {"error": "what came instead of an answer", "detail": "what the server said beside it", "model": "the model that served"}
_NOTES |= {"reasoning": "the model's reasoning"}


def _recorded(instance: Instance, path: Path) -> tuple[str, list[tuple[str, str]]]:
    """The last recorded text for this instance in a file of answers, and what came with it."""
    record: Mapping[str, object] | None = None
    for line in jsonlines.read(path, torn=[]):
        if line.value.get("instance") == instance.id and isinstance(line.value.get("text"), str):
            record = line.value
    if record is None:
        raise T2TError(f"there is no answer to the instance {instance.id!r}", where=str(path), next="--id names another instance")
    notes = [(title, str(record[name])) for name, title in _NOTES.items() if isinstance(record.get(name), str)]
    return str(record["text"]), notes


def _write(drawing: str | bytes, form: str, out: Path | None) -> None:
    if out is not None:
        folders.write_atomic(out, drawing)
        click.echo(f"wrote {out}", err=True)
    elif form in BINARY and sys.stdout.isatty():
        raise T2TError("a GIF is not for the terminal", next=f"--out picture.{form}")
    else:
        click.echo(drawing, nl=False, color=True)
