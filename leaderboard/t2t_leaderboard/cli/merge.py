"""`t2t merge`: join what was done in parts: bench folders, or files of drawn instances."""

from __future__ import annotations

from pathlib import Path

import click

from t2t_core.cli.generate import check_form, where, write_instances
from t2t_core.plugins import installed
from t2t_core.store import parts


@click.command(no_args_is_help=True)
@click.argument("sources", metavar="PARTS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The new bench folder, or the file of instances.")
@click.option("--reported/--no-reported", default=True, help="Rows of the paper beside the measured ones.  [default: yes]")
@click.option("--format", "form", metavar="NAME", default="jsonl", show_default=True, help="Of instances: see t2t generate.")
def merge(sources: tuple[Path, ...], out: Path, reported: bool, form: str) -> int:
    """Put PARTS together: bench folders that each asked a part of the same questions (`t2t bench --shard 1/4`), or files that
    each hold a part of one order of instances (`t2t generate --shard 1/4`).

    The result is what one command would have left. If no bench folder answered a question, it is still missing: give
    `t2t bench --out OUT` the same options as before, without --shard, to ask it.
    """
    if any(path.is_file() for path in sources):
        return _instances(sources, out, form)
    from t2t_core.report import terminal
    from t2t_leaderboard import merging
    from t2t_leaderboard.board_document import board_document

    made, verification = merging.merge(sources, out, reported)
    console = terminal.console()
    terminal.show(board_document(made, verification.record()), console)
    console.print(f"\n{out}/leaderboard.html", soft_wrap=True, highlight=False, markup=False)
    return 0 if verification.verified else 1


def _instances(sources: tuple[Path, ...], out: Path, form: str) -> int:
    world = installed().testbeds.make(parts.testbed_of(sources[0]))
    check_form(world, form, out, asking=False)
    instances, about = parts.merge(world, sources)
    write_instances(world, instances, out, form, about)
    click.echo(f"{len(instances)} instances of {len(sources)} parts {where(out)}", err=True)
    return 0
