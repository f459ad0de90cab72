"""`t2t show`: one instance, with an answer's or a solution's paths, as text, SVG, GIF or HTML animation."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from t2t_core.cli.show import IDENTITY, OUT, SET, SOURCE, chosen_instance, notes_of, read_answer, recorded_answer, verdict_lines
from t2t_core.errors import T2TError
from t2t_core.records import Verdict
from t2t_core.store import folders
from t2t_core.text import plain_lines

if TYPE_CHECKING:
    from t2t_envs.frozen_lake.instance import Cell, Instance

    Paths = Mapping[int, Sequence[Cell]] | Sequence[Sequence[Cell]]

BINARY = ("gif",)


@click.command(no_args_is_help=True)
@SOURCE
@SET
@IDENTITY
@click.option("--answer", type=click.Path(path_type=Path, allow_dash=True),
              help="Show this answer: a text file, - for standard input, or a bench's answers.jsonl.")  # fmt: skip
@click.option("--solution", is_flag=True, help="Show an optimal solution.")
@click.option("--format", "form", type=click.Choice(["terminal", "svg", "gif", "html", "map", "scen", "yaml"]),
              default="terminal", show_default=True, help="map, scen, yaml: the instance alone, for other solvers.")  # fmt: skip
@click.option("--still", is_flag=True, help="SVG: whole paths in one picture instead of an animation.")
@click.option("--step", type=click.IntRange(0), help="Terminal and SVG: the moment to show.")
@OUT
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
    from t2t_envs.frozen_lake import testbed

    instance = chosen_instance(testbed.make(), source, set_name, identity)
    shown = Shown(instance)
    if answer is not None:
        shown = _answered(instance, answer)
    elif solution:
        from t2t_envs.frozen_lake import solve, verify_paths

        paths = solve(instance).paths
        shown = Shown(instance, paths, verify_paths(instance, paths))
    _write(shown.draw(form, still, step, out is None), form, out)


def _map(instance: Instance) -> str:
    from t2t_envs.frozen_lake.movingai import map_text

    return map_text(instance)


def _scenario(instance: Instance) -> str:
    from t2t_envs.frozen_lake.movingai import named, scenario_text

    ((name, _),) = named([instance])
    return scenario_text(instance, f"{name}.map")


def _yaml(instance: Instance) -> str:
    from t2t_envs.frozen_lake.yaml_files import text

    return text(instance)


_FOREIGN = {"map": _map, "scen": _scenario, "yaml": _yaml}


@dataclass(frozen=True)
class Shown:
    """What is drawn: an instance, perhaps with paths and their verdict, and the title and text of a recorded answer."""

    instance: Instance
    paths: Paths | None = None
    verdict: Verdict | None = None
    notes: Sequence[tuple[str, str]] = ()

    def draw(self, form: str, still: bool, step: int | None, to_terminal: bool) -> str | bytes:
        """The picture in one of the forms: text, the bytes of a GIF, or another program's format."""
        if form in _FOREIGN:
            return _FOREIGN[form](self.instance)
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
        if self.verdict is None:
            return ""
        lines = verdict_lines(self.verdict) + [f"\n{title}:\n{text}" for title, text in self.notes]
        return plain_lines("\n" + "\n".join(lines) + "\n")


def _answered(instance: Instance, path: Path) -> Shown:
    from t2t_envs.frozen_lake import parse_answer, verify

    record = recorded_answer(instance, path) if path.suffix == ".jsonl" else {"text": read_answer(path)}
    text: str = record["text"]
    parsed = parse_answer(text) or {}
    paths = {agent: cells for agent, cells in parsed.items() if isinstance(agent, int)}
    return Shown(instance, paths, verify(instance, text), notes_of(record))


def _write(drawing: str | bytes, form: str, out: Path | None) -> None:
    if out is not None:
        folders.write_atomic(out, drawing)
        click.echo(f"wrote {out}", err=True)
    elif form in BINARY and sys.stdout.isatty():
        raise T2TError("a GIF can't be shown in the terminal", next=f"--out picture.{form}")
    else:
        click.echo(drawing, nl=False, color=True)
