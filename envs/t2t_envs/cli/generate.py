"""`t2t generate`: labelled instances from a configuration as JSON Lines, answers to learn from, or the frozen sets again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from t2t_core.cli import answer_options
from t2t_core.cli.generate import (
    COUNT,
    EXCLUDE,
    FORMAT,
    OUT,
    SEED,
    SHARD,
    check_form,
    check_shard,
    checked,
    configured,
    where,
    write_instances,
)
from t2t_core.store import parts
from t2t_core.store.formats import About
from t2t_core.store.instance_files import read_instances
from t2t_envs.cli.display import Display

if TYPE_CHECKING:
    from t2t_envs.frozen_lake.generation.generator import Report
    from t2t_envs.frozen_lake.generation.progress import Progress


@click.command(no_args_is_help=True)
@click.option("--configuration", help='A JSON file (size -> ratios), "uniform" (hole 0.2, wait 0.5) or "random" (by --seed).')
@COUNT
@click.option("--agents", type=click.IntRange(1, 16), default=2, show_default=True, help="Agents per instance.")
@SEED
@click.option("--objective", type=click.Choice(["makespan", "sum_of_costs"]), default="makespan", show_default=True)
@click.option("--labels", type=click.Choice(["own", "both"]), default="own", show_default=True, help="Which optima to store.")
@click.option("--repeats", type=click.Choice(["allow", "forbid"]), default="allow", show_default=True,
              help="forbid: each form once, up to relabelling agents and the 8 grid symmetries.")  # fmt: skip
@EXCLUDE
@FORMAT
@SHARD
@OUT
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True, help="The result does not depend on it.")
@click.option("--max-nodes", type=click.IntRange(1), help="Limit of each search; undecided candidates are left out.")
@click.option("--max-work", type=click.IntRange(1), help="Give up an order that would hardly be filled in so many steps of "
              "about 10 ns.  [default: 10^12, some hours]")  # fmt: skip
@click.option("--sets", type=click.Path(path_type=Path, file_okay=False), help="Make the frozen sets in this folder instead.")
@answer_options.answer_options
def generate(
    configuration: str | None,
    count: int,
    agents: int,
    seed: int,
    objective: str,
    labels: str,
    repeats: str,
    exclude: tuple[Path, ...],
    form: str,
    shard: str | None,
    out: Path | None,
    threads: int,
    max_nodes: int | None,
    max_work: int | None,
    sets: Path | None,
    **answers: Any,
) -> None:
    """Draw labelled instances from a configuration.

    With --answers-from POLICY, that policy answers them, and --out gets the answers that passed the verifier, as chat messages
    to learn from (the trainer trl-sft takes the file). No instance of an evaluation or validation set is drawn then. Every
    answer is stored in OUT.asked as it arrives, so the same command continues after a kill.

    Progress is shown on standard error. Ctrl-C ends the command and leaves no partial file.
    """
    if sets is not None:
        _make_sets(sets)
        return
    from t2t_envs.frozen_lake import testbed
    from t2t_envs.frozen_lake.generation.configuration import Configuration
    from t2t_envs.frozen_lake.generation.generator import generate as draw
    from t2t_envs.frozen_lake.generation.request import Request

    lake, asking = testbed.make(), answers["answers_from"] is not None
    given = answer_options.read_instances(lake, answers)
    out = checked(configuration, out, given is not None, asking)
    check_form(lake, form, out, asking)
    part = check_shard(shard, form, out, asking)
    if given is None:
        forms = frozenset(instance.canonical() for path in exclude for instance in read_instances(lake, path))
        if asking:
            forms |= lake.request(count, agents=agents).exclude
        request = Request(count, agents, objective, forms, repeats)
        uniform = configuration == "uniform"
        drawn_from = Configuration.uniform() if uniform else configured(lake, str(configuration), request, seed)
        limits = {name: value for name, value in (("max_nodes", max_nodes), ("max_work", max_work)) if value is not None}
        with Display() as display, display.interruptible("nothing was written"):
            display.begin("looking at what each size can hold")
            given = draw(
                drawn_from, count, agents, seed, objective, forms, repeats, labels, threads=threads,
                shard=(part.number, part.of) if part else (1, 1), progress=lambda progress: _show(progress, display), **limits,
            )  # fmt: skip
        settings = {
            "count": count,
            "agents": agents,
            "objective": objective,
            "labels": labels,
            "repeats": repeats,
            "seed": seed,
        }
        about = About(answers["prompt_format"], settings, drawn_from.to_dict())
        if part:
            pairs = list(zip(given.positions, given, strict=True))
            parts.write(lake, pairs, count, part, parts.Order.of(about, forms, max_nodes=max_nodes), about, out)
        elif not asking:
            write_instances(lake, given, out, form, about)
        click.echo(_table(given.report, "drawn" if asking else where(out)), err=True)
    if asking:
        answer_options.ask(lake, given, answers, seed, out)


def _show(progress: Progress, display: Display) -> None:
    """Show the progress; warn once, early, if the order will take long."""
    from t2t_envs.frozen_lake.generation.progress import duration

    p = progress
    rate = f"{p.kept} of {p.ordered} instances from {p.drawn} candidates, {p.rate:.3g}/s"
    undecided = f", {p.undecided} undecided" if p.undecided else ""
    where = f"now {p.size}x{p.size} with {p.holes} holes"
    display.show(lambda: f"{rate}{undecided}, {duration(p.to_go)} to go; {where}")
    long = f"this order will take about {duration(p.to_go)} more at the rate so far" if p.kept else "no instance yet"
    display.warn(
        p.to_go,
        lambda: (
            f"{long} ({rate}{undecided}; {where}).\nNothing is written before it is filled. Ctrl-C ends it; "
            "with fewer agents or instances it is quicker."
        ),
    )


def _table(report: Report, target: str) -> str:
    """The report as a table for people."""
    rows = [f"{'size':>5} {'holes':>6} {'instances':>10} {'wait':>6} {'repeats':>8} {'drawn':>9} {'undecided':>10}"]
    for s in report.sizes:
        rows.append(f"{s.size:>5} {s.holes:>6} {s.count:>10} {s.wait:>6} {s.repeats:>8} {s.drawn:>9} {s.undecided:>10}")
    total = sum(s.count for s in report.sizes)
    rows.append(f"{total} instances {target}")
    if report.undecided:
        rows.append(f"{report.undecided} candidates were left out undecided: hard instances are a little too rare")
    return "\n".join(rows)


def _make_sets(folder: Path) -> None:
    from t2t_envs.frozen_lake.generation.frozen_sets import write_files

    for name in write_files(folder):
        click.echo(folder / name)
