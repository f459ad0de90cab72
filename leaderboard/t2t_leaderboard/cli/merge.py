"""`t2t merge`: bench folders that each asked a part, as one."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(no_args_is_help=True)
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The new bench folder.")
@click.option("--reported/--no-reported", default=True, help="Rows of the paper beside the measured ones.  [default: yes]")
def merge(folders: tuple[Path, ...], out: Path, reported: bool) -> int:
    """Put bench FOLDERS together that each asked a part of the same questions, as `t2t bench --shard 1/4` does.

    The answers and the leaderboard are those of one bench. What no folder answered is still missing: `t2t bench --out OUT`, with
    the options of before and without --shard, asks for it.
    """
    from t2t_core.report import terminal
    from t2t_leaderboard import merging, runner
    from t2t_leaderboard.board_document import board_document

    merged = merging.merge(folders, out)
    made, verification = runner.write(merged, reported)
    console = terminal.console()
    terminal.show(board_document(made, verification.record()), console)
    console.print(f"\n{merged}/leaderboard.html", soft_wrap=True, highlight=False, markup=False)
    return 0 if verification.verified else 1
