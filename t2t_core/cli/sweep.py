"""`t2t sweep`: a grid of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from t2t_core.cli.loop_options import experiment_options, gather
from t2t_core.errors import T2TError
from t2t_core.loop.sweep import Grid
from t2t_core.loop.sweep import sweep as sweep_grid
from t2t_core.report import terminal
from t2t_core.report.sweep_document import sweep_document
from t2t_core.run.progress import Reporter


@click.command(context_settings={"ignore_unknown_options": True})
@experiment_options
@click.option("--designers", help="Who designs, separated by spaces: 'fixed random rule base checkpoint'.")
@click.option("--contexts", help="Contexts, separated by spaces: 'V1 V2 V3 V4 V5 V6' or 'F,G,T:full F,G,T'.")
@click.option("--seeds", help="Seeds, separated by spaces, or a range 0-4 (default: the configuration's one, or --seed).")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder of the sweep.")
@click.argument("testbed_options", nargs=-1, type=click.UNPROCESSED)
def sweep(designers: str | None, contexts: str | None, seeds: str | None, out: Path, **given: Any) -> None:
    """A grid of runs: every designer with every context for every seed, forked from one shared round 0 per seed.

    \b
    who designs          t2t sweep --designers "fixed random rule uniform base checkpoint" --seeds 0-4 --out sweeps/who
    context V1 to V6     t2t sweep --contexts "V1 V2 V3 V4 V5 V6" --seeds 0-4 --out sweeps/context
    T(full), T(bookkeeping)  t2t sweep --contexts "F,G,H:no_round_0,T:full F,G,H:no_round_0,T:bookkeeping" --out sweeps/t
    control, same samples    t2t sweep --designers "fixed checkpoint" --seeds 0-4 --out sweeps/control

    The same command again goes on where the last one stopped.
    """
    for one, many in (("designer", designers), ("context", contexts), ("seed", seeds)):
        if given[one] is not None and many is not None:
            raise T2TError(f"--{one} and --{one}s say it twice", where="t2t sweep", next=f"give --{one}s alone")
    experiment, _ = gather(given)
    chosen = [experiment.seed] if seeds is None else _seeds(seeds)
    grid = Grid(_words(designers) or [experiment.designer], _words(contexts) or [experiment.context], chosen)
    result = sweep_grid(experiment, grid, out, Reporter(click.echo))
    terminal.show(sweep_document(result), terminal.console())


def _words(text: str | None) -> list[str]:
    """Words separated by spaces, each once."""
    return list(dict.fromkeys((text or "").split()))


def _seeds(text: str) -> list[int]:
    found: list[int] = []
    for word in text.split():
        low, separator, high = word.partition("-")
        if not (low.isdecimal() and len(low) < 19 and (not separator or (high.isdecimal() and len(high) < 19))):
            raise T2TError(f"--seeds wants numbers or a range, not {ascii(word)[:60]}", next="--seeds '0 1 2' or --seeds 0-4")
        found += range(int(low), min(int(high or low), int(low) + 10_000) + 1) if separator else [int(low)]
    if not found:
        raise T2TError("--seeds names no seed", next="--seeds 0-4")
    return list(dict.fromkeys(found))
