"""`t2t sweep`: a grid of runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from t2t_core.cli.generate import configuration_in
from t2t_core.cli.loop_options import experiment_options, gather
from t2t_core.errors import T2TError
from t2t_core.loop import on_ray
from t2t_core.loop.sweep import Ahead, Grid, arm_name
from t2t_core.loop.sweep import sweep as sweep_grid
from t2t_core.plugins import installed
from t2t_core.report import markdown, terminal
from t2t_core.report.sweep_document import sweep_document
from t2t_core.run.experiment import Experiment
from t2t_core.run.progress import Reporter
from t2t_core.store import folders
from t2t_core.study.comparing import compare
from t2t_core.study.plan import code_hash, read_plan
from t2t_core.study.running import run_plan
from t2t_core.study.study_document import study_document

FILES = "--configurations"


class _Sweep(click.Command):
    """Treat `--configurations A B C` as the option given three times."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        listing = False
        for word in args:
            if word.startswith("-"):
                listing = word == FILES
                spread += [] if listing else [word]
            else:
                spread += [FILES, word] if listing else [word]
        return super().parse_args(ctx, spread)


@click.command(cls=_Sweep, context_settings={"ignore_unknown_options": True})
@experiment_options
@click.option("--designers", help="Designers, separated by spaces: 'fixed random rule base checkpoint'.")
@click.option("--contexts", help="Contexts, separated by spaces: 'V1 V2 V3 V4 V5 V6' or 'F,G,T:full F,G,T'.")
@click.option(FILES, "files", multiple=True, metavar="FILE...", type=click.Path(path_type=Path, dir_okay=False),
              help="Fixed configurations as arms, instead of designers: JSON files, the first one the control.")  # fmt: skip
@click.option("--seeds", help="Seeds, separated by spaces, or a range 0-4 (default: --seed, or that of the settings).")
@click.option(
    "--plan",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A study's plan; it allows no other options than --out, --ray and --dry-run.",
)
@click.option("--dry-run", is_flag=True, help="With --plan: check it, print the hash of the code and what would run, then stop.")
@click.option("--ray", "cluster", metavar="WHERE",
              help="Do the runs side by side on Ray: local, auto or HOST:PORT, then ,cpus=N,gpus=N for each run.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder of the sweep.")
@click.argument("testbed_options", nargs=-1, type=click.UNPROCESSED)
def sweep(
    designers: str | None,
    contexts: str | None,
    files: tuple[Path, ...],
    seeds: str | None,
    plan: Path | None,
    dry_run: bool,
    cluster: str | None,
    out: Path | None,
    **given: Any,
) -> None:
    """A grid of runs: every designer with every context for every seed, all forked from one shared round 0 per seed.

    \b
    who designs          t2t sweep --designers "fixed random rule uniform base checkpoint" --seeds 0-4 --out sweeps/who
    context V1 to V6     t2t sweep --contexts "V1 V2 V3 V4 V5 V6" --seeds 0-4 --out sweeps/context
    T(full), T(bookkeeping)  t2t sweep --contexts "F,G,H:no_round_0,T:full F,G,H:no_round_0,T:bookkeeping" --out sweeps/t
    control, same samples    t2t sweep --designers "fixed checkpoint" --seeds 0-4 --out sweeps/control
    fixed configurations     t2t sweep --configurations even.json hard.json --seeds 0-4 --out sweeps/fixed

    With --plan FILE, run a preregistered study: the file holds its arms, seeds, gate and comparisons, and nothing is compared
    before every arm is finished.

    The same command again continues where the last one stopped.
    """
    if plan:
        others = {"--designers": designers, "--contexts": contexts, "--seeds": seeds, FILES: files}
        others |= {f"--{name}": value for name, value in given.items()}
        _of_plan(plan, dry_run, out, cluster, [name for name, value in others.items() if value])
        return
    if dry_run:
        raise T2TError("--dry-run needs --plan", where="t2t sweep", next="t2t run --dry-run prints a run's settings")
    if out is None:
        raise T2TError("the sweep needs a folder", where="t2t sweep", next="add --out DIR")
    for option, many in (("designer", designers), ("context", contexts), ("seed", seeds)):
        if given[option] is not None and many is not None:
            raise T2TError(f"--{option} and --{option}s exclude each other", where="t2t sweep", next=f"give --{option}s alone")
    experiment, _ = gather(given)
    seed_numbers = [experiment.seed] if seeds is None else _seeds(seeds)
    if files:
        grid = Grid([], [], seed_numbers, _configurations(experiment, files, given, designers, contexts))
    else:
        grid = Grid(_words(designers) or [experiment.designer], _words(contexts) or [experiment.context], seed_numbers)
    reporter = Reporter(click.echo)
    result = sweep_grid(experiment, grid, out, reporter, _ahead(cluster, reporter))
    terminal.show(sweep_document(result), terminal.console())


def _configurations(
    experiment: Experiment, files: tuple[Path, ...], given: Mapping[str, Any], *others: str | None
) -> dict[str, Any]:
    """The configurations, keyed by the names of their files."""
    if any((*others, given["designer"], given["context"])):
        raise T2TError(
            "fixed configurations leave nothing to design",
            where=FILES,
            next="give either the files, or designers and contexts",
        )
    testbed = installed().testbeds.make(experiment.testbed)
    configurations: dict[str, Any] = {}
    for path in files:
        name = arm_name(path.stem)
        if name in configurations:
            raise T2TError(f"two files are called {name}", where=FILES, next="rename one: an arm is named after its file")
        configurations[name] = configuration_in(testbed, path).to_dict()
    return configurations


def _ahead(cluster: str | None, reporter: Reporter) -> Ahead | None:
    """What does the runs on a cluster; None if they are done here."""
    return None if cluster is None else partial(on_ray.run_ahead, cluster=on_ray.Cluster.parse(cluster), reporter=reporter)


def _of_plan(path: Path, dry_run: bool, out: Path | None, cluster: str | None, others: list[str]) -> None:
    if others:
        cause = "a plan holds everything but --out and --ray"
        raise T2TError(f"{others[0]} and --plan exclude each other", where="t2t sweep", cause=cause)
    file = read_plan(path)
    if dry_run:
        click.echo(f'code = "{code_hash()}"\nplan {file.sha256}')
        click.echo(f"{len(file.plan.seeds)} seeds x {len(file.plan.arms)} arms: {', '.join(file.plan.arms)}")
        return
    if out is None:
        raise T2TError("the study needs a folder", where="t2t sweep", next="add --out DIR")
    reporter = Reporter(click.echo)
    result = compare(file, run_plan(file, out, reporter, _ahead(cluster, reporter)))
    document = study_document(result)
    folders.write_json(out / "study.json", result)
    folders.write_atomic(out / "study.md", markdown.render(document))
    terminal.show(document, terminal.console())


def _words(text: str | None) -> list[str]:
    """Words separated by spaces, without repeats."""
    return list(dict.fromkeys((text or "").split()))


def _seeds(text: str) -> list[int]:
    seeds: list[int] = []
    for word in text.split():
        low, separator, high = word.partition("-")
        if not (low.isdecimal() and len(low) < 19 and (not separator or (high.isdecimal() and len(high) < 19))):
            raise T2TError(f"--seeds takes numbers or a range, not {ascii(word)[:60]}", next="--seeds '0 1 2' or --seeds 0-4")
        seeds += range(int(low), min(int(high or low), int(low) + 10_000) + 1) if separator else [int(low)]
    if not seeds:
        raise T2TError("--seeds names no seed", next="--seeds 0-4")
    return list(dict.fromkeys(seeds))
