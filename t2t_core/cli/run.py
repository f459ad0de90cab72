"""`t2t run`: the closed loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from t2t_core.cli.loop_options import experiment_options, gather, preset_of, print_dry_run
from t2t_core.errors import T2TError
from t2t_core.loop.whole_run import run_experiment
from t2t_core.report import terminal
from t2t_core.report.run_document import run_document
from t2t_core.run.forks import Fork
from t2t_core.run.gpus import read_gpus
from t2t_core.run.progress import Reporter
from t2t_core.store import folders
from t2t_core.store.paths import SafePath


@click.command(context_settings={"ignore_unknown_options": True})
@experiment_options
@click.option("--fork", "fork_text", metavar="RUN@ROUND", help="Start from a finished round of another run.")
@click.option("--with-control", is_flag=True, help="Also run the control, which keeps round 0's configuration.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Run folder (default: runs/PRESET-SEED).")
@click.option("--dry-run", is_flag=True, help="Print every hyperparameter and the plan, then stop.")
@click.option("--gpus", metavar="4x80", help="Plan for these GPUs, here four of 80 GB each (default: this machine's).")
@click.argument("testbed_options", nargs=-1, type=click.UNPROCESSED)
def run(fork_text: str | None, with_control: bool, out: Path | None, dry_run: bool, gpus: str | None, **given: Any) -> None:
    """The closed loop: generate, train, validate, design, round after round.

    The same command again continues where the last one stopped. A testbed adds options of its own, which say what the bench at
    the end measures; t2t bench --testbed NAME --help lists them.
    """
    fork = Fork.parse(fork_text) if fork_text else None
    experiment, published = gather(given, fork)
    planned = read_gpus(gpus) if gpus else None
    if dry_run:
        print_dry_run(experiment, published, planned)
        return
    if fork and not out:
        raise T2TError("a fork needs a folder of its own", next="add --out DIR")
    folder = out or Path("runs") / f"{preset_of(given, fork) or 'run'}-{experiment.seed}"
    if fork and folder.resolve() == fork.source.path.resolve():
        raise T2TError("a fork cannot be written into the run it starts from", where=str(folder), next="give another --out")
    click.echo(f"run folder {folder} ({'resumed' if (SafePath(folder) / folders.MANIFEST).exists() else 'new'})")
    summary = run_experiment(experiment, folder, Reporter(click.echo), fork, with_control, gpus=planned)
    terminal.show(run_document(folder, summary), terminal.console())
    click.echo(f"\nsummary: {folder / 'summary.md'}   page: t2t report {folder}")
