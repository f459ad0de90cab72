"""`t2t generate`: labelled instances from a configuration, as JSON Lines; or the frozen sets, made again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from t2t_core import jsonlines, runs
from t2t_core.errors import T2TError

if TYPE_CHECKING:
    from t2t_envs.frozen_lake.configuration import Configuration
    from t2t_envs.frozen_lake.generator import Report


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
@click.option("--sets", type=click.Path(path_type=Path, file_okay=False), help="Instead: make the frozen sets here.")
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
    sets: Path | None,
) -> None:
    """Draw labelled instances from a configuration."""
    if sets is not None:
        _make_sets(sets)
        return
    if configuration is None or out is None:
        missing = [name for name, given in (("--configuration", configuration), ("--out", out)) if given is None]
        raise T2TError(
            f"{' and '.join(missing)} must be given",
            next="t2t generate --configuration uniform --count 1000 --out instances.jsonl",
        )
    from t2t_envs.frozen_lake import generator, projection
    from t2t_envs.frozen_lake.configuration import Configuration
    from t2t_envs.frozen_lake.jsonl import read_instances

    forms = frozenset(instance.canonical() for path in exclude for instance in read_instances(path))
    request = generator.Request(count, agents, objective, forms, repeats)
    if configuration == "uniform":
        chosen = Configuration.uniform()
    elif configuration == "random":
        chosen = projection.random_configuration(request, seed)
        click.echo(jsonlines.dumps(chosen.to_dict()), err=True)
    else:
        chosen = _read_configuration(Path(configuration))
    instances = generator.generate(chosen, count, agents, seed, objective, forms, repeats, labels, threads=threads)
    text = "".join(jsonlines.dumps(instance.to_dict()) + "\n" for instance in instances)
    if str(out) == "-":
        click.echo(text, nl=False)
    else:
        runs.write_atomic(out, text)
    click.echo(_table(instances.report, out), err=True)


def _read_configuration(path: Path) -> Configuration:
    from t2t_envs.frozen_lake.configuration import Configuration

    try:
        data = jsonlines.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise T2TError(
            "the configuration cannot be read",
            where=str(path),
            cause=getattr(error, "strerror", None) or str(error)[:200],
            next='give a JSON file, e.g. {"3": {"data_ratio": 1, "hole_ratio": 0.2, "wait_ratio": 0.5}}, or uniform, or random',
        ) from None
    try:
        return Configuration.from_dict(data)
    except T2TError as error:
        raise T2TError(error.what, where=f"{path}, {error.where}", cause=error.cause, next=error.next) from None


def _table(report: Report, out: Path) -> str:
    """What was made, for people."""
    rows = [f"{'size':>5} {'holes':>6} {'instances':>10} {'wait':>6} {'repeats':>8} {'drawn':>9} {'undecided':>10}"]
    for s in report.sizes:
        rows.append(f"{s.size:>5} {s.holes:>6} {s.count:>10} {s.wait:>6} {s.repeats:>8} {s.drawn:>9} {s.undecided:>10}")
    total = sum(s.count for s in report.sizes)
    rows.append(f"{total} instances in {'standard output' if str(out) == '-' else out}")
    if report.undecided:
        rows.append(f"{report.undecided} candidates were left out undecided: hard instances are a little too rare")
    return "\n".join(rows)


def _make_sets(folder: Path) -> None:
    from t2t_envs.frozen_lake.frozen_sets import write_files

    for name in write_files(folder):
        click.echo(folder / name)
