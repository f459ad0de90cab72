"""`t2t generate`: labelled instances from a configuration as JSON Lines, answers to learn from, or the frozen sets again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from t2t_core.cli import answer_options
from t2t_core.errors import T2TError
from t2t_core.store import folders, jsonlines
from t2t_envs.cli.display import Display

if TYPE_CHECKING:
    from t2t_envs.frozen_lake.generation.configuration import Configuration
    from t2t_envs.frozen_lake.generation.generator import Report
    from t2t_envs.frozen_lake.generation.progress import Progress
    from t2t_envs.frozen_lake.generation.request import Request
    from t2t_envs.frozen_lake.instance import Instance


@click.command(no_args_is_help=True)
@click.option("--configuration", help='A JSON file (size -> ratios), "uniform" (hole 0.2, wait 0.5) or "random" (by --seed).')
@click.option("--count", type=click.IntRange(1), default=1000, show_default=True, help="Number of instances.")
@click.option("--agents", type=click.IntRange(1, 16), default=2, show_default=True, help="Agents per instance.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The same seed gives the same bytes.")
@click.option("--objective", type=click.Choice(["makespan", "sum_of_costs"]), default="makespan", show_default=True)
@click.option("--labels", type=click.Choice(["own", "both"]), default="own", show_default=True, help="Which optima to store.")
@click.option("--repeats", type=click.Choice(["allow", "forbid"]), default="allow", show_default=True,
              help="forbid: each form once, up to relabelling agents and the 8 grid symmetries.")  # fmt: skip
@click.option("--exclude", type=click.Path(path_type=Path), multiple=True, help="Instances never to draw again (repeatable).")
@click.option("--out", type=click.Path(path_type=Path, allow_dash=True), help="The file to write, - for standard output.")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True, help="The result does not depend on it.")
@click.option("--max-nodes", type=click.IntRange(1), help="Of each search; undecided candidates are left out.")
@click.option("--max-work", type=click.IntRange(1), help="Give up what will hardly be filled in so many steps of about 10 ns.  "
              "[default: 10^12, some hours]")  # fmt: skip
@click.option("--sets", type=click.Path(path_type=Path, file_okay=False), help="Instead: make the frozen sets here.")
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
    out: Path | None,
    threads: int,
    max_nodes: int | None,
    max_work: int | None,
    sets: Path | None,
    **answers: Any,
) -> None:
    """Draw labelled instances from a configuration.

    With --answers-from POLICY that policy is asked about them, and --out gets the answers that the verifier passed, as chat
    messages to learn from (the trainer trl-sft takes the file). No instance of an evaluation or validation set is drawn then.
    Every answer is kept in OUT.asked as it comes; the same command goes on after a kill.

    How far it is shows on standard error. Ctrl-C ends it, and leaves no half file.
    """
    if sets is not None:
        _make_sets(sets)
        return
    from t2t_envs.frozen_lake import testbed
    from t2t_envs.frozen_lake.generation.generator import generate as draw
    from t2t_envs.frozen_lake.generation.request import Request
    from t2t_envs.frozen_lake.jsonl import read_instances

    lake, asking = testbed.make(), answers["answers_from"] is not None
    given = answer_options.read_instances(lake, answers)
    out = _checked(configuration, out, given is not None, asking)
    if given is None:
        forms = frozenset(instance.canonical() for path in exclude for instance in read_instances(path))
        if asking:
            forms |= lake.request(count, agents=agents).exclude
        chosen = _configuration(str(configuration), Request(count, agents, objective, forms, repeats), seed)
        limits = {name: value for name, value in (("max_nodes", max_nodes), ("max_work", max_work)) if value is not None}
        with Display() as display, display.interruptible("nothing was written"):
            display.begin("looking at what each size can hold")
            given = draw(
                chosen, count, agents, seed, objective, forms, repeats, labels, threads=threads,
                progress=lambda progress: _show(progress, display), **limits,
            )  # fmt: skip
        if not asking:
            _write(given, out)
        click.echo(_table(given.report, "drawn" if asking else f"in {'standard output' if str(out) == '-' else out}"), err=True)
    if asking:
        answer_options.ask(lake, given, answers, seed, out)


def _show(progress: Progress, display: Display) -> None:
    """How far the order is; once, early, that it will take long."""
    from t2t_envs.frozen_lake.generation.progress import duration

    p = progress
    rate = f"{p.found} of {p.ordered} instances from {p.drawn} candidates, {p.rate:.3g}/s"
    undecided = f", {p.undecided} undecided" if p.undecided else ""
    where = f"now {p.size}x{p.size} with {p.holes} holes"
    display.show(lambda: f"{rate}{undecided}, {duration(p.to_go)} to go; {where}")
    long = f"this order will take about {duration(p.to_go)} more at the rate so far" if p.found else "no instance yet"
    display.warn(
        p.to_go,
        lambda: f"{long} ({rate}{undecided}; {where}).\nNothing is written before it is filled. Ctrl-C ends it; "
        "with fewer agents or instances it is quicker.",
    )


def _checked(configuration: str | None, out: Path | None, given: bool, asking: bool) -> Path:
    """The file to write; T2TError where an option is missing, or one too many."""
    if given and configuration is not None:
        raise T2TError("--configuration and --instances exclude each other", cause="instances are drawn, or read from a file")
    wanted = (("--configuration", configuration or given), ("--out", out))
    missing = [name for name, value in wanted if not value]
    if missing or out is None:
        raise T2TError(
            f"{' and '.join(missing)} must be given",
            next="t2t generate --configuration uniform --count 1000 --out instances.jsonl",
        )
    if asking and str(out) == "-":
        raise T2TError("answers go to a file: what was asked is kept beside it", next="--out answers.jsonl")
    return out


def _configuration(name: str, request: Request, seed: int) -> Configuration:
    from t2t_envs.frozen_lake.generation import projection
    from t2t_envs.frozen_lake.generation.configuration import Configuration

    if name == "uniform":
        return Configuration.uniform()
    if name == "random":
        chosen = projection.random_configuration(request, seed)
        click.echo(jsonlines.dumps(chosen.to_dict()), err=True)
        return chosen
    return _read_configuration(Path(name))


def _write(instances: Sequence[Instance], out: Path) -> None:
    text = "".join(jsonlines.dumps(instance.to_dict()) + "\n" for instance in instances)
    if str(out) == "-":
        click.echo(text, nl=False)
    else:
        folders.write_atomic(out, text)


def _read_configuration(path: Path) -> Configuration:
    from t2t_envs.frozen_lake.generation.configuration import Configuration

    try:
        data = folders.read_json(path)
    except T2TError as error:
        raise T2TError(
            "the configuration cannot be read",
            where=error.where,
            cause=error.cause or error.what,
            next='give a JSON file, e.g. {"3": {"data_ratio": 1, "hole_ratio": 0.2, "wait_ratio": 0.5}}, or uniform, or random',
        ) from None
    try:
        return Configuration.from_dict(data)
    except T2TError as error:
        raise T2TError(error.what, where=f"{path}, {error.where}", cause=error.cause, next=error.next) from None


def _table(report: Report, where: str) -> str:
    """What was made, for people."""
    rows = [f"{'size':>5} {'holes':>6} {'instances':>10} {'wait':>6} {'repeats':>8} {'drawn':>9} {'undecided':>10}"]
    for s in report.sizes:
        rows.append(f"{s.size:>5} {s.holes:>6} {s.count:>10} {s.wait:>6} {s.repeats:>8} {s.drawn:>9} {s.undecided:>10}")
    total = sum(s.count for s in report.sizes)
    rows.append(f"{total} instances {where}")
    if report.undecided:
        rows.append(f"{report.undecided} candidates were left out undecided: hard instances are a little too rare")
    return "\n".join(rows)


def _make_sets(folder: Path) -> None:
    from t2t_envs.frozen_lake.generation.frozen_sets import write_files

    for name in write_files(folder):
        click.echo(folder / name)
