"""`t2t solve`: exact optima of both objectives and `requires_wait`, beside the labels a file already has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from t2t_core.errors import T2TError
from t2t_core.store import folders, formats, jsonlines
from t2t_envs.cli.display import Display

if TYPE_CHECKING:
    from t2t_envs.frozen_lake.instance import Instance
    from t2t_envs.frozen_lake.solver import Label

BATCH = 64  # instances per call of the solver; the work limit is checked between calls


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write the instances with their exact labels here.")
@click.option("--max-nodes", type=click.IntRange(1), help="Limit of each search, in nodes; undecided instances are named.")
@click.option("--max-work", type=click.IntRange(1), help="Stop after so many steps of about 10 ns in total.")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True, help="The result does not depend on it.")
@click.option("--quiet", is_flag=True, help="Print the summary only.")
def solve(file: Path, out: Path | None, max_nodes: int | None, max_work: int | None, threads: int, quiet: bool) -> int:
    """Solve every instance of FILE exactly, for both objectives.

    FILE is JSON Lines, Parquet, a MovingAI scenario (FILE.scen@4 takes four agents per instance), YAML, or a folder of these.

    Stored labels that are wrong are flagged, and the exit status is then 1. `t2t show FILE#ID --solution` shows the paths.
    """
    from t2t_envs.frozen_lake import testbed
    from t2t_envs.frozen_lake.jsonl import read_instances, write_instances
    from t2t_envs.frozen_lake.solver import DEFAULT_MAX_NODES

    if out is not None:
        folders.refuse_device(out)
    instances = formats.read(testbed.make(), file) or read_instances(file)
    if not instances:
        raise T2TError("the file holds no instance", where=str(file))
    rows: list[Row] = []
    spent = 0
    note = "what is printed above is right" + (", nothing was written" if out else "")
    with Display() as display, display.interruptible(note):
        for begin in range(0, len(instances), BATCH):
            if max_work is not None and spent >= max_work:
                rows += [Row(instance, LEFT, LEFT) for instance in instances[begin:]]
                break
            progress = _Progress(display, len(instances), begin)
            batch = _solve(instances[begin : begin + BATCH], max_nodes or DEFAULT_MAX_NODES, threads, progress)
            spent += sum(row.work for row in batch)
            rows += batch
            display.erase()
            for row in batch:
                if not quiet or row.wrong:
                    click.echo(row.text())
    if out is not None:
        write_instances(out, (row.labelled() for row in rows))
    click.echo(_summary(rows))
    return 1 if any(row.wrong for row in rows) else 0


class _Left:
    """Takes the place of a label if the work limit was reached first."""

    status, cost, requires_wait, work = "left", None, None, 0


LEFT = _Left()


class Row:
    """One instance with the solver's labels."""

    def __init__(self, instance: Instance, makespan: Label | _Left, sum_of_costs: Label | _Left) -> None:
        self.instance = instance
        self.looked_at = makespan is not LEFT
        self.work = makespan.work + sum_of_costs.work
        own = makespan if instance.objective == "makespan" else sum_of_costs
        self.statuses = {makespan.status, sum_of_costs.status}
        self.labels: dict[str, Any] = {
            "optimal_makespan": makespan.cost,
            "optimal_sum_of_costs": sum_of_costs.cost,
            "requires_wait": own.requires_wait,
        }
        self.undecided = self.looked_at and "undecided" in self.statuses or (own.cost is not None and own.requires_wait is None)
        self.infeasible = "infeasible" in self.statuses
        stored = {name: getattr(instance, name) for name in self.labels}
        self.wrong = [
            f"{name} {jsonlines.dumps(stored[name])}"
            for name, value in self.labels.items()
            if stored[name] is not None and (self.infeasible or (value is not None and stored[name] != value))
        ]

    def text(self) -> str:
        """The row as a line for people: the labels, or that there is no solution, and labels that are stored wrong."""
        facts = " ".join(f"{name}={'?' if value is None else jsonlines.dumps(value)}" for name, value in self.labels.items())
        if self.infeasible:
            facts = "has no solution (proven)"
        notes = (" undecided within the node limit" if self.undecided else "") + (
            "  WRONG LABEL stored: " + ", ".join(self.wrong) if self.wrong else ""
        )
        return f"{self.instance.id or '(no id)'}  {facts}{notes}"

    def labelled(self) -> Instance:
        """The instance with the solver's labels. An undecided label is left empty, never guessed."""
        return replace(self.instance, **self.labels) if self.looked_at else self.instance


class _Progress:
    """Shows the progress through the file. Each instance is solved twice, once for each objective."""

    def __init__(self, display: Display, total: int, begin: int) -> None:
        self.display, self.total, self.begin = display, total, begin
        self.calls = 0.0  # finished in this batch

    def __call__(self, done: int) -> None:
        from t2t_envs.frozen_lake.generation.progress import duration

        solved, seconds = self.begin + (self.calls + done) / 2, self.display.seconds
        rate = solved / seconds if seconds > 0 else 0.0
        to_go = (self.total - solved) / rate if rate else float("inf")
        text = f"{solved:.0f} of {self.total} instances, {rate:.3g}/s"
        self.display.show(lambda: f"{text}, {duration(to_go)} to go")
        self.display.warn(to_go, lambda: f"this file will take about {duration(to_go)} more at the rate so far ({text}); "
                          "--max-work ends it sooner, a lower --max-nodes leaves hard instances sooner")  # fmt: skip

    def add(self, done: int) -> None:
        self.calls += done


def _solve(instances: Sequence[Instance], max_nodes: int, threads: int, progress: _Progress) -> list[Row]:
    makespan, total = (_labels(instances, name, max_nodes, threads, progress) for name in ("makespan", "sum_of_costs"))
    return [Row(*parts) for parts in zip(instances, makespan, total, strict=True)]


def _labels(instances: Sequence[Instance], objective: str, max_nodes: int, threads: int, progress: _Progress) -> list[Label]:
    """Labels for one objective. `requires_wait` is decided only for instances that have this objective."""
    from t2t_envs.frozen_lake.solver import solve_many

    own = [i for i, instance in enumerate(instances) if instance.objective == objective]
    other = [i for i, instance in enumerate(instances) if instance.objective != objective]
    labels: dict[int, Label] = {}
    for indices, wait in ((own, True), (other, False)):
        batch = [instances[i] for i in indices]
        solved = solve_many(batch, objective, max_nodes, wait=wait, threads=threads, progress=progress) if batch else []
        labels.update(zip(indices, solved, strict=True))
        progress.add(len(batch))
    return [labels[i] for i in range(len(instances))]


def _summary(rows: Sequence[Row]) -> str:
    counts = {
        "wrong labels": sum(bool(row.wrong) for row in rows),
        "undecided": sum(row.undecided for row in rows),
        "without a solution": sum(row.infeasible for row in rows),
    }
    if left := sum(not row.looked_at for row in rows):
        counts["not looked at: the work limit came first"] = left
    return f"{len(rows)} instances; " + ", ".join(f"{count} {name}" for name, count in counts.items())
