"""`t2t solve`: exact optima of both objectives and `requires_wait`, beside the labels a file already has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from t2t_core.errors import T2TError
from t2t_core.store import jsonlines

if TYPE_CHECKING:
    from t2t_envs.frozen_lake.instance import Instance
    from t2t_envs.frozen_lake.solver import Label

BATCH = 500  # instances a call of the solver; only the progress depends on it


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write the instances with their exact labels here.")
@click.option("--max-nodes", type=click.IntRange(1), help="The limit of each search, in nodes; what it does not decide is said.")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True, help="The result does not depend on it.")
@click.option("--quiet", is_flag=True, help="Print the summary only.")
def solve(file: Path, out: Path | None, max_nodes: int | None, threads: int, quiet: bool) -> int:
    """Solve every instance of a JSON Lines FILE exactly, for both objectives.

    Stored labels that differ are flagged, and the status is then 1. The paths are shown by `t2t show FILE#ID --solution`.
    """
    from t2t_envs.frozen_lake.jsonl import read_instances, write_instances
    from t2t_envs.frozen_lake.solver import DEFAULT_MAX_NODES

    instances = read_instances(file)
    if not instances:
        raise T2TError("the file holds no instance", where=str(file))
    rows: list[Row] = []
    for begin in range(0, len(instances), BATCH):
        batch = _solve(instances[begin : begin + BATCH], max_nodes or DEFAULT_MAX_NODES, threads)
        rows += batch
        for row in batch:
            if not quiet or row.wrong:
                click.echo(row.text())
    if out is not None:
        write_instances(out, (row.labelled() for row in rows))
    click.echo(_summary(rows))
    return 1 if any(row.wrong for row in rows) else 0


class Row:
    """One instance with what the solver says of it."""

    def __init__(self, instance: Instance, makespan: Label, sum_of_costs: Label) -> None:
        self.instance = instance
        own = makespan if instance.objective == "makespan" else sum_of_costs
        self.statuses = {makespan.status, sum_of_costs.status}
        self.found: dict[str, Any] = {
            "optimal_makespan": makespan.cost,
            "optimal_sum_of_costs": sum_of_costs.cost,
            "requires_wait": own.requires_wait,
        }
        self.undecided = "undecided" in self.statuses or (own.cost is not None and own.requires_wait is None)
        self.infeasible = "infeasible" in self.statuses
        stored = {name: getattr(instance, name) for name in self.found}
        self.wrong = [
            f"{name} {jsonlines.dumps(stored[name])}"
            for name, value in self.found.items()
            if stored[name] is not None and (self.infeasible or (value is not None and stored[name] != value))
        ]

    def text(self) -> str:
        facts = " ".join(f"{name}={'?' if value is None else jsonlines.dumps(value)}" for name, value in self.found.items())
        if self.infeasible:
            facts = "has no solution (proven)"
        notes = (" undecided within the node limit" if self.undecided else "") + (
            "  WRONG LABEL stored: " + ", ".join(self.wrong) if self.wrong else ""
        )
        return f"{self.instance.id or '(no id)'}  {facts}{notes}"

    def labelled(self) -> Instance:
        """With the labels found; those that were not decided are left empty, never guessed."""
        return replace(self.instance, **self.found)


def _solve(instances: Sequence[Instance], max_nodes: int, threads: int) -> list[Row]:
    from t2t_envs.frozen_lake.solver import solve_many

    makespan, total = (_labels(solve_many, instances, name, max_nodes, threads) for name in ("makespan", "sum_of_costs"))
    return [Row(*parts) for parts in zip(instances, makespan, total, strict=True)]


def _labels(solve_many: Any, instances: Sequence[Instance], objective: str, max_nodes: int, threads: int) -> list[Label]:
    """Labels for one objective; the wait question is asked only of instances whose own objective it is."""
    own = [i for i, instance in enumerate(instances) if instance.objective == objective]
    other = [i for i, instance in enumerate(instances) if instance.objective != objective]
    labels: dict[int, Label] = {}
    for chosen, wait in ((own, True), (other, False)):
        found = solve_many([instances[i] for i in chosen], objective, max_nodes, wait=wait, threads=threads) if chosen else []
        labels.update(zip(chosen, found, strict=True))
    return [labels[i] for i in range(len(instances))]


def _summary(rows: Sequence[Row]) -> str:
    counts = {
        "wrong labels": sum(bool(row.wrong) for row in rows),
        "undecided": sum(row.undecided for row in rows),
        "without a solution": sum(row.infeasible for row in rows),
    }
    return f"{len(rows)} instances; " + ", ".join(f"{count} {name}" for name, count in counts.items())
