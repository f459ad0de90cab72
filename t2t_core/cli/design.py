"""`t2t design`: one design step on finished validations, without training."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from t2t_core.cells import numbers
from t2t_core.closing import close
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Brief
from t2t_core.loop.design_step import decide, projection_record, propose, step_record
from t2t_core.loop.rounds import Loop
from t2t_core.records import Knob
from t2t_core.report import terminal
from t2t_core.report.document import Column, Document, Items, Paragraph, Row, Section, Table, spaced
from t2t_core.report.knobs import knob_figure
from t2t_core.report.summary import changed_values
from t2t_core.run.progress import Reporter
from t2t_core.run.round_files import PROPOSED, RoundFiles, finished_rounds, open_run
from t2t_core.store import folders, schema
from t2t_core.text import plain_lines


@click.command()
@click.option("--run", "folders", multiple=True, required=True, type=click.Path(path_type=Path), help="Run folder (repeatable).")
@click.option("--designer", "designers", multiple=True, help="The designer (repeatable; default: the run's own).")
@click.option("--context", help="A context other than the run's: V1 .. V6, or modules.")
@click.option("--round", "round_index", type=click.IntRange(0), help="After which round (default: every finished one).")
@click.option("--show-context", is_flag=True, help="Print exactly what the designer sees; the board goes to standard error.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Also write every step there as JSON.")
def design(
    folders: tuple[Path, ...],
    designers: tuple[str, ...],
    context: str | None,
    round_index: int | None,
    show_context: bool,
    out: Path | None,
) -> None:
    """One design step on finished validations, without training.

    With several designers, runs or rounds, print a board of designers: who would change what, given the same facts.
    """
    steps: list[dict[str, Any]] = []
    knobs: dict[str, Knob] = {}
    for folder in folders:
        for spec in designers or (open_run(folder)[1].designer,):
            loop = _loop(folder, spec, context)
            knobs |= {knob.name: knob for knob in loop.testbed.knobs(loop.request)}
            for files in _rounds(folder, round_index):
                steps.append(_step(loop, files, spec, show_context))
                _write(out, steps[-1])
            loop.engines.close()
            close(loop.designer)
    # With --show-context, standard output holds what the designers see and nothing else.
    terminal.show(_board(steps, knobs), terminal.console(error=show_context))


def _loop(folder: Path, designer: str, context: str | None) -> Loop:
    _, experiment = open_run(folder)
    experiment = replace(experiment, designer=designer, context=context or experiment.context)
    return Loop(experiment, folder, Reporter())


def _rounds(folder: Path, round_index: int | None) -> list[RoundFiles]:
    finished = list(finished_rounds(folder))
    rounds = [files for files in finished if round_index in (None, files.index)]
    if not rounds:
        what = "no round is finished" if not finished else f"the finished rounds are 0..{len(finished) - 1}"
        raise T2TError("there is nothing to design from", where=str(folder), cause=what)
    return rounds


def _step(loop: Loop, files: RoundFiles, spec: str, show_context: bool) -> dict[str, Any]:
    brief: Brief = loop.brief(files)
    step = propose(loop.designer, brief, loop.experiment.design_seconds)
    if show_context:  # the heading goes to standard error, so that standard output is exactly what the designer sees
        click.echo(plain_lines(f"# what {spec} sees after round {files.index} of {files.run}"), err=True)
        seen = step.proposal.prompt if step.proposal.prompt is not None else brief.text
        click.echo(plain_lines(seen) if sys.stdout.isatty() else seen.encode("utf-8", "backslashreplace"), nl=False)
        click.echo("" if seen.endswith("\n") else "\n", err=True, nl=False)
    decision = decide(loop.testbed, step, brief.previous, brief.request)
    return {
        "run": str(files.run),
        "round": files.index,
        "context": loop.experiment.context,
        "previous": brief.previous.to_dict(),
        "prompt": step.proposal.prompt,
        **schema.plain(step_record(spec, decision.step)),
        "projection": schema.plain(projection_record(decision)),
    }


def _write(out: Path | None, step: dict[str, Any]) -> None:
    if out is None:
        return
    title = f"{Path(step['run']).name}-{step['round']}-{step['designer']}"
    name = "".join(c if c.isalnum() or c in "-._" else "_" for c in title)
    folders.write_json(out / f"{name[:150]}.json", step)


def _board(steps: list[dict[str, Any]], knobs: Mapping[str, Knob]) -> Document:
    """A row for each step, then each proposal after Project with a row for each knob."""
    facts, proposed = [], []
    several = len({step["run"] for step in steps}) > 1
    for step in steps:
        before, after = step["previous"], step["projection"]["configuration"]
        run = f"{Path(step['run']).name} " if several else ""
        name = f"{step['designer']}, {run}round {step['round']}"
        counts = (len(changed_values(before, after)), len(step["projection"]["changes"]), step["cost"]["completion_tokens"])
        facts.append(Row([name, step["outcome"], *map(str, counts)]))
        for knob in numbers(next(iter(before.values()))):
            values = [
                knob_figure(knobs.get(knob), row.get(knob), changed=row.get(knob) != before.get(group, {}).get(knob))
                for group, row in after.items()
            ]
            proposed.append(Row([f"{name}: {spaced(knob)}", *values]))
    columns = [Column("designer", words=True), Column("outcome", words=True)]
    columns += [Column(name) for name in ("values changed", "corrections", "tokens")]
    groups = [Column("after Project", words=True), *(Column(group) for group in steps[0]["previous"])]
    why = [(s, note) for s in steps if s["outcome"] not in PROPOSED for note in s["notes"]]
    notes = dict.fromkeys(f"{s['designer']} {s['outcome']} after round {s['round']}: {note}" for s, note in why)
    sections = [
        Section("Designs", [Table(columns, facts), Items(list(notes))]),
        Section("Configurations", [Table(groups, proposed), Paragraph("Marked values were changed by the design.", "soft")]),
    ]
    return Document("Designs", [], sections)
